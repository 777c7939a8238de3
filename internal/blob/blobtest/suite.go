package blobtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

// Subject is one implementation, and places to try it in.
type Subject struct {
	Store blob.Store
	Roots blob.Roots
	// NewRoot returns a URI that Resolve accepts: empty, used by nobody else, and below no other that it returned.
	NewRoot func() string
	// Options are what Resolve needs to know about such a root.
	Options blob.S3Options
}

// Run runs the suite. It calls open once for each subtest.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Subject)
	}{
		{"create then read", createThenRead},
		{"create does not replace", createDoesNotReplace},
		{"create keeps its own copy", createKeepsItsOwnCopy},
		{"one of many creators wins", oneOfManyCreatorsWins},
		{"many names in one new directory", manyNamesInOneNewDirectory},
		{"nobody sees half a file", nobodySeesHalfAFile},
		{"read is bounded", readIsBounded},
		{"missing", missing},
		{"delete", deleteThenGone},
		{"list", list},
		{"list nothing", listNothing},
		{"list many", listMany},
		{"list is stopped", listIsStopped},
		{"list and delete", listAndDelete},
		{"a directory is no file", aDirectoryIsNoFile},
		{"outside the scope", outsideTheScope},
		{"several roots", severalRoots},
		{"the marker's name is reserved", theMarkersNameIsReserved},
		{"a context that is done", aContextThatIsDone},
		{"resolve", resolve},
		{"marker", marker},
		{"many write one marker", oneMarkByMany},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

const anySize = 1 << 30

func (s Subject) root(t *testing.T) blob.Root {
	t.Helper()
	r, err := s.Roots.Resolve(t.Context(), s.NewRoot(), s.Options)
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	return r
}

func (s Subject) create(t *testing.T, scope blob.Scope, location string, data []byte) {
	t.Helper()
	if err := s.Store.Create(t.Context(), scope, location, data); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

func (s Subject) wantBytes(t *testing.T, scope blob.Scope, location string, want []byte) {
	t.Helper()
	got, err := s.Store.Read(t.Context(), scope, location, anySize)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("Read %s: %d bytes, %v; want %d bytes", location, len(got), err, len(want))
	}
}

// wantAbsent checks all that tells a missing file from one that is there.
func (s Subject) wantAbsent(t *testing.T, scope blob.Scope, location string) {
	t.Helper()
	if data, err := s.Store.Read(t.Context(), scope, location, anySize); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Read %s: %d bytes, %v; want ErrNotFound", location, len(data), err)
	}
	if there, err := s.Store.Exists(t.Context(), scope, location); there || err != nil {
		t.Errorf("Exists %s: %v, %v; want false", location, there, err)
	}
}

// attempts runs every method of the Store on the location.
func (s Subject) attempts(ctx context.Context, scope blob.Scope, location string) map[string]error {
	_, read := s.Store.Read(ctx, scope, location, anySize)
	_, exists := s.Store.Exists(ctx, scope, location)
	return map[string]error{
		"Read": read, "Exists": exists,
		"Create": s.Store.Create(ctx, scope, location, []byte("x")),
		"Delete": s.Store.Delete(ctx, scope, location),
		"List":   s.Store.List(ctx, scope, location, func(blob.Entry) error { return nil }),
	}
}

// wantAll runs every method of the Store on the location and checks its error.
func (s Subject) wantAll(t *testing.T, ctx context.Context, scope blob.Scope, location string, ok func(error) bool) {
	t.Helper()
	for name, err := range s.attempts(ctx, scope, location) {
		if !ok(err) {
			t.Errorf("%s %q: %v", name, location, err)
		}
	}
}

