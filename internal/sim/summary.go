package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/sim/history"
)

// Summary counts what happened in many runs of one variant. It is no checker: see [Result].
type Summary struct {
	Variant Variant
	From    uint64 // the first seed
	Seeds   int
	Failed  []uint64
	// Met is how many seeds met a fault. Ties and Undecided are told of each run.
	Met, Ties, Undecided int

	operations int
	replays    int
	outcomes   map[string]int
	kinds      map[string]int
	done       map[string]int
	faults     map[string]int
	runs       map[string]int // that met the fault
	mixes      map[string]int // of runs
	batches    map[int]int    // operations, by the size of their batch
	world      time.Duration
	riding     int // seeds
	rode       int // files; of these the loss of power took some, and some were written anew
	lost, anew int
}

// Add counts a run.
func (s *Summary) Add(r Result) {
	if s.outcomes == nil {
		s.outcomes, s.kinds, s.done = map[string]int{}, map[string]int{}, map[string]int{}
		s.faults, s.runs, s.mixes = map[string]int{}, map[string]int{}, map[string]int{}
		s.batches = map[int]int{}
	}
	s.Seeds++
	s.Ties += r.Ties
	if len(r.Problems) > 0 {
		s.Failed = append(s.Failed, r.Config.Seed)
	}
	if len(r.Faults) > 0 {
		s.Met++
	}
	if r.Undecided {
		s.Undecided++
	}
	s.world += r.Took
	s.mixes[r.Mix]++
	s.operations += len(r.History)
	for _, o := range r.History {
		outcome := string(o.Outcome)
		if o.Refusal != "" {
			outcome += ": " + string(o.Refusal)
		}
		s.outcomes[outcome]++
		s.kinds[string(o.Kind)]++
		if o.Outcome == history.Done {
			s.done[string(o.Kind)]++
		}
		if o.Replays >= 0 {
			s.replays++
		}
	}
	if r.Rides {
		s.riding++
	}
	s.rode, s.lost, s.anew = s.rode+r.Rode, s.lost+r.Lost, s.anew+r.Anew
	for size, n := range r.Batches {
		s.batches[size] += n
	}
	for kind, n := range r.Faults {
		s.faults[kind] += n
		s.runs[kind]++
	}
}

// String is the summary in Markdown.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %d seeds from %d\n\n", s.Variant, s.Seeds, s.From)
	fmt.Fprintf(&b, "Failed: %d. Undecided: %d. Met a fault: %d (%.1f %%). Operations: %d (%.0f a seed), of these %d made again under an idempotency key. "+
		"Instants at which two woke: %d. Time in the worlds: %d days.\n\n",
		len(s.Failed), s.Undecided, s.Met, percent(s.Met, s.Seeds), s.operations, float64(s.operations)/float64(max(s.Seeds, 1)), s.replays,
		s.Ties, s.world/(24*time.Hour))
	several, most, among := 0, 0, 0
	for size, n := range s.batches {
		if size > 1 {
			several, most, among = several+n/size, max(most, size), among+n
		}
	}
	fmt.Fprintf(&b, "Batches of several operations: %d, with %d operations among them; the largest had %d.\n\n", several, among, most)
	if s.riding > 0 {
		fmt.Fprintf(&b, "Files that rode in their batch: %d, in %d seeds. Crashes took %d before they were durable; %d were written anew.\n\n",
			s.rode, s.riding, s.lost, s.anew)
	}
	b.WriteString("| Fault | times | in seeds |\n|---|---:|---:|\n")
	for _, kind := range byCount(s.faults) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", kind, s.faults[kind], s.runs[kind])
	}
	b.WriteString("\n| Seeds of | |\n|---|---:|\n")
	for _, mix := range byCount(s.mixes) {
		fmt.Fprintf(&b, "| %s | %d |\n", mix, s.mixes[mix])
	}
	b.WriteString("\n| Answer | times |\n|---|---:|\n")
	for _, outcome := range byCount(s.outcomes) {
		fmt.Fprintf(&b, "| %s | %d |\n", outcome, s.outcomes[outcome])
	}
	b.WriteString("\n| Operation | times | done |\n|---|---:|---:|\n")
	for _, kind := range byCount(s.kinds) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", kind, s.kinds[kind], s.done[kind])
	}
	return b.String()
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// byCount are the names of a count, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
}
