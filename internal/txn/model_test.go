package txn

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

var (
	modelSeed  = flag.Uint64("seed", 0, "first seed of TestModel; 0: another each time")
	modelSeeds = flag.Uint64("seeds", 200, "how many seeds TestModel runs")
)

// Several clients apply random batches to few records through a bucket that loses, delays and repeats
// requests, and some clients die on the way. What they were told and what they read is then what a
// store with transactions could have told and shown, one batch after the other; every answer
// agrees with what Outcome says in the end; and nothing is left.
func TestModel(t *testing.T) {
	seed, seeds := *modelSeed, *modelSeeds
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	all := map[string]int{}
	for n := range seeds {
		r := runModel(t, seed+n, nil)
		for _, p := range r.problems {
			t.Errorf("seed %d: %s", seed+n, p)
		}
		for what, n := range r.counts {
			all[what] += n
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d seeds from %d: %v", seeds, seed, all)
	for _, what := range []string{"applied", "conflict", "blocked", "unknown", "lose", "fail", "delay", "repeat", "copy", "crash"} {
		if all[what] == 0 && seeds > 100 {
			t.Errorf("%s never happened", what)
		}
	}
}

// The model sees what a bucket that breaks its promise does to the store above.
func TestModelSeesBrokenBuckets(t *testing.T) {
	for name, broken := range map[string]func(mem *mem.Objects, rng *rand.Rand) store.Objects{
		"a swap does not compare": func(mem *mem.Objects, rng *rand.Rand) store.Objects { return &careless{Objects: mem, rng: rng} },
		"a read is old": func(mem *mem.Objects, rng *rand.Rand) store.Objects {
			return &lagging{Objects: mem, rng: rng, old: map[string]store.Object{}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range *modelSeeds {
				if r := runModel(t, seed, broken); len(r.problems) > 0 {
					t.Logf("seen by seed %d: %s", seed, r.problems[0])
					return
				}
			}
			t.Errorf("not seen in %d seeds", *modelSeeds)
		})
	}
}

// careless now and then swaps whatever the tag.
type careless struct {
	*mem.Objects
	mu  sync.Mutex
	rng *rand.Rand
}

func (c *careless) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rng.IntN(4) == 0 {
		now, err := c.Objects.Get(ctx, name)
		if err != nil {
			return store.NoTag, err
		}
		match = now.Tag
	}
	return c.Objects.Put(ctx, name, match, data)
}

// lagging now and then gives what it gave before.
type lagging struct {
	*mem.Objects
	mu  sync.Mutex
	rng *rand.Rand
	old map[string]store.Object
}

func (l *lagging) Get(ctx context.Context, name string) (store.Object, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.Objects.Get(ctx, name)
	if old, ok := l.old[name]; ok && l.rng.IntN(4) == 0 {
		return old, err
	}
	l.old[name] = now
	return now, err
}

// modelRun is one run.
type modelRun struct {
	objects store.Objects
	clock   atomic.Int64
	late    sync.WaitGroup // requests that are under way, and given up

	mu       sync.Mutex
	history  []porcupine.Operation
	open     []porcupine.Operation // batches of which their clients do not know
	answers  []answer
	counts   map[string]int
	problems []string
}

// answer is what the client of a batch was told of it.
type answer struct {
	batch   store.Batch
	applied bool
}

func (r *modelRun) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

func (r *modelRun) note(op porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, op)
}

func (r *modelRun) problem(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func runModel(t *testing.T, seed uint64, bend func(*mem.Objects, *rand.Rand) store.Objects) *modelRun {
	objects := mem.NewObjects()
	r := &modelRun{objects: objects, counts: map[string]int{}}
	if bend != nil {
		r.objects = bend(objects, rand.New(rand.NewPCG(seed, 99)))
	}
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		objects.Now = time.Now
		var clients sync.WaitGroup
		for n := range 4 {
			clients.Go(func() {
				c := &modelClient{modelRun: r, name: fmt.Sprintf("c%d", n), rng: rand.New(rand.NewPCG(seed, uint64(n)))}
				c.db = New(Options{Objects: c, Layout: letters{}, Lease: 50 * time.Millisecond})
				for range 15 {
					c.step(ctx)
				}
			})
		}
		clients.Wait()
		r.late.Wait()
		r.settle(ctx, New(Options{Objects: objects, Layout: letters{}, Lease: 50 * time.Millisecond}))
	})
	if len(r.problems) > 0 {
		return r
	}
	switch result, info := porcupine.CheckOperationsVerbose(modelOfStore, r.history, 20*time.Second); result {
	case porcupine.Illegal:
		r.problem("no order of the batches explains what was seen:\n%s", r.tell(info))
	case porcupine.Unknown:
		r.problem("the check took too long")
	}
	return r
}

