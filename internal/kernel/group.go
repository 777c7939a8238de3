package kernel

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

const (
	// groupMax is how many operations land in one batch.
	groupMax = 128
	// groupBytesMax is how many bytes of files a batch may name before no further operation joins it.
	groupBytesMax = 8 << 20
	// reserveAfter is how many conflicts a group takes before its operations also queue
	// for the keys they conflicted on.
	reserveAfter = 3
	// uploadsMax is how many files of one batch are written at once.
	uploadsMax = 8
)

// group is what stands at the head of one queue and is done together: one operation, or
// several on the same table. One goroutine leads it; each of its operations waits in its own Do for a verdict,
// and what it asks for is decided on the state that those before it left.
//
// What is promised to each is what it would be promised alone:
//   - It is decided on what the store holds, changed by those before it in the batch, and the conditions
//     of them all are checked when the batch is applied.
//   - It is refused because of what the store holds at once, and because of one before it only after
//     that one is durable.
//   - Where a file of it cannot be written it alone fails: those before it land, those behind it are decided again without it.
//   - Neither its client's leaving nor its deadline ends the work for the others.
//   - It does not wait for the others beyond its own deadline, but for a batch that was sent.
//   - What others have locked keeps it for as long, and as often, as the options say, whatever batches it was in.
//   - Where the batch's outcome is unknown, all that are in it are told so.
type group struct {
	k *Kernel
	// waiting are those without a verdict, in order of arrival; nil: it has got one since the round began.
	waiting []*run
	// leader is whose goroutine does the work; nil: it has its verdict.
	leader *run
	// reserves says that after some conflicts the operations queue for more than they did.
	reserves bool
	// view is that of the round which is on.
	view *view
	// sent says that its batch is on its way, whose operations nobody can call back.
	sent bool
}

// lead gives every operation its verdict, or its own at least: with that it hands the others over to the next of
// them, so that its client is answered. It is called on the goroutine of own, which is the first of them.
func (g *group) lead(own *run) {
	g.leader = own
	handed := false
	defer func() {
		if !handed {
			g.abandon()
		}
	}()
	for tries := 1; ; tries++ {
		g.dismiss()
		if len(g.waiting) == 0 {
			return
		}
		if g.leader == nil {
			handed = true
			next := g.waiting[0]
			next.verdict = verdict{lead: g}
			close(next.done)
			return
		}
		err := g.round(own)
		if err == nil {
			tries = 0
			continue
		}
		var (
			conflict *store.ConflictError
			blocked  *store.BlockedError
			pause    time.Duration
		)
		switch {
		case errors.As(err, &blocked):
			pause = max(time.Until(blocked.Until), time.Millisecond)
		case errors.As(err, &conflict) && tries >= reserveAfter && len(conflict.Conds) > 0 && g.reserves:
			for _, m := range g.present() {
				g.settle(m, verdict{again: true, conflicted: conflict.Conds})
			}
			return
		}
		ctx, cancel := g.patience()
		_ = sleep(ctx, pause+g.k.opt.Backoff(backoff(tries))) // whose time is up is dismissed
		cancel()
	}
}

// patience is a context that lasts until the time of the first of them is spent.
func (g *group) patience() (context.Context, context.CancelFunc) {
	if len(g.present()) == 1 {
		return g.waiting[0].ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(g.waiting[0].ctx), g.first())
}

