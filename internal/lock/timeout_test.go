package lock_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/lock"
)

// ends is how 16 waits ended: so many timed out, the others were granted after one time.
func ends(timeouts int, granted time.Duration) []wait {
	waits := slices.Repeat([]wait{{timedOut: true, waited: time.Hour}}, timeouts)
	return append(waits, slices.Repeat([]wait{{waited: granted}}, 16-timeouts)...)
}

type wait struct {
	waited   time.Duration
	timedOut bool
}

func TestDynamicTimeoutSteps(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		initial, minimum time.Duration
		waits            []wait
		want             time.Duration
	}{
		"16 timeouts":                         {30 * s, 5 * s, ends(16, 0), 37500 * ms},
		"6 of 16":                             {30 * s, 5 * s, ends(6, 0), 37500 * ms},
		"5 of 16":                             {30 * s, 5 * s, ends(5, 0), 30 * s},
		"2 of 16":                             {30 * s, 5 * s, ends(2, 0), 30 * s},
		"1 of 16":                             {30 * s, 5 * s, ends(1, 100*ms), 15062500 * time.Microsecond},
		"16 grants after 100 ms":              {30 * s, 5 * s, ends(0, 100*ms), 15062500 * time.Microsecond},
		"the longest grant counts":            {30 * s, 5 * s, append(ends(0, 0)[:15], wait{waited: 20 * s}), 27500 * ms},
		"15 are too few":                      {30 * s, 5 * s, ends(16, 0)[:15], 30 * s},
		"a second round of timeouts":          {30 * s, 5 * s, append(ends(16, 0), ends(16, 0)...), 46875 * ms},
		"not below the minimum":               {6 * s, 5 * s, ends(0, 0), 5 * s},
		"down to the minimum and no further":  {30 * s, 5 * s, slices.Repeat(ends(0, 0), 20), 5 * s},
		"grants as long as the timeout":       {30 * s, 5 * s, ends(0, 24*s), 30 * s},
		"grants longer than the timeout":      {30 * s, 5 * s, ends(0, 29*s), 30 * s},
		"at most a day":                       {23 * time.Hour, 5 * s, ends(16, 0), 24 * time.Hour},
		"a day stays a day":                   {24 * time.Hour, 5 * s, ends(16, 0), 24 * time.Hour},
		"a round begins with an empty log":    {30 * s, 5 * s, append(ends(5, 0), ends(1, 24*s)...), 30 * s},
		"a log that is not full changes none": {30 * s, 5 * s, append(ends(16, 0), ends(0, 0)[:15]...), 37500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := lock.NewDynamicTimeout(c.initial, c.minimum, nil)
			for _, w := range c.waits {
				timeout.Log(w.waited, w.timedOut)
			}
			if got := timeout.Current(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Every change is told, with what it was before, and nothing else.
func TestDynamicTimeoutTellsChanges(t *testing.T) {
	type change struct{ From, To time.Duration }
	var got []change
	timeout := lock.NewDynamicTimeout(6*time.Second, 5*time.Second, func(from, to time.Duration) {
		got = append(got, change{from, to})
	})
	for _, w := range slices.Concat(ends(16, 0), ends(4, 0), ends(0, 0), ends(0, 0), ends(0, 0)) {
		timeout.Log(w.waited, w.timedOut)
	}
	want := []change{{6 * time.Second, 7500 * time.Millisecond}, {7500 * time.Millisecond, 5 * time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What ends while 16 waits are evaluated is dropped: it is not the first of the next 16.
func TestDynamicTimeoutDropsDuringEvaluation(t *testing.T) {
	var timeout *lock.DynamicTimeout
	changes := 0
	timeout = lock.NewDynamicTimeout(30*time.Second, 5*time.Second, func(time.Duration, time.Duration) {
		changes++
		for range 16 {
			timeout.Log(0, true)
		}
	})
	for range 16 {
		timeout.Log(0, true)
	}
	if changes != 1 || timeout.Current() != 37500*time.Millisecond {
		t.Fatalf("%d changes, now %v", changes, timeout.Current())
	}
	for range 15 {
		timeout.Log(0, true)
	}
	if changes != 1 {
		t.Error("what was dropped counts")
	}
	timeout.Log(0, true)
	if changes != 2 {
		t.Error("the next 16 are not evaluated")
	}
}

func TestDynamicTimeoutWait(t *testing.T) {
	timeout := lock.Tables.NewTimeout(nil)
	for left, want := range map[time.Duration]time.Duration{
		time.Hour: 30 * time.Second, 30 * time.Second: 30 * time.Second, time.Second: time.Second, 0: 0, -time.Second: 0,
	} {
		if got := timeout.Wait(left); got != want {
			t.Errorf("with %v left: got %v, want %v", left, got, want)
		}
	}
	if got := lock.WholeNamespace.NewTimeout(nil).Wait(time.Hour); got != 45*time.Second {
		t.Errorf("a whole namespace: %v", got)
	}
}

// Each class falls to its own minimum.
func TestClasses(t *testing.T) {
	got := map[string]time.Duration{}
	for _, class := range lock.Classes {
		timeout := class.NewTimeout(nil)
		for range 20 * 16 {
			timeout.Log(0, false)
		}
		got[class.String()] = timeout.Current()
	}
	want := map[string]time.Duration{"tables": 5 * time.Second, "whole-namespace": 30 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// From many goroutines no wait is counted twice: what 16 make of it is made at most once for each 16.
func TestDynamicTimeoutConcurrently(t *testing.T) {
	const goroutines, each = 8, 400
	var mu sync.Mutex
	changes := 0
	timeout := lock.NewDynamicTimeout(time.Second, time.Second, func(from, to time.Duration) {
		if to != min(from+from/4, 24*time.Hour) {
			t.Errorf("from %v to %v", from, to)
		}
		mu.Lock()
		defer mu.Unlock()
		changes++
	})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				timeout.Log(0, true)
				timeout.Wait(time.Minute)
			}
		})
	}
	all.Wait()
	if most := goroutines * each / 16; changes == 0 || changes > most {
		t.Errorf("%d changes, at most %d can be", changes, most)
	}
	if timeout.Current() < time.Second || timeout.Current() > 24*time.Hour {
		t.Errorf("now %v", timeout.Current())
	}
}

func BenchmarkDynamicTimeout(b *testing.B) {
	timeout := lock.Tables.NewTimeout(nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			timeout.Wait(time.Minute)
			timeout.Log(time.Millisecond, false)
		}
	})
}
