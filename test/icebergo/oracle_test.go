package icebergo

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// This file and those beside it compare how commits change table metadata with how iceberg-go's builder
// changes it. Both are given the same random tables and the same random updates, right and wrong ones.
// What differs must be a deviation that is listed, with the reason why ours is as it is: the semantics
// are those of the Java reference, not those of iceberg-go.
//
// Our half is a program of its own, which the test builds: testdata/oracle. It needs no server; the flags
// for one are TestMain's:
//
//	go test -run Oracle . -args -url - -warehouse - -s3-warehouse - -seed 7 -rounds 100000

var (
	seed   = flag.Uint64("seed", 1, "of the first random commit that iceberg-go and ours are compared by; each round has the next one")
	rounds = flag.Int("rounds", 200, "how many random tables are compared; each takes several commits")
	// A built test may be kept, and be run in another checkout than it was built from.
	checkout = flag.String("checkout", "", "the checkout whose code is compared; by default the one that the test was built from")
)

const (
	// longRun is the number of rounds that meet every deviation, whatever the seed.
	longRun = 10_000
	// chainMax bounds the commits to one table.
	chainMax = 8
	// unexplainedMax bounds what one run reports.
	unexplainedMax = 12
)

func TestOracle(t *testing.T) {
	t.Logf("seed %d, %d rounds", *seed, *rounds)
	o := &oracle{ours: startOurs(t), unexplained: map[string]bool{}, actions: map[string]int{}}
	for round := range *rounds {
		o.round(t, *seed+uint64(round))
		if len(o.unexplained) >= unexplainedMax {
			break
		}
	}
	t.Logf("%d commits and %d requirements: %d accepted by both, %d refused by both, %d with differences, of which %d were made in other words too",
		o.commits, o.requirements, o.accepted, o.refused, o.differing, o.verified)
	if o.accepted == 0 || o.refused == 0 {
		t.Error("nothing was accepted, or nothing refused")
	}
	t.Logf("updates that both agreed on: %v", o.actions)
	for i, d := range deviations {
		t.Logf("met %6d times: %s", o.met[i], d.name)
		if o.met[i] == 0 && *rounds >= longRun && !t.Failed() {
			t.Errorf("no commit met the deviation %q: it is none any more, or nothing asks for it", d.name)
		}
	}
}

// oracle compares, and counts.
type oracle struct {
	ours        *ours
	met         [len(deviations)]int
	unexplained map[string]bool
	actions     map[string]int // of the updates that both took, and agreed on

	commits, accepted, refused, differing, verified, requirements int
}

// commit is what both sides are asked.
type commit struct {
	Base         json.RawMessage   `json:"base"` // null: the table is to be created
	BaseFile     string            `json:"base-file"`
	Requirements []json.RawMessage `json:"requirements,omitempty"`
	Updates      []json.RawMessage `json:"updates"`
	UUID         string            `json:"uuid"`
	Now          int64             `json:"now"` // ms
}

func (c commit) creates() bool { return string(c.Base) == "null" }

// base is empty if the commit creates its table.
func (c commit) base() object {
	if c.creates() {
		return object{}
	}
	return decode(c.Base).(object)
}

// outcome is what one side made of a commit.
type outcome struct {
	metadata object // nil if the commit is refused, or there is no table
	changed  bool
	err      error
	raw      []byte
}