// first is the first deadline of those without a verdict.
func (g *group) first() (first time.Time) {
	for _, m := range g.waiting {
		if m == nil {
			continue
		}
		if d, ok := m.ctx.Deadline(); ok && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	return first
}

// within is the operation's context until others can wait for it no longer; zero: none does.
func (r *run) within(until time.Time) (context.Context, context.CancelFunc) {
	if d, ok := r.ctx.Deadline(); until.IsZero() || ok && !d.After(until) {
		return r.ctx, func() {}
	}
	return context.WithDeadline(r.ctx, until)
}

// cut tells whether a context made by within has ended because of the others: the operation has time left.
func (r *run) cut(ctx context.Context) bool { return ctx.Err() != nil && r.over() == nil }

// dismiss gives up on those whose client left or whose time is spent.
func (g *group) dismiss() {
	for _, m := range g.waiting {
		if m == nil {
			continue
		}
		if err := m.over(); err != nil {
			g.settle(m, verdict{err: timely(err)})
		}
	}
	g.present()
}

// over says why nobody waits for the operation any more; nil: somebody does. A deadline is over
// once it has passed, even if the context's timer is late.
func (r *run) over() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if d, ok := r.ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

// present are those without a verdict.
func (g *group) present() []*run {
	g.waiting = slices.DeleteFunc(g.waiting, func(m *run) bool { return m == nil })
	return g.waiting
}

// settle gives an operation its verdict. From here on it is its own goroutine's again.
func (g *group) settle(m *run, v verdict) {
	g.waiting[slices.Index(g.waiting, m)] = nil
	if m == g.leader {
		g.leader = nil
	}
	m.verdict = v
	if m.done != nil {
		close(m.done)
	}
}

// abandon is for a leader that panics: nobody waits for it for ever, and no file keeps its room.
func (g *group) abandon() {
	switch {
	case g.view == nil:
	case !g.sent:
		g.lost(g.view.accepted)
	case len(g.view.rides()) > 0:
		g.k.opt.Journal.Drop(g.view.rides())
	}
	for _, m := range g.present() {
		v := verdict{again: true}
		if g.sent {
			v = verdict{err: fmt.Errorf("%w: the goroutine that applied it has failed", store.ErrOutcomeUnknown)}
		}
		g.settle(m, v)
	}
}

// deferred is an operation that stages nothing, because of what those before it in the batch did.
type deferred struct {
	*run
	tx      *Tx
	refusal error
}

// round decides them in turn, as many as may land together, and applies that. It
// returns an error where nothing was applied and it is worth trying again: ErrAgain,
// *store.ConflictError or *store.BlockedError.
func (g *group) round(own *run) error {
	v := newView(g.k, len(g.waiting) > 1)
	g.view = v
	var later []deferred
	// Nobody takes longer than the first of them can wait. Who is decided for a batch takes at most half of that
	// time: what is left is for the batch, which lands without it.
	var until, half time.Time
	if v.shared {
		until = g.first()
		half = until.Add(-time.Until(until) / 2)
	}
deciding:
	for _, m := range g.waiting {
		if len(v.accepted) > 0 && v.bytes >= groupBytesMax {
			break
		}
		first := len(v.accepted) == 0
		if !first {
			until = half
		}
		tx, refusal := g.decide(m, own, v.tx(m, v), until)
		switch {
		case tx == nil: // it panicked
		case errors.Is(refusal, ErrAgain):
			m.report.Conflicts++
			if first {
				return refusal
			}
			break deciding
		case refusal == nil && len(tx.writes) > 0:
			if tx.alone && !first {
				break deciding
			}
			v.accept(m, tx)
			if tx.alone || !m.combines() {
				break deciding
			}
		case first:
			if err := g.answer(m, tx, refusal, until); err != nil {
				m.report.Conflicts++
				return err
			}
			if g.leader == nil {
				return nil
			}
		default:
			later = append(later, deferred{m, tx, refusal})
		}
	}
	if len(v.accepted) == 0 {
		return nil
	}
	g.answerEarly(own, v, &later, half)
	return g.land(v, later)
}

// decide runs Decide with a fresh Tx. A panic in what belongs to another goroutine is that one's. ErrAgain also
// says that it has taken longer than the others can wait.
func (g *group) decide(m, own *run, tx *Tx, until time.Time) (_ *Tx, refusal error) {
	if m != own {
		defer func() {
			if p := recover(); p != nil {
				g.settle(m, verdict{panicked: fmt.Sprintf("%v\n\nin the group's leader:\n%s", p, debug.Stack())})
				refusal = nil
			}
		}()
	}
	ctx, cancel := m.within(until)
	defer cancel()
	refusal = m.decide(ctx, tx)
	switch {
	case refusal != nil && m.cut(ctx):
		refusal = ErrAgain
	case refusal == nil && len(tx.writes) > 0:
		tx.part = tx.batch(m.plan.Op)
	}
	return tx, refusal
}

// answer gives its verdict to one that rests on what the store holds alone, if that held together at one moment.
func (g *group) answer(m *run, tx *Tx, refusal error, until time.Time) error {
	if len(tx.reads) > 1 || refusal != nil {
		ctx, cancel := m.within(until)
		defer cancel()
		if err := tx.settle(ctx); err != nil && !planted.Is(planted.AnswerUnsettled) {
			if isConflict(err) {
				return err
			}
			if m.cut(ctx) {
				return ErrAgain
			}
			refusal = timely(err)
		}
	}
	g.settle(m, verdict{err: timely(refusal)})
	return nil
}

// answerEarly answers those that would have been refused without the others, too: they need not wait for the batch.
func (g *group) answerEarly(own *run, v *view, later *[]deferred, until time.Time) {
	*later = slices.DeleteFunc(*later, func(d deferred) bool {
		if d.refusal == nil {
			return false
		}
		if planted.Is(planted.RefusedBeforeDurable) {
			g.settle(d.run, verdict{err: d.refusal})
			return true
		}
		tx, refusal := g.decide(d.run, own, v.tx(d.run, base{v}), until)
		if tx == nil {
			return true
		}
		if refusal == nil || errors.Is(refusal, ErrAgain) {
			return false
		}
		return g.answer(d.run, tx, refusal, until) == nil
	})
}

// land makes the files durable and applies the batch.
func (g *group) land(v *view, later []deferred) error {
	if planted.Is(planted.FilesAfterBatch) {
		err := g.apply(v)
		errs, _ := g.upload(v)
		err = errors.Join(append(errs, err)...)
		return g.landed(v, later, err)
	}
	errs, cut := g.upload(v)
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		// Those who failed have failed; the others behind the first of them were decided on what it would have made of the table.
		for j, err := range errs {
			if m := v.accepted[j].run; err != nil && (!cut || m.over() != nil) {
				g.settle(m, verdict{err: timely(err)})
			}
		}
		if !planted.Is(planted.NeighboursOfFailedLand) {
			g.lost(v.accepted[i:])
			v.cut(i)
			later = nil
		} else {
			v.accepted = slices.Delete(v.accepted, i, i+1)
		}
	}
	if !v.awaited() {
		g.view = nil
		g.lost(v.accepted)
		return nil
	}
	return g.landed(v, later, g.apply(v))
}

