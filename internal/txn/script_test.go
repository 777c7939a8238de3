package txn

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts runs each file of testdata: stories of batches that are stopped between their
// accesses to the objects, told as what each access did and what readers saw then. A line
// that is not indented is a step; what is indented below it is what happened, and is written
// by -update. `== title` begins a story, on an empty store.
//
// The records are those of [letters]. Who does something has a name, and waits before each of its accesses:
//
//	t1: A=1 -B ?C ~N empty N    a batch of what was read now: puts A, deletes B; C is as it was, N lives, nothing is below it
//	t1b: again t1               the same batch, sent once more
//	r1: recover | scrub | outcome t1 | get A | list N/
//	t1 look                     t1 goes on until it wants to write
//	t1 begin | commit | abort   t1 goes on until it has written that its status is PENDING, COMMITTED, ABORTED
//	t1 put A | get A | delete tx/t1    until it has done that
//	t1 rest                     to its end
//	t1 lose commit              and the reply of that access is lost; fail: it was not sent, delay: it
//	                            is under way when t1 gives it up, repeat: a layer below sent it twice
//	t1 deliver                  what was under way arrives
//	t1 copy A                   a copy of t1's first write of A arrives
//	t1 crash
//
// and what happens at once, to the end:
//
//	apply t0: A=0    outcome t1    recover    scrub    left    show A    list N/
//	wait 10s         the store's clock goes on
//	batches A 256    so many batches change a record that nobody looks at, in the page A
//	as if t0 t2      these batches alone, one after the other, would have made the same records
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			stories := strings.Split("\n"+string(want), "\n== ")
			got.WriteString(strings.TrimPrefix(stories[0], "\n"))
			for n, story := range stories[1:] {
				if n > 0 || stories[0] != "" {
					got.WriteString("\n")
				}
				title, steps, _ := strings.Cut(story, "\n")
				got.WriteString("== " + title + "\n")
				t.Run(title, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { got.WriteString(tell(t, steps)) })
				})
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got; -update rewrites it:\n%s", diff)
			}
		})
	}
}

// letters is a layout with short names. A record lies in the page of its first letter: A, A1 and A2
// in A. Those of small letters lie alone, and are births. N guards what is below N/, which
// lies in two pages: N/x1 in M1, N/x2 in M2. They come before N, as those of a namespace do.
type letters struct{}

func letter(name string) key.Key { return key.Key{Level: key.Pointer, Path: name} }

func (l letters) Page(k key.Key) string {
	switch {
	case strings.HasPrefix(k.Path, "N/"):
		return "M" + k.Path[len(k.Path)-1:]
	case l.Birth(k):
		return k.Path
	}
	return k.Path[:1]
}

func (letters) Pages(p key.Prefix) ([]string, string, error) {
	if p != children.prefix {
		return nil, "", fmt.Errorf("there is no %v", p)
	}
	return []string{"M1", "M2"}, "", nil
}

var children = struct {
	of     key.Key
	prefix key.Prefix
}{letter("N"), key.Prefix{Level: key.Pointer, Path: "N/"}}

func (letters) Children(k key.Key) []key.Prefix {
	if k == children.of {
		return []key.Prefix{children.prefix}
	}
	return nil
}

func (letters) Birth(k key.Key) bool { return k.Path >= "a" }

// fault is what goes wrong with one access.
type fault string

const (
	lose   fault = "lose"
	fail   fault = "fail"
	delay  fault = "delay"
	repeat fault = "repeat"
	crash  fault = "crash"
)

// sentPut is one Put that was sent.
type sentPut struct {
	name  string
	match store.Tag
	data  []byte
	late  bool // under way, and given up
}

// access is one call.
type access struct {
	verb, object string
	content      string // of a Put
}

// actor does one thing, and waits before each of its accesses.
type actor struct {
	name    string
	at      atomic.Pointer[access] // what it waits to do; nil: it does not wait
	turn    chan fault
	crashed atomic.Bool
	done    atomic.Bool
	writes  []*sentPut
}

// world is one story.
type world struct {
	*testing.T
	objects *mem.Objects
	store   *Store
	actors  map[string]*actor
	batches map[string]store.Batch
	keys    []string // that the story has named
	out     strings.Builder
}

type actorKey struct{}

func (w *world) as(a *actor) context.Context { return context.WithValue(w.Context(), actorKey{}, a) }

