package embedded

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// What a list has shown of a group that is committed and not yet published, no later read of
// a key takes back, of whatever key of the group; and before the COMMIT, though nothing is
// there that the group leaves so, nothing of it is seen.
func TestGetAfterList(t *testing.T) {
	const limit = 3
	all := key.Prefix{Level: pointer("a").Level, Path: pointer("").Path}
	for name, c := range map[string]struct {
		prefix key.Prefix
		after  string
		write  func(versions map[string]store.Version) store.Batch
		landed bool // the list shows it
	}{
		"made": {all, "", func(map[string]store.Version) store.Batch { return newBatch("a") }, true},
		"changed": {all, "", func(v map[string]store.Version) store.Batch {
			return *writes("changed", "b", v["b"]).batch
		}, true},
		"deleted": {all, "", func(v map[string]store.Version) store.Batch {
			return deletion("b", v["b"])
		}, true},
		"deleted, the last": {all, pointer("c").Path, func(v map[string]store.Version) store.Batch {
			return deletion("d", v["d"])
		}, true},
		"deleted what was not there": {all, "", func(map[string]store.Version) store.Batch { return deletion("a", store.Absent) }, false},
		"before the range":           {all, pointer("b").Path, func(map[string]store.Version) store.Batch { return newBatch("a") }, false},
		"deleted before the range": {all, pointer("b").Path, func(v map[string]store.Version) store.Batch {
			return deletion("b", v["b"])
		}, false},
		"deleted behind the range": {all, "", func(v map[string]store.Version) store.Batch {
			return deletion("e", v["e"])
		}, false},
		"another prefix": {key.Prefix{Level: all.Level, Path: pointer("b").Path}, "", func(map[string]store.Version) store.Batch { return newBatch("a") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, filepath.Join(t.TempDir(), "c.db"), Options{})
			names := []string{"a", "b", "c", "d", "e"}
			read := func() map[string]store.Version {
				got := map[string]store.Version{}
				for _, n := range names {
					r, err := s.Get(t.Context(), pointer(n))
					if err != nil {
						t.Fatal(err)
					}
					got[n] = r.Version
				}
				return got
			}
			for _, n := range names[1:] {
				if err := s.Apply(t.Context(), newBatch(n)); err != nil {
					t.Fatal(err)
				}
			}
			versions := read() // and all is known, also that there is no a
			list := func() {
				if _, err := s.List(t.Context(), c.prefix, c.after, limit); err != nil {
					t.Fatal(err)
				}
			}
			commit := s.writer.commit
			paused, goOn := make(chan struct{}), make(chan struct{})
			s.writer.commit = func(c *conn) error {
				paused <- struct{}{}
				<-goOn
				err := commit(c)
				paused <- struct{}{}
				<-goOn
				return err
			}
			b := c.write(versions)
			done := make(chan error, 1)
			go func() { done <- s.Apply(t.Context(), b) }()
			<-paused
			list()
			isLanded := func() bool { return s.cache.flight.Load().landed.Load() }
			wantEqual(t, "landed before the COMMIT", false, isLanded())
			goOn <- struct{}{}
			<-paused
			list()
			wantEqual(t, "landed after it", c.landed, isLanded())
			if c.landed {
				want := maps.Clone(versions)
				for _, w := range b.Writes {
					for _, n := range names {
						if w.Key == pointer(n) {
							want[n] = store.Version(b.ID)
							if w.Delete {
								want[n] = store.Absent
							}
						}
					}
				}
				wantEqual(t, "read", want, read())
			}
			goOn <- struct{}{}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// deletion deletes a pointer of this version.
func deletion(name string, from store.Version) store.Batch {
	b := *writes("deletion of "+name, name, from).batch
	b.Writes = []store.Write{{Key: pointer(name), Delete: true}}
	return b
}
