package crash

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	judge "github.com/landfast/landfast/internal/sim/check"
	plain "github.com/landfast/landfast/internal/sim/history"
)

// orderTimeout bounds the search for one order in each part of a history that is
// independent of the others.
const orderTimeout = 10 * time.Second

const warehouse = "main"

// order wants one order of all operations of a drill that explains every answer. It knows
// nothing of files: it is the judge of the simulator, asked once more. Where too much is
// possible for it to decide, it is asked about the first rounds only. What it says is said
// of so many rounds.
func (d *drill) order() (rounds int, r judge.Report) {
	for rounds = len(d.h.ends); rounds > 0; rounds -= max(rounds/4, 1) {
		r = judge.Linearizable(d.h.asPlain(d.h.ends[rounds-1]), judge.Options{Warehouses: []string{warehouse}, Timeout: orderTimeout})
		if r.Verdict != judge.Undecided {
			break
		}
	}
	return rounds, r
}

// watched is what the harness itself saw of the tables and views between two rounds.
type watched struct {
	at   int64 // on the history's clock
	name string
	view bool
	loaded
}

// watch notes an observation.
func (h *history) watch(obs observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, l := range obs.tables {
		h.clock++
		h.watched = append(h.watched, watched{h.clock, name, l.metadata.ViewUUID != "", l})
	}
}

// asPlain is the history up to the end of a round, as the simulator writes its own.
func (h *history) asPlain(end int64) []plain.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A transaction has a token for each of its tables here, and one in all there.
	tokens := map[string]string{}
	for _, o := range h.ops {
		tokens[o.token] = o.sending.ops[0].token
	}
	state := func(s shown, location string) plain.State {
		return plain.State{Token: tokens[s.token], Snapshot: s.main, UUID: s.uuid, Location: location}
	}
	var all []plain.Operation
	add := func(p plain.Operation) {
		p.ID, p.Replays = len(all), -1
		all = append(all, p)
	}
	for _, o := range h.ops {
		if o.sending.ops[0] != o || o.sent > end {
			continue
		}
		p := o.asPlain()
		if o.shown != (shown{}) && len(p.Parts) < 2 { // an answer shows one table
			p.Show(state(o.shown, o.location))
		}
		if o.latest != (shown{}) {
			p.Latest = state(o.latest, o.latestLocation)
		}
		add(p)
	}
	for _, w := range h.watched {
		if w.at > end {
			break
		}
		kind := plain.LoadTable
		if w.view {
			kind = plain.LoadView
		}
		add(plain.Operation{
			Client: observer, Kind: kind, Call: w.at, Return: w.at, Outcome: plain.Done,
			Name: placeOf(w.name), Seen: state(shownBy(w.metadata), w.location),
		})
	}
	return all
}

// observer is the client that stands for the harness itself.
const observer = writers + 1

// placeOf is the place of a dotted name of a table or view.
func placeOf(name string) plain.Name {
	levels, last := split(name)
	return plain.Name{Warehouse: warehouse, Namespace: dotted(levels), Name: last}
}

// asPlain is the operation, or the transaction that it is the first of, without what was shown.
func (o *operation) asPlain() plain.Operation {
	p := plain.Operation{Kind: o.asKind(), Call: o.sent, Return: o.answered, Token: o.token, Key: o.sending.key}
	p.Client, _ = strconv.Atoi(strings.TrimPrefix(o.writer, "w")) // the purger shares the first one's
	switch o.outcome {
	case done:
		p.Outcome = plain.Done
	case refused:
		if o.status == http.StatusNotFound && strings.Contains(o.message, "has succeeded before") {
			p.Outcome = plain.Done // when it was sent first; only the file that it wrote is gone
			break
		}
		p.Outcome, p.Refusal, p.Message = plain.Refused, o.asRefusal(), o.message
	case unknown:
		p.Outcome, p.Return = plain.Unknown, plain.Forever
	}
	switch {
	case o.table == nil:
		p.Name = plain.Name{Warehouse: warehouse, Namespace: dotted(o.namespace.levels)}
	case len(o.sending.ops) > 1:
		for _, part := range o.sending.ops {
			p.Parts = append(p.Parts, part.asPart())
		}
	case o.edit != nil:
		p.Parts = []plain.Part{o.asPart()}
		p.Name = p.Parts[0].Name
	case o.naming == nil:
		p.Name = placeOf(o.addressed)
	case o.naming.from == "":
		p.Name, p.From = placeOf(o.naming.to), o.registered
	default:
		p.Name, p.Purge = placeOf(o.naming.from), o.naming.purge
		if o.naming.to != "" {
			p.To = placeOf(o.naming.to)
		}
	}
	return p
}

// asPart is what the operation does to its table.
func (o *operation) asPart() plain.Part {
	if o.naming != nil {
		return plain.Part{Name: placeOf(o.naming.to), Creates: true}
	}
	p := plain.Part{Name: placeOf(o.addressed), Onto: o.onto}
	if s := o.edit.snapshot; s != nil {
		p.Snapshot, p.Expect, p.UUID = s.ID, new(int64), o.expectedUUID
		if o.expectedMain != nil {
			*p.Expect = *o.expectedMain
		}
	}
	return p
}