func createThenRead(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	for _, size := range []int{0, 1, 511, 512, 513, 4096, 1<<20 + 1} {
		data := bytes.Repeat([]byte{0, 0xff, '\n'}, size/3+1)[:size]
		location := fmt.Sprintf("%s/ns/t-%d/metadata/00000-a.metadata.json", root.URI, size)
		s.wantAbsent(t, scope, location)
		s.create(t, scope, location+"/", data) // a trailing slash changes nothing
		s.wantBytes(t, scope, location, data)
		if there, err := s.Store.Exists(t.Context(), scope, location); !there || err != nil {
			t.Errorf("Exists: %v, %v; want true", there, err)
		}
	}
	s.create(t, scope, root.URI+"/right-below-the-root", []byte("x"))
}

func createDoesNotReplace(t *testing.T, s Subject) {
	root := s.root(t)
	scope, location := blob.Scope{root}, root.URI+"/a/f"
	s.create(t, scope, location, []byte("first"))
	for _, data := range []string{"second", "first", ""} {
		if err := s.Store.Create(t.Context(), scope, location, []byte(data)); !errors.Is(err, blob.ErrExists) {
			t.Errorf("Create again: %v; want ErrExists", err)
		}
	}
	s.wantBytes(t, scope, location, []byte("first"))
}

func createKeepsItsOwnCopy(t *testing.T, s Subject) {
	root := s.root(t)
	scope, location := blob.Scope{root}, root.URI+"/f"
	data := []byte("as written")
	s.create(t, scope, location, data)
	clear(data)
	got, err := s.Store.Read(t.Context(), scope, location, anySize)
	if err != nil {
		t.Fatal(err)
	}
	clear(got) // the reader owns what it was given
	s.wantBytes(t, scope, location, []byte("as written"))
}

func oneOfManyCreatorsWins(t *testing.T, s Subject) {
	const rounds, creators = 20, 8
	root := s.root(t)
	scope := blob.Scope{root}
	for round := range rounds {
		location := fmt.Sprintf("%s/new-%d/metadata/f", root.URI, round)
		errs := make([]error, creators)
		body := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 3000) }
		together(creators, func(i int) { errs[i] = s.Store.Create(t.Context(), scope, location, body(i)) })
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Fatalf("both %d and %d made %s", winner, i, location)
			case !errors.Is(err, blob.ErrExists):
				t.Fatalf("creator %d: %v; want ErrExists", i, err)
			}
		}
		if winner < 0 {
			t.Fatalf("nobody made %s: %v", location, errs)
		}
		s.wantBytes(t, scope, location, body(winner))
	}
}

func manyNamesInOneNewDirectory(t *testing.T, s Subject) {
	const creators, each = 8, 10
	root := s.root(t)
	scope := blob.Scope{root}
	location := func(i, j int) string { return fmt.Sprintf("%s/n/s/t/metadata/%d-%d", root.URI, i, j) }
	together(creators, func(i int) {
		for j := range each {
			if err := s.Store.Create(t.Context(), scope, location(i, j), fmt.Append(nil, i, j)); err != nil {
				t.Errorf("Create: %v", err)
			}
		}
	})
	for i := range creators {
		for j := range each {
			s.wantBytes(t, scope, location(i, j), fmt.Append(nil, i, j))
		}
	}
}

func nobodySeesHalfAFile(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	for round := range 10 {
		location := fmt.Sprintf("%s/f-%d", root.URI, round)
		done := make(chan struct{})
		together(3, func(i int) {
			if i == 0 {
				defer close(done)
				if err := s.Store.Create(t.Context(), scope, location, data); err != nil {
					t.Errorf("Create: %v", err)
				}
				return
			}
			for over := false; !over; { // bounded by the creator: one more look after it is done
				select {
				case <-done:
					over = true
				default:
				}
				got, err := s.Store.Read(t.Context(), scope, location, anySize)
				if !errors.Is(err, blob.ErrNotFound) && !bytes.Equal(got, data) {
					t.Errorf("Read during Create: %d bytes of %d, %v", len(got), len(data), err)
					return
				}
			}
		})
	}
}