// round compares a chain of commits to one random table.
func (o *oracle) round(t *testing.T, seed uint64) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), now: time.Now().UnixMilli()}
	c := commit{Base: json.RawMessage("null"), Now: g.now, UUID: g.randomUUID()}
	if g.chance(15) {
		c.Updates = g.creation()
	} else {
		c.Base = encode(g.table())
	}
	for n := range chainMax {
		if !c.creates() {
			base := decode(c.Base).(object)
			g.learn(base)
			c.BaseFile = fmt.Sprintf("s3://bucket/table/metadata/%05d-x.metadata.json", n)
			for range g.IntN(3) {
				asked := c
				asked.Requirements, asked.Updates = []json.RawMessage{g.requirement(base)}, nil
				o.requirements++
				o.examine(t, seed, asked)
			}
			g.learn(base)
			c.Updates = g.updates()
		}
		// If it is refused, what comes before the last update may not be, and is compared too.
		for ; len(c.Updates) > 0; c.Updates = c.Updates[:len(c.Updates)-1] {
			o.commits++
			mine, agreed := o.examine(t, seed, c)
			if mine.err == nil && !agreed {
				return // What differs here would differ in all commits that follow.
			}
			if mine.err == nil {
				c.Base = mine.raw
				break
			}
		}
		if c.creates() {
			return
		}
	}
}

// examine finds all differences, makes each small, and looks for what explains it. It returns what ours
// makes of the commit, and whether there is no difference.
func (o *oracle) examine(t *testing.T, seed uint64, c commit) (whole outcome, agreed bool) {
	t.Helper()
	kept := make([]int, len(c.Updates))
	for i := range kept {
		kept[i] = i
	}
	found, whole, _ := o.compare(t, c)
	switch {
	case len(found) > 0:
		o.differing++
	case whole.err == nil:
		o.accepted++
		for _, u := range c.Updates {
			action, _ := decode(u).(object)["action"].(string)
			o.actions[action]++
		}
	default:
		o.refused++
	}
	agreed = len(found) == 0
	for len(found) > 0 {
		culprit := -1
		for _, d := range found {
			small := o.shrink(t, c, kept, d)
			f := finding{commit: c.only(small)}
			var all []difference
			all, f.ours, f.theirs = o.compare(t, f.commit)
			f.difference = all[slices.IndexFunc(all, d.like)]
			o.explain(t, seed, &f)
			if len(small) > 0 {
				culprit = max(culprit, small[len(small)-1])
			}
		}
		// What is behind the difference may differ too.
		i := slices.Index(kept, culprit)
		if i < 0 {
			break
		}
		kept = slices.Delete(slices.Clone(kept), i, i+1)
		found, _, _ = o.compare(t, c.only(kept))
	}
	return whole, agreed
}

// only is the commit with the updates at these positions.
func (c commit) only(kept []int) commit {
	updates := make([]json.RawMessage, len(kept))
	for i, k := range kept {
		updates[i] = c.Updates[k]
	}
	c.Updates = updates
	return c
}

// shrink leaves out updates for as long as there is a difference of the same kind.
func (o *oracle) shrink(t *testing.T, c commit, kept []int, d difference) []int {
	for i := len(kept) - 1; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(kept), i, i+1)
		if found, _, _ := o.compare(t, c.only(fewer)); slices.ContainsFunc(found, d.like) {
			kept = fewer
			i = len(kept) // again from the end: what another update needed may go now
		}
	}
	return kept
}

// explain counts the deviation that the difference is, and reports it if it is none, or more than one.
func (o *oracle) explain(t *testing.T, seed uint64, f *finding) {
	t.Helper()
	switch explained := f.deviations(); len(explained) {
	case 1:
		o.met[explained[0]]++
		o.verify(t, seed, f, explained[0])
	case 0:
		o.report(t, seed, f, "no deviation explains")
	default:
		o.report(t, seed, f, fmt.Sprintf("the deviations %q and %q both explain", deviations[explained[0]].name, deviations[explained[1]].name))
	}
}

// deviations is the positions of those that the difference is.
func (f *finding) deviations() (explained []int) {
	for i, d := range deviations {
		if d.is(f) {
			explained = append(explained, i)
		}
	}
	return explained
}

