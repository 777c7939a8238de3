package tablemeta_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

const (
	// transcriptNow is the server's clock in transcripts: 100 s after the samples
	// in format versions 2 to 4 were written.
	transcriptNow  = int64(1_700_000_100_000)
	transcriptFile = "s3://bucket/metadata/00007-base.metadata.json"
	transcriptUUID = "99999999-9999-4999-8999-999999999999"
)

// TestTranscripts runs the commits in testdata/commit and compares what they do,
// told as the difference between the metadata before and after, with what is
// written there. A case is
//
//	# a comment that says what it shows
//	base v2            a sample in testdata/metadata, or none to create a table
//	now 1700000100000  optional, as is
//	uuid none          what the server gives a table without uuid
//	? {"type": ...}    requirements
//	> {"action": ...}  updates
//
// and is followed by its outcome, indented. go test -update writes the outcomes.
//
// Among them are all the known ways in which another implementation, iceberg-go
// v0.7, differs from the reference:
//
//	files         an encryption key that exists is not replaced
//	identity      add-view-version without a version is refused, not a panic
//	layout        integer defaults above 2^53 keep their digits; the current schema
//	              cannot drop a source column of the default spec
//	refs          main cannot be a tag; removing an unknown ref is no error
//	requirements  an absent snapshot-id in assert-ref-snapshot-id means null
//	snapshots     key-id is kept; a snapshot an hour ahead is refused, one long
//	              behind is not; the current snapshot can be removed; version 4
func TestTranscripts(t *testing.T) { runTranscripts(t, "testdata/commit", runTranscript) }

