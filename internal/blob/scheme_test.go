package blob_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/blobtest"
	"github.com/landfast/landfast/internal/blob/local"
)

// Property: a store by scheme is a store.
func TestByScheme(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Subject {
		s := blob.ByScheme{"file": local.New()}
		return blobtest.Subject{Store: s, Roots: s, NewRoot: func() string { return blob.DirURI(tempDir(t)) }}
	})
}

// Property: a store by scheme defers where its stores do.
func TestBySchemeDefers(t *testing.T) {
	blobtest.RunDeferrer(t, func(t *testing.T) blobtest.Subject {
		s := blob.ByScheme{"file": local.New(), "s3": named("buckets")}
		return blobtest.Subject{Store: s, Roots: s, NewRoot: func() string { return blob.DirURI(tempDir(t)) }}
	})
}

// Property: what cannot defer makes each file durable by itself.
func TestBySchemeDoesNotDefer(t *testing.T) {
	s := blob.ByScheme{"s3": named("buckets")}
	scope, location := blob.Scope{{URI: "s3://bucket"}}, "s3://bucket/k"
	if s.Defers(scope, location) || s.Defers(scope, "gs://bucket/k") {
		t.Error("defers")
	}
	want := error(answer{"buckets", location})
	if diff := cmp.Diff(want, s.CreateDeferred(t.Context(), scope, location, nil), cmp.AllowUnexported(answer{})); diff != "" {
		t.Errorf("CreateDeferred (-want +got):\n%s", diff)
	}
	if err := s.Sync(t.Context()); err != nil {
		t.Errorf("Sync: %v", err)
	}
	if err := s.Rewrite(t.Context(), scope, location, nil); err == nil || !strings.Contains(err.Error(), location) {
		t.Errorf("Rewrite: %v; want an error that names the file", err)
	}
}

// syncing is a backend that defers, and whose Sync is given.
type syncing struct {
	*local.Store
	sync func(context.Context) error
}

func (s syncing) Sync(ctx context.Context) error { return s.sync(ctx) }

// Properties: Sync asks all stores, and fails if one does; a store that lost files and one that had no time to try are not
// taken for stores that had none.
func TestBySchemeSyncs(t *testing.T) {
	broken := errors.New("broken")
	good := func(context.Context) error { return nil }
	fails := func(context.Context) error { return broken }
	late := func(ctx context.Context) error { return ctx.Err() }
	for name, c := range map[string]struct {
		one, other func(context.Context) error
		late       bool
		want       error
		cut        bool
	}{
		"both work":              {one: good, other: good},
		"one fails":              {one: good, other: fails, want: broken},
		"no time":                {one: late, other: late, late: true, want: context.Canceled, cut: true},
		"no time for one":        {one: late, other: good, late: true, want: context.Canceled, cut: true},
		"no time, and one fails": {one: late, other: fails, late: true, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := 0
			asking := func(sync func(context.Context) error) blob.Backend {
				return syncing{local.New(), func(ctx context.Context) error {
					asked++
					if c.late {
						cancel()
					}
					return sync(ctx)
				}}
			}
			err := blob.ByScheme{"file": asking(c.one), "s3": asking(c.other)}.Sync(ctx)
			if !errors.Is(err, c.want) || errors.Is(err, context.Canceled) != c.cut || asked != 2 {
				t.Errorf("%d stores were asked: %v; want %v", asked, err, c.want)
			}
		})
	}
}

// named is a backend that answers every call with its name, and with what it was asked for.
type named string

type answer struct{ by, about string }

func (a answer) Error() string { return a.by + " was asked about " + a.about }

