package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
)

// joined is a Join on a goroutine of its own, in a bubble.
type joined struct {
	*asked
	gathered bool
}

// join asks as a member of this name.
func join(t *testing.T, table *local.Table, name string, wait time.Duration, items ...lock.Item) *joined {
	ctx, cancel := context.WithCancel(request(t.Context(), name))
	t.Cleanup(cancel)
	j := &joined{asked: &asked{cancel: cancel, done: make(chan struct{})}}
	go func() {
		j.hold, j.gathered, j.err = table.Join(ctx, lock.NewSet(items...), wait, name)
		close(j.done)
	}()
	synctest.Wait()
	return j
}

// member wants that it has been gathered.
func (j *joined) member(t *testing.T) lock.Hold {
	t.Helper()
	hold := j.granted(t)
	if !j.gathered {
		t.Fatal("it was granted, and not gathered")
	}
	return hold
}

// first wants that it was granted without being gathered.
func (j *joined) first(t *testing.T) lock.Hold {
	t.Helper()
	hold := j.granted(t)
	if j.gathered {
		t.Fatal("it was gathered")
	}
	return hold
}

// gathers wants exactly these members of a Gather.
func gathers(t *testing.T, table *local.Table, leader lock.Hold, most int, want ...any) {
	t.Helper()
	if diff := cmp.Diff(want, table.Gather(leader, orders, most)); diff != "" {
		t.Fatalf("gathered (-want +got)\n%s", diff)
	}
}

// inBubble runs a test on a table that is idle in the end.
func inBubble(t *testing.T, test func(t *testing.T, table *local.Table)) {
	synctest.Test(t, func(t *testing.T) {
		table := local.New(local.Options{})
		test(t, table)
		synctest.Wait()
		expectIdle(t, table)
	})
}

var other = key.ForTableName("main", []string{"sales"}, "key")

// Who is behind those that were gathered waits for all of them, in whatever order they release.
func TestGatherReleases(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			inBubble(t, func(t *testing.T, table *local.Table) {
				leader := must(t, table, "leader", lock.R(namespace), lock.W(orders))
				a := join(t, table, "a", time.Hour, lock.R(namespace), lock.W(orders))
				b := join(t, table, "b", time.Hour, lock.R(namespace), lock.W(orders))
				c := join(t, table, "c", time.Hour, lock.R(namespace), lock.W(orders))
				gathers(t, table, leader, 2, "a", "b")
				holds := []lock.Hold{leader, a.member(t), b.member(t)}
				for _, i := range order {
					if c.ended() {
						t.Fatal("it was granted what others hold")
					}
					holds[i].Release()
				}
				c.first(t).Release()
			})
		})
	}
}

// Nobody is overtaken: it ends at the first who is no member, and at the first who waits for somebody else.
func TestGatherStops(t *testing.T) {
	inBubble(t, func(t *testing.T, table *local.Table) {
		leader := must(t, table, "leader", lock.W(orders))
		elsewhere := must(t, table, "elsewhere", lock.W(other))
		a := join(t, table, "a", time.Hour, lock.W(orders))
		b := join(t, table, "b", time.Hour, lock.W(orders), lock.W(other))
		c := join(t, table, "c", time.Hour, lock.W(orders))
		plain := ask(t, table, "plain", lock.W(orders))
		d := join(t, table, "d", time.Hour, lock.W(orders))
		gathers(t, table, leader, 10, "a")
		gathers(t, table, leader, 10)
		elsewhere.Release()
		gathers(t, table, leader, 10, "b", "c")
		for _, h := range []lock.Hold{leader, a.member(t), b.member(t), c.member(t)} {
			if plain.ended() || d.ended() {
				t.Fatal("it was granted what others hold")
			}
			h.Release()
		}
		gathers(t, table, leader, 10) // it has released
		plain.granted(t).Release()
		d.first(t).Release()
	})
}

// Two who also wait for one further key, held in the group, are gathered both; one that would share what the
// group holds alone is not, nor one that wants alone what is shared.
func TestGatherFurtherKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, table *local.Table) {
		leader := must(t, table, "leader", lock.R(namespace), lock.W(orders))
		a := join(t, table, "a", time.Hour, lock.R(namespace), lock.W(orders), lock.W(other))
		again := join(t, table, "again", time.Hour, lock.R(namespace), lock.W(orders), lock.W(other))
		sharing := join(t, table, "sharing", time.Hour, lock.W(orders), lock.R(other))
		behind := ask(t, table, "behind", lock.W(other))
		gathers(t, table, leader, 10, "a", "again")
		holds := []lock.Hold{leader, a.member(t), again.member(t)}
		if holds[1].Token(other) >= holds[2].Token(other) {
			t.Errorf("tokens %d and %d do not rise", holds[1].Token(other), holds[2].Token(other))
		}
		for _, h := range holds {
			if sharing.ended() || behind.ended() {
				t.Fatal("it was granted what others hold")
			}
			h.Release()
		}
		leader = sharing.first(t)
		alone := join(t, table, "alone", time.Hour, lock.W(orders), lock.W(other))
		gathers(t, table, leader, 10)
		leader.Release()
		behind.granted(t).Release()
		alone.first(t).Release()
	})
}

// Who gave up before it was gathered is not; who was gathered stays so, whatever ends meanwhile.
func TestGatherCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T, table *local.Table) {
		leader := must(t, table, "leader", lock.W(orders))
		gone := join(t, table, "gone", time.Hour, lock.W(orders))
		late := join(t, table, "late", time.Second, lock.W(orders))
		a := join(t, table, "a", time.Minute, lock.W(orders))
		b := join(t, table, "b", time.Hour, lock.W(orders))
		gone.cancel()
		gone.refused(t, context.Canceled)
		time.Sleep(time.Second)
		late.refused(t, lock.ErrTimeout)
		time.Sleep(time.Minute - time.Second - time.Nanosecond)
		gathers(t, table, leader, 10, "a", "b") // before its goroutine runs, its time is over
		b.cancel()
		time.Sleep(time.Second)
		leader.Release()
		a.member(t).Release()
		b.member(t).Release()
	})
}

