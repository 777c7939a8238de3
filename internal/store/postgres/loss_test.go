package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// A request or its answer is lost: Apply says that it does not know, and Outcome knows for good.
func TestLostOnTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		fault   fault
		want    store.Outcome
		timeout time.Duration
	}{
		"the request":                         {cutRequest, store.NotApplied, 0},
		"the answer":                          {cutReply, store.Applied, 0},
		"the end of the answer":               {cutReadiness, store.Applied, 0},
		"the request, which arrives later on": {detainRequest, store.NotApplied, 4 * time.Second}, // of no end of the connection is it told
	} {
		for _, pooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled: %v", name, pooled), func(t *testing.T) {
				t.Parallel()
				url := cluster.Database(t)
				direct := open(t, postgres.Options{URL: url})
				p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", cluster.Port))
				s := open(t, postgres.Options{
					URL:    strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", cluster.Port), p.addr, 1),
					Pooled: pooled, ApplyTimeout: c.timeout,
				})
				create(t, s, key.ForPointer("w", "before")) // the statement is prepared
				b := creation(key.ForPointer("w", "k"))
				p.next.Store(&strike{c.fault, b.ID})
				if err := s.Apply(t.Context(), b); !errors.Is(err, store.ErrOutcomeUnknown) {
					t.Fatalf("got %v, want %v", err, store.ErrOutcomeUnknown)
				}
				if c.fault == detainRequest {
					wantOutcome(t, direct, b, c.want)
					p.release()
				}
				<-p.done
				wantOutcome(t, s, b, c.want)
				create(t, s, key.ForPointer("w", "after"))
			})
		}
	}
}