func readIsBounded(t *testing.T, s Subject) {
	root := s.root(t)
	scope, location := blob.Scope{root}, root.URI+"/f"
	data := bytes.Repeat([]byte("x"), 1000)
	s.create(t, scope, location, data)
	for _, limit := range []int64{0, 1, 999} {
		if got, err := s.Store.Read(t.Context(), scope, location, limit); !errors.Is(err, blob.ErrTooLarge) || got != nil {
			t.Errorf("limit %d: %d bytes, %v; want ErrTooLarge", limit, len(got), err)
		}
	}
	for _, limit := range []int64{1000, 1001, 1<<63 - 1} {
		if got, err := s.Store.Read(t.Context(), scope, location, limit); err != nil || !bytes.Equal(got, data) {
			t.Errorf("limit %d: %d bytes, %v", limit, len(got), err)
		}
	}
	s.create(t, scope, root.URI+"/empty", nil)
	if got, err := s.Store.Read(t.Context(), scope, root.URI+"/empty", 0); err != nil || len(got) != 0 {
		t.Errorf("an empty file: %d bytes, %v", len(got), err)
	}
}

func missing(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	s.create(t, scope, root.URI+"/a/f", []byte("x"))
	for _, location := range []string{"/g", "/a/g", "/b/c/d/f", "/a/f/below-a-file", "/a/F2"} {
		s.wantAbsent(t, scope, root.URI+location)
		if err := s.Store.Delete(t.Context(), scope, root.URI+location); err != nil {
			t.Errorf("Delete %s: %v; want nil", location, err)
		}
	}
}

func deleteThenGone(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	f, g := root.URI+"/a/f", root.URI+"/a/g"
	s.create(t, scope, f, []byte("one"))
	s.create(t, scope, g, []byte("stays"))
	for range 2 {
		if err := s.Store.Delete(t.Context(), scope, f); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		s.wantAbsent(t, scope, f)
	}
	s.create(t, scope, f, []byte("two"))
	s.wantBytes(t, scope, f, []byte("two"))
	s.wantBytes(t, scope, g, []byte("stays"))
}

// list collects the sizes of the files below a directory, by location.
func (s Subject) list(t *testing.T, scope blob.Scope, location string) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	err := s.Store.List(t.Context(), scope, location, func(e blob.Entry) error {
		if _, again := found[e.Location]; again {
			t.Errorf("%s is listed twice", e.Location)
		}
		if e.Temporary {
			t.Errorf("%s is listed as temporary", e.Location)
		}
		if age := time.Since(e.Modified); age < -time.Minute || age > time.Hour {
			t.Errorf("%s was modified at %v, it is said", e.Location, e.Modified)
		}
		found[e.Location] = e.Size
		return nil
	})
	if err != nil {
		t.Fatalf("List %s: %v", location, err)
	}
	return found
}

func list(t *testing.T, s Subject) {
	root, other := s.root(t), s.root(t)
	scope := blob.Scope{root, other}
	for i, path := range []string{"/t", "/ns/t/f", "/ns/t/a/f", "/ns/t/a/b/c/f", "/ns/t/a-b", "/ns/t-1/f", "/ns/t.f", "/ns/u/f"} {
		s.create(t, scope, root.URI+path, make([]byte, i))
	}
	s.create(t, scope, other.URI+"/ns/t/f", nil)
	if err := s.Roots.Mark(t.Context(), root, "w-1"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]map[string]int64{
		"/ns/t":   {"/ns/t/f": 1, "/ns/t/a/f": 2, "/ns/t/a/b/c/f": 3, "/ns/t/a-b": 4},
		"/ns/t/":  {"/ns/t/f": 1, "/ns/t/a/f": 2, "/ns/t/a/b/c/f": 3, "/ns/t/a-b": 4},
		"/ns/t/a": {"/ns/t/a/f": 2, "/ns/t/a/b/c/f": 3},
		"/ns/t-1": {"/ns/t-1/f": 5},
		"": {
			"/t": 0, "/ns/t/f": 1, "/ns/t/a/f": 2, "/ns/t/a/b/c/f": 3, "/ns/t/a-b": 4, "/ns/t-1/f": 5, "/ns/t.f": 6, "/ns/u/f": 7,
		},
	} {
		got := map[string]int64{}
		for location, size := range s.list(t, scope, root.URI+dir) {
			got[strings.TrimPrefix(location, root.URI)] = size
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("List %q (-want +got):\n%s", dir, diff)
		}
	}
}

