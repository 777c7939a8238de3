package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// A row that somebody has locked holds up those who need it, and nobody else, however many they are and
// however few connections there are.
func TestRowLockedFromOutside(t *testing.T) {
	parent := func(name string) key.Key { return key.ForNamespace("w", []string{name}) }
	for name, c := range map[string]struct {
		locked key.Key
		mode   string
		// blocked is a batch that needs the row; free one that does not.
		blocked, free func(v store.Version) store.Batch
	}{
		"written": {
			key.ForPointer("w", "hot"), "FOR UPDATE",
			func(v store.Version) store.Batch {
				return batch([]store.Cond{store.Is(key.ForPointer("w", "hot"), v)}, put(key.ForPointer("w", "hot"), "i", "{}"))
			},
			func(store.Version) store.Batch { return creation(key.ForPointer("w", newID())) },
		},
		"parent": {
			parent("a"), "FOR UPDATE",
			func(store.Version) store.Batch {
				return creation(key.ForTableName("w", []string{"a"}, newID()), store.Live(parent("a"), "i"))
			},
			func(store.Version) store.Batch {
				return creation(key.ForTableName("w", []string{"b"}, newID()), store.Live(parent("b"), "i"))
			},
		},
	} {
		for _, connections := range []int{2, 16} {
			t.Run(fmt.Sprintf("%s, %d connections", name, connections), func(t *testing.T) {
				url := cluster.Database(t)
				const slice = time.Second
				// As by default: a wait for a row is no answer that takes long.
				s := open(t, postgres.Options{URL: url, Connections: connections, Slice: slice, ApplyTimeout: 50 * slice})
				v := create(t, s, c.locked)
				if c.locked != parent("a") {
					create(t, s, parent("a"))
				}
				create(t, s, parent("b"))
				watch := connect(t, url)
				unlock := lockRow(t, url, c.locked, c.mode)

				ctx, stop := context.WithTimeout(t.Context(), 2*patience)
				defer stop()
				var appliers sync.WaitGroup
				var refusals, applied atomic.Int64
				for range 64 {
					appliers.Go(func() {
						for ctx.Err() == nil {
							began := time.Now()
							err := s.Apply(ctx, c.blocked(v))
							blocked, ok := errors.AsType[*store.BlockedError](err)
							if !ok {
								if _, conflict := errors.AsType[*store.ConflictError](err); err == nil || conflict {
									applied.Add(1)
								} else {
									t.Errorf("got %v, want a *store.BlockedError", err)
								}
								return
							}
							if took := time.Since(began); took > 10*slice {
								t.Errorf("it took %v until it was blocked", took)
							}
							refusals.Add(1)
							select {
							case <-time.After(time.Until(blocked.Until)):
							case <-ctx.Done():
							}
						}
					})
				}
				until(t, "64 are blocked", func() bool { return refusals.Load() >= 64 })

				var took []time.Duration
				most := 0
				for end := time.Now().Add(5 * slice); len(took) < 100 || time.Now().Before(end); {
					began := time.Now()
					b := c.free(v)
					if err := s.Apply(ctx, b); err != nil {
						t.Fatal(err)
					}
					if r, err := s.Get(ctx, b.Writes[0].Key); err != nil || !r.Exists() {
						t.Fatalf("got %v, %v", r, err)
					}
					took = append(took, time.Since(began))
					// A first look is of 1 ms, and takes longer where the machine is busy; a slice is of 1,000.
					most = max(most, value[int](t, watch, "SELECT count(*)::int FROM pg_stat_activity WHERE "+waiting+" AND clock_timestamp() - query_start > '500 ms'"))
				}
				slices.Sort(took)
				median, p90 := took[len(took)/2], took[len(took)*9/10]
				t.Logf("others: median %v, p90 %v, most %v; %d connections in slices at most; %d times blocked", median, p90, took[len(took)-1], most, refusals.Load())
				if median > slice/4 || p90 > slice {
					t.Errorf("others are held up: median %v, p90 %v", median, p90)
				}
				if most > connections/2 {
					t.Errorf("%d of %d connections waited for rows", most, connections)
				}
				unlock()
				until(t, "all 64 went on", func() bool { return applied.Load() == 64 })
				stop()
				appliers.Wait()
			})
		}
	}
}

