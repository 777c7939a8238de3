package check_test

import (
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/sim/check"
	"github.com/landfast/landfast/internal/sim/history"
)

// What a catalog does that does one thing after the other is never found fault with, by no
// checker, however its operations overlap and whatever answers get lost.
func TestNoFalseAlarm(t *testing.T) {
	for seed := range uint64(250) {
		p := newPlay(seed, 4+int(seed%5), 25, 1+int(seed%4), float64(seed%3)*0.06)
		ops := p.run()
		if r := check.Linearizable(ops, options); r.Verdict != check.Holds {
			t.Fatalf("seed %d: %s\n%s", seed, r.Verdict, r.Text)
		}
		wrong := check.Lists(ops)
		wrong = append(wrong, check.TransactionsAtomic(ops)...)
		wrong = append(wrong, check.Chains(ops, check.Files{Pointers: p.pointers(), Read: p.read})...)
		if len(wrong) > 0 {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(wrong, "\n"))
		}
	}
}

// A mistake that the same catalog makes a few times is found in most of the histories, by one
// checker or the other. Where it is not, no answer tells of it.
func TestMistakesAreFound(t *testing.T) {
	for bug, least := range map[string]int{
		"a commit is lost": 80, "a drop is lost": 50, "a rename is lost": 30, "half of a transaction is lost": 50,
		"a load is stale": 70, "a replay is carried out again": 70, "a requirement is passed over": 70,
		"a commit is refused and applied": 60, "a namespace is dropped under its tables": 40,
	} {
		t.Run(bug, func(t *testing.T) {
			made, found, ordered, undecided := 0, 0, 0, 0
			for seed := range uint64(40) {
				p := newPlay(seed, 4+int(seed%5), 25, 2, 0.05)
				if p.bug = bug; strings.Contains(bug, "replay") {
					p.unknown = 0.2
				}
				ops := p.run()
				if p.made == 0 {
					continue
				}
				made++
				verdict := check.Linearizable(ops, options).Verdict
				switch verdict {
				case check.Violated:
					ordered++
				case check.Undecided:
					undecided++
				}
				wrong := check.TransactionsAtomic(ops)
				wrong = append(wrong, check.Chains(ops, check.Files{Pointers: p.pointers(), Read: p.read})...)
				if verdict == check.Violated || len(wrong) > 0 {
					found++
				}
			}
			t.Logf("found in %d of %d histories, %d times because there is no order; %d undecided", found, made, ordered, undecided)
			if made < 8 || 100*found < least*made {
				t.Errorf("found in %d of %d histories, want %d %%", found, made, least)
			}
			if 10*undecided > made {
				t.Errorf("%d of %d histories are undecided", undecided, made)
			}
		})
	}
}

// The order in which operations are written down does not matter.
func TestOrderOfHistory(t *testing.T) {
	p := newPlay(1, 6, 25, 2, 0.1)
	ops := p.run()
	backwards := make([]history.Operation, 0, len(ops))
	for i := range ops {
		if ops[i].Key == "" {
			backwards = append([]history.Operation{ops[i]}, backwards...)
		} else {
			backwards = append(backwards, ops[i]) // a replay comes after what it repeats
		}
	}
	if r := check.Linearizable(backwards, options); r.Verdict != check.Holds {
		t.Errorf("%s\n%s", r.Verdict, r.Text)
	}
}

func BenchmarkLinearizable(b *testing.B) {
	for _, c := range []struct {
		name                   string
		clients, steps, tables int
		unknown                float64
	}{
		{"4x25", 4, 25, 2, 0.1},
		{"8x25", 8, 25, 2, 0.1},
		{"16x500", 16, 500, 6, 0.003},
	} {
		b.Run(c.name, func(b *testing.B) {
			var histories [][]history.Operation
			for seed := range uint64(8) {
				histories = append(histories, newPlay(seed, c.clients, c.steps, c.tables, c.unknown).run())
			}
			i := 0
			for b.Loop() {
				if r := check.Linearizable(histories[i%len(histories)], options); r.Verdict != check.Holds {
					b.Fatal(r.Verdict, r.Text)
				}
				i++
			}
		})
	}
}

// Porcupine and the search agree on small histories, right ones and wrong ones.
func TestPorcupineAgrees(t *testing.T) {
	verdicts := map[check.Verdict]int{}
	showing := map[history.Kind]bool{history.LoadTable: true, history.LoadView: true, history.LoadNamespace: true}
	for seed := range uint64(800) {
		p := newPlay(seed, 3, 5, 1, 0.1)
		ops := p.run()
		for range p.random.IntN(9) { // an answer that was another's
			a, b := &ops[p.random.IntN(len(ops))], ops[p.random.IntN(len(ops))]
			if a.Key == "" && b.Key == "" && (a.Kind == b.Kind || p.random.IntN(9) == 0 && !showing[a.Kind] && !showing[b.Kind]) {
				a.Outcome, a.Refusal, a.Return = b.Outcome, b.Refusal, max(a.Call, b.Return)
				if a.Kind == history.LoadTable {
					a.Seen = b.Seen
				}
			}
		}
		got := check.Linearizable(ops, options)
		if got.Text != "" && !strings.HasPrefix(got.Text, "no order") {
			continue // there are facts against it
		}
		want := check.ByPorcupine(ops, options)
		if verdicts[want]++; want != check.Undecided && got.Verdict != want {
			t.Errorf("seed %d: %s, but Porcupine says it %s\n%s", seed, got.Verdict, want, got.Text)
		}
	}
	t.Log(verdicts)
	if verdicts[check.Violated] < 50 || verdicts[check.Holds] < 300 || verdicts[check.Undecided] > 20 {
		t.Errorf("the histories are not of all sorts: %v", verdicts)
	}
}
