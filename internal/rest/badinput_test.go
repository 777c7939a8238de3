package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// badInputMin is how many bad requests there are at least: fewer means that some were lost.
const badInputMin = 1400

// TestBadInput sends the requests of testdata/badinput, all of which are bad, to a
// running server. Each is refused with the status, type and message that its file
// says, none with a 5xx, and nothing is changed by it: no record, no file.
//
// A file is a list of cases separated by empty lines, written as those of
// TestTranscripts are:
//
//	# comments
//	POST /v1/namespaces
//	  Content-Encoding: gzip
//	  $(gzip {"namespace":["n"]})
//	-> 400 BadRequestException
//	   The message.
//
// What follows -> is what the server said; -update writes it, so that a person
// reads what changed. A line RAW in place of the method and the path says that the
// indented lines are all that is sent, and CUT that nothing can follow them, either.
//
// In a request $ROOT stands for the directory of the warehouses, $TABLE for the
// location of the table sea.t, $UUID for its UUID, $SCHEMA for a schema of one
// required long that is called id, and $VERSION for a view's version of one query.
// $(repeat 3 ab) is ababab, $(hex ff fe) two bytes, $(gzip text) the text compressed,
// $(cut text) that without its last eight bytes, and $() nothing. In an answer <id>
// is any other UUID, <ms> a time, and <n> a place in a text that $ROOT is a part of,
// or its length; what is too long to be read has its middle left out.
//
// Every file is replayed on a catalog of its own, which setup.txt fills: with
// requests, all of which succeed, and with FILE and LINK below $ROOT.
func TestBadInput(t *testing.T) {
	files, err := filepath.Glob("testdata/badinput/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		if filepath.Base(file) == "setup.txt" {
			continue
		}
		want := readText(t, file)
		for _, block := range blocks(want) {
			if _, ok := parseCase(block); ok {
				count++
			}
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b := newBadInput(t)
			var got []string
			for _, block := range blocks(want) {
				got = append(got, b.refused(block))
			}
			text := strings.Join(got, "\n\n") + "\n"
			if strings.Contains(b.log.String(), "level=ERROR") {
				t.Errorf("the server takes a bad request for a fault of its own:\n%s", b.log)
			}
			if t.Failed() {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, text); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
	if count < badInputMin {
		t.Errorf("there are %d bad requests, and there were at least %d", count, badInputMin)
	}
	t.Logf("%d bad requests", count)
}

func readText(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func blocks(text string) []string { return strings.Split(strings.TrimRight(text, "\n"), "\n\n") }

// badInput is a running server and what it holds.
type badInput struct {
	*stack
	before string            // the state that no case may change
	names  *strings.Replacer // from the names that a file uses to what they stand for
	values *strings.Replacer // and back
}

func newBadInput(t *testing.T) *badInput {
	b := &badInput{stack: newStack(t)}
	b.names = strings.NewReplacer("$ROOT", b.root, "$SCHEMA", tableSchema, "$VERSION", viewVersion)
	for _, block := range blocks(readText(t, "testdata/badinput/setup.txt")) {
		if c, ok := parseCase(block); ok {
			b.setUp(c)
		}
	}
	var table struct {
		Metadata struct {
			Location string `json:"location"`
			UUID     string `json:"table-uuid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(b.must("GET /v1/namespaces/sea/tables/t").body), &table); err != nil {
		t.Fatal(err)
	}
	location, id := table.Metadata.Location, table.Metadata.UUID
	b.names = strings.NewReplacer("$ROOT", b.root, "$SCHEMA", tableSchema, "$VERSION", viewVersion, "$TABLE", location, "$UUID", id)
	b.values = strings.NewReplacer(location, "$TABLE", b.root, "$ROOT", id, "$UUID")
	b.before = b.state()
	return b
}

// badCase is one block of a file.
type badCase struct {
	kept    string   // the block without its answer
	line    string   // the method and the target
	headers []string // and, of RAW, every line
	body    string
}

// parseCase reads a block. It returns false for one that is a comment only.
func parseCase(block string) (badCase, bool) {
	var c badCase
	var kept, body []string
	for _, line := range strings.Split(block, "\n") {
		if strings.HasPrefix(line, "->") {
			break
		}
		kept = append(kept, line)
		indented, isIndented := strings.CutPrefix(line, "  ")
		switch {
		case strings.HasPrefix(line, "#"):
		case !isIndented:
			c.line = line
		case c.raw(), len(body) == 0 && headerLine.MatchString(indented):
			c.headers = append(c.headers, indented)
		default:
			body = append(body, indented)
		}
	}
	c.kept, c.body = strings.Join(kept, "\n"), strings.Join(body, "\n")
	return c, c.line != ""
}

func (c badCase) raw() bool { return c.line == "RAW" || c.line == "CUT" }

// request is what stack.send takes.
func (c badCase) request() string {
	return strings.Join(append([]string{c.line}, c.headers...), "\n") + "\n\n" + c.body
}

func (b *badInput) setUp(c badCase) {
	b.Helper()
	verb, rest, _ := strings.Cut(c.line, " ")
	switch verb {
	case "FILE":
		path := filepath.Join(b.root, filepath.FromSlash(rest))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		b.write(path, b.expand(c.body))
	case "LINK":
		link, target, _ := strings.Cut(rest, " ")
		if err := os.Symlink(b.names.Replace(target), filepath.Join(b.root, filepath.FromSlash(link))); err != nil {
			b.Fatal(err)
		}
	default:
		b.must(b.expand(c.request()))
	}
}

// refused sends the request of a block, if it has one, and returns the block with the answer.
func (b *badInput) refused(block string) string {
	b.Helper()
	c, ok := parseCase(block)
	if !ok {
		return block
	}
	var got reply
	if c.raw() {
		got = b.sendRaw(b.expand(rawText(c.headers)), c.line == "CUT")
	} else {
		got = b.send(b.expand(c.request()))
	}
	if got.StatusCode < 400 || got.StatusCode >= 500 {
		b.Errorf("%s\ngot %s %.300s, want a refusal", c.kept, got.Status, got.body)
	}
	if after := b.state(); after != b.before {
		b.Errorf("%s\n%s, and something changed", c.kept, got.Status)
		b.before = after
	}
	answer := b.shown(got)
	if strings.Contains(block, "$ROOT") || strings.Contains(block, "$TABLE") {
		answer = byteCount.ReplaceAllString(answer, "${1}<n>$2")
	}
	return c.kept + "\n" + answer
}

// rawText is what the lines of RAW say: the lines before the first empty one are a
// head. One that is empty is written as $().
func rawText(lines []string) string {
	text := strings.Join(lines, "\r\n")
	if !slices.Contains(lines, "$()") {
		text += "\r\n\r\n"
	}
	return text
}

// sendRaw sends a text as it is, and then, where the connection is cut, nothing any more.
func (b *badInput) sendRaw(text string, cut bool) reply {
	b.Helper()
	conn := b.dial(text)
	defer conn.Close()
	if cut {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			b.Fatal(err)
		}
	}
	method, _, _ := strings.Cut(text, " ")
	return b.read(conn, method)
}

// shown is an answer as a file holds it. What every refusal must have is checked
// here and not shown.
func (b *badInput) shown(got reply) string {
	b.Helper()
	first := fmt.Sprintf("-> %d", got.StatusCode)
	if got.Request.Method == "HEAD" {
		if got.body != "" {
			b.Errorf("HEAD has the body %q", got.body)
		}
		return first
	}
	if got.Header.Get(RequestIDHeader) == "" {
		// net/http refused it before there was a request.
		return strings.TrimRight(fmt.Sprintf("%s without a handler\n   %s", first, b.named(got.body)), "\n ")
	}
	var body map[string]map[string]any
	if err := json.Unmarshal([]byte(got.body), &body); err != nil || len(body) != 1 {
		b.Errorf("%q is not the body of an error: %v", got.body, err)
	}
	e := body["error"]
	kind, _ := e["type"].(string)
	message, _ := e["message"].(string)
	if len(e) != 3 || kind == "" || message == "" || e["code"] != float64(got.StatusCode) {
		b.Errorf("%d %s: want a type, a message and the status as the code", got.StatusCode, got.body)
	}
	if got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Cache-Control") != "no-store" {
		b.Errorf("the header of a refusal is %v", got.Header)
	}
	return fmt.Sprintf("%s %s\n   %s", first, kind, b.named(message))
}

// named puts names in place of what differs from run to run.
func (b *badInput) named(text string) string {
	text = idLike.ReplaceAllString(b.values.Replace(text), "<id>")
	text = timeLike.ReplaceAllString(text, "<ms>")
	var printed strings.Builder
	for i, r := range text {
		if unicode.IsPrint(r) && (r != ' ' || i < len(text)-1) { // an editor would drop a space at the end
			printed.WriteRune(r)
		} else {
			fmt.Fprintf(&printed, `\u%04x`, r)
		}
	}
	text = printed.String()
	if len(text) > shownMax {
		text = text[:shownMax/2] + " ... " + text[len(text)-shownMax/2:]
	}
	return text
}

// shownMax is the longest message that is shown whole, in bytes.
const shownMax = 600

// byteCount is a place in a text or its length, which moves with the length of $ROOT.
var byteCount = regexp.MustCompile(`\b(byte |it has )[0-9]+( bytes)?`)

var callLike = regexp.MustCompile(`\$\((\w*) ?([^()]*)\)`)

// expand puts what they stand for in place of names and of calls, the inner ones first.
func (b *badInput) expand(text string) string {
	b.Helper()
	text = b.names.Replace(text)
	for {
		at := callLike.FindStringSubmatchIndex(text)
		if at == nil {
			return text
		}
		value, err := evaluate(text[at[2]:at[3]], text[at[4]:at[5]])
		if err != nil {
			b.Fatalf("%s: %v", text[at[0]:at[1]], err)
		}
		text = text[:at[0]] + value + text[at[1]:]
	}
}

func evaluate(name, argument string) (string, error) {
	switch name {
	case "":
		return "", nil
	case "repeat":
		count, what, _ := strings.Cut(argument, " ")
		n, err := strconv.Atoi(count)
		return strings.Repeat(what, max(n, 0)), err
	case "hex":
		data, err := hex.DecodeString(strings.ReplaceAll(argument, " ", ""))
		return string(data), err
	case "gzip", "cut":
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := io.WriteString(w, argument)
		err = errors.Join(err, w.Close())
		if name == "cut" {
			packed.Truncate(packed.Len() - 8)
		}
		return packed.String(), err
	}
	return "", errors.New("no such call")
}