// report fails the test, once for each kind of difference.
func (o *oracle) report(t *testing.T, seed uint64, f *finding, why string) {
	t.Helper()
	kind := why + f.difference.kind()
	if o.unexplained[kind] {
		return
	}
	o.unexplained[kind] = true
	t.Errorf("seed %d: %s this difference: %s\n  ours:       %s\n  iceberg-go: %s\n  commit: %s", seed, why, f.what, f.difference.ours, f.difference.theirs, encode(f.commit))
}

// verify asks iceberg-go for the same in other words, if there are any that it takes as ours takes the
// commit's. What it makes of them may differ by other deviations.
func (o *oracle) verify(t *testing.T, seed uint64, f *finding, deviation int) {
	t.Helper()
	d := deviations[deviation]
	if d.instead == nil || f.ours.err != nil {
		return
	}
	again := *f
	again.Updates = d.instead(f)
	again.theirs = applyTheirs(again.commit)
	found := []difference{{"accepted", again.ours.verdict(), again.theirs.verdict()}}
	if again.theirs.err == nil {
		found = compareMetadata(again.commit, again.ours, again.theirs)
	}
	for _, again.difference = range found {
		if explained := again.deviations(); len(explained) != 1 || explained[0] == deviation {
			o.report(t, seed, &again, fmt.Sprintf("in other words, the deviation %q leaves", d.name))
		}
	}
	o.verified++
}

// ---- The two sides.

// ours is the program that applies commits with our code.
type ours struct {
	in  io.Writer
	out *json.Decoder
}

func startOurs(t *testing.T) *ours {
	t.Helper()
	root := *checkout
	if root == "" {
		_, here, _, _ := runtime.Caller(0)
		root = filepath.Join(filepath.Dir(here), "..", "..")
	}
	program := filepath.Join(t.TempDir(), "oracle")
	// The file is no package of this module, which could not import what it imports.
	build := exec.CommandContext(testContext(t), "go", "build", "-o", program, "test/icebergo/testdata/oracle/main.go")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := exec.Command(program)
	run.Stderr = os.Stderr
	in, err := run.StdinPipe()
	check(t, err)
	out, err := run.StdoutPipe()
	check(t, err)
	check(t, run.Start())
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), run.Wait()); err != nil {
			t.Errorf("our half: %v", err)
		}
	})
	return &ours{in, json.NewDecoder(bufio.NewReader(out))}
}

func (o *ours) apply(t *testing.T, c commit) outcome {
	t.Helper()
	_, err := o.in.Write(append(encode(c), '\n'))
	check(t, err)
	var answer struct {
		Metadata json.RawMessage
		Changed  bool
		Error    string
	}
	if err := o.out.Decode(&answer); err != nil {
		t.Fatalf("our half has ended: %v\n  commit: %s", err, encode(c))
	}
	if answer.Error != "" {
		return outcome{err: errors.New(answer.Error)}
	}
	metadata, _ := decode(answer.Metadata).(object)
	return outcome{metadata: metadata, changed: answer.Changed, raw: answer.Metadata}
}

// applyTheirs gives the commit to iceberg-go.
func applyTheirs(c commit) (out outcome) {
	defer func() {
		if r := recover(); r != nil {
			out = outcome{err: fmt.Errorf("panic: %v", r)}
		}
	}()
	built, changed, err := buildTheirs(c)
	if err != nil || built == nil {
		return outcome{err: err}
	}
	raw, err := json.Marshal(built)
	if err != nil {
		return outcome{err: err}
	}
	return outcome{metadata: decode(raw).(object), changed: changed, raw: raw}
}