// landed gives out the verdicts on a batch that was sent.
func (g *group) landed(v *view, later []deferred, err error) error {
	unknown := errors.Is(err, store.ErrOutcomeUnknown)
	if unknown && planted.Is(planted.UnknownIsCleanedUp) {
		cleanUp(v.accepted[0].run.ctx, g.k.opt.Files, v.files())
	}
	g.view = nil // from here on its files are no leader's who fails
	if rides := v.rides(); len(rides) > 0 {
		switch {
		case err == nil:
			g.k.opt.Journal.Applied(v.id, rides)
		case unknown:
			g.k.opt.Journal.Drop(rides) // its record, if there is one, is found in time
		}
	}
	if err != nil && !unknown {
		g.sent = false
		g.lost(v.accepted)
	}
	for _, a := range v.accepted {
		a.run.report.Wrote, a.run.report.Batch = true, len(v.accepted)
	}
	if !unknown && isConflict(err) {
		return g.decideAgain(v, err)
	}
	if err == nil {
		v.publish(later)
	}
	for i, a := range v.accepted {
		if unknown && i > 0 && planted.Is(planted.UnknownToLeaderOnly) {
			continue // decided again
		}
		g.settle(a.run, verdict{err: timely(err)})
	}
	g.sent = false
	if err != nil {
		return nil // the others are decided on what the store holds now
	}
	for _, d := range later {
		ctx, cancel := d.within(g.first())
		if err := d.tx.settle(ctx); err == nil {
			g.settle(d.run, verdict{err: d.refusal})
		} else if !isConflict(err) && !d.cut(ctx) {
			g.settle(d.run, verdict{err: timely(err)})
		}
		cancel()
	}
	return nil
}

