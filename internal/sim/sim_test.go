package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

var (
	seedsFlag   = flag.Int("seeds", 200, "how many seeds of each variant")
	fromFlag    = flag.Uint64("from", 1, "the first of the seeds")
	variantFlag = flag.String("variant", "both", "transactional, bucket, or both")
	summaryFlag = flag.String("summary", "", "a file for the summary")
	traceFlag   = flag.Bool("trace", false, "print the transcript of every seed")
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(800) // worlds are small, and short-lived
	goleak.VerifyTestMain(m)
}

// seedOf is the run of a seed, over what is in memory.
func seedOf(seed uint64, v Variant) Config {
	return Config{
		Seed: seed, Variant: v,
		Records: func() store.Atomic { return mem.New() },
		Objects: func() store.Objects { return mem.NewObjects() },
		Queue:   func() lock.Gatherer { return local.New(local.Options{}) },
	}
}

// run runs a seed and judges it.
func run(t *testing.T, cfg Config) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("seed %d of %s: %v", cfg.Seed, cfg.Variant, p)
		}
	}()
	synctest.Test(t, func(*testing.T) { r = Run(cfg) })
	r.Judge()
	return r
}

// The catalog keeps its promises in every seed, on both variants.
func TestSim(t *testing.T) {
	var summaries strings.Builder
	for _, v := range []Variant{Transactional, Bucket} {
		if *variantFlag != "both" && *variantFlag != string(v) {
			continue
		}
		t.Run(string(v), func(t *testing.T) {
			s := runSeeds(t, v)
			t.Logf("\n%v", s)
			fmt.Fprintf(&summaries, "%v\n", s)
			if s.Seeds >= 50 && s.Met*2 < s.Seeds {
				t.Errorf("only %d of %d seeds met a fault", s.Met, s.Seeds)
			}
			if s.Undecided*100 > s.Seeds {
				t.Errorf("%d of %d seeds are undecided", s.Undecided, s.Seeds)
			}
		})
	}
	if *summaryFlag != "" {
		if err := os.WriteFile(*summaryFlag, []byte(summaries.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

const (
	failuresMax = 3   // after so many, no more seeds are run
	triesMax    = 400 // runs to shrink a failure
	tellEvery   = 15 * time.Second
)

// runSeeds runs the seeds on all processors.
func runSeeds(t *testing.T, v Variant) *Summary {
	var (
		mu      sync.Mutex
		summary = &Summary{Variant: v, From: *fromFlag}
		next    atomic.Int64
		began   = time.Now()
		told    = began
	)
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for {
					n := next.Add(1) - 1
					mu.Lock()
					enough := n >= int64(*seedsFlag) || len(summary.Failed) >= failuresMax
					mu.Unlock()
					if enough {
						return
					}
					cfg := seedOf(*fromFlag+uint64(n), v)
					cfg.Transcript = *traceFlag
					r := run(t, cfg)
					if *traceFlag {
						t.Logf("seed %d of %s\n%s", r.Config.Seed, v, strings.Join(r.Transcript, "\n"))
					}
					mu.Lock()
					summary.Add(r)
					failed := len(summary.Failed)
					if time.Since(told) > tellEvery {
						told = time.Now()
						t.Logf("%s: %d seeds in %v, %d failed", v, summary.Seeds, told.Sub(began).Round(time.Second), failed)
					}
					mu.Unlock()
					if len(r.Problems) > 0 {
						t.Error(report(t, r))
					}
				}
			})
		}
	})
	return summary
}

// report tells of a failure: the seed first, what is wrong, its transcript, and that of a
// smaller run which fails in the same way.
func report(t *testing.T, r Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SEED %d of %s FAILED: go test ./internal/sim -run TestSim -args -seeds 1 -from %d -variant %s\n%s\n",
		r.Config.Seed, r.Config.Variant, r.Config.Seed, r.Config.Variant, strings.Join(r.Problems, "\n"))
	again := r.Config
	again.Transcript = true
	whole := run(t, again)
	fmt.Fprintf(&b, "\nTRANSCRIPT of %d operations and %d faults:\n%s\n", len(r.History), len(r.injected), strings.Join(whole.Transcript, "\n"))
	if whole.Trace != r.Trace {
		b.WriteString("\nThe seed has another trace when it runs again.\n")
	}
	small := Shrink(r, triesMax, func(cfg Config) Result { return run(t, cfg) })
	fmt.Fprintf(&b, "\nSHRUNK to %d steps of clients and %d faults:\n%s\n\n%s\n",
		len(small.steps), len(small.injected), strings.Join(small.Problems, "\n"), strings.Join(small.Transcript, "\n"))
	return b.String()
}
