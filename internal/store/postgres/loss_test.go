package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
		fault fault
		want  store.Outcome
	}{
		"the request":                         {cutRequest, store.NotApplied},
		"the answer":                          {cutReply, store.Applied},
		"the end of the answer":               {cutReadiness, store.Applied},
		"the request, which arrives later on": {detainRequest, store.NotApplied},
	} {
		for _, pooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled: %v", name, pooled), func(t *testing.T) {
				url := cluster.Database(t)
				direct := open(t, postgres.Options{URL: url})
				p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", cluster.Port))
				s := open(t, postgres.Options{
					URL:    strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", cluster.Port), p.addr, 1),
					Pooled: pooled, ApplyTimeout: 500 * time.Millisecond,
				})
				create(t, s, key.ForPointer("w", "before")) // the statement is prepared
				b := creation(key.ForPointer("w", "k"))
				p.next.Store(int32(c.fault))
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
			s := open(t, postgres.Options{URL: strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", cluster.Port), p.addr, 1), ApplyTimeout: 4 * time.Second})
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
		phase   string // as pg_stat_activity shows it
	}{
		"while it waits for a row": {"", waiting},
		"while it writes":          {pausing("IMMEDIATE"), "wait_event = 'PgSleep'"},
		"while it commits":         {pausing("DEFERRED"), "wait_event = 'PgSleep'"},
	} {
		t.Run(name, func(t *testing.T) {
			url := cluster.Database(t)
			s := open(t, postgres.Options{URL: url, Slice: patience})
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
			until(t, "it is "+name, func() bool {
				return value[bool](t, admin, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND "+c.phase+" AND clock_timestamp() - query_start > '20 ms')")
			})
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
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := open(t, postgres.Options{URL: server.Database(t), Patience: patience})
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	const writers = 8
	var wg sync.WaitGroup
	done := make(chan struct{})
	var end sync.Once
	defer end.Do(func() { close(done) })
	var mu sync.Mutex
	applied, unknown := 0, 0
	for i := range writers {
		wg.Go(func() {
			k, version, n := key.ForPointer("w", fmt.Sprint(i)), store.Absent, 0
			for {
				select {
				case <-done:
					return
				default:
				}
				r, err := s.Get(ctx, k)
				if err != nil || r.Version != version || n > 0 && string(r.Value) != fmt.Sprint(n) {
					t.Errorf("writer %d: got %q of %s, %v, want %d of %s", i, r.Value, r.Version, err, n, version)
					return
				}
				b := batch([]store.Cond{store.Is(k, version)}, put(k, "i", fmt.Sprint(n+1)))
				err = settled(ctx, s, b)
				ok := err == nil
				if errors.Is(err, store.ErrOutcomeUnknown) {
					var o store.Outcome
					for o, err = s.Outcome(ctx, b); errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown); o, err = s.Outcome(ctx, b) {
					}
					ok = o == store.Applied
					mu.Lock()
					unknown++
					mu.Unlock()
				}
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				if ok {
					version, n = store.Version(b.ID), n+1
					mu.Lock()
					applied++
					mu.Unlock()
				}
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return applied
	}
	for range 3 {
		n := count()
		until(t, "they write", func() bool { return count() > n+50 || t.Failed() })
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	n := count()
	until(t, "they write again", func() bool { return count() > n+50 || t.Failed() })
	end.Do(func() { close(done) })
	wg.Wait()
	t.Logf("%d applied, %d unknown at first", applied, unknown)
}
