package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/landfast/landfast/internal/blob"
)

// RunDeferrer runs the cases of [blob.Deferrer], which the Store of each Subject must be. What the loss of power
// does, and how a Sync fails, is for the implementation's own tests.
func RunDeferrer(t *testing.T, open func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, s Subject, d blob.Deferrer)
	}{
		{"deferred, then read", deferredThenRead},
		{"one of many deferring creators wins", oneOfManyDeferringCreatorsWins},
		{"deferred, synced and deleted at once", deferredSyncedAndDeleted},
		{"rewrite", rewrite},
		{"nobody sees half a rewrite", nobodySeesHalfARewrite},
		{"deferred where it must not be", deferredWhereItMustNotBe},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			c.test(t, s, s.Store.(blob.Deferrer))
		})
	}
}

func deferredThenRead(t *testing.T, s Subject, d blob.Deferrer) {
	root := s.root(t)
	scope := blob.Scope{root}
	bodies := map[string][]byte{}
	for i, size := range []int{0, 1, 4096, 1<<20 + 1} {
		for _, dir := range []string{"/t", fmt.Sprintf("/new-%d/metadata", i)} {
			location := fmt.Sprintf("%s%s/f-%d", root.URI, dir, i)
			bodies[location] = bytes.Repeat([]byte{0, 0xff, '\n'}, size/3+1)[:size]
			data := bytes.Clone(bodies[location])
			if err := d.CreateDeferred(t.Context(), scope, location, data); err != nil {
				t.Fatalf("CreateDeferred: %v", err)
			}
			clear(data)
			s.wantBytes(t, scope, location, bodies[location])
			for _, create := range []func(context.Context, blob.Scope, string, []byte) error{d.CreateDeferred, s.Store.Create} {
				if err := create(t.Context(), scope, location, []byte("second")); !errors.Is(err, blob.ErrExists) {
					t.Errorf("made again: %v; want ErrExists", err)
				}
			}
		}
	}
	for range 2 { // the second has nothing to do
		if err := d.Sync(t.Context()); err != nil {
			t.Fatalf("Sync: %v", err)
		}
	}
	for location, body := range bodies {
		s.wantBytes(t, scope, location, body)
	}
	if got := s.list(t, scope, root.URI); len(got) != len(bodies) {
		t.Errorf("there are %v; want %d files", got, len(bodies))
	}
}

func oneOfManyDeferringCreatorsWins(t *testing.T, s Subject, d blob.Deferrer) {
	const rounds, creators = 20, 8
	root := s.root(t)
	scope := blob.Scope{root}
	for round := range rounds {
		location := fmt.Sprintf("%s/new-%d/metadata/f", root.URI, round)
		errs := make([]error, creators)
		body := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 3000) }
		together(creators, func(i int) {
			create := d.CreateDeferred
			if i%4 == 3 {
				create = s.Store.Create
			}
			errs[i] = create(t.Context(), scope, location, body(i))
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
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

func deferredSyncedAndDeleted(t *testing.T, s Subject, d blob.Deferrer) {
	const creators, each = 6, 50
	root := s.root(t)
	scope := blob.Scope{root}
	together(creators+2, func(i int) {
		for j := range each {
			if i >= creators {
				if err := d.Sync(t.Context()); err != nil {
					t.Errorf("Sync: %v", err)
				}
				continue
			}
			location := fmt.Sprintf("%s/t-%d/metadata/%d-%d", root.URI, j%3, i, j)
			if err := d.CreateDeferred(t.Context(), scope, location, []byte(location)); err != nil {
				t.Errorf("CreateDeferred: %v", err)
				return
			}
			s.wantBytes(t, scope, location, []byte(location))
			if err := s.Store.Delete(t.Context(), scope, location); err != nil {
				t.Errorf("Delete: %v", err)
			}
		}
	})
	if left := s.list(t, scope, root.URI); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func rewrite(t *testing.T, s Subject, d blob.Deferrer) {
	root := s.root(t)
	scope := blob.Scope{root}
	whole := bytes.Repeat([]byte{0, 0xff, '\n'}, 1000)
	was := map[string][]byte{"/t/same": whole, "/t/short": whole[:100], "/t/empty": nil, "/t/longer": append(bytes.Clone(whole), 'x'), "/t/other": make([]byte, len(whole))}
	for path, data := range was {
		s.create(t, scope, root.URI+path, data)
	}
	was["/t/missing"], was["/new/dir/missing"], was["/missing"] = nil, nil, nil
	for path := range was {
		if err := d.Rewrite(t.Context(), scope, root.URI+path, whole); err != nil {
			t.Fatalf("Rewrite %s: %v", path, err)
		}
		s.wantBytes(t, scope, root.URI+path, whole)
	}
	if got := s.list(t, scope, root.URI); len(got) != len(was) {
		t.Errorf("there are %v; want %d files", got, len(was))
	}
}

func nobodySeesHalfARewrite(t *testing.T, s Subject, d blob.Deferrer) {
	root := s.root(t)
	scope, location := blob.Scope{root}, root.URI+"/t/f"
	bodies := [][]byte{bytes.Repeat([]byte("0"), 1<<18), bytes.Repeat([]byte("1"), 1<<18)}
	s.create(t, scope, location, bodies[0])
	done := make(chan struct{})
	together(3, func(i int) {
		if i == 0 {
			defer close(done)
			for n := range 20 {
				if err := d.Rewrite(t.Context(), scope, location, bodies[n%2]); err != nil {
					t.Errorf("Rewrite: %v", err)
				}
			}
			return
		}
		for over := false; !over; { // bounded by the writer: one more look after it is done
			select {
			case <-done:
				over = true
			default:
			}
			got, err := s.Store.Read(t.Context(), scope, location, anySize)
			if err != nil || !bytes.Equal(got, bodies[0]) && !bytes.Equal(got, bodies[1]) {
				t.Errorf("Read during Rewrite: %d bytes, %v", len(got), err)
				return
			}
		}
	})
}

func deferredWhereItMustNotBe(t *testing.T, s Subject, d blob.Deferrer) {
	root, other := s.root(t), s.root(t)
	scope := blob.Scope{root}
	s.create(t, scope, root.URI+"/file", []byte("x"))
	for location, want := range map[string]error{
		other.URI + "/f": blob.ErrOutside, root.URI: blob.ErrOutside, root.URI + "/a/../f": nil, "f": nil,
		root.URI + "/" + blob.MarkPrefix + "w": nil, root.URI + "/file/below": blob.ErrBelowFile,
	} {
		for name, err := range map[string]error{
			"CreateDeferred": d.CreateDeferred(t.Context(), scope, location, []byte("planted")),
			"Rewrite":        d.Rewrite(t.Context(), scope, location, []byte("planted")),
		} {
			var e *blob.LocationError
			// Where directories are only names, a file may lie below a file.
			if err == nil && errors.Is(want, blob.ErrBelowFile) {
				continue
			}
			if !errors.As(err, &e) || want != nil && !errors.Is(err, want) {
				t.Errorf("%s %s: %v; want a LocationError, %v", name, location, err, want)
			}
		}
	}
	if d.Defers(scope, other.URI+"/f") {
		t.Error("defers outside the scope")
	}
	s.wantAbsent(t, blob.Scope{other}, other.URI+"/f")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"CreateDeferred": d.CreateDeferred(ctx, scope, root.URI+"/f", []byte("x")),
		"Rewrite":        d.Rewrite(ctx, scope, root.URI+"/f", []byte("x")),
		"Sync":           d.Sync(ctx),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is done: %v", name, err)
		}
	}
	s.wantAbsent(t, scope, root.URI+"/f")
}
