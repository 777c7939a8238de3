package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/sim/history"
	"github.com/landfast/landfast/internal/store"
)

// client does one thing after the other, each a call or a few that belong together.
type client struct {
	w     *world
	id    int
	home  int // the node it prefers
	step  int
	calls int // in this step
	// seen is what the client last learnt of tables.
	seen map[history.Name]seen
	// files are metadata files of tables that have left the catalog: they can be registered.
	files []string
}

// seen is a table as an answer showed it.
type seen struct {
	uuid                        string
	snapshot, sequence, updated int64
}

// request is a call, and what becomes of it.
type request struct {
	history.Operation
	op    kernel.Operation // with its result, once it was done
	read  bool             // it changes nothing
	after func(kernel.Operation)
}

// live goes through the client's steps.
func (c *client) live() {
	for i := range c.w.profile.steps {
		if rest := c.w.profile.rest; rest > 0 && i == rest {
			c.w.sleep(c.id, max(restTime-c.w.now(), 0), 0)
		}
		c.take(func() {
			s := c.stream("step")
			c.w.sleep(c.id, s.between(0, c.w.profile.pause), 0)
			actions[s.weighted(c.w.profile.weights)].do(c, &s)
		})
	}
}

// restTime is when the clients have rested, if they do: what reclaimers do now and then has
// been done.
const restTime = 22 * time.Minute

// take takes the next step, unless it is left out.
func (c *client) take(do func()) {
	one := step{c.id, c.step}
	if !c.w.cfg.Without.steps[one] {
		c.w.mu.Lock()
		c.w.steps = append(c.w.steps, one)
		c.w.mu.Unlock()
		c.calls = 0
		func() {
			defer c.w.caught()
			do()
		}()
	}
	c.step++
}

// stream belongs to what the client does next.
func (c *client) stream(what string) stream {
	return streamOf(c.w.cfg.Seed, textHash(what), uint64(c.id), uint64(c.step), uint64(c.calls))
}

// token is unique to the next call.
func (c *client) token() string { return fmt.Sprintf("t%d.%d.%d", c.id, c.step, c.calls) }

// snapshot is unique to the next call and a table in it.
func (c *client) snapshot(part int) int64 {
	return int64(((c.id+1)*1000+c.step)*100+c.calls)*10 + int64(part)
}

// call makes a call and tells what came of it. A mutation may bear an idempotency key, and is
// then made again, here or on another node, as long as its outcome is unknown and sometimes
// although it is known.
func (c *client) call(r request) history.Outcome {
	s := c.stream("call")
	name, token := uint64(c.stream("request")), c.calls
	mutation, ok := r.op.(catalog.Mutation)
	if !ok || !s.chance(c.w.profile.keyed) {
		r.Replays = -1
		_, outcome := c.send(r, r.op, &s, name)
		return outcome
	}
	r.Key = fmt.Sprintf("key-%d-%d-%d", c.id, c.step, token)
	r.Replays = -1
	asked, err := kernel.Encode(r.op)
	if err != nil {
		panic(err)
	}
	first, outcome := c.send(r, once(r, mutation), &s, name)
	for range 3 {
		if outcome == history.Done && !s.chance(2500) || outcome == history.Refused && !s.chance(500) {
			break
		}
		again := r
		again.Replays = first
		if again.op, err = catalog.Operations.Decode(asked); err != nil {
			panic(err)
		}
		c.w.sleep(c.id, s.between(0, time.Second), 0)
		_, outcome = c.send(again, once(again, again.op.(catalog.Mutation)), &s, uint64(c.stream("request")))
	}
	return outcome
}

// keyLifetime is longer than any clock is off.
const keyLifetime = 1000 * time.Hour

// once is the mutation under the request's key.
func once(r request, m catalog.Mutation) *catalog.Once {
	scope := r.Name.Warehouse
	switch r.Kind {
	case history.CreateWarehouse, history.DropWarehouse:
		scope = ""
	case history.Transaction:
		scope = r.Parts[0].Name.Warehouse
	}
	return &catalog.Once{
		Request: catalog.OnceRequest{Warehouse: scope, Key: r.Key, Hash: []byte(r.Key), Lifetime: keyLifetime},
		Inner:   m,
	}
}

