package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTranscripts replays the requests of each file in testdata on a fresh
// catalog. A file is a list of exchanges separated by empty lines:
//
//	# comments
//	POST /v1/namespaces
//	  If-None-Match: "a header"
//	  {"the": "body"}
//	-> 200
//	  ETag: "headers of interest"
//	  the body, indented when it is long JSON
//
// What follows -> is what the server said; -update writes it. $ROOT stands for the
// directory of the warehouses, <id-n> for the nth UUID that was seen, <tag-n> for
// the nth entity tag, <ms> for a time. A long body that came before is not repeated.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := &replay{stack: newStack(t), bodies: map[string]string{}}
			got := r.file(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// replay is one transcript on its way.
type replay struct {
	*stack
	ids, tags numbered
	bodies    map[string]string // the request line that each long body first answered
}

// numbered gives numbers to strings in the order of their first appearance.
type numbered []string

func (n *numbered) of(s string) int {
	if i := slices.Index(*n, s); i >= 0 {
		return i + 1
	}
	*n = append(*n, s)
	return len(*n)
}

func (r *replay) file(text string) string {
	var out []string
	for _, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		out = append(out, r.exchange(block))
	}
	return strings.Join(out, "\n\n") + "\n"
}

var headerLine = regexp.MustCompile(`^[A-Za-z-]+: `)

// exchange replays one block and returns it with the answer that it got.
func (r *replay) exchange(block string) string {
	var kept, head, body []string
	for _, line := range strings.Split(block, "\n") {
		if strings.HasPrefix(line, "->") {
			break
		}
		kept = append(kept, line)
		indented, isIndented := strings.CutPrefix(line, "  ")
		switch {
		case strings.HasPrefix(line, "#"):
		case !isIndented:
			head = append(head, line)
		case len(body) == 0 && headerLine.MatchString(indented):
			head = append(head, indented)
		default:
			body = append(body, indented)
		}
	}
	if len(head) == 0 {
		return block
	}
	request := strings.Join(head, "\n")
	if len(body) > 0 {
		request += "\n\n" + strings.Join(body, "\n")
	}
	request = strings.ReplaceAll(request, "$ROOT", r.root)
	for i, tag := range r.tags {
		request = strings.ReplaceAll(request, fmt.Sprintf("<tag-%d>", i+1), tag)
	}
	for i, id := range r.ids {
		request = strings.ReplaceAll(request, fmt.Sprintf("<id-%d>", i+1), id)
	}
	return strings.Join(kept, "\n") + "\n" + r.shown(head[0], r.send(request))
}

var interesting = []string{"Content-Type", "ETag", "Allow", "Retry-After", "Location"}

// shown is an answer as the transcript holds it. What every answer must have is
// checked here and not shown.
func (r *replay) shown(line string, got reply) string {
	if got.Header.Get("Cache-Control") != "no-store" {
		r.Errorf("Cache-Control is %q", got.Header.Get("Cache-Control"))
	}
	if got.Header.Get(RequestIDHeader) == "" {
		r.Errorf("the answer has no request id")
	}
	lines := []string{fmt.Sprintf("-> %d", got.StatusCode)}
	for _, name := range interesting {
		for _, v := range got.Header.Values(name) {
			if name == "Content-Type" && v == "application/json" && got.body != "" {
				continue // as always
			}
			lines = append(lines, "  "+name+": "+r.named(v))
		}
	}
	body := strings.ReplaceAll(got.body, r.root, "$ROOT")
	if before, ok := r.bodies[body]; ok {
		lines = append(lines, "  (as for "+before+")")
	} else if body != "" {
		lines = append(lines, "  "+r.named(indented(body)))
		if len(body) > lineMax {
			r.bodies[body] = line
		}
	}
	return strings.Join(lines, "\n")
}

var (
	tagLike  = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	idLike   = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	timeLike = regexp.MustCompile(`\b17000[0-9]{8}\b`)
)

// named puts names in place of what differs from run to run, or with every change
// of the kernel that makes one id more.
func (r *replay) named(text string) string {
	text = tagLike.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("<tag-%d>", r.tags.of(s)) })
	text = idLike.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("<id-%d>", r.ids.of(s)) })
	return timeLike.ReplaceAllString(text, "<ms>")
}

// lineMax is the longest body that is shown on one line.
const lineMax = 160

// indented breaks JSON that is too long for a line.
func indented(body string) string {
	var b bytes.Buffer
	if len(body) <= lineMax || json.Indent(&b, []byte(body), "  ", "  ") != nil {
		return body
	}
	return b.String()
}
