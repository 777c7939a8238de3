package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	readyMax = 15 * time.Second // how long a process may take to be ready
	endMax   = 15 * time.Second // and how long to end, before it is killed
)

// buildLandfast builds the program as it is released, and says where it is.
func buildLandfast(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "landfast")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "github.com/landfast/landfast/cmd/landfast")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build ./cmd/landfast: %w\n%s", err, out)
	}
	return file, nil
}

// process is a server that the bench started.
type process struct {
	cmd     *exec.Cmd
	address string        // host:port
	ready   time.Duration // from its start to the first answer that it is ready
	log     string        // the file with what it wrote to standard error
	metrics bool          // it shows the metrics of Go
	exited  chan struct{} // closed once it ended and err is set
	err     error
}

// startLandfast starts the program on a data directory with its defaults, and
// waits until it is ready.
func startLandfast(ctx context.Context, binary, data string) (*process, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	p, err := start(exec.Command(binary, "serve", "--data", data, "--listen", address), data+".log")
	if err != nil {
		return nil, err
	}
	p.address, p.metrics = address, true
	if err := p.awaitReady(ctx, "/readyz", readyMax); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.ready = time.Since(began)
	return p, nil
}

// freeAddress is a loopback address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start runs a command whose output goes to a file, except what it writes to
// standard output if that is set.
func start(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the child has its own
	cmd.Stderr = out
	// The bench is told of an interrupt, too, and ends its processes itself.
	cmd.SysProcAttr = ownGroup()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// awaitReady asks until the answer is yes. It asks often, because that is the
// precision of the figure.
func (p *process) awaitReady(ctx context.Context, path string, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for {
		c := newClient(p.address)
		status, _, err := c.exchange(request(http.MethodGet, path, nil))
		c.hangUp()
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("%s ended before it was ready: %v\n%s", p.cmd.Path, p.err, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w\n%s", p.cmd.Path, ctx.Err(), p.logTail())
		}
	}
}

// startFloor starts the floor with files in dir.
func startFloor(dir string) (*process, io.Closer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self, "-"+floorFlag, dir)
	life, err := cmd.StdinPipe() // it ends when this does, even if the bench is killed
	if err != nil {
		return nil, nil, err
	}
	stdout, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer stdout.Close()
	cmd.Stdout = w
	p, err := start(cmd, dir+".log")
	w.Close()
	if err != nil {
		return nil, nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the floor did not start: %w\n%s", err, p.logTail()), p.stop())
	}
	p.address, p.metrics = strings.TrimSpace(line), true
	return p, life, nil
}

// stop asks the process to end, kills it if it does not, and waits for it. It is
// an error if the process did not end in order.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		<-p.exited
	} else if err != nil { // as on Windows, which has no such signal
		_ = p.cmd.Process.Kill()
		<-p.exited
		return nil
	}
	timer := time.NewTimer(endMax)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s did not end within %s\n%s", p.cmd.Path, endMax, p.logTail())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", p.cmd.Path, p.err, p.logTail())
	}
	return nil
}

// logTail is the end of what the process wrote.
func (p *process) logTail() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const tailMax = 2000
	return string(data[max(0, len(data)-tailMax):])
}

// residentBytes is the memory that the process occupies now.
func (p *process) residentBytes() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if value, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(value)), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no VmRSS")
}

// resident is residentBytes to be read by somebody.
func (p *process) resident() string {
	bytes, err := p.residentBytes()
	if err != nil {
		return "unknown"
	}
	return megabytes(bytes)
}
