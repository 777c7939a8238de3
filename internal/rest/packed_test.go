package rest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unpacked is the body of an answer that says it is compressed.
func unpacked(t *testing.T, r reply) string {
	t.Helper()
	if got := r.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding is %q: %.200s", got, r.body)
	}
	return string(unzip(t, []byte(r.body)))
}

func unzip(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// TestPackedLoad: a large table is compressed from the second load of a version on, for those who
// take it; whatever a client holds of the version, it learns that it is current.
func TestPackedLoad(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	large := strings.Repeat("x", packedMin)
	s.must(commit(fmt.Sprintf(`{"action":"set-properties","updates":{"large":%q}}`, large)))
	const zipped = "GET " + theTable + "\nAccept-Encoding: gzip"

	first := s.must(zipped)
	strong := first.Header.Get("ETag")
	if first.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(strong, `"`) {
		t.Errorf("the first load: %v", first.Header)
	}
	for range 2 {
		again := s.must(zipped)
		if d := cmp.Diff(first.body, unpacked(t, again)); d != "" {
			t.Error(d)
		}
		if got := again.Header.Get("ETag"); got != "W/"+strong {
			t.Errorf("the tag of the compressed answer is %s, of the other %s", got, strong)
		}
		if again.ContentLength != int64(len(again.body)) || len(again.body) >= len(first.body)/2 {
			t.Errorf("%d of %d bytes, Content-Length %d", len(again.body), len(first.body), again.ContentLength)
		}
	}
	for _, other := range []string{"GET " + theTable, "GET " + theTable + "\nAccept-Encoding: gzip;q=0, identity"} {
		plain := s.must(other)
		if d := cmp.Diff(first.body, plain.body); d != "" || plain.Header.Get("ETag") != strong || plain.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v %s", other, plain.Header, d)
		}
	}
	for _, held := range []string{strong, "W/" + strong} {
		r := s.send(zipped + "\nIf-None-Match: " + held)
		if r.StatusCode != http.StatusNotModified || r.body != "" || r.Header.Get("ETag") != held || r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", held, r.StatusCode, r.Header)
		}
		if r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Vary is %q", r.Header.Get("Vary"))
		}
	}

	s.must(commit(`{"action":"set-properties","updates":{"a":"2"}}`)) // another version
	next := s.must(zipped)
	if next.Header.Get("Content-Encoding") != "" || next.Header.Get("ETag") == strong || !strings.Contains(next.body, `"a":"2"`) {
		t.Errorf("the first load of the next version: %v", next.Header)
	}
	if d := cmp.Diff(next.body, unpacked(t, s.must(zipped))); d != "" {
		t.Error(d)
	}
	s.must(commit(`{"action":"remove-properties","removals":["large"]}`)) // a small one
	for range 3 {
		if r := s.must(zipped); r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%d bytes are compressed", len(r.body))
		}
	}
}

// TestPackedAfterReplacedFile: what was compressed of a metadata file is not the answer for another that was
// registered under its name.
func TestPackedAfterReplacedFile(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	s.must(commit(fmt.Sprintf(`{"action":"set-properties","updates":{"large":%q}}`, strings.Repeat("x", packedMin))))
	const zipped = "GET " + theTable + "\nAccept-Encoding: gzip"
	former := s.must(zipped)
	unpacked(t, s.must(zipped))
	location := s.table("GET " + theTable).MetadataLocation
	s.must("DELETE " + theTable)
	file := strings.TrimPrefix(location, "file://")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte("xx"), []byte("yy")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("POST /v1/namespaces/sea/register\n\n" + fmt.Sprintf(`{"name":"t","metadata-location":%q}`, location))
	if r := s.send(zipped + "\nIf-None-Match: " + former.Header.Get("ETag")); r.StatusCode != http.StatusOK {
		t.Errorf("who holds the former table hears %d", r.StatusCode)
	}
	want := strings.ReplaceAll(former.body, "xx", "yy")
	if d := cmp.Diff(want, unpacked(t, s.must(zipped))); d != "" {
		t.Error(d)
	}
}

// TestPackedParts: what is kept is what was asked for, whoever asks at once, and no more
// than may be.
func TestPackedParts(t *testing.T) {
	p := newPacked(4 << 10)
	parts := func(i int) [][]byte { return [][]byte{fmt.Appendf(nil, "%d,", i), bytes.Repeat([]byte{'x'}, 9000)} }
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for n := range 300 {
				i := n % 30
				if data := p.get(fmt.Sprint(i), parts(i)...); data != nil {
					if d := cmp.Diff(bytes.Join(parts(i), nil), unzip(t, data)); d != "" {
						t.Error(d)
						return
					}
				}
			}
		})
	}
	asking.Wait()
	if w := p.answers.WeightedSize(); w > 4<<10 {
		t.Errorf("%d bytes are kept", w)
	}

	// An answer that is too large to be kept is compressed once, in vain.
	p = newPacked(40)
	p.answers.SetMaximum(1 << 20) // for entries without an answer
	var given int
	for range 4 {
		if p.get("tag", parts(1)...) != nil {
			given++
		}
	}
	if given != 1 {
		t.Errorf("compressed %d times", given)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for _, c := range []struct {
		headers []string
		want    bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"GZip"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"gzip, x-gzip, deflate"}, true},
		{[]string{"deflate, gzip;q=0.5"}, true},
		{[]string{"br", "gzip"}, true},
		{[]string{"*"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"*;q=0, gzip"}, true},
		{[]string{"gzip; q=0.000"}, false},
		{[]string{"gzip;q=0.001"}, true},
		{[]string{"identity"}, false},
		{[]string{"zstd, br"}, false},
		{[]string{"gzipped"}, false},
	} {
		if got := acceptsGzip(c.headers); got != c.want {
			t.Errorf("%q: %v", c.headers, got)
		}
	}
}