// settle ends what is left, asks what became of every batch, and reads every record.
func (r *modelRun) settle(ctx context.Context, db *Store) {
	time.Sleep(time.Minute)
	for _, op := range r.open {
		b := op.Input.(modelInput).batch
		switch o, err := db.Outcome(ctx, b); {
		case err != nil:
			r.problem("outcome of %s: %v", b.ID, err)
		case o == store.Applied:
			op.Output, op.Return = modelOutput{applied: true}, r.clock.Add(1)
			r.history = append(r.history, op)
		}
	}
	for _, a := range r.answers {
		o, err := db.Outcome(ctx, a.batch)
		if err != nil || (o == store.Applied) != a.applied {
			r.problem("%s was answered as applied: %v; its outcome is %v, %v", a.batch.ID, a.applied, o, err)
		}
	}
	if err := db.Scrub(ctx); err != nil {
		r.problem("scrub: %v", err)
	}
	if left, err := db.Leftovers(ctx); err != nil || len(left) > 0 {
		r.problem("left: %q %v", left, err)
	}
	keys := map[key.Key]bool{}
	for _, op := range r.history {
		for _, w := range op.Input.(modelInput).batch.Writes {
			keys[w.Key] = true
		}
	}
	for k := range keys {
		call := r.clock.Add(1)
		got, err := db.Get(ctx, k)
		if err != nil {
			r.problem("get %v: %v", k, err)
		}
		r.history = append(r.history, porcupine.Operation{Input: modelInput{key: k}, Call: call, Output: modelOutput{record: got}, Return: r.clock.Add(1)})
	}
}

