package embedded_test

import (
	"path/filepath"
	"testing"

	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
	"github.com/landfast/landfast/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Env {
		path := filepath.Join(t.TempDir(), "catalog.db")
		s := open(t, path, embedded.Options{})
		return storetest.Env{Store: s, Reopen: func() store.Atomic {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, path, embedded.Options{})
			return s
		}}
	})
}

// open opens a store that is closed when the test ends.
func open(t testing.TB, path string, options embedded.Options) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
