package crash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	// Nothing of the server is used but its binary. The import makes the go command
	// run these tests again, instead of remembering a result, when the server changes.
	_ "github.com/landfast/landfast/internal/server"
)

// Bounds of what a server does by itself.
const (
	startTimeout = 30 * time.Second
	exitTimeout  = 30 * time.Second
	pollEvery    = 2 * time.Millisecond
)

// buildServer builds the real binary, with a clock that can be set, and returns its path.
func buildServer(t *testing.T) string {
	t.Helper()
	const source = "../../cmd/landfast"
	files, err := os.ReadDir(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files { // so that the go command notices when they change
		if _, err := os.Stat(filepath.Join(source, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "landfast")
	args := []string{"build", "-o", binary}
	if os.Getenv(plantedVariable) != "" {
		args = append(args, "-tags", "planted")
	}
	if hasClock {
		goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		overlay, err := clockOverlay(strings.TrimSpace(string(goroot)), dir)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./"+source)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	return binary
}

// instance is one server of a configuration: processes come and go, the proxy that
// leads to them and their clock stay.
type instance struct {
	binary string
	args   []string
	log    string // file that everything it prints is appended to
	clock  clock
	proxy  *proxy

	process *process // the last that was started
	killed  bool     // one of them was
	frozen  bool     // it is
}

// process is a running server, or one that ended.
type process struct {
	cmd     *exec.Cmd
	printed chan string   // gets the URL
	exited  chan struct{} // closed once it is gone and its output was read
	url     string        // once it is ready
	started time.Time     // the same
}

var printedURL = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// start runs the server, waits until it is ready, and has the proxy lead to it.
func (i *instance) start() error {
	if err := i.launch(); err != nil {
		return err
	}
	if err := i.ready(); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(i.log))
	}
	return nil
}

// launch runs the server and does not wait.
func (i *instance) launch() error {
	log, err := os.OpenFile(i.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	p := &process{cmd: exec.Command(i.binary, i.args...), printed: make(chan string, 1), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = write, write, diesWithTests
	// Settings of whoever runs the tests must not reach the server.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LANDFAST_") && !strings.HasPrefix(v, "PG") || strings.HasPrefix(v, plantedVariable+"=") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, clockVariable+"="+i.clock.file)
	err = p.cmd.Start()
	write.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("start the server: %w", err), read.Close(), log.Close())
	}
	go func() {
		defer close(p.exited)
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadString('\n')
			// What cannot be logged is missed only by a reader of a failure.
			_, _ = io.WriteString(log, line)
			if url := printedURL.FindString(line); url != "" {
				select {
				case p.printed <- url:
				default:
				}
			}
			if err != nil {
				break
			}
		}
		read.Close()
		log.Close()
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	i.process = p
	return nil
}

// errEnded tells that a server ended by itself.
var errEnded = errors.New("the server ended by itself")

// ready waits until the server says that it is, and has the proxy lead to it.
func (i *instance) ready() error {
	p := i.process
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	select {
	case p.url = <-p.printed:
	case <-p.exited:
		return fmt.Errorf("%w: %v", errEnded, p.cmd.ProcessState)
	case <-ctx.Done():
		return fmt.Errorf("the server printed no URL within %v", startTimeout)
	}
	client := newClient(p.url)
	defer client.close()
	err := poll(ctx, func() error {
		select {
		case <-p.exited:
			return nil
		default:
		}
		if a := client.call("GET", "/readyz", nil); a.err != nil || a.status != http.StatusOK {
			return fmt.Errorf("/readyz answers %d %s", a.status, a.message())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the server did not become ready: %w", err)
	}
	p.started = time.Now()
	i.proxy.lead(p.url)
	return nil
}

// kill sends SIGKILL and waits until the process is gone.
func (i *instance) kill() error {
	i.proxy.lead("")
	i.killed = true
	if err := i.process.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the server: %w", err)
	}
	return i.process.wait()
}

func (p *process) wait() error {
	select {
	case <-p.exited:
		return nil
	case <-time.After(exitTimeout):
		return fmt.Errorf("the server is there after %v", exitTimeout)
	}
}

// alive tells whether the server runs, as far as is known.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// poll asks until the condition holds, and returns what was wrong last when ctx ends.
func poll(ctx context.Context, condition func() error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// tail is the end of what the servers printed.
func tail(log string) string {
	const lines = 40
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
