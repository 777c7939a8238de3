package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

// The log is copied into the file while the store is open, and what the cache knows
// outlives that.
func TestCheckpoint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := openStore(t, path, Options{})
	apply := func(size int) string {
		b := newBatch("first")
		b.Writes[0].Key = pointer(b.ID)
		b.Conds[0].Key = b.Writes[0].Key
		b.Writes[0].Value = make([]byte, size)
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b.ID
	}
	first := apply(10)
	const enough = checkpointAt * 4096
	apply(enough)
	until(t, "the log is in the file", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > enough
	})
	last := apply(10)
	for _, id := range []string{first, last} {
		wantEqual(t, "known", id, s.cache.known(id))
	}
}