// decideAgain is for a batch that others stood in the way of. All in it are to be decided again, but for those whom locks have
// kept for as long as may be: they are refused, and then nobody pauses, because who leads may be one of them.
func (g *group) decideAgain(v *view, err error) error {
	var blocked *store.BlockedError
	errors.As(err, &blocked)
	for _, a := range v.accepted {
		m := a.run
		if blocked == nil || !m.waitedEnough() {
			m.report.Conflicts++
			continue
		}
		g.settle(m, verdict{err: fmt.Errorf("%w by %s, %d times in %v", ErrBlocked, blocked.By, m.report.Blocked, m.blocked.Round(time.Millisecond))})
		err = nil
	}
	return err
}

func isConflict(err error) bool {
	var (
		conflict *store.ConflictError
		blocked  *store.BlockedError
	)
	return errors.As(err, &conflict) || errors.As(err, &blocked)
}

// lost tells of files that no batch will name.
func (g *group) lost(of []accepted) {
	for _, a := range of {
		if len(a.rides) > 0 {
			g.k.opt.Journal.Drop(a.rides)
		}
		if len(a.tx.staged) > 0 && g.k.opt.Lost != nil {
			g.k.opt.Lost(a.tx.staged)
		}
	}
}

// upload makes the staged files durable, several at a time, and gives the first error of each operation. What was written
// when another fails stays behind, named by nothing, until Lost's listener or a sweep finds it. The time of the
// operation that has least of it, in the batch or behind it, ends the wait of all, which are then cut.
func (g *group) upload(v *view) (errs []error, cut bool) {
	errs = make([]error, len(v.accepted))
	first := g.first()
	if len(v.accepted) == 1 {
		m := v.accepted[0].run
		ctx, cancel := m.within(first)
		defer cancel()
		errs[0] = g.write(ctx, &v.accepted[0])
		return errs, m.cut(ctx)
	}
	limited, cancel := context.WithDeadline(context.Background(), first)
	defer cancel()
	var uploads errgroup.Group
	uploads.SetLimit(uploadsMax)
	for i := range v.accepted {
		a := &v.accepted[i]
		uploads.Go(func() error {
			errs[i] = g.write(onBehalf{limited, a.run.ctx}, a) //nolint:contextcheck // its values are those of the request
			return nil
		})
	}
	_ = uploads.Wait() // errs has them
	return errs, !time.Now().Before(first)
}

// onBehalf is a context with the values of another.
type onBehalf struct {
	context.Context
	values context.Context
}

func (c onBehalf) Value(k any) any { return c.values.Value(k) }

// write makes the files of one decision: durable, or such that ride in the batch.
func (g *group) write(ctx context.Context, a *accepted) error {
	if len(a.tx.staged) == 1 {
		return g.create(ctx, a.tx.staged[0], g.rides(ctx, a, a.tx.staged[0]))
	}
	var writes errgroup.Group
	writes.SetLimit(uploadsMax)
	for _, f := range a.tx.staged {
		rides := g.rides(ctx, a, f)
		writes.Go(func() error { return g.create(ctx, f, rides) })
	}
	return writes.Wait()
}

// rides tells whether a file's bytes are to ride in the batch, and notes it.
func (g *group) rides(ctx context.Context, a *accepted, f File) bool {
	a.run.report.Bytes += len(f.Data)
	if g.k.opt.Journal == nil || !g.k.opt.Journal.Admit(ctx, f) {
		return false
	}
	a.rides = append(a.rides, f)
	return true
}