// Whoever does not change what another rests on is not in its way.
func TestLocksThatGoTogether(t *testing.T) {
	url := cluster.Database(t)
	s := open(t, postgres.Options{URL: url})
	parent := key.ForNamespace("w", []string{"a"})
	v := create(t, s, parent)
	update := func() error {
		b := batch([]store.Cond{store.Is(parent, v)}, put(parent, "i", "{}"))
		err := s.Apply(t.Context(), b)
		if err == nil {
			v = store.Version(b.ID)
		}
		return err
	}
	makeTable := func() error {
		return s.Apply(t.Context(), creation(key.ForTableName("w", []string{"a"}, newID()), store.Live(parent, "i")))
	}
	makeChild := func() error {
		return s.Apply(t.Context(), creation(key.ForNamespace("w", []string{"a", newID()}), store.Live(parent, "i")))
	}
	drop := func() error {
		return s.Apply(t.Context(), batch([]store.Cond{store.Is(parent, v), store.Empty(parent, key.NamespacesIn("w", []string{"a"}))}, store.Write{Key: parent, Delete: true}))
	}
	for _, c := range []struct {
		name, lock string
		do         func() error
		blocked    bool
	}{
		{"an update beside creations", "FOR KEY SHARE", update, false},
		{"the creation of a table beside an update", "FOR NO KEY UPDATE", makeTable, false},
		{"the creation of a namespace beside an update", "FOR NO KEY UPDATE", makeChild, false},
		{"a creation beside creations", "FOR KEY SHARE", makeTable, false},
		{"an update beside an update", "FOR NO KEY UPDATE", update, true},
		{"a drop beside creations", "FOR KEY SHARE", drop, true},
		{"a creation beside a drop", "FOR UPDATE", makeTable, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			unlock := lockRow(t, url, parent, c.lock)
			defer unlock()
			err := c.do()
			if _, blocked := errors.AsType[*store.BlockedError](err); blocked != c.blocked || !blocked && err != nil {
				t.Errorf("got %v, want blocked: %v", err, c.blocked)
			}
		})
	}
}

// openPatient opens a store that waits for a row for as long as a test does. inSlice waits until a batch does so: by its slice,
// which a busy machine cannot tell from its first look by how long it takes.
func openPatient(t *testing.T, url string) (s *postgres.Store, inSlice func(result <-chan error)) {
	t.Helper()
	looked := make(chan struct{}, 100)
	s = open(t, postgres.Options{URL: url, Slice: patience, ApplyTimeout: 10 * patience, Observe: func(e postgres.Event) {
		if e.Kind == postgres.RowLocked {
			looked <- struct{}{}
		}
	}})
	watch := connect(t, url)
	return s, func(result <-chan error) {
		t.Helper()
		select {
		case err := <-result:
			t.Fatalf("it did not wait: %v", err)
		case <-looked:
		case <-time.After(patience):
			t.Fatal("never: it finds a locked row")
		}
		until(t, "it waits", func() bool {
			return value[bool](t, watch, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE "+waiting+")")
		})
	}
}

