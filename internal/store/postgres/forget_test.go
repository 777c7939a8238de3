package postgres_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// idOf is a UUIDv7 of a time.
func idOf(at time.Time) string {
	id := uuid.Must(uuid.NewV7())
	ms := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()
}

// old is a batch whose id is so old.
func old(age time.Duration) store.Batch {
	b := creation(key.ForPointer("w", newID()))
	b.ID = idOf(time.Now().Add(-age))
	return b
}

// Ids are forgotten by the database's clock and in their order. What is forgotten is unknown, to Apply as to
// Outcome, whatever it was; what is not keeps its outcome.
func TestForgetting(t *testing.T) {
	url := cluster.Database(t)
	s := open(t, postgres.Options{URL: url, Retention: time.Hour})
	applied, void, conflicting, unused := old(2*time.Hour), old(3*time.Hour), old(4*time.Hour), old(5*time.Hour)
	young, youngVoid := old(30*time.Minute), old(20*time.Minute)
	for _, b := range []store.Batch{applied, young} {
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []store.Batch{void, youngVoid} {
		wantOutcome(t, s, b, store.NotApplied)
	}
	if err := s.ForgetOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	conflicting.Conds = []store.Cond{store.Is(young.Writes[0].Key, store.Absent)}
	conflicting.Writes = young.Writes
	for name, b := range map[string]store.Batch{"applied": applied, "void": void, "conflicting": conflicting, "never used": unused} {
		if _, err := s.Outcome(t.Context(), b); !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("outcome, %s: got %v, want %v", name, err, store.ErrOutcomeUnknown)
		}
		if name == "never used" {
			continue // below what was forgotten there are none
		}
		if err := s.Apply(t.Context(), b); !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("apply, %s: got %v, want %v", name, err, store.ErrOutcomeUnknown)
		}
	}
	if r, err := s.Get(t.Context(), void.Writes[0].Key); err != nil || r.Exists() {
		t.Errorf("what was void was applied: %v, %v", r, err)
	}
	wantOutcome(t, s, young, store.Applied)
	wantOutcome(t, s, youngVoid, store.NotApplied)
	if left := value[int](t, connect(t, url), "SELECT count(*)::int FROM landfast.applied"); left != 2 {
		t.Errorf("%d ids are left, want 2", left)
	}
}

// Many more than one statement forgets, by several instances at once, while new ones come.
func TestForgettingByMany(t *testing.T) {
	url := cluster.Database(t)
	stores := []*postgres.Store{open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})}
	admin := connect(t, url)
	exec(t, admin, "INSERT INTO landfast.applied SELECT landfast.id_1(now() - make_interval(secs => 7200 + n)) || '-7000-8000-00000000' || lpad(n::text, 4, '0'), n % 2 = 0 FROM generate_series(1, 12000) n")
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			if err := s.ForgetOld(t.Context()); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for range 20 {
				b := creation(key.ForPointer("w", newID()))
				if err := s.Apply(t.Context(), b); err != nil {
					t.Error(err)
				}
				if o, err := s.Outcome(t.Context(), b); err != nil || o != store.Applied {
					t.Errorf("got %v, %v", o, err)
				}
			}
		})
	}
	wg.Wait()
	if err := stores[0].ForgetOld(t.Context()); err != nil { // another may have been at it
		t.Fatal(err)
	}
	if left := value[int](t, admin, "SELECT count(*)::int FROM landfast.applied"); left != 60 {
		t.Errorf("%d ids are left, want 60", left)
	}
}

// Apply and Outcome of an id that is just being forgotten wait, and then do not know: the batch, which
// was declared impossible, is not applied.
func TestForgettingMeanwhile(t *testing.T) {
	url := cluster.Database(t)
	s := open(t, postgres.Options{URL: url, Slice: patience})
	admin, forgetter := connect(t, url), connect(t, url)
	for name, ask := range map[string]func(store.Batch) error{
		"apply":   func(b store.Batch) error { return settled(t.Context(), s, b) },
		"outcome": func(b store.Batch) error { _, err := s.Outcome(t.Context(), b); return err },
	} {
		t.Run(name, func(t *testing.T) {
			b := old(2 * time.Hour)
			exec(t, admin, "DELETE FROM landfast.applied")
			exec(t, admin, "UPDATE landfast.meta SET value = '' WHERE key = 'forgotten'")
			wantOutcome(t, s, b, store.NotApplied)
			exec(t, forgetter, "BEGIN")
			if n := value[int](t, forgetter, "SELECT landfast.forget_1(landfast.id_1(now() - interval '1 hour'), 10)::int"); n != 1 {
				t.Fatalf("%d were forgotten", n)
			}
			result := make(chan error, 1)
			go func() { result <- ask(b) }()
			if name == "apply" {
				until(t, "it waits", func() bool {
					return value[bool](t, admin, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE "+waiting+" AND clock_timestamp() - query_start > '20 ms')")
				})
			}
			exec(t, forgetter, "COMMIT")
			if err := <-result; !errors.Is(err, store.ErrOutcomeUnknown) {
				t.Errorf("got %v, want %v", err, store.ErrOutcomeUnknown)
			}
			if r, err := s.Get(t.Context(), b.Writes[0].Key); err != nil || r.Exists() {
				t.Errorf("got %v, %v, want no record", r, err)
			}
		})
	}
}