func listNothing(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	if got := s.list(t, scope, root.URI); len(got) > 0 {
		t.Errorf("List of an empty root: %v", got)
	}
	s.create(t, scope, root.URI+"/a/f", []byte("x"))
	for _, dir := range []string{"/b", "/b/c", "/a/f", "/a/f/g", "/a/F", "/A"} {
		if got := s.list(t, scope, root.URI+dir); len(got) > 0 {
			t.Errorf("List of %s: %v", dir, got)
		}
	}
}

// listMany has more files than one batch or page of any implementation here.
func listMany(t *testing.T, s Subject) {
	const creators, each = 8, 140
	root := s.root(t)
	scope := blob.Scope{root}
	location := func(i, j int) string { return fmt.Sprintf("%s/t/d-%d/f-%d", root.URI, j%2, i*each+j) }
	want := map[string]int64{}
	for i := range creators {
		for j := range each {
			want[location(i, j)] = int64(j % 3)
		}
	}
	together(creators, func(i int) {
		for j := range each {
			if err := s.Store.Create(t.Context(), scope, location(i, j), make([]byte, j%3)); err != nil {
				t.Errorf("Create: %v", err)
			}
		}
	})
	if diff := cmp.Diff(want, s.list(t, scope, root.URI+"/t")); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
}

func listIsStopped(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	for i := range 3 {
		s.create(t, scope, fmt.Sprintf("%s/t/%d/f", root.URI, i), nil)
	}
	enough, calls := errors.New("enough"), 0
	err := s.Store.List(t.Context(), scope, root.URI+"/t", func(blob.Entry) error { calls++; return enough })
	if err != enough || calls != 1 {
		t.Errorf("List: %v after %d calls; want the error of yield as it is after 1", err, calls)
	}
}

func listAndDelete(t *testing.T, s Subject) {
	const files = 20
	root := s.root(t)
	scope := blob.Scope{root}
	for i := range files {
		s.create(t, scope, fmt.Sprintf("%s/t/%d/f-%d", root.URI, i%3, i), nil)
	}
	seen := 0
	err := s.Store.List(t.Context(), scope, root.URI+"/t", func(e blob.Entry) error {
		seen++
		return s.Store.Delete(t.Context(), scope, e.Location)
	})
	if err != nil || seen != files {
		t.Errorf("List: %v, %d files; want %d", err, seen, files)
	}
	if left := s.list(t, scope, root.URI); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func aDirectoryIsNoFile(t *testing.T, s Subject) {
	root := s.root(t)
	scope := blob.Scope{root}
	s.create(t, scope, root.URI+"/a/b/f", []byte("x"))
	for _, dir := range []string{root.URI + "/a", root.URI + "/a/b"} {
		if there, _ := s.Store.Exists(t.Context(), scope, dir); there {
			t.Errorf("Exists %s, which is a directory", dir)
		}
		if _, err := s.Store.Read(t.Context(), scope, dir, anySize); !errors.Is(err, blob.ErrNotRegular) && !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Read %s: %v; want ErrNotRegular or ErrNotFound", dir, err)
		}
		if err := s.Store.Delete(t.Context(), scope, dir); err != nil && !errors.Is(err, blob.ErrNotRegular) {
			t.Errorf("Delete %s: %v", dir, err)
		}
	}
	s.wantBytes(t, scope, root.URI+"/a/b/f", []byte("x"))
}