// Of two batches that exclude each other the first has read its conditions and is about to be committed when the second comes: that
// one waits, and then reads what the first has left. storetest plays these as races, of which a machine may run none as it must be.
func TestBesideACommit(t *testing.T) {
	parent := key.ForNamespace("w", []string{"a"})
	table := key.ForTableName("w", []string{"a"}, "t")
	creates := func(store.Version) store.Batch { return creation(table, store.Live(parent, "i")) }
	drops := func(v store.Version) store.Batch {
		return batch([]store.Cond{store.Is(parent, v), store.Empty(parent, key.TableNamesIn("w", []string{"a"}))}, store.Write{Key: parent, Delete: true})
	}
	for name, c := range map[string]struct {
		held          string // what the first does and the second does not do before it waits, as triggers name it
		first, second func(store.Version) store.Batch
		conflict      func(second store.Batch) store.Cond
	}{
		"a drop beside a creation":     {"INSERT", creates, drops, func(b store.Batch) store.Cond { return b.Conds[1] }},
		"a creation beside a drop":     {"DELETE", drops, creates, func(b store.Batch) store.Cond { return b.Conds[0] }},
		"a creation beside a creation": {"INSERT", creates, creates, func(b store.Batch) store.Cond { return b.Conds[1] }},
	} {
		t.Run(name, func(t *testing.T) {
			url := cluster.Database(t)
			s, inSlice := openPatient(t, url)
			v := create(t, s, parent)
			admin := connect(t, url)
			// It does not wait for the lock: lock_timeout is that of a first look.
			exec(t, admin, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					WHILE NOT pg_try_advisory_xact_lock_shared(1) LOOP PERFORM pg_sleep(0.01); END LOOP; RETURN NULL;
				END $$;
				CREATE CONSTRAINT TRIGGER hold AFTER `+c.held+` ON landfast.records DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold();
				SELECT pg_advisory_lock(1)`)
			results := [2]chan error{make(chan error, 1), make(chan error, 1)}
			first, second := c.first(v), c.second(v)
			go func() { results[0] <- s.Apply(t.Context(), first) }()
			until(t, "the first commits", func() bool {
				return value[bool](t, admin, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep')")
			})
			go func() { results[1] <- s.Apply(t.Context(), second) }()
			inSlice(results[1])
			exec(t, admin, "SELECT pg_advisory_unlock(1)")
			if err := <-results[0]; err != nil {
				t.Errorf("the first: %v", err)
			}
			err := <-results[1]
			if conflict, ok := errors.AsType[*store.ConflictError](err); !ok || len(conflict.Conds) != 1 || conflict.Conds[0] != c.conflict(second) {
				t.Errorf("the second: got %v, want a conflict on %v", err, c.conflict(second))
			}
			wantOutcome(t, s, second, store.NotApplied)
		})
	}
}

// A batch that waits for a row has locked none that comes after it, in whatever order it names them.
func TestLocksAreOrdered(t *testing.T) {
	url := cluster.Database(t)
	s, inSlice := openPatient(t, url)
	watch := connect(t, url)
	a, b := key.ForPointer("w", "a"), key.ForPointer("w", "b")
	// The store has not made them: one that locks whatever it is asked for must come as far as to the batch below.
	exec(t, watch, "INSERT INTO landfast.records SELECT $1, path, 'v', 'i', '{}' FROM unnest($2::text[]) AS path", int16(a.Level), []string{a.Path, b.Path})
	v := map[key.Key]store.Version{a: "v", b: "v"}
	for name, order := range map[string][]key.Key{"as they come": {a, b}, "the other way round": {b, a}} {
		t.Run(name, func(t *testing.T) {
			unlock := lockRow(t, url, a, "FOR UPDATE")
			both := store.Batch{ID: newID()}
			for _, k := range order {
				both.Conds, both.Writes = append(both.Conds, store.Is(k, v[k])), append(both.Writes, put(k, "i", "{}"))
			}
			result := make(chan error, 1)
			go func() { result <- s.Apply(t.Context(), both) }()
			inSlice(result)
			if free := value[int](t, watch, "SELECT count(*)::int FROM (SELECT FROM landfast.records WHERE path = $1 FOR UPDATE SKIP LOCKED) AS free", b.Path); free != 1 {
				t.Error("it has locked the second row, and waits for the first")
			}
			unlock()
			if err := <-result; err != nil {
				t.Fatal(err)
			}
			v[a], v[b] = store.Version(both.ID), store.Version(both.ID)
		})
	}
}

// Batches on shared keys, in whatever order each names them, never wait in a circle.
func TestLockOrder(t *testing.T) {
	url := cluster.Database(t)
	// Whoever waits in a circle is found long before his slice ends.
	s := open(t, postgres.Options{URL: url, Slice: patience, ApplyTimeout: 10 * patience})
	keys := make([]key.Key, 8)
	for i := range keys {
		keys[i] = key.ForPointer("w", fmt.Sprint(i))
		create(t, s, keys[i])
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			order := slices.Clone(keys)
			if i%2 == 1 {
				slices.Reverse(order)
			}
			for range 40 {
				var b store.Batch
				b.ID = newID()
				for _, k := range order {
					r, err := s.Get(t.Context(), k)
					if err != nil {
						t.Error(err)
						return
					}
					b.Conds = append(b.Conds, store.Is(k, r.Version))
					b.Writes = append(b.Writes, put(k, "i", "{}"))
				}
				err := s.Apply(t.Context(), b)
				if _, conflict := errors.AsType[*store.ConflictError](err); err != nil && !conflict {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// A real deadlock, with a transaction that keeps no order: PostgreSQL ends ours, which is worth another try.
func TestDeadlock(t *testing.T) {
	url := cluster.Database(t)
	other := connect(t, url)
	// PostgreSQL looks for a circle once, when somebody has waited for so long: by then we must have closed it, however busy the
	// machine is. And it is not the other that is ended.
	exec(t, other, "ALTER DATABASE "+value[string](t, other, "SELECT current_database()")+" SET deadlock_timeout = '4s'")
	exec(t, other, "SET deadlock_timeout = '60s'")
	s, inSlice := openPatient(t, url)
	a, b := key.ForPointer("w", "a"), key.ForPointer("w", "b")
	va, vb := create(t, s, a), create(t, s, b)
	exec(t, other, "BEGIN")
	exec(t, other, "SELECT FROM landfast.records WHERE path = $1 FOR UPDATE", b.Path)
	both := batch([]store.Cond{store.Is(a, va), store.Is(b, vb)}, put(a, "i", "{}"), put(b, "i", "{}"))
	result := make(chan error, 1)
	go func() { result <- s.Apply(t.Context(), both) }()
	inSlice(result)
	exec(t, other, "SELECT FROM landfast.records WHERE path = $1 FOR UPDATE", a.Path)
	err := <-result
	if blocked, ok := errors.AsType[*store.BlockedError](err); !ok || blocked.By != "a transaction that was in its way" {
		t.Fatalf("got %v, want a *store.BlockedError", err)
	}
	exec(t, other, "COMMIT")
	if err := settled(t.Context(), s, both); err != nil {
		t.Fatal(err)
	}
}

// Who is not to wait, or cannot any longer, is told at once that a row is locked; so is who finds no connection.
func TestNoWait(t *testing.T) {
	url := cluster.Database(t)
	k := key.ForPointer("w", "k")
	v := create(t, open(t, postgres.Options{URL: url}), k)
	defer lockRow(t, url, k, "FOR UPDATE")()
	for name, c := range map[string]struct {
		options postgres.Options
		ctx     context.Context
	}{
		"it is not to wait":       {postgres.Options{NoWait: true, Slice: patience}, t.Context()},
		"its time is nearly over": {postgres.Options{Slice: patience}, store.WaitUntil(t.Context(), time.Now().Add(time.Second))},
		"its time is over":        {postgres.Options{Slice: patience}, store.WaitUntil(t.Context(), time.Now().Add(-time.Second))},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.URL = url
			s := open(t, c.options)
			began := time.Now()
			err := s.Apply(c.ctx, batch([]store.Cond{store.Is(k, v)}, put(k, "i", "{}")))
			if _, ok := errors.AsType[*store.BlockedError](err); !ok {
				t.Fatalf("got %v, want a *store.BlockedError", err)
			}
			if took := time.Since(began); took > patience/2 {
				t.Errorf("after %v", took)
			}
		})
	}
}

// All rows of a batch are waited for together no longer than a slice, however many are locked.
func TestManyRowsLocked(t *testing.T) {
	url := cluster.Database(t)
	const rows, slice = 40, 200 * time.Millisecond
	s := open(t, postgres.Options{URL: url, Slice: slice})
	b := store.Batch{ID: newID()}
	var releases []func()
	for i := range rows {
		k := key.ForPointer("w", fmt.Sprintf("%02d", i))
		v := create(t, s, k)
		b.Conds, b.Writes = append(b.Conds, store.Is(k, v)), append(b.Writes, put(k, "i", "{}"))
		releases = append(releases, lockRow(t, url, k, "FOR UPDATE"))
	}
	began := time.Now()
	var released sync.WaitGroup
	released.Go(func() { // each when most of a slice has passed since the one before
		for _, release := range releases {
			release()
			<-time.After(slice * 3 / 4)
		}
	})
	err := s.Apply(t.Context(), b)
	if _, ok := errors.AsType[*store.BlockedError](err); !ok {
		t.Errorf("got %v, want a *store.BlockedError", err)
	}
	if took := time.Since(began); took > rows*slice*5/8 { // if each were waited for: rows*slice*3/4
		t.Errorf("it took %v", took)
	}
	released.Wait()
}
