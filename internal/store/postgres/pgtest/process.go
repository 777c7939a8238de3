package pgtest

import (
	"net"
	"os"
	"os/exec"
	"runtime"
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

// freePort gives a port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