// An instance whose clock is years behind makes ids that last, from its start on: it is told the database's time,
// whether or not something was ever forgotten, and after each round.
func TestSlowClock(t *testing.T) {
	url := cluster.Database(t)
	ids := store.NewIDs(func() string { return idOf(time.Now().AddDate(-3, 0, 0)) })
	var told []string
	s := open(t, postgres.Options{URL: url, Forgot: func(id string) { told = append(told, id); ids.Above(id) }})
	var batches []store.Batch
	for range 3 {
		b := creation(key.ForPointer("w", newID()))
		b.ID = ids.Next()
		if err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
		if err := s.ForgetOld(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			wantOutcome(t, s, b, store.Applied)
		}
	}
	if len(told) != 4 || !slices.IsSorted(told) {
		t.Errorf("told of %q, want one at Open and one a round, rising", told)
	}
	// Ids of a future, which the database had forgotten when its clock was ahead.
	future := idOf(time.Now().AddDate(1, 0, 0))
	exec(t, connect(t, url), "UPDATE landfast.meta SET value = $1 WHERE key = 'forgotten'", future)
	again := open(t, postgres.Options{URL: url, Forgot: ids.Above})
	b := creation(key.ForPointer("w", newID()))
	if b.ID = ids.Next(); b.ID <= future {
		t.Errorf("the next id is %s, want one above %s", b.ID, future)
	}
	if err := again.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
	wantOutcome(t, again, b, store.Applied)
}

// The plans that a connection keeps are right when the table has grown: nobody reads more than his keys.
func TestPlansOfASmallTable(t *testing.T) {
	url := cluster.Database(t)
	s := open(t, postgres.Options{URL: url, Connections: 2})
	admin := connect(t, url)
	exec(t, admin, "ALTER TABLE landfast.records SET (autovacuum_enabled = off); ALTER TABLE landfast.applied SET (autovacuum_enabled = off)")
	parent := key.ForNamespace("w", []string{"a"})
	create(t, s, parent)
	work := func() {
		t.Helper()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 20 {
					x, y, n := key.ForPointer("w", newID()), key.ForPointer("w", newID()), key.ForNamespace("w", []string{"a", newID()})
					made := batch([]store.Cond{store.Live(parent, "i"), store.Is(x, store.Absent), store.Is(y, store.Absent), store.Is(n, store.Absent)}, put(x, "i", "{}"), put(y, "i", "{}"), put(n, "i", "{}"))
					if err := settled(t.Context(), s, made); err != nil {
						t.Error(err)
					}
					v := store.Version(made.ID)
					if records, err := s.GetAll(t.Context(), []key.Key{x, y, n}); err != nil || len(records) != 3 || records[2].Version != v {
						t.Errorf("got %v, %v", records, err)
					}
					if _, err := s.List(t.Context(), key.PointersIn("w"), "", 10); err != nil {
						t.Error(err)
					}
					gone := batch([]store.Cond{store.Is(x, v), store.Is(y, v), store.Is(n, v), store.Empty(n, key.TableNamesIn("w", []string{"a", "b"}))},
						put(x, "i", "{}"), store.Write{Key: y, Delete: true}, store.Write{Key: n, Delete: true})
					if err := settled(t.Context(), s, gone); err != nil {
						t.Error(err)
					}
					if _, err := s.Outcome(t.Context(), gone); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	read := func() int64 {
		t.Helper()
		var n int64
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		// What a backend has counted is seen at the latest when it has ended.
		if err := admin.QueryRow(ctx, "SELECT sum(idx_tup_read + seq_tup_read)::bigint FROM pg_stat_user_tables t JOIN pg_stat_user_indexes USING (relid)").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	work()
	exec(t, admin, `INSERT INTO landfast.records SELECT l, '/w/' || n, 'v', 'i', '{}' FROM unnest('{3,4,5}'::smallint[]) l, generate_series(1, 30000) n`)
	exec(t, admin, `INSERT INTO landfast.applied SELECT 'a' || n, false FROM generate_series(1, 30000) n`)
	before := read()
	work()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the connections have ended", func() bool {
		return value[int](t, admin, "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'landfast%'") == 0
	})
	rows := read() - before
	t.Logf("%d rows read", rows)
	if most := int64(40 * 100); rows > most {
		t.Errorf("40 rounds read %d rows, want at most %d: a plan reads a whole level", rows, most)
	}
}