func (g *group) create(ctx context.Context, f File, rides bool) error {
	var err error
	if rides {
		err = g.k.opt.Journal.Create(ctx, f)
	} else {
		err = g.k.opt.Files.Create(ctx, f.Scope, f.Location, f.Data)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUpload, f.Location, err)
	}
	return nil
}

// apply sends the batch, and the same batch again while what others have locked is in its way: its files are
// written, and what it was decided on is checked in any case. What is waited is noted of each operation, because one
// that is decided again after it was blocked does not begin to wait anew.
func (g *group) apply(v *view) error {
	b, began := v.batch(), time.Now()
	for {
		err := g.send(v, b)
		var blocked *store.BlockedError
		if !errors.As(err, &blocked) {
			return err
		}
		g.sent = false // nothing of it is on its way
		for _, a := range v.accepted {
			a.run.report.Blocked++
		}
		began = v.waited(began)
		again := g.await(v, blocked)
		began = v.waited(began)
		if !again {
			return blocked
		}
	}
}

// await waits until it is worth sending a blocked batch again. It will not be where somebody in it has waited enough,
// somebody's time is up, or nobody waits for it any more.
func (g *group) await(v *view, blocked *store.BlockedError) bool {
	if planted.Is(planted.BlockedIsDecidedAgain) {
		return false
	}
	pause := max(time.Until(blocked.Until), time.Millisecond)
	for _, a := range v.accepted {
		if a.run.waitedEnough() {
			return false
		}
		if limit := g.k.opt.BlockedLimit; limit > 0 {
			pause = min(pause, limit-a.run.blocked)
		}
	}
	ctx, cancel := g.patience()
	defer cancel()
	return sleep(ctx, pause) == nil && v.awaited()
}

// waitedEnough tells whether what others have locked was in the operation's way for as long, or as often, as it may be.
func (r *run) waitedEnough() bool {
	limit, most := r.k.opt.BlockedLimit, r.k.opt.BlockedRetries
	return limit > 0 && r.blocked >= limit || most != 0 && r.report.Blocked > most
}

// untilFirst is a context for Apply: what it waits for before it sends the batch ends when the first of those who
// are in it can wait no longer.
func (v *view) untilFirst(ctx context.Context) context.Context {
	var first time.Time
	for _, a := range v.accepted {
		if d, ok := a.run.ctx.Deadline(); ok && (first.IsZero() || d.Before(first)) {
			first = d
		}
	}
	if first.IsZero() {
		return ctx
	}
	return store.WaitUntil(ctx, first)
}

// send applies a batch and resolves an unknown outcome. From here on no
// client's cancellation changes anything: it would only make outcomes unknown.
func (g *group) send(v *view, b store.Batch) error {
	g.sent = true // a panic from here on leaves the outcome unknown
	detached := context.WithoutCancel(v.accepted[0].run.ctx)
	if planted.Is(planted.CancelEndsBatch) {
		detached = v.accepted[0].run.ctx
	}
	ctx, cancel := context.WithTimeout(detached, g.k.opt.ApplyLimit)
	defer cancel()
	err := g.k.opt.Store.Apply(v.untilFirst(ctx), b)
	if !errors.Is(err, store.ErrOutcomeUnknown) {
		return err
	}
	if planted.Is(planted.UnknownIsConflict) {
		return &store.ConflictError{}
	}
	ctx, cancel = context.WithTimeout(detached, g.k.opt.ApplyLimit)
	defer cancel()
	outcome, askErr := g.k.opt.Store.Outcome(ctx, b)
	switch {
	case askErr == nil && outcome == store.Applied:
		return nil
	case askErr == nil && outcome == store.NotApplied:
		// The cause has passed, and nothing was done: as good as a conflict.
		return &store.ConflictError{}
	case askErr == nil:
		askErr = errors.New("the store does not say")
	}
	return fmt.Errorf("batch %s: %w (asked again: %w)", b.ID, err, askErr)
}