func buildTheirs(c commit) (built table.Metadata, changed bool, err error) {
	var base table.Metadata
	if !c.creates() {
		if base, err = table.ParseMetadataBytes(c.Base); err != nil {
			return nil, false, err
		}
	}
	var requirements table.Requirements
	if err := json.Unmarshal(encode(c.Requirements), &requirements); err != nil {
		return nil, false, err
	}
	for _, r := range requirements {
		if err := r.Validate(base); err != nil {
			return nil, false, err
		}
	}
	var updates table.Updates
	if err := json.Unmarshal(encode(c.Updates), &updates); err != nil {
		return nil, false, err
	}
	if base == nil && len(updates) == 0 {
		return nil, false, errors.New("no updates") // as ours says
	}
	builder, err := theirBuilder(c, base)
	if err != nil {
		return nil, false, err
	}
	for _, u := range updates {
		if err := u.Apply(builder); err != nil {
			return nil, false, err
		}
	}
	if base != nil && !builder.HasChanges() {
		return base, false, nil
	}
	built, err = builder.Build()
	return built, true, err
}

// theirBuilder begins as the reference does: a new table has a uuid, and the version that it is first
// upgraded to.
func theirBuilder(c commit, base table.Metadata) (*table.MetadataBuilder, error) {
	if base != nil {
		return table.MetadataBuilderFromBase(base, c.BaseFile)
	}
	version := 2
	for _, u := range c.Updates {
		if o, ok := decode(u).(object); ok && o["action"] == "upgrade-format-version" {
			version = int(integer(o["format-version"]))
			break
		}
	}
	builder, err := table.NewMetadataBuilder(version)
	if err != nil {
		return nil, err
	}
	return builder, builder.SetUUID(uuid.MustParse(c.UUID))
}

// ---- Differences.

// difference is one thing that the sides do not agree on.
type difference struct {
	what         string // "accepted", or the member of the metadata
	ours, theirs string
}

// finding is a difference in a commit that has no more updates than it takes.
type finding struct {
	commit
	difference
	ours, theirs outcome
}

var particulars = regexp.MustCompile(`"[^"]*"|'[^']*'|\d+`)

// kind is what differs, and not for which ids and names.
func (d difference) kind() string {
	if d.what != "accepted" {
		return d.what
	}
	return particulars.ReplaceAllString(d.ours+"|"+d.theirs, "_")
}

func (d difference) like(other difference) bool { return d.kind() == other.kind() }

func (o outcome) verdict() string {
	if o.err != nil {
		return "refused: " + o.err.Error()
	}
	return "accepted"
}

// compare asks both sides.
func (o *oracle) compare(t *testing.T, c commit) ([]difference, outcome, outcome) {
	t.Helper()
	mine, others := o.ours.apply(t, c), applyTheirs(c)
	var found []difference
	if why := checkTimes(c, mine); why != "" {
		found = append(found, difference{why, string(mine.raw), ""})
	}
	if (mine.err != nil) != (others.err != nil) {
		return append(found, difference{"accepted", mine.verdict(), others.verdict()}), mine, others
	}
	if mine.metadata == nil {
		return found, mine, others
	}
	found = append(found, compareMetadata(c, mine, others)...)
	if mine.changed && len(found) == 0 {
		if _, err := table.ParseMetadataBytes(mine.raw); err != nil {
			found = append(found, difference{"iceberg-go reads what ours wrote", "", err.Error()})
		}
		if read := o.ours.apply(t, commit{Base: others.raw, Now: c.Now}); read.err != nil {
			found = append(found, difference{"ours reads what iceberg-go wrote", read.err.Error(), ""})
		}
	}
	return found, mine, others
}

// compareMetadata compares member by member what both accepted.
func compareMetadata(c commit, mine, others outcome) []difference {
	base := c.base()
	a, b := normal(mine.metadata), normal(others.metadata)
	agreeOnUUID(c, base, a, b)
	agreeOnTimes(c, base, a, b)
	var found []difference
	if !mine.changed {
		// The builder counts changes that change nothing, and writes a file for them.
		b["metadata-log"] = a["metadata-log"]
	}
	for _, name := range slices.Sorted(union(a, b)) {
		if x, y := text(a[name]), text(b[name]); x != y {
			found = append(found, difference{name, x, y})
		}
	}
	return found
}

func text(v any) string { return string(encode(v)) }