func (n named) Read(_ context.Context, _ blob.Scope, location string, _ int64) ([]byte, error) {
	return nil, answer{string(n), location}
}
func (n named) Create(_ context.Context, _ blob.Scope, location string, _ []byte) error {
	return answer{string(n), location}
}
func (n named) Delete(_ context.Context, _ blob.Scope, location string) error {
	return answer{string(n), location}
}
func (n named) Exists(_ context.Context, _ blob.Scope, location string) (bool, error) {
	return false, answer{string(n), location}
}
func (n named) List(_ context.Context, _ blob.Scope, location string, _ func(blob.Entry) error) error {
	return answer{string(n), location}
}
func (n named) Resolve(_ context.Context, uri string, _ blob.S3Options) (blob.Root, error) {
	return blob.Root{}, answer{string(n), uri}
}
func (n named) Mark(_ context.Context, root blob.Root, _ string) error {
	return answer{string(n), root.URI}
}
func (n named) CheckMark(_ context.Context, root blob.Root, _ string) error {
	return answer{string(n), root.URI}
}

// calls runs every method with the location.
func calls(b blob.Backend, location string) map[string]error {
	ctx := context.Background()
	_, read := b.Read(ctx, nil, location, 0)
	_, exists := b.Exists(ctx, nil, location)
	_, resolve := b.Resolve(ctx, location, blob.S3Options{})
	return map[string]error{
		"read": read, "exists": exists, "resolve": resolve,
		"create": b.Create(ctx, nil, location, nil), "delete": b.Delete(ctx, nil, location), "list": b.List(ctx, nil, location, nil),
		"mark": b.Mark(ctx, blob.Root{URI: location}, "w"), "check": b.CheckMark(ctx, blob.Root{URI: location}, "w"),
	}
}

// Properties: every call goes to the backend of its scheme, with the location as it was written; without one it is refused.
func TestByWhichScheme(t *testing.T) {
	both := blob.ByScheme{"file": named("files"), "s3": named("buckets")}
	for location, by := range map[string]string{
		"file:///srv/lake": "files", "FILE:/srv": "files", "s3://bucket/k": "buckets", "s3a://bucket/k/": "buckets", "S3N://bucket": "buckets",
	} {
		for name, err := range calls(both, location) {
			if diff := cmp.Diff(error(answer{by, location}), err, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
	for _, b := range []blob.ByScheme{nil, {"s3": named("buckets")}, both} {
		for _, location := range []string{"file:///srv/lake", "/srv/lake", "gs://bucket/k", ""} {
			if slices.Contains(slices.Collect(maps.Keys(b)), "file") && location == "file:///srv/lake" {
				continue
			}
			for name, err := range calls(b, location) {
				if _, ok := errors.AsType[*blob.LocationError](err); !ok {
					t.Errorf("%s %q: %v; want a LocationError", name, location, err)
				}
			}
		}
	}
}

func TestIsTemporary(t *testing.T) {
	for name, want := range map[string]bool{
		".landfast-X.tmp": true, "s3://bucket/t/.landfast-X.tmp": true, "file:///a/.landfast-.tmp": true,
		"x.landfast-X.tmp": false, ".landfast-X.tmp/f": false, ".landfast-X": false, "X.tmp": false, "": false, blob.MarkPrefix + "w": false,
	} {
		if got := blob.IsTemporary(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestLocateDir(t *testing.T) {
	scope := blob.Scope{{URI: "s3://bucket/lake"}, {URI: "s3://bucket/lake/inner"}}
	for _, c := range []struct{ location, root, path string }{
		{"s3://bucket/lake", "s3://bucket/lake", ""},
		{"s3a://bucket/lake/", "s3://bucket/lake", ""},
		{"s3://bucket/lake/inner", "s3://bucket/lake/inner", ""},
		{"s3://bucket/lake/t/x", "s3://bucket/lake", "t/x"},
		{"s3://bucket/lake/inner/x", "s3://bucket/lake/inner", "x"},
	} {
		root, path, err := scope.LocateDir(c.location)
		if root.URI != c.root || path != c.path || err != nil {
			t.Errorf("%s: %s, %s, %v", c.location, root.URI, path, err)
		}
	}
	for _, location := range []string{"s3://bucket", "s3://bucket/lakes", "lake", "", "s3://bucket/lake/" + blob.MarkPrefix + "w"} {
		if _, _, err := scope.LocateDir(location); err == nil {
			t.Errorf("%q is accepted", location)
		}
	}
}

// tempDir is t.TempDir without the characters of a test's name that no location may have.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "blob-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