// tell plays the steps of one story, and returns them with what happened.
func tell(t *testing.T, steps string) string {
	w := &world{T: t, objects: mem.NewObjects(), actors: map[string]*actor{}, batches: map[string]store.Batch{}}
	w.store = New(Options{Objects: gated{w}, Layout: letters{}})
	var last string
	for _, line := range strings.Split(strings.TrimRight(steps, "\n"), "\n") {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		w.out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		w.step(line)
		if now := w.readers(); now != last {
			w.say("readers see %s", now)
			last = now
		}
	}
	for _, a := range w.actors {
		w.kill(a)
	}
	return w.out.String()
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(&w.out, "  "+format+"\n", args...) }

// readers is what a reader finds in every key.
func (w *world) readers() string {
	var all []string
	for _, k := range w.keys {
		all = append(all, w.value(w.store, k))
	}
	return strings.Join(all, " ")
}

func (w *world) value(s store.Atomic, name string) string {
	r, err := s.Get(w.Context(), letter(name))
	switch {
	case err != nil:
		return name + " " + err.Error()
	case !r.Exists():
		return name + "=-"
	}
	return name + "=" + string(r.Value)
}

// gated lets an actor wait before each access. Without an actor it does not wait.
type gated struct{ w *world }

// enter waits for the actor's turn.
func (g gated) enter(ctx context.Context, verb, name, content string) (*actor, fault) {
	a, ok := ctx.Value(actorKey{}).(*actor)
	if !ok {
		return nil, ""
	}
	var f fault
	if !a.crashed.Load() {
		a.at.Store(&access{verb, name, content})
		f = <-a.turn
		a.at.Store(nil)
	}
	if a.crashed.Load() {
		runtime.Goexit()
	}
	return a, f
}

func (g gated) tell(a *actor, what, outcome string) {
	if a != nil {
		g.w.say("%s %s: %s", a.name, what, outcome)
	}
}

var errNotSent = errors.New("not sent")

func (g gated) Get(ctx context.Context, name string) (store.Object, error) {
	a, f := g.enter(ctx, "get", name, "")
	if f != "" {
		g.tell(a, "get "+name, errNotSent.Error())
		return store.Object{}, errNotSent
	}
	o, err := g.w.objects.Get(ctx, name)
	g.tell(a, "get "+name, contentOf(o))
	return o, err
}

func (g gated) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	content := contentOf(store.Object{Name: name, Tag: "new", Data: data})
	a, f := g.enter(ctx, "put", name, content)
	if a == nil {
		return g.w.objects.Put(ctx, name, match, data)
	}
	what := "put " + name + " := " + content
	sent := &sentPut{name: name, match: match, data: data, late: f == delay}
	switch f {
	case fail:
		g.tell(a, what, "not sent")
		return store.NoTag, errNotSent
	case delay:
		a.writes = append(a.writes, sent)
		g.tell(a, what, "under way")
		return store.NoTag, store.ErrOutcomeUnknown
	}
	a.writes = append(a.writes, sent)
	tag, err := g.w.objects.Put(ctx, name, match, data)
	outcome := "done"
	if err != nil {
		outcome = "refused"
	}
	switch f {
	case lose:
		outcome, tag, err = outcome+", the reply is lost", store.NoTag, store.ErrOutcomeUnknown
	case repeat:
		tag, err = g.w.objects.Put(ctx, name, match, data)
		outcome += ", again: refused"
	}
	g.tell(a, what, outcome)
	return tag, err
}

func (g gated) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	a, f := g.enter(ctx, "list", prefix, "")
	if f != "" {
		g.tell(a, "list "+prefix, errNotSent.Error())
		return nil, errNotSent
	}
	names, err := g.w.objects.List(ctx, prefix, after, limit)
	g.tell(a, "list "+prefix, strings.Join(names, " "))
	return names, err
}

func (g gated) Delete(ctx context.Context, name string) error {
	a, f := g.enter(ctx, "delete", name, "")
	if f != "" && f != lose {
		g.tell(a, "delete "+name, errNotSent.Error())
		return errNotSent
	}
	err := g.w.objects.Delete(ctx, name)
	if f == lose {
		err = store.ErrOutcomeUnknown
	}
	g.tell(a, "delete "+name, "done")
	return err
}

