package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/store"
)

// faulty is a world with these rates, and one caller in it.
func faulty(v Variant, r rates) (*world, *caller) {
	w := newWorld(seedOf(1, v))
	w.profile.rates, w.faulty, w.rides = r, true, nil
	n := w.nodes[0]
	n.start()
	return w, &caller{w: w, node: n, life: n.life, name: 1}
}

// always is the rate of what happens each time.
const always = 10_000

// Each fault of a request that writes does what it says.
func TestWriteFaults(t *testing.T) {
	for name, c := range map[string]struct {
		rates       rates
		limit       time.Duration // of the caller's patience; 0: none
		answer      error         // nil: it is done
		there, late bool          // whether the object is there at the answer, and in the end
		dead        bool          // the node is, at the answer
	}{
		"none":           {rates: rates{}, there: true, late: true},
		"fails before":   {rates: rates{failBefore: always}, answer: errFault},
		"answer lost":    {rates: rates{lost: always}, answer: store.ErrOutcomeUnknown, there: true, late: true},
		"done later":     {rates: rates{delayed: always}, answer: store.ErrOutcomeUnknown, late: true},
		"meets itself":   {rates: rates{duplicate: always}, answer: store.ErrMismatch, there: true, late: true},
		"crash before":   {rates: rates{crashBefore: always}, answer: errDead, dead: true},
		"crash after":    {rates: rates{crashAfter: always}, answer: errDead, there: true, late: true, dead: true},
		"slow":           {rates: rates{slow: always}, there: true, late: true},
		"nobody waits":   {rates: rates{slow: always}, limit: lateLeast / 2, answer: store.ErrOutcomeUnknown, late: true},
		"never was sent": {limit: -time.Second, answer: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, who := faulty(Bucket, c.rates)
				ctx := withCaller(t.Context(), who)
				if c.limit != 0 {
					limited, cancel := context.WithTimeout(ctx, c.limit)
					defer cancel()
					ctx = limited
				}
				_, err := w.objects.Put(ctx, "o", store.NoTag, []byte("1"))
				if !errors.Is(err, c.answer) {
					t.Errorf("answered %v, want %v", err, c.answer)
				}
				there := func(when string, want bool) {
					if o, _ := w.objects.inner.Get(t.Context(), "o"); o.Exists() != want {
						t.Errorf("%s it is there: %v, want %v", when, o.Exists(), want)
					}
				}
				there("at the answer", c.there)
				if who.alive() == c.dead {
					t.Errorf("dead: %v, want %v", !c.dead, c.dead)
				}
				w.heal()
				there("in the end", c.late)
				if !w.nodes[0].up {
					t.Error("the node has not come back")
				}
				w.nodes[0].stop()
			})
		})
	}
}

// A request that arrives twice is carried out the second time, too, if it can be: it is for who
// sent it to see to it that it cannot.
func TestDuplicateComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, who := faulty(Bucket, rates{})
		ctx := withCaller(t.Context(), who)
		var puts int
		w.objects.inner = counted{w.objects.inner, &puts}
		w.profile.rates.duplicate = always
		if _, err := w.objects.Put(ctx, "o", store.NoTag, []byte("1")); !errors.Is(err, store.ErrMismatch) {
			t.Errorf("answered %v", err)
		}
		if puts != 1 {
			t.Errorf("%d puts at the answer", puts)
		}
		if err := w.objects.inner.Delete(ctx, "o"); err != nil {
			t.Fatal(err)
		}
		w.heal()
		if o, _ := w.objects.inner.Get(ctx, "o"); !o.Exists() || puts != 2 {
			t.Errorf("%d puts in the end, and the object is there: %v", puts, o.Exists())
		}
		w.nodes[0].stop()
	})
}

type counted struct {
	store.Objects
	puts *int
}

func (c counted) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	*c.puts++
	return c.Objects.Put(ctx, name, match, data)
}

// Reads fail or take long; of a node that is frozen they wait, and of one that is dead they
// have no answer.
func TestReadFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, who := faulty(Transactional, rates{failRead: always})
		ctx, scope := withCaller(t.Context(), who), blob.Scope{root(mainWarehouse)}
		if _, err := w.files.Read(ctx, scope, "file:///main/f", 10); !errors.Is(err, errFault) {
			t.Errorf("answered %v", err)
		}
		w.profile.rates = rates{slowRead: always}
		began := w.now()
		if _, err := w.files.Read(ctx, scope, "file:///main/f", 10); !errors.Is(err, blob.ErrNotFound) || w.now()-began < lateLeast {
			t.Errorf("answered %v after %v", err, w.now()-began)
		}
		w.profile.rates = rates{}
		thaws := w.now() + time.Minute
		w.nodes[0].frozenUntil = thaws
		if there, err := w.files.Exists(ctx, scope, "file:///main/f"); there || err != nil || w.now() < thaws {
			t.Errorf("answered %v, %v at %v", there, err, w.now())
		}
		s := streamOf(1)
		w.nodes[0].crash(who.life, &s)
		if _, err := w.files.Exists(ctx, scope, "file:///main/f"); !errors.Is(err, errDead) {
			t.Errorf("answered %v", err)
		}
		w.heal()
		w.nodes[0].stop()
	})
}

// The loss of power takes files that were deferred, all or the end of some, unless a Sync has made them durable. What a
// failed one should have is given up: no later Sync helps, and Rewrite does.
func TestPowerFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, who := faulty(Transactional, rates{})
		ctx, scope := withCaller(t.Context(), who), blob.Scope{root(mainWarehouse)}
		const many, data = 30, "0123456789"
		each := func(kind string, do func(location string)) {
			for i := range many {
				do(fmt.Sprintf("file:///main/%s-%d", kind, i))
			}
		}
		demand := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		deferring := func(kind string) {
			each(kind, func(location string) { demand(w.files.CreateDeferred(ctx, scope, location, []byte(data))) })
		}
		deferring("synced")
		demand(w.files.Sync(ctx))
		deferring("given-up")
		deferring("rewritten")
		w.profile.rates.failBefore = always
		if err := w.files.Sync(ctx); !errors.Is(err, errFault) {
			t.Errorf("answered %v", err)
		}
		w.profile.rates.failBefore = 0
		demand(w.files.Sync(ctx))
		each("rewritten", func(location string) { demand(w.files.Rewrite(ctx, scope, location, []byte(data))) })
		deferring("late")
		w.losePower()
		for _, kind := range []string{"synced", "given-up", "rewritten", "late"} {
			gone, cut := 0, 0
			each(kind, func(location string) {
				switch got, err := w.files.Read(ctx, scope, location, 100); {
				case errors.Is(err, blob.ErrNotFound):
					gone++
				case string(got) != data:
					cut++
				}
			})
			if taken := kind == "given-up" || kind == "late"; taken != (gone > 0) || taken != (cut > 0) || gone+cut == many {
				t.Errorf("%s: of %d files %d are gone, and %d cut", kind, many, gone, cut)
			}
		}
		w.heal()
		w.nodes[0].stop()
	})
}
