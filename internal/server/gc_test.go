package server

import "testing"

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
