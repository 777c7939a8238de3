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
	pollEvery    = 5 * time.Millisecond
)

// buildServer builds the real binary and returns its path.
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
	binary := filepath.Join(t.TempDir(), "landfast")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./"+source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	return binary
}

// configuration is how to run a server on the state of the one before it.
type configuration struct {
	binary string
	args   []string
	log    string // file that everything it prints is appended to
}

// process is a running server.
type process struct {
	url    string
	cmd    *exec.Cmd
	exited chan struct{} // closed once it is gone and its output was read
}

var printedURL = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// start runs a server and waits until it says that it is ready. The server dies
// with the test at the latest.
func (c configuration) start(t *testing.T) *process {
	t.Helper()
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(c.binary, c.args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = write, write
	// Settings of whoever runs the tests must not reach the server.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LANDFAST_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start the server: %v", err)
	}
	write.Close()
	printed := make(chan string, 1)
	go func() {
		defer close(p.exited)
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadString('\n')
			// What cannot be logged is missed only by a reader of a failure.
			_, _ = io.WriteString(log, line)
			if url := printedURL.FindString(line); url != "" {
				select {
				case printed <- url:
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
	t.Cleanup(func() { p.kill(t) })

	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	select {
	case p.url = <-printed:
	case <-p.exited:
		t.Fatalf("the server ended instead of starting: %v\n%s", p.cmd.ProcessState, tail(c.log))
	case <-ctx.Done():
		t.Fatalf("the server printed no URL within %v\n%s", startTimeout, tail(c.log))
	}
	client := newClient(p.url)
	defer client.close()
	err = poll(ctx, func() error {
		if a := client.call("GET", "/readyz", nil); a.err != nil || a.status != http.StatusOK {
			return fmt.Errorf("/readyz answers %d %s", a.status, a.message())
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the server did not become ready: %v\n%s", err, tail(c.log))
	}
	return p
}

// kill sends SIGKILL and waits until the process is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill the server: %v", err)
	}
	p.wait(t)
}

func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(exitTimeout):
		t.Errorf("the server is there %v after SIGKILL", exitTimeout)
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