func outsideTheScope(t *testing.T, s Subject) {
	root, other := s.root(t), s.root(t)
	secret := other.URI + "/secret"
	s.create(t, blob.Scope{other}, secret, []byte("s"))
	refused := func(err error) bool {
		var e *blob.LocationError
		return errors.As(err, &e) && e.Location != "" && e.Problem != "" && e.Remedy != ""
	}
	outside := func(err error) bool { return refused(err) && errors.Is(err, blob.ErrOutside) }
	last := root.URI[strings.LastIndexByte(root.URI, '/')+1:]
	for _, location := range []string{root.URI, root.URI + "/"} { // may be listed, and nothing else
		got := s.attempts(t.Context(), blob.Scope{root}, location)
		for name, err := range got {
			if name == "List" && err != nil || name != "List" && !outside(err) {
				t.Errorf("%s %s: %v", name, location, err)
			}
		}
	}
	for _, location := range []string{secret, other.URI, root.URI + "x", root.URI + "x/f", root.URI[:len(root.URI)-len(last)-1] + "/f"} {
		s.wantAll(t, t.Context(), blob.Scope{root}, location, outside)
	}
	s.wantAll(t, t.Context(), nil, root.URI+"/f", outside)
	s.wantAll(t, t.Context(), blob.Scope{}, root.URI+"/f", outside)
	for _, location := range []string{
		root.URI + "/../" + last + "/f", root.URI + "/a/../f", root.URI + "/./f", root.URI + "/a\x00b",
		"", "f", "/f", "../f", "http://localhost/f",
	} {
		s.wantAll(t, t.Context(), blob.Scope{root, other}, location, func(err error) bool {
			return (refused(err) || location == "" && err != nil) && !errors.Is(err, blob.ErrOutside)
		})
	}
	for name, err := range s.attempts(t.Context(), blob.Scope{root}, root.URI+"//f") { // clients delete such, and nothing else
		if name == "Delete" && err != nil || name != "Delete" && !refused(err) {
			t.Errorf("%s //f: %v", name, err)
		}
	}
	s.wantBytes(t, blob.Scope{other}, secret, []byte("s"))
	s.wantAbsent(t, blob.Scope{root}, root.URI+"/f")
}

func severalRoots(t *testing.T, s Subject) {
	a, b := s.root(t), s.root(t)
	scope := blob.Scope{a, b}
	s.create(t, scope, a.URI+"/f", []byte("a"))
	s.create(t, scope, b.URI+"/f", []byte("b"))
	inner, err := s.Roots.Resolve(t.Context(), a.URI+"/inner", s.Options)
	if err != nil {
		t.Fatal(err)
	}
	// The file is one, whichever of the two roots it is reached by.
	s.create(t, blob.Scope{a, b, inner}, inner.URI+"/g", []byte("g"))
	for _, scope := range []blob.Scope{{a}, {inner}, {inner, a}} {
		s.wantBytes(t, scope, inner.URI+"/g", []byte("g"))
	}
	s.wantBytes(t, scope, a.URI+"/f", []byte("a"))
	s.wantBytes(t, scope, b.URI+"/f", []byte("b"))
}

func theMarkersNameIsReserved(t *testing.T, s Subject) {
	root := s.root(t)
	if err := s.Roots.Mark(t.Context(), root, "w-1"); err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"/" + blob.MarkPrefix + "w-1", "/a/" + blob.MarkPrefix} {
		s.wantAll(t, t.Context(), blob.Scope{root}, root.URI+location, func(err error) bool {
			var e *blob.LocationError
			return errors.As(err, &e)
		})
	}
	if err := s.Roots.CheckMark(t.Context(), root, "w-1"); err != nil {
		t.Error(err)
	}
}

