package embedded_test

import (
	"path/filepath"
	"testing"

	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
	"github.com/landfast/landfast/internal/store/storetest"
)

// The suite, with a cache that keeps all, one that keeps next to nothing, and none.
func TestStore(t *testing.T) {
	for name, bytes := range map[string]int{"cache": 0, "small cache": 40 << 10, "no cache": -1} {
		t.Run(name, func(t *testing.T) {
			options := embedded.Options{CacheBytes: bytes}
			storetest.Run(t, func(t *testing.T) storetest.Env {
				path := filepath.Join(t.TempDir(), "catalog.db")
				s := open(t, path, options)
				return storetest.Env{Store: s, Reopen: func() store.Atomic {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(t, path, options)
					return s
				}}
			})
		})
	}
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
