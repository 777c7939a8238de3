package postgres_test

import (
	"os"
	"testing"

	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
	"github.com/landfast/landfast/internal/store/storetest"
)

var cluster *pgtest.Cluster

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, func(c *pgtest.Cluster) { cluster = c }))
}

// open opens a store, with the mistake that is planted, that is closed when the test ends.
func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	bend(t, o.URL)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The suite: on connections of our own, on the fewest, and through a PgBouncer that has fewer than we.
func TestStore(t *testing.T) {
	direct := func(url string) string { return url }
	for name, c := range map[string]struct {
		options postgres.Options
		through func(url string) string
	}{
		"own":             {postgres.Options{}, direct},
		"two connections": {postgres.Options{Connections: 2}, direct},
		"pgbouncer":       {postgres.Options{Pooled: true}, cluster.PgBouncer(t, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Env {
				o := c.options
				o.URL = c.through(cluster.Database(t))
				s := open(t, o)
				return storetest.Env{Store: s, Reopen: func() store.Atomic {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = open(t, o)
					return s
				}}
			})
		})
	}
}