func aContextThatIsDone(t *testing.T, s Subject) {
	root := s.root(t)
	scope, location := blob.Scope{root}, root.URI+"/f"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	canceled := func(err error) bool { return errors.Is(err, context.Canceled) }
	s.wantAll(t, ctx, scope, location, canceled)
	s.wantAbsent(t, scope, location)
	s.create(t, scope, location, []byte("x"))
	s.wantAll(t, ctx, scope, location, canceled)
	s.wantBytes(t, scope, location, []byte("x"))
	if _, err := s.Roots.Resolve(ctx, root.URI, s.Options); !canceled(err) {
		t.Errorf("Resolve: %v; want context.Canceled", err)
	}
	if err := s.Roots.Mark(ctx, root, "w"); !canceled(err) {
		t.Errorf("Mark: %v; want context.Canceled", err)
	}
	if err := s.Roots.CheckMark(ctx, root, "w"); !canceled(err) {
		t.Errorf("CheckMark: %v; want context.Canceled", err)
	}
}

func resolve(t *testing.T, s Subject) {
	root := s.root(t)
	for _, uri := range []string{root.URI, root.URI + "/", root.URI + "//"} {
		again, err := s.Roots.Resolve(t.Context(), uri, s.Options)
		if err != nil {
			t.Errorf("Resolve %s: %v", uri, err)
		}
		if diff := cmp.Diff(root, again); diff != "" {
			t.Errorf("Resolve %s (-first +again):\n%s", uri, diff)
		}
	}
	if normal, err := blob.Normalize(root.URI); err != nil || normal != root.URI {
		t.Errorf("the root's URI %s normalises to %s, %v", root.URI, normal, err)
	}
	text, err := json.Marshal(blob.Scope{root})
	if err != nil {
		t.Fatal(err)
	}
	var back blob.Scope
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(blob.Scope{root}, back); diff != "" {
		t.Errorf("through JSON (-before +after):\n%s", diff)
	}
	for _, uri := range []string{"", "relative", "/no/scheme", "http://localhost/x", root.URI + "/../x", root.URI + "/a\nb"} {
		var e *blob.LocationError
		if r, err := s.Roots.Resolve(t.Context(), uri, s.Options); !errors.As(err, &e) {
			t.Errorf("Resolve %q: %v, %v; want a LocationError", uri, r, err)
		}
	}
}

func marker(t *testing.T, s Subject) {
	ctx, root := t.Context(), s.root(t)
	const mine, theirs = "7b0c6c4e-7a2f-4c62-9b38-51a4d0f7f001", "7b0c6c4e-7a2f-4c62-9b38-51a4d0f7f002"
	if err := s.Roots.CheckMark(ctx, root, mine); !errors.Is(err, blob.ErrMarkMissing) || !strings.Contains(err.Error(), root.URI) || !strings.Contains(err.Error(), mine) {
		t.Errorf("CheckMark of an unmarked root: %v; want ErrMarkMissing that names root and id", err)
	}
	for range 2 {
		if err := s.Roots.Mark(ctx, root, mine); err != nil {
			t.Fatalf("Mark: %v", err)
		}
		if err := s.Roots.CheckMark(ctx, root, mine); err != nil {
			t.Fatalf("CheckMark: %v", err)
		}
	}
	if err := s.Roots.CheckMark(ctx, root, theirs); !errors.Is(err, blob.ErrMarkMissing) {
		t.Errorf("CheckMark of another warehouse: %v; want ErrMarkMissing", err)
	}
	if err := s.Roots.Mark(ctx, root, theirs); err != nil {
		t.Errorf("a second warehouse in the root: %v", err)
	}
	for _, id := range []string{mine, theirs} {
		if err := s.Roots.CheckMark(ctx, root, id); err != nil {
			t.Errorf("CheckMark of %s: %v", id, err)
		}
	}
}

func oneMarkByMany(t *testing.T, s Subject) {
	const markers = 8
	root := s.root(t)
	together(markers, func(int) {
		if err := s.Roots.Mark(t.Context(), root, "w"); err != nil {
			t.Errorf("Mark: %v", err)
		}
		if err := s.Roots.CheckMark(t.Context(), root, "w"); err != nil {
			t.Errorf("CheckMark: %v", err)
		}
	})
}

// together calls f(0) to f(n-1) in goroutines that start at once, and waits for all.
func together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}