func (o *operation) asKind() plain.Kind {
	forView := func(view, table plain.Kind) plain.Kind {
		if o.table.view {
			return view
		}
		return table
	}
	n := o.naming
	switch {
	case o.table == nil && n == nil:
		return plain.SetNamespace
	case o.table == nil && n.to != "":
		return plain.CreateNamespace
	case o.table == nil:
		return plain.DropNamespace
	case len(o.sending.ops) > 1:
		return plain.Transaction
	case n == nil && o.edit == nil:
		return forView(plain.LoadView, plain.LoadTable)
	case n == nil, o.kind == stagedCreate:
		return forView(plain.ReplaceView, plain.Commit)
	case n.unbinds:
		return plain.Unregister
	case n.to == "":
		return forView(plain.DropView, plain.DropTable)
	case n.from != "":
		return forView(plain.RenameView, plain.RenameTable)
	case o.edit == nil:
		return plain.RegisterTable
	default:
		return forView(plain.CreateView, plain.CreateTable)
	}
}

// asRefusal is the reason of a refusal, as far as it tells something of names and main.
func (o *operation) asRefusal() plain.Refusal {
	a := answer{status: o.status, body: []byte(o.message)}
	switch kind := a.refusal(); {
	case o.busy, o.status == 0, o.hopeless && o.naming == nil: // its reason may be one that the judge does not know
		return plain.Busy
	case kind == "NoSuchTableException", kind == "NoSuchViewException":
		return plain.NoSuchTable
	case kind == "NoSuchNamespaceException":
		return plain.NoSuchNamespace
	case kind == "AlreadyExistsException":
		return plain.AlreadyExists
	case kind == "NamespaceNotEmptyException":
		return plain.NotEmpty
	case kind == "CommitFailedException" && o.table != nil:
		return plain.Requirement
	}
	return plain.Busy
}

// The judge finds the order of a history as the harness writes it, and none once an
// answer is corrupted.
func TestOrder(t *testing.T) {
	tests := []struct {
		name    string
		corrupt func(*scene)
		want    judge.Verdict
	}{
		{"nothing", func(*scene) {}, judge.Holds},
		{"unknown commits, one of them there", func(s *scene) {
			s.commit(s.plain, "b", cutOff)
			s.commit(s.plain, "b", cutOffAnswer)
			s.load(s.plain)
		}, judge.Holds},
		{"a transaction that was found out", func(s *scene) {
			s.transact("b", cutOffAnswer, s.left, s.right)
			s.h.settle(s.check())
			s.load(s.left)
			s.load(s.right)
		}, judge.Holds},
		{"a commit whose answer shows a later one of its batch", func(s *scene) {
			first, last := s.commit(s.plain, "b", works), s.commit(s.plain, "c", works)
			first.showsThatOf(last)
			s.load(s.plain)
		}, judge.Holds},
		{"a commit whose answer shows one that was sent later", func(s *scene) {
			first := s.commit(s.plain, "b", works)
			answered := first.answered
			first.showsThatOf(s.commit(s.plain, "c", works))
			first.answered = answered
		}, judge.Violated},
		{"a load of an older version", func(s *scene) { s.load(s.hot).shown = s.appends[1].shown }, judge.Violated},
		{"a load of what nobody wrote", func(s *scene) { s.load(s.hot).shown.token = "z-1" }, judge.Violated},
		{"a load of a refused commit", func(s *scene) {
			o := s.commit(s.plain, "b", cutOffAnswer)
			o.outcome, o.answered = refused, s.h.clock
			s.load(s.plain)
		}, judge.Violated},
		{"a load that misses half of a transaction", func(s *scene) {
			before := s.load(s.right).shown
			s.transact("b", works, s.left, s.right)
			s.load(s.left)
			s.load(s.right).shown = before
		}, judge.Violated},
		{"a dropped table is loaded", func(s *scene) {
			o := s.load(s.plain)
			s.drop(s.plain, false, works)
			o.sent, o.answered = s.h.clock+1, s.h.clock+2
		}, judge.Violated},
		{"a table is not found before it is dropped", func(s *scene) {
			s.commit(s.plain, "b", missing)
		}, judge.Violated},
		{"a name is taken that was free", func(s *scene) {
			s.create("b", "n.free", fails)
		}, judge.Violated},
		{"main had not moved", func(s *scene) {
			s.append(s.hot, "b", fails)
		}, judge.Violated},
		{"what the harness sees is an older version", func(s *scene) {
			old := s.files[s.appends[1].location]
			s.h.watch(observation{tables: map[string]loaded{"n.hot": {old.location, old}}})
		}, judge.Violated},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			test.corrupt(s)
			s.h.settle(&report{})
			d := &drill{h: s.h}
			if n, r := d.order(); r.Verdict != test.want || n != len(s.h.ends) {
				t.Errorf("%s of %d rounds, want %s of %d\n%s", r.Verdict, n, test.want, len(s.h.ends), r.Text)
			}
		})
	}
}
