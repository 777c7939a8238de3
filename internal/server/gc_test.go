package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, gcPercentMax}, {1, gcPercentMax}, {4 << 20, 500}, {8 << 20, 200}, {12 << 20, 100}, {1 << 40, 100},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d live bytes: %d %%, want %d %%", c.live, got, c.want)
		}
	}
}

// TestCalm: memory is given back once after each time of work, however little of it came later.
func TestCalm(t *testing.T) {
	for name, c := range map[string]struct {
		grows func(interval int) uint64 // bytes that are allocated in it, counted from 1
		want  []int                     // the intervals after which memory is given back
	}{
		"never worked":             {func(int) uint64 { return 0 }, []int{calmAfter}},
		"probes":                   {func(int) uint64 { return heapFloor / 1000 }, []int{calmAfter}},
		"works all the time":       {func(int) uint64 { return heapFloor + 1 }, nil},
		"works a little all along": {func(int) uint64 { return heapFloor / 10 }, nil},
		"works twice": {
			func(interval int) uint64 {
				if interval == 10 || interval == 100 {
					return 2 * heapFloor
				}
				return 0
			},
			[]int{10 + calmAfter, 100 + calmAfter},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				now       calm
				allocated uint64
				got       []int
			)
			for interval := 1; interval <= 200; interval++ {
				allocated += c.grows(interval)
				if now.tick(allocated) {
					got = append(got, interval)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("given back after (-want +got):\n%s", diff)
			}
		})
	}
}
