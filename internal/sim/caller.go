package sim

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/landfast/landfast/internal/store"
)

// Errors of the fakes, beside those of the contracts.
var (
	errFault = errors.New("sim: connection refused")
	errDead  = errors.New("sim: the process is dead")
)

// caller is who calls the store and the files: one operation of one actor, in one life
// of one node. It is safe for concurrent use, for an operation may make several calls at once.
type caller struct {
	w     *world
	node  *node
	life  int
	actor int
	name  uint64 // of its streams
	label string // in the transcript

	mu    sync.Mutex
	calls []callCount
}

type callCount struct{ what, times uint64 }

// stream is that of the next call of this kind for this name: calls that are under
// way at once differ in it, so it does not matter which of them comes first.
func (c *caller) stream(verb, what string) stream {
	h := textHash(verb, what)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.calls {
		if c.calls[i].what == h {
			c.calls[i].times++
			return streamOf(c.name, h, c.calls[i].times)
		}
	}
	c.calls = append(c.calls, callCount{h, 1})
	return streamOf(c.name, h, 1)
}

func formatID(high, low uint64, version byte) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], high)
	binary.BigEndian.PutUint64(raw[8:], low)
	raw[6] = raw[6]&0x0f | version<<4
	raw[8] = raw[8]&0x3f | 0x80
	var text [36]byte
	hex.Encode(text[0:8], raw[0:4])
	hex.Encode(text[9:13], raw[4:6])
	hex.Encode(text[14:18], raw[6:8])
	hex.Encode(text[19:23], raw[8:10])
	hex.Encode(text[24:36], raw[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// Delays. A request takes requestLeast to requestMost each way; one that is slow, late or
// repeated takes lateLeast to lateMost.
const (
	requestLeast = time.Millisecond
	requestMost  = 40 * time.Millisecond
	lateLeast    = 100 * time.Millisecond
	lateMost     = 40 * time.Second
)

// late draws a delay whose order of magnitude is uniform.
func late(s *stream) time.Duration {
	limit := pick(s, 300*time.Millisecond, time.Second, 5*time.Second, lateMost)
	return s.between(lateLeast, limit)
}

// travel waits until a request of the caller has arrived somewhere, or its answer here.
// False: the node has died meanwhile.
func (c *caller) travel(d time.Duration, s stream) bool {
	c.w.sleep(c.actor, d, s)
	return c.alive()
}

func (c *caller) alive() bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.node.life == c.life
}

// thaw waits while the node is frozen. False: it has died meanwhile.
func (c *caller) thaw(s *stream) bool {
	for {
		c.w.mu.Lock()
		alive, frozen := c.node.life == c.life, c.node.frozenUntil-c.w.now()
		c.w.mu.Unlock()
		if !alive || frozen <= 0 {
			return alive
		}
		c.w.sleep(c.actor, frozen+s.between(0, requestMost), *s)
	}
}

// cutOff tells whether the node cannot reach the stores.
func (c *caller) cutOff() bool {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.w.now() < c.node.cutUntil
}

// fault draws what becomes of a call: one of the kinds, or nothing in particular.
func (c *caller) fault(s *stream, kinds []string, rates []int) string {
	name := s.next()
	roll := int(name>>32) % 10_000
	if c.cutOff() {
		// No answer arrives; what is sent may.
		if kinds[0] == failRead {
			return failRead
		}
		return [...]string{lostAnswer, delayed, neverArrives}[roll%3]
	}
	for i, rate := range rates {
		if roll < rate {
			if c.w.inject(kinds[i], name) {
				return kinds[i]
			}
			return ""
		}
		roll -= rate
	}
	return ""
}

// The faults of calls.
const (
	failRead     = "read fails"
	slowRead     = "read is slow"
	failBefore   = "write fails before"
	lostAnswer   = "write done, answer lost"
	delayed      = "write answered unknown, done later"
	duplicate    = "write done twice"
	slowWrite    = "write is slow"
	neverArrives = "write never arrives"
	crashBefore  = "crash before a write"
	crashAfter   = "crash after a write"
)

var (
	readFaults  = []string{failRead, slowRead}
	writeFaults = []string{failBefore, lostAnswer, delayed, duplicate, slowWrite, crashBefore, crashAfter}
)

// read carries out a call that changes nothing.
func (c *caller) read(ctx context.Context, verb, what string, do func() (outcome string, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := c.stream(verb, what)
	if !c.thaw(&s) {
		return errDead
	}
	there, back := s.between(requestLeast, requestMost), time.Duration(0)
	if s.chance(2500) {
		back = s.between(requestLeast, requestMost)
	}
	r := &c.w.profile.rates
	fault := c.fault(&s, readFaults, []int{r.failRead, r.slowRead})
	if fault == slowRead {
		back = late(&s)
	}
	if !c.travel(there, s) {
		return errDead
	}
	if fault == failRead {
		c.w.event(c.label, verb, what, fault)
		return errFault
	}
	outcome, err := do()
	c.w.event(c.label, verb, what, outcome)
	if back > 0 && !c.travel(back, s) {
		return errDead
	}
	if !c.thaw(&s) {
		return errDead
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// write carries out a call that changes something by do, which may run several times and
// once the caller is gone: it is told whether its answer is wanted. unknown is the answer
// where it is not known whether do ran, or will.
func (c *caller) write(ctx context.Context, verb, what string, unknown error, do func(wanted bool) (outcome string, err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.w.rides != nil { // stores and files are in the process, and what it has sent dies with it
		arrived := do
		do = func(wanted bool) (string, error) {
			if !c.alive() {
				return errDead.Error(), errDead
			}
			return arrived(wanted)
		}
	}
	s := c.stream(verb, what)
	if !c.thaw(&s) {
		return errDead
	}
	there, back := s.between(requestLeast, requestMost), s.between(requestLeast, requestMost)
	again, lives := late(&s), s.chance(5000)
	r := &c.w.profile.rates
	fault := c.fault(&s, writeFaults, []int{r.failBefore, r.lost, r.delayed, r.duplicate, r.slow, r.crashBefore, r.crashAfter})
	deliver := func(d time.Duration, how string) {
		c.w.later(c.actor, d, s, func() {
			outcome, _ := do(false)
			c.w.event(c.label, verb, what, how+" "+outcome)
		})
	}
	if fault == slowWrite {
		there = again
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < there+back {
		// The caller will have given up before the answer comes.
		deliver(there, "late, nobody waits:")
		c.travel(max(time.Until(deadline), 0)+back, s)
		c.thaw(&s)
		return c.unknown(unknown)
	}
	if fault == delayed {
		deliver(again, "late:")
		c.travel(there+back, s)
		c.thaw(&s)
		return c.unknown(unknown)
	}
	if !c.travel(there, s) && !lives {
		return errDead // before the request had left
	}
	switch fault {
	case failBefore:
		c.w.event(c.label, verb, what, fault)
		return errFault
	case neverArrives:
		c.w.event(c.label, verb, what, fault)
		c.travel(back, s)
		return c.unknown(unknown)
	case crashBefore:
		c.w.event(c.label, verb, what, fault)
		c.node.crash(c.life, &s) //nolint:contextcheck // the next life has no caller
		return errDead
	}
	outcome, err := do(true)
	if fault != "" {
		outcome += " (" + fault + ")"
	}
	c.w.event(c.label, verb, what, outcome)
	switch fault {
	case crashAfter:
		c.node.crash(c.life, &s) //nolint:contextcheck // the next life has no caller
		return errDead
	case duplicate:
		deliver(again, "once more:")
	}
	if !c.travel(back, s) || !c.thaw(&s) {
		return errDead
	}
	if fault == lostAnswer || ctx.Err() != nil {
		return unknown
	}
	return err
}

// unknown is the answer to a caller that may be dead.
func (c *caller) unknown(err error) error {
	if !c.alive() {
		return errDead
	}
	return err
}

// outcomeOf is an error as the trace names it.
func outcomeOf(err error) string {
	var conflict *store.ConflictError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &conflict):
		return "conflict"
	}
	return err.Error()
}
