package crash

import (
	"errors"
	"fmt"
	"syscall"
)

// fullDisk leaves the volume with hardly any room, so that the files of tables and the
// catalog's store meet ENOSPC. At times the server is killed meanwhile, and cannot start
// or can.
type fullDisk struct{ unprepared }

// slackMax bounds the bytes that are left.
const slackMax = 32 << 10

func (*fullDisk) name() string { return "full disk" }

func (*fullDisk) strike(d *drill) error {
	if d.rng.IntN(3) > 0 {
		// The store goes round in a log that has its full size. A server that stopped in
		// good order leaves none, so that the next has to make room for one.
		d.excuse(silence, 429, 503)
		i := d.pickInstance()
		if err := i.stop(); err != nil {
			return err
		}
		if err := i.start(); err != nil {
			return err
		}
	}
	// Where the store's log cannot get a page of its index, what was written may count after a crash, and no other batch
	// that would tell finds room either.
	d.excuse(507, doubt)
	return d.volume.fill(d.rng.Uint64N(slackMax))
}

// stop has the server stop in good order, and waits.
func (i *instance) stop() error {
	if err := i.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := i.process.wait()
	i.proxy.lead("")
	if code := i.process.cmd.ProcessState.ExitCode(); err == nil && code != 0 {
		err = fmt.Errorf("the server stopped with status %d\n%s", code, tail(i.log))
	}
	return err
}

func (*fullDisk) heal(d *drill) error {
	if d.volume.protected { // by another fault, under which no server starts, room or no room
		return d.volume.empty()
	}
	restarted, err := d.restartMeanwhile()
	if err == nil {
		err = d.volume.empty()
	}
	if err != nil {
		return err
	}
	return restarted.orStart()
}

// readOnlyDisk makes the volume read-only. At times the server is killed meanwhile, and
// must say why it cannot start.
type readOnlyDisk struct{ unprepared }

func (*readOnlyDisk) name() string { return "read-only disk" }

func (*readOnlyDisk) strike(d *drill) error {
	d.excuse(409, 500)
	return d.volume.protect()
}

func (*readOnlyDisk) heal(d *drill) error {
	restarted, err := d.restartMeanwhile()
	if err == nil && restarted.served {
		err = errors.New("the server started on a read-only disk")
	}
	if err := errors.Join(err, d.volume.unprotect()); err != nil {
		return err
	}
	// What was to be deleted meanwhile is tried again after a restart, or much later.
	if restarted.instance == nil {
		restarted.instance = d.pickInstance()
		d.excuse(silence)
		if err := restarted.instance.kill(); err != nil {
			return err
		}
	}
	return restarted.orStart()
}

// restarted tells what became of a server that was killed while the disk was bad.
type restarted struct {
	instance *instance // nil: it was not
	served   bool      // it started all the same
}

// restartMeanwhile kills a server in one case of three and tries to start it. Its lock,
// its log, its store may not be writable now, and then it must end by itself.
func (d *drill) restartMeanwhile() (restarted, error) {
	if d.rng.IntN(3) > 0 {
		return restarted{}, nil
	}
	d.excuse(silence)
	r := restarted{instance: d.pickInstance()}
	err := r.instance.kill()
	if err == nil {
		err = r.instance.launch()
	}
	if err != nil {
		return r, err
	}
	err = r.instance.ready()
	r.served = err == nil
	if errors.Is(err, errEnded) && r.instance.process.cmd.ProcessState.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("a start on a bad disk: %w", err)
	}
	return r, err
}

func (r restarted) orStart() error {
	if r.instance == nil || r.served {
		return nil
	}
	return r.instance.start()
}