// runTranscripts calls run for each case in the files of a directory.
func runTranscripts(t *testing.T, directory string, run func(t *testing.T, out *strings.Builder, block string)) {
	files, err := filepath.Glob(directory + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for i, block := range strings.Split(strings.TrimSpace(string(want)), "\n\n") {
				if i > 0 {
					got.WriteString("\n")
				}
				run(t, &got, block)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" && !*update {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func runTranscript(t *testing.T, out *strings.Builder, block string) {
	change := tablemeta.Change{Now: time.UnixMilli(transcriptNow), BaseFile: transcriptFile, UUID: transcriptUUID}
	var reqs []tablemeta.Requirement
	var failure error
	commits := false
	for _, line := range strings.Split(block, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, " ") {
			continue // an outcome
		}
		fmt.Fprintln(out, line)
		switch word {
		case "#":
		case "base":
			if rest != "none" {
				change.Base = sample(t, rest)
			}
			commits = true
		case "now":
			var ms int64
			if _, err := fmt.Sscan(rest, &ms); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			change.Now = time.UnixMilli(ms)
		case "uuid":
			change.UUID = strings.TrimPrefix(rest, "none")
		case "?":
			var r tablemeta.Requirement
			if err := rawjson.Unmarshal([]byte(rest), &r); err != nil && failure == nil {
				failure = err
			}
			reqs = append(reqs, r)
		case ">":
			var u tablemeta.Update
			if err := rawjson.Unmarshal([]byte(rest), &u); err != nil && failure == nil {
				failure = err
			}
			change.Updates = append(change.Updates, u)
		default:
			t.Fatalf("unknown line in transcript: %q", line)
		}
	}
	if !commits {
		return
	}
	if failure != nil {
		fmt.Fprintf(out, "  decode: %v\n", failure)
		return
	}
	if err := tablemeta.Check(change.Base, reqs); err != nil {
		fmt.Fprintf(out, "  %s\n", told(err))
		return
	}
	if len(change.Updates) == 0 {
		fmt.Fprintln(out, "  holds")
		return
	}
	var before []byte
	if change.Base != nil {
		before = bytes.Clone(change.Base.JSON())
	}
	m, changed, err := tablemeta.Commit(change)
	if change.Base != nil && !bytes.Equal(before, change.Base.JSON()) {
		t.Errorf("the commit changed its base\n%s", block)
	}
	switch {
	case err != nil:
		fmt.Fprintf(out, "  %s\n", told(err))
	case !changed:
		if m != change.Base {
			t.Errorf("unchanged, but not the base\n%s", block)
		}
		fmt.Fprintln(out, "  unchanged")
	default:
		checkRereads(t, m)
		tellDifference(t, out, before, m.JSON())
	}
}

func told(err error) string {
	var (
		invalid     *tablemeta.InvalidError
		stale       *tablemeta.StaleError
		requirement *tablemeta.RequirementError
	)
	switch {
	case errors.As(err, &invalid):
		return "invalid: " + strings.ReplaceAll(invalid.Message, "\n", "\n    ")
	case errors.As(err, &stale):
		return "stale: " + stale.Message
	case errors.As(err, &requirement):
		return "requirement: " + requirement.Message
	default:
		return fmt.Sprintf("UNEXPECTED %T: %v", err, err)
	}
}

func sample(t testing.TB, name string) *tablemeta.Metadata {
	t.Helper()
	data, err := os.ReadFile("testdata/metadata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := tablemeta.Parse(data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// tellDifference writes the members that differ, arrays and objects entry by
// entry. last-updated-ms and the metadata log, which every commit changes, are
// left out where they change as usual.
func tellDifference(t *testing.T, out *strings.Builder, before, after []byte) {
	t.Helper()
	old := map[string]json.RawMessage{}
	var order []string
	if before != nil {
		for name, value := range rawjson.Members(before) {
			old[name] = compact(value)
			order = append(order, name)
		}
	}
	now := map[string]json.RawMessage{}
	for name, value := range rawjson.Members(after) {
		if _, ok := old[name]; !ok {
			order = append(order, name)
		}
		now[name] = compact(value)
	}
	for _, name := range order {
		was, had := old[name]
		is, has := now[name]
		switch {
		case bytes.Equal(was, is) && had == has:
		case name == "last-updated-ms" && string(is) == fmt.Sprint(transcriptNow):
		case name == "metadata-log" && usualLog(was, is):
		case !had:
			fmt.Fprintf(out, "  %s: %s\n", name, is)
		case !has:
			fmt.Fprintf(out, "  %s: gone\n", name)
		case was[0] == '[' || was[0] == '{':
			tellEntries(out, name, was, is)
		default:
			fmt.Fprintf(out, "  %s: %s -> %s\n", name, was, is)
		}
	}
}

func usualLog(was, is json.RawMessage) bool {
	log := strings.TrimSuffix(string(was), "]")
	return strings.HasPrefix(string(is), log) && strings.HasSuffix(string(is), `"metadata-file":"`+transcriptFile+`"}]`) &&
		strings.Count(string(is), "{") == strings.Count(log, "{")+1 && strings.Contains(string(is), `"timestamp-ms":1700000000000,"metadata-file":"`+transcriptFile)
}

func tellEntries(out *strings.Builder, name string, was, is json.RawMessage) {
	lines := func(value json.RawMessage) (entries []string) {
		for e := range rawjson.Elements(value) {
			entries = append(entries, string(e))
		}
		for key, e := range rawjson.Members(value) {
			entries = append(entries, fmt.Sprintf("%q:%s", key, e))
		}
		return entries
	}
	before, after := lines(was), lines(is)
	count := map[string]int{}
	for _, e := range after {
		count[e]++
	}
	for _, e := range before {
		if count[e]--; count[e] < 0 {
			fmt.Fprintf(out, "  %s: - %s\n", name, e)
		}
	}
	clear(count)
	for _, e := range before {
		count[e]++
	}
	for _, e := range after {
		if count[e]--; count[e] < 0 {
			fmt.Fprintf(out, "  %s: + %s\n", name, e)
		}
	}
}

func compact(value []byte) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, value); err != nil {
		return value
	}
	return out.Bytes()
}
