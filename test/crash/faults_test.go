package crash

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// fault is something that goes wrong in a round.
type fault interface {
	name() string
	// prepare is called before the writers begin.
	prepare(*drill) error
	// strike makes it go wrong, in the middle of the writers, who go on.
	strike(*drill) error
	// heal puts it right: when it has returned, requests succeed again.
	heal(*drill) error
}

// unprepared is part of the faults that need no preparation.
type unprepared struct{}

func (unprepared) prepare(*drill) error { return nil }

// deaths are the faults that end processes.
var deaths = []func() fault{
	func() fault { return &restarts{} },
	func() fault { return &kill{} },
}

// networks are the faults of the network between writers and servers.
var networks = []func() fault{
	func() fault {
		return &network{title: "drop requests", mischief: func(d *rand.Rand) mischief {
			if d.IntN(2) == 0 {
				return mischief{dropRequest: true}
			}
			return mischief{cutRequest: d.Float64() + 1e-9, outlive: d.IntN(2) == 0}
		}}
	},
	func() fault {
		return &network{title: "drop answers", mischief: func(d *rand.Rand) mischief {
			switch d.IntN(3) {
			case 0:
				return mischief{dropAnswer: true}
			case 1:
				return mischief{cutAnswer: d.Float64() + 1e-9}
			}
			return mischief{loseAnswer: true, outlive: d.IntN(2) == 0}
		}}
	},
	func() fault {
		return &network{title: "delay", impatient: true, mischief: func(d *rand.Rand) mischief {
			late := time.Duration(d.Int64N(int64(delayMax)))
			if d.IntN(2) == 0 {
				return mischief{holdRequest: late, outlive: d.IntN(2) == 0}
			}
			return mischief{delayAnswer: late, outlive: d.IntN(2) == 0}
		}}
	},
}

// delayMax bounds how late requests and answers are. Clients wait for less.
const delayMax = 150 * time.Millisecond

// network drops, cuts and delays some of what the writers send, or are answered.
type network struct {
	unprepared
	title     string
	mischief  func(*rand.Rand) mischief
	impatient bool // clients give up before the last delayed answer comes
}

func (n *network) name() string { return n.title }

func (n *network) strike(d *drill) error {
	d.excuse(silence, 400, 408, 409, 429, 499, 503)
	if n.impatient {
		d.patience(d.upTo(delayMax/10, delayMax/2))
	}
	const metOneIn = 3
	for _, i := range d.instances {
		rng := d.chance()
		i.proxy.misbehave(func() mischief {
			if rng.IntN(metOneIn) > 0 {
				return mischief{}
			}
			return n.mischief(rng)
		})
	}
	return nil
}

func (n *network) heal(d *drill) error {
	for _, i := range d.instances {
		i.proxy.misbehave(nil)
	}
	return nil
}

// kill ends a process with SIGKILL, mostly in the middle of the purge of a large table.
type kill struct {
	purger *writer
	heavy  *table
	killed *instance
}

const (
	// killDelayMax bounds the time between the choice of the moment and the purge.
	killDelayMax = 20 * time.Millisecond
	// purgeTimeMax bounds the time that the purge gets before the kill.
	purgeTimeMax = 30 * time.Millisecond
)

func (*kill) name() string { return "kill" }

func (k *kill) prepare(d *drill) (err error) {
	k.killed = d.pickInstance()
	k.purger = d.helper("purger", slices.Index(d.instances, k.killed))
	k.heavy, err = k.purger.heavyTable()
	return err
}

func (k *kill) strike(d *drill) error {
	// An acknowledgement comes when the server has just finished something. The delay
	// makes every other moment as likely.
	<-time.After(d.upTo(0, killDelayMax))
	purged := make(chan struct{})
	go func() {
		k.purger.dropTable("drop", k.heavy, true)
		close(purged)
	}()
	<-time.After(d.upTo(0, purgeTimeMax))
	d.excuse(silence)
	d.cuts = true
	err := k.killed.kill()
	<-purged
	return err
}

func (k *kill) heal(d *drill) error {
	if k.killed.process.alive() { // it was started on account of another fault
		return nil
	}
	d.interrupted += d.cutPurges()
	return k.killed.start()
}

// restarts kills a process and starts it again several times, killing it while it starts
// or as soon as it serves.
type restarts struct {
	unprepared
	killed *instance
}

// Bounds of the times after which it is killed again.
const (
	startingMax = 25 * time.Millisecond
	servingMax  = 60 * time.Millisecond
)

func (*restarts) name() string { return "restarts" }

func (r *restarts) strike(d *drill) error {
	d.excuse(silence)
	d.cuts = true
	r.killed = d.pickInstance()
	return r.killed.kill()
}

func (r *restarts) heal(d *drill) error {
	if err := r.killed.kill(); err != nil { // it may have been started on account of another fault
		return err
	}
	for range 2 + d.rng.IntN(3) {
		if err := r.killed.launch(); err != nil {
			return err
		}
		wait := d.upTo(0, startingMax)
		if d.rng.IntN(3) == 0 {
			if err := r.killed.ready(); err != nil {
				return err
			}
			wait = d.upTo(0, servingMax)
		}
		select {
		case <-time.After(wait):
		case <-r.killed.process.exited:
			return errors.New("the server ended by itself while it was started in a loop")
		}
		if err := r.killed.kill(); err != nil {
			return err
		}
	}
	return r.killed.start()
}

// together are several faults at once.
type together []fault

func (all together) name() string {
	var names []string
	for _, f := range all {
		names = append(names, f.name())
	}
	return strings.Join(names, " + ")
}

func (all together) each(do func(fault) error) error {
	for _, f := range all {
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

func (all together) prepare(d *drill) error {
	return all.each(func(f fault) error { return f.prepare(d) })
}
func (all together) strike(d *drill) error {
	return all.each(func(f fault) error { return f.strike(d) })
}
func (all together) heal(d *drill) error { return all.each(func(f fault) error { return f.heal(d) }) }
