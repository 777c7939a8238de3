package server

import "testing"

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, gcPercentMax}, {1, gcPercentMax}, {4 << 20, 900}, {10 << 20, 300}, {16 << 20, 150}, {20 << 20, 100}, {1 << 40, 100},
	} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("%d live bytes: %d %%, want %d %%", c.live, got, c.want)
		}
	}
}
