package pgtest

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// process is a server that ends with this one.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// command is a program in a folder, as a user who is not root.
func command(dir, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	confine(cmd)
	return cmd
}

// start starts it, on a thread that lasts as long: to Linux a thread is the parent.
func (p *process) start() error {
	p.done = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its log
		}
		close(p.done)
	}()
	return <-started
}

// end sends a signal, unless it has ended, and waits until it has.
func (p *process) end(s syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Ports that are tried. No system gives one of them to who asks for any, so that a server which is started again finds its own.
const (
	portMin = 15_000
	portMax = 32_000
)

// freePort gives a port that was free a moment ago.
func freePort() (int, error) {
	const tries = 100
	var errs []error
	for range tries {
		port := portMin + rand.IntN(portMax-portMin)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		errs = append(errs, err)
	}
	return 0, errors.Join(errs...)
}