// Close refuses who waits, and leaves alone who was gathered.
func TestGatherClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, table *local.Table) {
		leader := must(t, table, "leader", lock.W(orders))
		a := join(t, table, "a", time.Hour, lock.W(orders))
		b := join(t, table, "b", time.Hour, lock.W(orders))
		gathers(t, table, leader, 1, "a")
		table.Close()
		b.refused(t, lock.ErrClosed)
		gathers(t, table, leader, 1)
		leader.Release()
		a.member(t).Release()
	})
}

// present is a request of the random test.
type present struct {
	*joined
	name   string
	at     key.Key // in set, exclusively
	set    lock.Set
	member bool
	leader *present // who has gathered it; itself if it has gathered
}

// waitsFor tells whether, of those before it, it waits for one; and whether, as it waits for some, they are
// all exclusive ones of the group, as its own wishes are.
func (p *present) waitsFor(before []*present, group *present) (waits, gatherable bool) {
	gatherable = p.member
	for _, mine := range p.set.Items() {
		blocked, foreign := false, false
		for _, b := range before {
			for _, theirs := range b.set.Items() {
				if theirs.Key == mine.Key {
					exclusive := theirs.Mode == lock.Exclusive && mine.Mode == lock.Exclusive
					blocked = blocked || theirs.Mode == lock.Exclusive || mine.Mode == lock.Exclusive
					foreign = foreign || !exclusive || b.leader != group
				}
			}
		}
		waits = waits || blocked
		gatherable = gatherable && (!blocked || !foreign)
	}
	return waits, gatherable
}

// After each of many random requests, gatherings, releases and cancels, those are granted
// whom the rule grants, applied to the list of all in order of arrival.
func TestGatherModel(t *testing.T) {
	keys := []key.Key{orders, returns, other, namespace}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, table *local.Table) {
				rng := rand.New(rand.NewPCG(seed, 1))
				var all []*present // in order of arrival
				gathered := 0
				for step := range 1000 {
					switch choice := rng.IntN(10); {
					case len(all) < 2 || len(all) < 10 && choice < 5:
						all = append(all, enter(t, table, rng, keys, step))
					case choice < 8:
						leader := all[rng.IntN(len(all))]
						if !leader.ended() || leader.leader != nil && leader.leader != leader {
							continue
						}
						most := 1 + rng.IntN(3)
						want := gatherInModel(all, leader, leader.at, most)
						gathered += len(want)
						if diff := cmp.Diff(want, table.Gather(leader.hold, leader.at, most)); diff != "" {
							t.Fatalf("step %d: gathered (-want +got)\n%s", step, diff)
						}
					default:
						i := rng.IntN(len(all))
						leaving := all[i]
						if leaving.ended() && leaving.leader == leaving && slices.ContainsFunc(all, func(p *present) bool { return p != leaving && p.leader == leaving }) {
							continue // it is done with them first
						}
						all = slices.Delete(all, i, i+1)
						leave(t, leaving)
					}
					for i, p := range all {
						waits, _ := p.waitsFor(all[:i], nil)
						isMember := p.leader != nil && p.leader != p
						if want := !waits || isMember; p.ended() != want {
							t.Fatalf("step %d: request %d of %d for %v: granted is %v, want %v", step, i, len(all), p.set, !want, want)
						}
						if p.ended() && p.gathered != isMember {
							t.Fatalf("step %d: request %d for %v: gathered is %v, want %v", step, i, p.set, p.gathered, isMember)
						}
					}
				}
				for _, p := range all {
					leave(t, p)
				}
				if gathered < 20 {
					t.Errorf("only %d were gathered", gathered)
				}
			})
		})
	}
}

func enter(t *testing.T, table *local.Table, rng *rand.Rand, keys []key.Key, step int) *present {
	at := keys[rng.IntN(2)]
	items := []lock.Item{lock.W(at)}
	for _, k := range keys[2:] {
		if rng.IntN(4) == 0 {
			items = append(items, lock.Item{Key: k, Mode: []lock.Mode{lock.Shared, lock.Exclusive}[rng.IntN(2)]})
		}
	}
	p := &present{name: fmt.Sprint(step), at: at, set: lock.NewSet(items...), member: rng.IntN(5) > 0}
	if p.member {
		p.joined = join(t, table, p.name, time.Hour, items...)
	} else {
		p.joined = &joined{asked: ask(t, table, p.name, items...)}
	}
	return p
}

func leave(t *testing.T, p *present) {
	t.Helper()
	if !p.ended() {
		p.cancel()
		synctest.Wait()
		return
	}
	p.granted(t).Release()
}

// gatherInModel does what Gather is to do, and gives what it is to give.
func gatherInModel(all []*present, leader *present, k key.Key, most int) (members []any) {
	leader.leader = leader
	for i, p := range all {
		atKey := slices.ContainsFunc(p.set.Items(), func(item lock.Item) bool { return item.Key == k })
		if waits, _ := p.waitsFor(all[:i], nil); len(members) == most || !atKey || !waits || p.leader != nil {
			continue
		}
		if _, gatherable := p.waitsFor(all[:i], leader); !gatherable {
			break
		}
		p.leader = leader
		members = append(members, p.name)
	}
	return members
}
