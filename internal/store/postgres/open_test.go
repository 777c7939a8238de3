package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// Several instances open an empty database at the same moment: one makes the schema, all work on it.
func TestOpenTogether(t *testing.T) {
	url := cluster.Database(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 2})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Apply(t.Context(), creation(key.ForPointer("w", newID()))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := value[int](t, connect(t, url), "SELECT count(*)::int FROM landfast.records"); n != 6 && !t.Failed() {
		t.Errorf("%d records are there, want 6", n)
	}
}

// The one that makes the schema dies before it has finished: nothing is left of that, and the next one does it.
func TestMigrationDies(t *testing.T) {
	url := cluster.Database(t)
	admin, watch := connect(t, url), connect(t, url)
	// It gets as far as the catalogue of functions.
	exec(t, admin, "BEGIN")
	exec(t, admin, "LOCK TABLE pg_proc IN SHARE ROW EXCLUSIVE MODE")
	result := make(chan error, 2)
	start := func() {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err == nil {
			err = s.Close()
		}
		result <- err
	}
	sessions := func(condition string) func() bool {
		return func() bool {
			return value[bool](t, watch, "SELECT EXISTS (SELECT FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE datname = current_database() AND application_name LIKE 'landfast%' AND NOT granted AND "+condition+")")
		}
	}
	go start()
	until(t, "the first makes the schema", sessions("locktype = 'relation'"))
	go start()
	until(t, "the second waits for it", sessions("locktype = 'advisory'"))
	exec(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'relation' AND NOT granted AND relation = 'pg_proc'::regclass")
	if err := <-result; err == nil {
		t.Error("the first one succeeded")
	}
	if there := value[bool](t, admin, "SELECT to_regclass('landfast.meta') IS NOT NULL"); there {
		t.Error("half a schema is there")
	}
	exec(t, admin, "COMMIT")
	if err := <-result; err != nil {
		t.Errorf("the second one: %v", err)
	}
	create(t, open(t, postgres.Options{URL: url}), key.ForPointer("w", "k"))
}

// What Open refuses, in time, and what it says of what to do.
func TestOpenRefused(t *testing.T) {
	down, server := connectionRefused(t), fmt.Sprintf("127.0.0.1:%d", cluster.Port)
	for name, c := range map[string]struct {
		prepare string // %s: the database
		url     func(url string) string
		options postgres.Options
		kind    error
		want    []string
	}{
		"a newer schema":   {prepare: "UPDATE landfast.meta SET value = '99' WHERE key IN ('schema', 'usable_by')", kind: postgres.ErrNewer, want: []string{"99", "run the version that made it"}},
		"another's schema": {prepare: "DELETE FROM landfast.meta WHERE key = 'schema'", kind: postgres.ErrUnfit, want: []string{"landfast.meta"}},
		"read-only":        {prepare: "ALTER DATABASE %s SET default_transaction_read_only = on", kind: postgres.ErrUnfit, want: []string{"default_transaction_read_only"}},
		"serializable behind a pooler": {
			prepare: "ALTER DATABASE %s SET default_transaction_isolation = serializable", options: postgres.Options{Pooled: true},
			kind: postgres.ErrUnfit, want: []string{"serializable", "ALTER ROLE"},
		},
		"no such database": {url: func(url string) string { return strings.Replace(url, "/test_", "/no_test_", 1) }, want: []string{"3D000", "createdb"}},
		"no such role":     {url: func(url string) string { return strings.Replace(url, "postgres@", "nobody_here@", 1) }, want: []string{"check user and password"}},
		"down":             {url: func(url string) string { return strings.Replace(url, server, down, 1) }, want: []string{"is PostgreSQL running"}},
		"no URL":           {url: func(string) string { return "" }, want: []string{"no URL"}},
		"no such file":     {url: func(url string) string { return url + "&sslrootcert=/not/there.pem" }, want: []string{"sslrootcert", "/not/there.pem", "no such file"}},
		"no such URL":      {url: func(string) string { return "postgres://u:hush@[/x" }, want: []string{"postgres://user@host:5432/database"}},
		"no rights":        {url: func(url string) string { return strings.Replace(url, "postgres@", "without_rights@", 1) }, want: []string{"42501", "GRANT CREATE ON DATABASE"}},
		"pgbouncer unsaid": {url: func(url string) string { return cluster.PgBouncer(t, 2)(url) }, want: []string{"postgres.pgbouncer: true"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := cluster.Database(t)
			admin := connect(t, url)
			if name == "no rights" {
				exec(t, admin, "CREATE ROLE without_rights LOGIN")
			} else if c.prepare != "" {
				if err := open(t, postgres.Options{URL: url}).Close(); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(c.prepare, "%s") {
					c.prepare = fmt.Sprintf(c.prepare, value[string](t, admin, "SELECT current_database()"))
				}
				exec(t, admin, c.prepare)
			}
			o := c.options
			if o.URL = url; c.url != nil {
				o.URL = c.url(url)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, err := postgres.Open(ctx, o)
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			if ctx.Err() != nil {
				t.Errorf("it took until the end of its context: %v", err)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("got %v, want %v", err, c.kind)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the password is in it: %v", err)
			}
		})
	}
	t.Run("encoding", func(t *testing.T) {
		admin := connect(t, cluster.Database(t))
		exec(t, admin, "CREATE DATABASE of_latin1 ENCODING 'LATIN1' TEMPLATE template0")
		_, err := postgres.Open(t.Context(), postgres.Options{URL: cluster.URL("of_latin1")})
		if !errors.Is(err, postgres.ErrUnfit) || !strings.Contains(err.Error(), "createdb --encoding UTF8") {
			t.Errorf("got %v, want %v", err, postgres.ErrUnfit)
		}
	})
}

// connectionRefused is an address where nobody listens.
func connectionRefused(t *testing.T) string {
	t.Helper()
	p := newProxy(t, "127.0.0.1:1")
	if err := p.listener.Close(); err != nil {
		t.Fatal(err)
	}
	return p.addr
}

// Close leaves nothing behind, and what comes after it is refused.
func TestClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := postgres.Open(t.Context(), postgres.Options{URL: cluster.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				b := creation(key.ForPointer("w", newID()))
				if err := s.Apply(t.Context(), b); err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = s.Close() })
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), key.ForPointer("w", "k")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("get: got %v", err)
	}
	if _, err := s.List(t.Context(), key.PointersIn("w"), "", 1); !errors.Is(err, store.ErrClosed) {
		t.Errorf("list: got %v", err)
	}
	if _, err := s.Outcome(t.Context(), creation(key.ForPointer("w", "k"))); !errors.Is(err, store.ErrClosed) {
		t.Errorf("outcome: got %v", err)
	}
}