// contentOf is an object as a reader of a transcript wants it.
func contentOf(o store.Object) string {
	if !o.Exists() {
		return "absent"
	}
	if strings.HasPrefix(o.Name, statusPrefix) {
		st, err := decodeStatus(o)
		if err != nil {
			return err.Error()
		}
		return string(st.State)
	}
	p, err := decodePage(o)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, e := range p.entries {
		text := e.key.Path + "=-"
		if e.version != store.Absent {
			text = fmt.Sprintf("%s=%s", e.key.Path, e.value)
		}
		for _, i := range e.intents {
			text += fmt.Sprintf(" [%s %s", i.batch, map[mode]string{holdLive: "needs it alive", holdIs: "needs it as it is", put: "puts " + string(i.value), remove: "deletes"}[i.mode])
			if i.home != "" {
				text += ", home " + i.home
			}
			text += "]"
		}
		all = append(all, text)
	}
	for _, s := range p.seals {
		all = append(all, fmt.Sprintf("[%s seals %s]", s.batch, s.prefix.Path))
	}
	for _, d := range p.recent {
		if !d.applied {
			all = append(all, fmt.Sprintf("(%s is void)", d.batch))
		} else if len(d.births) > 0 {
			all = append(all, fmt.Sprintf("(%s applied, bore %s)", d.batch, strings.Join(d.births, " ")))
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, " ")
}

func (w *world) step(line string) {
	head, rest, defines := strings.Cut(line, ": ")
	words := strings.Fields(head)
	switch {
	case defines && words[0] == "apply":
		w.batches[words[1]] = w.batch(words[1], strings.Fields(rest))
		w.say("%s", answerOf(w.store.Apply(w.Context(), w.batches[words[1]])))
	case defines:
		w.start(head, strings.Fields(rest))
	case w.actors[words[0]] != nil:
		w.act(w.actors[words[0]], words[1:])
	default:
		w.now(words[0], words[1:])
	}
}

// now does something at once.
func (w *world) now(verb string, args []string) {
	switch verb {
	case "outcome", "recover", "scrub", "list":
		w.say("%s", w.do(w.Context(), verb, args))
	case "left":
		left, err := w.store.Leftovers(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if len(left) == 0 {
			left = []string{"nothing"}
		}
		w.say("%s", strings.Join(left, "\n  "))
	case "show":
		o, err := w.objects.Get(w.Context(), args[0])
		if err != nil {
			w.Fatal(err)
		}
		w.say("%s", contentOf(o))
	case "wait":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			w.Fatal(err)
		}
		time.Sleep(d)
	case "batches":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			w.Fatal(err)
		}
		for i := range n {
			name := fmt.Sprintf("%s-%d", args[0], len(w.batches))
			w.batches[name] = w.batch(name, []string{fmt.Sprintf("%sX=%d", args[0], i)})
			if err := w.store.Apply(w.Context(), w.batches[name]); err != nil {
				w.Fatal(err)
			}
		}
	case "as":
		w.asIf(args[1:])
	default:
		w.Fatalf("%s %q: no such step, and nobody of that name", verb, args)
	}
}

// asIf compares what readers see with what these batches make of an empty store that has transactions.
func (w *world) asIf(names []string) {
	alone := mem.New()
	for _, name := range names {
		if err := alone.Apply(w.Context(), w.batches[name]); err != nil {
			w.Errorf("%s alone: %s", name, answerOf(err))
			return
		}
	}
	for _, k := range w.keys {
		if one, other := w.value(w.store, k), w.value(alone, k); one != other {
			w.Errorf("%s, and alone %s", one, other)
			return
		}
	}
	w.say("yes")
}

// do is everything but batches.
func (w *world) do(ctx context.Context, verb string, args []string) string {
	done := func(err error) string {
		if err != nil {
			return "error: " + err.Error()
		}
		return "done"
	}
	switch verb {
	case "recover":
		return done(w.store.Recover(ctx))
	case "scrub":
		return done(w.store.Scrub(ctx))
	case "outcome":
		o, err := w.store.Outcome(ctx, w.batches[args[0]])
		if err != nil {
			return answerOf(err)
		}
		return o.String()
	case "get":
		r, err := w.store.Get(ctx, letter(args[0]))
		switch {
		case err != nil:
			return "error: " + err.Error()
		case !r.Exists():
			return args[0] + "=-"
		}
		return fmt.Sprintf("%s=%s by %s", args[0], r.Value, r.Version)
	case "list":
		rs, err := w.store.List(ctx, key.Prefix{Level: key.Pointer, Path: args[0]}, "", 10)
		if err != nil {
			return "error: " + err.Error()
		}
		var all []string
		for _, r := range rs {
			all = append(all, fmt.Sprintf("%s=%s", r.Key.Path, r.Value))
		}
		return "found: " + strings.Join(all, " ")
	case "again":
		return answerOf(w.store.Apply(ctx, w.batches[args[0]]))
	}
	w.Fatalf("%s: no such thing to do", verb)
	return ""
}