// send makes one call, and records it.
func (c *client) send(r request, op kernel.Operation, s *stream, name uint64) (id int, _ history.Outcome) {
	w := c.w
	who := c.open(s, name)
	n := who.node
	w.mu.Lock()
	id = len(w.history)
	r.ID, r.Client, r.Call, r.Return = id, c.id, int64(w.now()), history.Forever
	r.Outcome = history.Unknown
	w.history = append(w.history, r.Operation)
	w.mu.Unlock()
	w.event(who.label, "#"+fmt.Sprint(id), string(r.Kind)+" "+describe(r.Operation), "sent")

	limit := s.between(5*time.Second, 40*time.Second)
	leave := late(s)
	hangsUp := s.chance(5000)
	leaves := who.fault(s, []string{clientLeaves}, []int{w.profile.rates.leave}) != ""
	ctx, cancel := context.WithTimeout(context.Background(), w.until(c.id, timeout, limit))
	var err error
	if !leaves {
		err = n.do(ctx, who, op)
		cancel()
	} else {
		who.actor = abandoned + c.id
		done := make(chan error, 1)
		w.background.Go(func() {
			defer w.caught()
			defer cancel()
			done <- n.do(ctx, who, op)
		})
		timer := time.NewTimer(w.until(c.id, timeout, leave))
		select {
		case err = <-done:
			leaves = false
		case <-timer.C:
			if hangsUp {
				cancel()
			}
		}
		timer.Stop()
	}
	w.sleep(c.id, time.Millisecond, 0) // whoever else was woken by what woke us is done
	if leaves || !who.alive() {
		err = errLeft
	}
	outcome, refusal := c.judge(r, op, err)
	w.mu.Lock()
	h := &w.history[id]
	h.Outcome, h.Refusal = outcome, refusal
	if err != nil {
		h.Message = err.Error()
	}
	if outcome != history.Unknown {
		h.Return = int64(w.now())
	}
	if outcome == history.Done {
		shown, listed := answer(op)
		h.Listed = listed
		h.Show(shown)
	}
	shown := *h
	w.mu.Unlock()
	w.event(who.label, "#"+fmt.Sprint(id), string(r.Kind), answerText(shown))
	if outcome == history.Done && r.after != nil {
		r.after(inner(op))
	}
	return id, outcome
}

const (
	clientLeaves = "client does not wait"
	// abandoned is the actor that goes on with a client's call when the client does not wait.
	abandoned = 20
)

// errLeft says that the client did not get the answer.
var errLeft = errors.New("sim: the client has no answer")

// open is a connection to a node, for one call.
func (c *client) open(s *stream, name uint64) *caller {
	c.calls++
	n, life := c.choose(s)
	return &caller{w: c.w, node: n, life: life, actor: c.id, name: name, label: fmt.Sprintf("n%d c%d", n.id, c.id)}
}

// ask makes a call that is no part of the history: it changes nothing, and only prepares
// another.
func (c *client) ask(op kernel.Operation, s *stream) bool {
	who := c.open(s, uint64(c.stream("ask")))
	ctx, cancel := context.WithTimeout(context.Background(), c.w.until(c.id, timeout, askLimit))
	defer cancel()
	err := who.node.do(ctx, who, op)
	c.w.sleep(c.id, time.Millisecond, 0)
	c.w.event(who.label, "ask", op.Plan().Op, outcomeOf(err))
	return err == nil && who.alive()
}

const askLimit = 10 * time.Second

// choose is a node that is up: mostly the client's own.
func (c *client) choose(s *stream) (_ *node, life int) {
	w := c.w
	for {
		first := c.home
		if s.chance(2500) {
			first = s.n(len(w.nodes))
		}
		w.mu.Lock()
		for i := range w.nodes {
			if n := w.nodes[(first+i)%len(w.nodes)]; n.up {
				life := n.life
				w.mu.Unlock()
				return n, life
			}
		}
		w.mu.Unlock()
		w.sleep(c.id, s.between(10*time.Millisecond, 200*time.Millisecond), 0)
	}
}

// judge says what the client was told. A read that failed counts as refused.
func (c *client) judge(r request, op kernel.Operation, err error) (history.Outcome, history.Refusal) {
	var refusal *catalog.Error
	switch {
	case err == nil:
		return history.Done, ""
	case errors.As(err, &refusal):
		return history.Refused, c.refusal(r, op, refusal)
	case r.read:
		return history.Refused, history.Busy
	case errors.Is(err, errLeft), errors.Is(err, errDead), errors.Is(err, store.ErrOutcomeUnknown):
		return history.Unknown, ""
	}
	return history.Refused, history.Busy
}