// tell lists a history in the order of calls, and marks what the longest order that was found leaves out.
func (r *modelRun) tell(info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	explained := map[int64]bool{} // by return: no two return at once
	for _, op := range longest {
		explained[op.Return] = true
	}
	slices.SortFunc(r.history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var lines []string
	for _, op := range r.history {
		mark := " "
		if !explained[op.Return] {
			mark = "?"
		}
		lines = append(lines, fmt.Sprintf("%s %4d %4d %s", mark, op.Call, op.Return, modelOfStore.DescribeOperation(op.Input, op.Output)))
	}
	return strings.Join(lines, "\n")
}

// modelClient is one client, and the bucket as it reaches it.
type modelClient struct {
	*modelRun
	name string
	rng  *rand.Rand
	db   *Store
	made int
	dead bool // for the rest of this step
}

// step reads and applies something.
func (c *modelClient) step(ctx context.Context) {
	c.dead = false
	switch c.rng.IntN(10) {
	case 0:
		_ = c.db.Recover(ctx)
	case 1:
		_ = c.db.Scrub(ctx)
	default:
		b, ok := c.decide(ctx)
		if ok {
			c.apply(ctx, b)
		}
	}
	for range c.rng.IntN(3) {
		c.get(ctx, c.pick("A", "A1", "B", "C", "N", "N/x1", "N/x2"))
	}
}

func (c *modelClient) pick(names ...string) string { return names[c.rng.IntN(len(names))] }

// get notes what a read gave; false: it failed.
func (c *modelClient) get(ctx context.Context, name string) (store.Record, bool) {
	call := c.clock.Add(1)
	rec, err := c.db.Get(ctx, letter(name))
	if err != nil {
		return rec, false
	}
	c.note(porcupine.Operation{Input: modelInput{key: rec.Key}, Call: call, Output: modelOutput{record: rec}, Return: c.clock.Add(1)})
	return rec, true
}

// decide makes a batch of what it reads.
func (c *modelClient) decide(ctx context.Context) (b store.Batch, ok bool) {
	c.made++
	b.ID = fmt.Sprintf("%s-%d", c.name, c.made)
	ok = true
	put := func(rec store.Record, value string) {
		id := rec.ID
		if !rec.Exists() {
			id = b.ID
		}
		b.Writes = append(b.Writes, store.Write{Key: rec.Key, ID: id, Value: []byte(value)})
	}
	read := func(name string) store.Record {
		rec, good := c.get(ctx, name)
		ok = ok && good
		return rec
	}
	is := func(name string) store.Record {
		rec := read(name)
		b.Conds = append(b.Conds, store.Is(rec.Key, rec.Version))
		return rec
	}
	switch c.rng.IntN(8) {
	case 0, 1, 2: // several records, and a look at another
		names := []string{"A", "A1", "B", "C"}
		c.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		n := 1 + c.rng.IntN(3)
		for _, name := range names[:n] {
			rec := is(name)
			if rec.Exists() && c.rng.IntN(4) == 0 {
				b.Writes = append(b.Writes, store.Write{Key: rec.Key, Delete: true})
			} else {
				put(rec, b.ID)
			}
		}
		if other := read(names[n]); other.Exists() {
			if c.rng.IntN(2) == 0 {
				b.Conds = append(b.Conds, store.Is(other.Key, other.Version))
			} else {
				b.Conds = append(b.Conds, store.Live(other.Key, other.ID))
			}
		}
	case 3: // the parent
		rec := is("N")
		if rec.Exists() {
			b.Conds = append(b.Conds, store.Empty(children.of, children.prefix))
			b.Writes = append(b.Writes, store.Write{Key: rec.Key, Delete: true})
		} else {
			put(rec, b.ID)
		}
	case 4, 5: // a child
		parent := read("N")
		if !parent.Exists() {
			return b, false
		}
		b.Conds = append(b.Conds, store.Live(parent.Key, parent.ID))
		rec := is(c.pick("N/x1", "N/x2"))
		if rec.Exists() {
			b.Writes = append(b.Writes, store.Write{Key: rec.Key, Delete: true})
		} else {
			put(rec, b.ID)
		}
	case 6: // a birth, and what leads to it
		name := "p-" + b.ID
		put(is(c.pick("A", "B")), name)
		b.Conds = append(b.Conds, store.Is(letter(name), store.Absent))
		put(store.Record{Key: letter(name)}, b.ID)
	case 7: // what A or B leads to
		rec := is(c.pick("A", "B"))
		if !rec.Exists() || !strings.HasPrefix(string(rec.Value), "p-") {
			return b, false
		}
		born := read(string(rec.Value))
		if !born.Exists() { // so it was said, and the history is judged by it
			return b, false
		}
		b.Conds = append(b.Conds, store.Is(born.Key, born.Version))
		put(born, b.ID)
	}
	return b, ok
}

func (c *modelClient) apply(ctx context.Context, b store.Batch) {
	op := porcupine.Operation{Input: modelInput{batch: b}, Call: c.clock.Add(1)}
	err := c.db.Apply(ctx, b)
	op.Return = c.clock.Add(1)
	conflict, isConflict := errors.AsType[*store.ConflictError](err)
	_, isBlocked := errors.AsType[*store.BlockedError](err)
	switch {
	case errors.Is(err, store.ErrOutcomeUnknown), err != nil && c.dead: // or it is not there any more to hear the answer
		c.count("unknown")
		c.ask(ctx, op)
	case err == nil:
		c.count("applied")
		c.answered(op, true)
	default:
		c.answered(op, false)
		switch {
		case isBlocked:
			c.count("blocked")
		case isConflict:
			c.count("conflict")
			for _, cond := range conflict.Conds { // each of them failed at some moment
				op.Output = modelOutput{failed: cond}
				c.note(op)
			}
		}
	}
}

// ask finds out what became of a batch, now or when all is over.
func (c *modelClient) ask(ctx context.Context, op porcupine.Operation) {
	if c.rng.IntN(2) == 0 {
		c.dead = false // another asks
		if o, err := c.db.Outcome(ctx, op.Input.(modelInput).batch); err == nil {
			op.Return = c.clock.Add(1)
			c.answered(op, o == store.Applied)
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, op)
}

// answered notes what a client was told of its batch.
func (c *modelClient) answered(op porcupine.Operation, applied bool) {
	if applied {
		op.Output = modelOutput{applied: true}
		c.note(op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, answer{op.Input.(modelInput).batch, applied})
}

// trouble draws what goes wrong with the next access, and lets some time pass. Status records
// have more of it: there it is decided.
func (c *modelClient) trouble(name string) fault {
	time.Sleep(time.Duration(c.rng.IntN(3_000_000)))
	if c.dead {
		return fail
	}
	f := fault("")
	one := 60
	if strings.HasPrefix(name, statusPrefix) {
		one = 15
	}
	switch c.rng.IntN(one) {
	case 0:
		f = lose
	case 1:
		f = fail
	case 2:
		f = delay
	case 3:
		f = repeat
	case 4:
		f = "copy"
	case 5:
		if c.rng.IntN(2) == 0 {
			f = crash
			c.dead = true
		}
	}
	if f != "" {
		c.count(string(f))
	}
	return f
}

// arrives lets a request arrive when its sender has long given it up.
func (c *modelClient) arrives(name string, match store.Tag, data []byte) {
	after := []time.Duration{time.Millisecond, 40 * time.Millisecond, 15 * time.Second}[c.rng.IntN(3)] + time.Duration(c.rng.IntN(1_000_000))
	c.late.Go(func() {
		time.Sleep(after)
		_, _ = c.objects.Put(context.Background(), name, match, data)
	})
}

// Get implements store.Objects, as List and Delete do.
func (c *modelClient) Get(ctx context.Context, name string) (store.Object, error) {
	if f := c.trouble(name); f == fail || f == crash {
		return store.Object{}, errNotSent
	}
	return c.objects.Get(ctx, name)
}

// Put implements store.Objects.
func (c *modelClient) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	f := c.trouble(name)
	switch {
	case f == fail, f == crash && c.rng.IntN(2) == 0:
		return store.NoTag, errNotSent
	case f == delay:
		c.arrives(name, match, data)
		return store.NoTag, store.ErrOutcomeUnknown
	}
	tag, err := c.objects.Put(ctx, name, match, data)
	switch f {
	case lose:
		return store.NoTag, store.ErrOutcomeUnknown
	case repeat:
		return c.objects.Put(ctx, name, match, data)
	case "copy":
		c.arrives(name, match, data)
	case crash:
		return store.NoTag, store.ErrOutcomeUnknown
	}
	return tag, err
}

func (c *modelClient) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if f := c.trouble(prefix); f == fail || f == crash {
		return nil, errNotSent
	}
	return c.objects.List(ctx, prefix, after, limit)
}

func (c *modelClient) Delete(ctx context.Context, name string) error {
	switch f := c.trouble(name); f {
	case fail, crash:
		return errNotSent
	case lose:
		_ = c.objects.Delete(ctx, name)
		return store.ErrOutcomeUnknown
	}
	return c.objects.Delete(ctx, name)
}

// modelInput is a read of a key, or a batch.
type modelInput struct {
	key   key.Key
	batch store.Batch
}

type modelOutput struct {
	record  store.Record // that was read
	applied bool
	failed  store.Cond // otherwise: what did not hold
}

// modelOfStore is a store with transactions: its state is the records that there are.
var modelOfStore = porcupine.Model{
	Init: func() any { return map[key.Key]store.Record{} },
	Step: func(state, input, output any) (bool, any) {
		records, in, out := state.(map[key.Key]store.Record), input.(modelInput), output.(modelOutput)
		switch {
		case in.batch.ID == "":
			r := records[in.key]
			return r.Version == out.record.Version && r.ID == out.record.ID && string(r.Value) == string(out.record.Value), state
		case !out.applied:
			return !modelHolds(records, out.failed, in.batch.Writes), state
		}
		for _, c := range in.batch.Conds {
			if !modelHolds(records, c, in.batch.Writes) {
				return false, state
			}
		}
		next := maps.Clone(records)
		for _, w := range in.batch.Writes {
			delete(next, w.Key)
			if !w.Delete {
				next[w.Key] = store.Record{Key: w.Key, Version: store.Version(in.batch.ID), ID: w.ID, Value: w.Value}
			}
		}
		return true, next
	},
	Equal: func(a, b any) bool {
		return maps.EqualFunc(a.(map[key.Key]store.Record), b.(map[key.Key]store.Record), func(a, b store.Record) bool { return a.Version == b.Version })
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(modelInput), output.(modelOutput)
		switch {
		case in.batch.ID == "":
			return fmt.Sprintf("get %s: %s=%s", in.key.Path, out.record.Version, out.record.Value)
		case out.applied:
			return fmt.Sprintf("applied %s: %v %v", in.batch.ID, in.batch.Conds, in.batch.Writes)
		}
		return fmt.Sprintf("refused %s: %v", in.batch.ID, out.failed)
	},
}

func modelHolds(records map[key.Key]store.Record, c store.Cond, own []store.Write) bool {
	switch c.Kind {
	case store.KindIs:
		return records[c.Key].Version == c.Version
	case store.KindLive:
		return records[c.Key].ID == c.ID
	}
	for k := range records {
		if c.Prefix.Covers(k) && !slices.ContainsFunc(own, func(w store.Write) bool { return w.Key == k }) {
			return false
		}
	}
	return true
}