func answerOf(err error) string {
	if err == nil {
		return "applied"
	}
	if errors.Is(err, store.ErrOutcomeUnknown) {
		return "unknown"
	}
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		return strings.ReplaceAll(strings.TrimPrefix(conflict.Error(), "store: "), "pointer ", "")
	}
	if blocked, ok := errors.AsType[*store.BlockedError](err); ok {
		return "blocked by " + blocked.By
	}
	return "error: " + err.Error()
}

// batch is one of what there is now.
func (w *world) batch(name string, clauses []string) store.Batch {
	b := store.Batch{ID: name}
	read := func(name string) store.Record {
		if !slices.Contains(w.keys, name) && !strings.HasSuffix(name, "X") {
			w.keys = append(w.keys, name)
			slices.Sort(w.keys)
		}
		r, err := w.store.Get(w.Context(), letter(name))
		if err != nil {
			w.Fatal(err)
		}
		return r
	}
	for i := 0; i < len(clauses); i++ {
		c := clauses[i]
		switch {
		case c == "empty":
			b.Conds = append(b.Conds, store.Empty(children.of, children.prefix))
			i++ // of N
		case c[0] == '?':
			r := read(c[1:])
			b.Conds = append(b.Conds, store.Is(r.Key, r.Version))
		case c[0] == '~':
			r := read(c[1:])
			b.Conds = append(b.Conds, store.Live(r.Key, r.ID))
		case c[0] == '-':
			r := read(c[1:])
			b.Conds = append(b.Conds, store.Is(r.Key, r.Version))
			b.Writes = append(b.Writes, store.Write{Key: r.Key, Delete: true})
		default:
			target, value, _ := strings.Cut(c, "=")
			r := read(target)
			id := r.ID
			if !r.Exists() {
				id = "by " + name
			}
			b.Conds = append(b.Conds, store.Is(r.Key, r.Version))
			b.Writes = append(b.Writes, store.Write{Key: r.Key, ID: id, Value: []byte(value)})
		}
	}
	return b
}

// start begins something, up to its first access.
func (w *world) start(name string, what []string) {
	a := &actor{name: name, turn: make(chan fault)}
	w.actors[name] = a
	do := func() string { return w.do(w.as(a), what[0], what[1:]) }
	if !slices.Contains([]string{"recover", "scrub", "outcome", "get", "list", "again"}, what[0]) {
		w.batches[name] = w.batch(name, what)
		do = func() string { return answerOf(w.store.Apply(w.as(a), w.batches[name])) }
	}
	go func() {
		defer a.done.Store(true)
		answer := do()
		w.say("%s answers: %s", name, answer)
	}()
	w.await(a)
}

// await lets time go on until an actor waits at an access, or has ended.
func (w *world) await(a *actor) {
	for synctest.Wait(); !a.done.Load() && a.at.Load() == nil; synctest.Wait() {
		time.Sleep(time.Millisecond)
	}
}

// act lets an actor go on.
func (w *world) act(a *actor, words []string) {
	var last fault
	switch f := fault(words[0]); f {
	case lose, fail, delay, repeat:
		last, words = f, words[1:]
	case crash:
		w.kill(a)
		return
	}
	arg := a.name
	if len(words) > 1 {
		arg = words[1]
	}
	switch words[0] {
	case "deliver":
		for _, sent := range a.writes {
			if sent.late {
				sent.late = false
				w.arrive(sent)
			}
		}
		return
	case "copy":
		for _, sent := range a.writes {
			if sent.name == arg {
				w.arrive(sent)
				return
			}
		}
		w.Fatalf("%s has not written %s", a.name, arg)
	}
	final, ends := map[string]state{"begin": pending, "commit": committed, "abort": aborted}[words[0]]
	for !a.done.Load() {
		at := a.at.Load()
		if words[0] == "look" && (at.verb == "put" || at.verb == "delete") {
			return
		}
		there := at.verb == words[0] && at.object == arg
		if ends {
			there = *at == access{"put", statusName(arg), string(final)}
		}
		f := fault("")
		if there {
			f = last
		}
		a.turn <- f
		w.await(a)
		if there {
			return
		}
	}
	if words[0] != "look" && words[0] != "rest" {
		w.Errorf("%s has ended and did not %s", a.name, words)
	}
}

func (w *world) arrive(sent *sentPut) {
	_, err := w.objects.Put(w.Context(), sent.name, sent.match, sent.data)
	outcome := "done"
	if err != nil {
		outcome = "refused"
	}
	w.say("put %s arrives: %s", sent.name, outcome)
}

// kill ends an actor before its next access.
func (w *world) kill(a *actor) {
	if a.done.Load() {
		return
	}
	a.crashed.Store(true)
	if a.at.Load() != nil {
		close(a.turn)
	}
	w.await(a)
}