// A schema that is newer and says that this program may use it is used, and left as it is: during a rolling
// upgrade instances of the former version start, too.
func TestOpenNeighbour(t *testing.T) {
	url := cluster.Database(t)
	open(t, postgres.Options{URL: url})
	admin := connect(t, url)
	exec(t, admin, "UPDATE landfast.meta SET value = '2' WHERE key = 'schema'")
	s := open(t, postgres.Options{URL: url})
	create(t, s, key.ForPointer("w", "k"))
	if got := value[string](t, admin, "SELECT value FROM landfast.meta WHERE key = 'schema'"); got != "2" {
		t.Errorf("the schema is of version %s now", got)
	}
}

// A start waits for a server that answers, and has no room for it yet.
func TestOpenPatient(t *testing.T) {
	server := newCluster(t, pgtest.Start)
	url := server.Database(t)
	role, as := newRole(t, url)
	admin := connect(t, url)
	exec(t, admin, "ALTER ROLE "+role+" CONNECTION LIMIT 0")
	opened := make(chan *postgres.Store, 1)
	go func() {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: as})
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	until(t, "it was refused", func() bool { return strings.Contains(server.Log(), "too many connections for role") })
	exec(t, admin, "ALTER ROLE "+role+" CONNECTION LIMIT -1")
	if s := <-opened; s != nil {
		create(t, s, key.ForPointer("w", "k"))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
