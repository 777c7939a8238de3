//go:build unix

package crash

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// hasClock says that the server's clock can be set.
const hasClock = true

var (
	freezes = []func() fault{func() fault { return &freeze{} }}
	clocks  = []func() fault{func() fault { return &clockJump{} }}
	drifts  = []func() fault{func() fault { return &drift{} }}
)

// freeze stops a process for a while with SIGSTOP. Clients time out and go on; what they
// had sent is carried out when the process goes on, at the latest.
type freeze struct {
	unprepared
	frozen *instance
}

func (*freeze) name() string { return "freeze" }

func (f *freeze) strike(d *drill) error {
	d.excuse(silence, 408, 409, 429, 499, 503)
	d.patience(d.upTo(20*time.Millisecond, 100*time.Millisecond))
	d.suffer() // until what is on its way has been sent by clients who do not wait long
	f.frozen = d.pickInstance()
	f.frozen.frozen = true
	return f.frozen.process.cmd.Process.Signal(syscall.SIGSTOP)
}

func (f *freeze) heal(d *drill) error {
	if len(d.instances) > 1 && !d.cuts { // nobody else waits for who is frozen
		d.patience(requestTimeout) // a slow machine acknowledges nothing to who does not wait
		if err := d.acknowledge(writesAfter); err != nil {
			return fmt.Errorf("while one of several servers was frozen: %w", err)
		}
	}
	f.frozen.frozen = false
	err := f.frozen.process.cmd.Process.Signal(syscall.SIGCONT)
	if errors.Is(err, os.ErrProcessDone) { // it was killed, too
		return nil
	}
	return err
}

// clockJump sets the wall clock of all servers forward and backward by hours, while they
// run and while they do not, that of the clients with them or not. In the end it is right again.
type clockJump struct{ unprepared }

func (*clockJump) name() string { return clockName }

func (*clockJump) strike(d *drill) error {
	d.excuse(400) // for a snapshot of a client that is ahead
	d.clockMoved, d.world.follow = true, d.rng.IntN(2) == 0
	return d.setClocks(d.jump())
}

func (*clockJump) heal(d *drill) error {
	for range d.rng.IntN(3) {
		i := d.pickInstance()
		restart := d.rng.IntN(2) == 0
		if restart && i.process.alive() {
			d.excuse(silence)
			if err := i.kill(); err != nil {
				return err
			}
		}
		if err := d.setClocks(d.jump()); err != nil {
			return err
		}
		if restart {
			if err := i.start(); err != nil {
				return err
			}
		}
		if err := d.progress(); err != nil {
			return err
		}
	}
	if err := d.checkClocks(); err != nil {
		return err
	}
	return d.setClocks(0)
}

// drift sets the wall clock of one server ahead by hours, for a while.
type drift struct {
	unprepared
	ahead *instance
}

func (*drift) name() string { return clockName }

func (f *drift) strike(d *drill) error {
	d.excuse(400) // for what follows a snapshot of a server that is ahead
	d.clockMoved, f.ahead = true, d.pickInstance()
	for f.ahead.frozen { // it could not be asked
		f.ahead = d.pickInstance()
	}
	by := d.upTo(jumpMin, jumpMax)
	if err := f.ahead.clock.set(by); err != nil {
		return err
	}
	return checkClock(f.ahead.process.url, by)
}

func (f *drift) heal(*drill) error { return f.ahead.clock.set(0) }