// All connections go silent at once, as when a firewall forgets them or the host is gone: no end of them is seen. Whatever can be
// asked again is answered all the same, on a new one.
func TestSilence(t *testing.T) {
	k := key.ForPointer("w", "k")
	fresh := creation(key.ForPointer("w", "fresh"))
	for name, ask := range map[string]func(*testing.T, *postgres.Store, func()) error{
		"a read": func(t *testing.T, s *postgres.Store, silence func()) error {
			silence()
			r, err := s.Get(t.Context(), k)
			if err == nil && r.Version == store.Absent {
				err = errors.New("the record is not there")
			}
			return err
		},
		"a list": func(t *testing.T, s *postgres.Store, silence func()) error {
			silence()
			list, err := s.List(t.Context(), key.PointersIn("w"), "", 10)
			if err == nil && len(list) != 1 {
				err = fmt.Errorf("%d records", len(list))
			}
			return err
		},
		"an outcome": func(t *testing.T, s *postgres.Store, silence func()) error {
			silence()
			wantOutcome(t, s, fresh, store.NotApplied)
			return nil
		},
		"a batch": func(t *testing.T, s *postgres.Store, silence func()) error {
			silence()
			if err := s.Apply(t.Context(), fresh); !errors.Is(err, store.ErrOutcomeUnknown) {
				return fmt.Errorf("got %w, want %w", err, store.ErrOutcomeUnknown)
			}
			wantOutcome(t, s, fresh, store.NotApplied)
			return nil
		},
		"a read, while all connections carry a batch": func(t *testing.T, s *postgres.Store, silence func()) error {
			var batches sync.WaitGroup
			until(t, "there are two connections", func() bool {
				for range 8 {
					batches.Go(func() { create(t, s, key.ForPointer("w", newID())) })
				}
				batches.Wait()
				return s.Connections().Open == 2
			})
			silence()
			for n := range 2 {
				batches.Go(func() {
					b := creation(key.ForPointer("w", fmt.Sprint("silent", n)))
					if err := s.Apply(t.Context(), b); err != nil && !errors.Is(err, store.ErrOutcomeUnknown) {
						t.Error(err)
					}
				})
			}
			until(t, "they are on their way", func() bool { return s.Connections().InUse == 2 })
			_, err := s.Get(t.Context(), k)
			batches.Wait()
			return err
		},
		"a batch, when the connections were idle": func(t *testing.T, s *postgres.Store, silence func()) error {
			silence()
			since := time.Now()
			until(t, "they were idle for more than a second", func() bool { return time.Since(since) > 1100*time.Millisecond })
			return s.Apply(t.Context(), fresh)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.Database(t)
			p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", cluster.Port))
			s := open(t, postgres.Options{URL: strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", cluster.Port), p.addr, 1), Connections: 2, ApplyTimeout: 4 * time.Second, Patience: 3 * time.Second})
			create(t, s, k)
			if err := ask(t, s, p.silence); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Backends are ended by an operator, in every phase.
func TestBackendEnded(t *testing.T) {
	const kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'landfast%'"
	pausing := func(when string) string {
		return `CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
			CREATE CONSTRAINT TRIGGER pause AFTER INSERT ON landfast.records DEFERRABLE INITIALLY ` + when + ` FOR EACH ROW EXECUTE FUNCTION pause()`
	}
	for name, c := range map[string]struct {
		prepare string
		phase   string // as pg_stat_activity shows it; of a row that is waited for the store tells
	}{
		"while it waits for a row": {"", ""},
		"while it writes":          {pausing("IMMEDIATE"), "wait_event = 'PgSleep'"},
		"while it commits":         {pausing("DEFERRED"), "wait_event = 'PgSleep'"},
	} {
		t.Run(name, func(t *testing.T) {
			url := cluster.Database(t)
			s, inSlice := openPatient(t, url)
			k, made := key.ForPointer("w", "k"), key.ForPointer("w", "made")
			v := create(t, s, k)
			admin := connect(t, url)
			unlock := func() { exec(t, admin, "DROP TRIGGER pause ON landfast.records") }
			if c.prepare == "" {
				unlock = lockRow(t, url, k, "FOR UPDATE")
			} else {
				exec(t, admin, c.prepare)
			}
			b := batch([]store.Cond{store.Is(made, store.Absent), store.Is(k, v)}, put(made, "i", "{}"), put(k, "i", "{}"))
			result := make(chan error, 1)
			go func() { result <- s.Apply(t.Context(), b) }()
			if c.phase == "" {
				inSlice(result)
			} else {
				until(t, "it is "+name, func() bool {
					return value[bool](t, admin, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND "+c.phase+")")
				})
			}
			exec(t, admin, kill)
			if err := <-result; !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Fatalf("got %v, want %v", err, store.ErrOutcomeUnknown)
			}
			unlock()
			wantOutcome(t, s, b, store.NotApplied)
			if r, err := s.Get(t.Context(), k); err != nil || r.Version != v {
				t.Errorf("got %v, %v, want version %s", r, err, v)
			}
		})
	}
	t.Run("while it is idle", func(t *testing.T) {
		url := cluster.Database(t)
		s := open(t, postgres.Options{URL: url})
		admin := connect(t, url)
		for range 10 {
			var wg sync.WaitGroup
			for range 8 { // so that several connections are idle
				wg.Go(func() { create(t, s, key.ForPointer("w", newID())) })
			}
			wg.Wait()
			exec(t, admin, kill)
			b := creation(key.ForPointer("w", newID()))
			switch err := s.Apply(t.Context(), b); {
			case err == nil:
				wantOutcome(t, s, b, store.Applied)
			case errors.Is(err, store.ErrOutcomeUnknown):
				wantOutcome(t, s, b, store.NotApplied)
			default:
				t.Fatal(err)
			}
			exec(t, admin, kill)
			if _, err := s.Get(t.Context(), b.Writes[0].Key); err != nil {
				t.Fatalf("a read is asked again: %v", err)
			}
			exec(t, admin, kill)
			if _, err := s.List(t.Context(), key.PointersIn("w"), "", 10); err != nil {
				t.Fatalf("a list is asked again: %v", err)
			}
		}
	})
}

// PostgreSQL crashes under writers and is started again: nothing that was acknowledged is lost, nothing
// that was refused is there, and the pool finds the server again by itself.
func TestServerCrash(t *testing.T) {
	server := newCluster(t, pgtest.Start)
	w := write(t, open(t, postgres.Options{URL: server.Database(t), Patience: patience}))
	for range 3 {
		w.goOn(50)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	w.goOn(50)
	w.stop()
}

// The primary is lost for good and its synchronous standby takes over: the same holds.
func TestFailover(t *testing.T) {
	primary := newCluster(t, pgtest.Start)
	standby := newCluster(t, primary.Standby)
	url := strings.Replace(primary.Database(t), fmt.Sprintf(":%d/", primary.Port), fmt.Sprintf(":%d,127.0.0.1:%d/", primary.Port, standby.Port), 1)
	w := write(t, open(t, postgres.Options{URL: url, Patience: patience}))
	w.goOn(50)
	follower := connect(t, standby.URL("postgres"))
	until(t, "the standby has the database", func() bool {
		return value[bool](t, follower, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'test_1')")
	})
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	exec(t, follower, "SELECT pg_promote()")
	w.goOn(50)
	w.stop()
}

// The standbys that synchronous_commit waits for hang. Nothing is acknowledged before it is where it must be: not
// because we were tired of waiting, and not because somebody has ended the backend that waited, which
// lets go what it has committed. Meanwhile reads are answered, and no crowd of backends gathers.
func TestStandbyHangs(t *testing.T) {
	t.Parallel()
	server := newCluster(t, pgtest.Start)
	url := server.Database(t)
	const connections = 4
	s := open(t, postgres.Options{URL: url, Connections: connections, ApplyTimeout: 1500 * time.Millisecond, Patience: time.Second})
	create(t, s, key.ForPointer("w", "before"))
	admin := connect(t, url)
	standbys := func(names string) {
		exec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
		exec(t, admin, "SELECT pg_reload_conf()")
		until(t, "it is set", func() bool {
			return value[string](t, admin, "SELECT current_setting('synchronous_standby_names')") == names
		})
	}
	waiting := func() int {
		return value[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	}
	notAcknowledged := func(b store.Batch) {
		t.Helper()
		if o, err := s.Outcome(t.Context(), b); err == nil {
			t.Errorf("the outcome is %v", o)
		}
		if err := s.Apply(t.Context(), b); err == nil {
			t.Error("sent once more it is acknowledged")
		}
		if _, err := s.Get(t.Context(), key.ForPointer("w", "before")); err != nil {
			t.Errorf("a read: %v", err)
		}
	}
	standbys("nobody")
	var b store.Batch
	until(t, "all of the server knows it", func() bool {
		b = creation(key.ForPointer("w", newID()))
		err := s.Apply(t.Context(), b)
		if err != nil && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Fatalf("got %v, want %v", err, store.ErrOutcomeUnknown)
		}
		return err != nil
	})
	if waiting() == 0 {
		t.Error("it does not wait any more")
	}
	notAcknowledged(b)
	exec(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	notAcknowledged(b)

	var crowd sync.WaitGroup
	for n := range 40 {
		crowd.Go(func() {
			if err := s.Apply(t.Context(), creation(key.ForPointer("w", fmt.Sprint(n)))); err == nil {
				t.Error("a batch was acknowledged")
			}
		})
	}
	crowd.Wait()
	for range 3 * connections { // those who come later do not make it larger
		if err := s.Apply(t.Context(), creation(key.ForPointer("w", newID()))); err == nil {
			t.Error("a batch was acknowledged")
		}
	}
	if n := waiting(); n > 2*connections {
		t.Errorf("%d backends wait", n)
	}
	standbys("")
	until(t, "nobody waits", func() bool { return waiting() == 0 })
	wantOutcome(t, s, b, store.Applied)
	create(t, s, key.ForPointer("w", "after"))
	if strings.Contains(server.Log(), "canceling wait for synchronous replication due to user request") {
		t.Error("a batch was canceled")
	}
}

// The server has room for fewer connections than the pool: who finds none shares those that there are.
func TestFewConnections(t *testing.T) {
	server := newCluster(t, func(settings ...string) (*pgtest.Cluster, error) {
		return pgtest.Start(append(settings, "max_connections=4", "superuser_reserved_connections=0")...)
	})
	url := server.Database(t)
	s := open(t, postgres.Options{URL: url, Connections: 16, Patience: patience})
	w := write(t, s)
	w.goOn(200)
	w.stop()
	if !strings.Contains(server.Log(), "too many clients") {
		t.Errorf("there was room for all: %+v", s.Connections())
	}
}

func newCluster(t *testing.T, start func(...string) (*pgtest.Cluster, error)) *pgtest.Cluster {
	t.Helper()
	c, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// crowd is writers, each of which counts in a record of its own and wants to find there what it wrote.
type crowd struct {
	t       *testing.T
	store   *postgres.Store
	writers sync.WaitGroup
	over    context.Context //nolint:containedctx // that of the writers
	end     context.CancelFunc

	applied, unknown atomic.Int64 // unknown: at first
}

// write starts writers. They stop with the test at the latest.
func write(t *testing.T, s *postgres.Store) *crowd {
	c := &crowd{t: t, store: s}
	c.over, c.end = context.WithCancel(context.Background())
	t.Cleanup(c.end)
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	for i := range 8 {
		c.writers.Go(func() {
			k, version, n := key.ForPointer("w", fmt.Sprint(i)), store.Absent, 0
			for c.over.Err() == nil {
				applied, err := c.count(ctx, k, &version, n)
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				if applied {
					n++
				}
			}
		})
	}
	return c
}

// count writes the number after n, and tells whether it is there then.
func (c *crowd) count(ctx context.Context, k key.Key, version *store.Version, n int) (applied bool, err error) {
	r, err := c.store.Get(ctx, k)
	if err != nil {
		return false, err
	}
	if r.Version != *version || n > 0 && string(r.Value) != fmt.Sprint(n) {
		return false, fmt.Errorf("got %q of %s, want %d of %s", r.Value, r.Version, n, *version)
	}
	b := batch([]store.Cond{store.Is(k, *version)}, put(k, "i", fmt.Sprint(n+1)))
	err = settled(ctx, c.store, b)
	applied = err == nil
	if errors.Is(err, store.ErrOutcomeUnknown) {
		c.unknown.Add(1)
		var o store.Outcome
		for o, err = c.store.Outcome(ctx, b); errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown); o, err = c.store.Outcome(ctx, b) {
		}
		applied = o == store.Applied
	}
	if applied {
		c.applied.Add(1)
		*version = store.Version(b.ID)
	}
	return applied, err
}

// goOn waits until they have written so many times more.
func (c *crowd) goOn(more int64) {
	c.t.Helper()
	n := c.applied.Load()
	until(c.t, "they write", func() bool { return c.applied.Load() > n+more || c.t.Failed() })
}

func (c *crowd) stop() {
	c.end()
	c.writers.Wait()
	c.t.Logf("%d applied, %d unknown at first", c.applied.Load(), c.unknown.Load())
}