// refusal is the reason of one, as far as it tells something. A reason that no client has
// given cause for is a problem.
func (c *client) refusal(r request, op kernel.Operation, e *catalog.Error) history.Refusal {
	_, keyed := op.(*catalog.Once)
	switch {
	case errors.Is(e, catalog.ErrNoSuchWarehouse):
		return history.NoSuchWarehouse
	case errors.Is(e, catalog.ErrNoSuchNamespace):
		return history.NoSuchNamespace
	case errors.Is(e, catalog.ErrNoSuchTable), errors.Is(e, catalog.ErrNoSuchView):
		return history.NoSuchTable
	case errors.Is(e, catalog.ErrAlreadyExists):
		return history.AlreadyExists
	case errors.Is(e, catalog.ErrNotEmpty) && strings.Contains(e.Message, "being deleted"):
		return history.Busy // what is being deleted is not modelled
	case errors.Is(e, catalog.ErrNotEmpty):
		return history.NotEmpty
	case errors.Is(e, catalog.ErrRequirement):
		return history.Requirement
	case strings.HasPrefix(e.Kind.Error(), "overlapping location"):
		return history.Location
	case errors.Is(e, catalog.ErrMissingFile) && (r.Kind == history.RegisterTable || keyed):
		return history.Busy // it has been deleted since
	case errors.Is(e, catalog.ErrInvalid) && c.w.profile.clocks > 0 && strings.Contains(e.Message, "ahead of the server's clock"):
		return history.Busy // a snapshot on top of one that a node made whose clock was ahead
	case errors.Is(e, catalog.ErrInvalid) && strings.Contains(e.Message, "differs in"):
		return history.Busy // a warehouse beside one with another setting
	}
	c.w.problem("#%d %s %v: refused with %v: %s", r.ID, r.Kind, r.Name, e.Kind, e.Message)
	return history.Busy
}

// inner is the operation under an idempotency key.
func inner(op kernel.Operation) kernel.Operation {
	if o, ok := op.(*catalog.Once); ok {
		return o.Inner
	}
	return op
}

// answer is what an operation that was done shows.
func answer(op kernel.Operation) (history.State, []string) {
	switch op := inner(op).(type) {
	case *catalog.CreateTable:
		return tableState(op.Result), nil
	case *catalog.CommitTable:
		return tableState(op.Result), nil
	case *catalog.RegisterTable:
		return tableState(op.Result), nil
	case *catalog.UnregisterTable:
		return tableState(op.Result), nil
	case *catalog.LoadTable:
		return tableState(op.Result.TableState), nil
	case *catalog.CreateView:
		return viewState(op.Result), nil
	case *catalog.ReplaceView:
		return viewState(op.Result), nil
	case *catalog.LoadView:
		return viewState(op.Result), nil
	case *catalog.GetNamespace:
		return history.State{Token: op.Result.Properties["token"]}, nil
	case *catalog.ListTables:
		return history.State{}, slices.Sorted(slices.Values(op.Result.Names))
	case *catalog.ListNamespaces:
		var names []string
		for _, levels := range op.Result.Namespaces {
			names = append(names, strings.Join(levels, "."))
		}
		slices.Sort(names)
		return history.State{}, names
	}
	return history.State{}, nil
}

func tableState(s catalog.TableState) history.State {
	return history.State{
		Token: member(s.Metadata, "token"), UUID: member(s.Metadata, "table-uuid"), Location: s.MetadataLocation,
		Snapshot: max(number(s.Metadata, "current-snapshot-id"), 0), // -1 where there is none
	}
}

func viewState(s catalog.ViewState) history.State {
	return history.State{Token: member(s.Metadata, "token"), UUID: member(s.Metadata, "view-uuid"), Location: s.MetadataLocation}
}

// describe is an operation in the transcript.
func describe(o history.Operation) string {
	var b strings.Builder
	b.WriteString(o.Name.String())
	if o.To != (history.Name{}) {
		fmt.Fprintf(&b, " -> %v", o.To)
	}
	for _, p := range o.Parts {
		fmt.Fprintf(&b, " [%v", p.Name)
		if p.Creates {
			b.WriteString(" created")
		}
		if p.Snapshot != 0 {
			fmt.Fprintf(&b, " snapshot %d", p.Snapshot)
		}
		if p.Expect != nil {
			fmt.Fprintf(&b, " if main is %d", *p.Expect)
		}
		b.WriteString("]")
	}
	if o.From != "" {
		fmt.Fprintf(&b, " from %s overwrite=%v", o.From, o.Overwrite)
	}
	if o.Token != "" {
		b.WriteString(" " + o.Token)
	}
	if o.Replays >= 0 {
		fmt.Fprintf(&b, " (again: #%d)", o.Replays)
	}
	return b.String()
}

// answerText is an answer in the transcript.
func answerText(o history.Operation) string {
	switch {
	case o.Outcome == history.Done && o.Latest != (history.State{}):
		return fmt.Sprintf("done, and since: token %s, main %d, %s", o.Latest.Token, o.Latest.Snapshot, o.Latest.Location)
	case o.Outcome == history.Done && o.Seen != (history.State{}):
		return fmt.Sprintf("done: token %s, main %d, %s", o.Seen.Token, o.Seen.Snapshot, o.Seen.Location)
	case o.Outcome == history.Done && o.Listed != nil:
		return fmt.Sprintf("done: %s", strings.Join(o.Listed, " "))
	case o.Outcome == history.Done:
		return "done"
	case o.Outcome == history.Refused:
		return fmt.Sprintf("refused: %s: %s", o.Refusal, o.Message)
	}
	return "unknown: " + o.Message
}
