package sim

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reruns is how often each seed of TestOneTrace runs.
const reruns = 200

// A seed has one trace: whatever the scheduler does, with one processor or with eight.
func TestOneTrace(t *testing.T) {
	// In the third one operations land together, and in the last one files ride and a crash takes some.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, v := range []Variant{Transactional, Bucket} {
		for _, seed := range []uint64{1012, 1059, 1004, 1293} {
			cfg := seedOf(seed, v)
			cfg.Transcript, cfg.Without, cfg.short = true, Mask{ending: true}, true
			want := run(t, cfg)
			if len(want.Faults) == 0 || want.Ties > 0 {
				t.Errorf("%s, seed %d: it met the faults %v, and %d ties", v, seed, want.Faults, want.Ties)
			}
			if rides := v == Transactional && seed == 1293; want.Rides != rides || rides && (want.Lost == 0 || want.Anew == 0) {
				t.Errorf("%s, seed %d: files ride: %v; %d were lost, and %d written anew", v, seed, want.Rides, want.Lost, want.Anew)
			}
			for i := range reruns {
				runtime.GOMAXPROCS(1 + 7*(i%2))
				got := run(t, cfg)
				if got.Trace != want.Trace {
					t.Fatalf("%s, seed %d, rerun %d (-first +this):\n%s", v, seed, i, cmp.Diff(want.Transcript, got.Transcript))
				}
			}
		}
	}
}
