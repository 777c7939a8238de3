package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// kindOf names what Apply's contract says of an error.
func kindOf(err error) string {
	var conflict *store.ConflictError
	var blocked *store.BlockedError
	switch {
	case err == nil:
		return "applied"
	case errors.As(err, &conflict):
		return "conflict"
	case errors.As(err, &blocked):
		return "blocked"
	}
	for name, kind := range map[string]error{
		"unknown": store.ErrOutcomeUnknown, "full": store.ErrFull, "unavailable": store.ErrUnavailable, "unstorable": store.ErrUnstorable, "closed": store.ErrClosed,
	} {
		if errors.Is(err, kind) {
			return name
		}
	}
	return "other"
}

// What each SQLSTATE of the server means. The server undoes the batch in each case; what the store may conclude
// from the answer is another matter.
func TestStates(t *testing.T) {
	url := cluster.Database(t)
	s := open(t, postgres.Options{URL: url, Slice: 20 * time.Millisecond})
	admin := connect(t, url)
	exec(t, admin, `CREATE TABLE state (code text, secret text); INSERT INTO state VALUES ('', 'a value')`)
	exec(t, admin, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE c text; BEGIN
			SELECT code INTO c FROM public.state;
			IF c <> '' THEN RAISE 'failed' USING ERRCODE = c, DETAIL = 'a secret value', HINT = 'a secret value'; END IF;
			RETURN NULL;
		END $$`)
	for _, when := range []string{"IMMEDIATE", "DEFERRED"} { // DEFERRED: at COMMIT, after the answer was sent
		exec(t, admin, `DROP TRIGGER IF EXISTS fail ON landfast.records`)
		exec(t, admin, `CREATE CONSTRAINT TRIGGER fail AFTER INSERT ON landfast.records DEFERRABLE INITIALLY `+when+` FOR EACH ROW EXECUTE FUNCTION fail()`)
		for state, want := range map[string]string{
			"55P03": "blocked", "57014": "blocked", "40001": "blocked", "40P01": "blocked", "23505": "blocked",
			"25P02": "unavailable", "25006": "unavailable", "53000": "unavailable", "53200": "unavailable", "53400": "unavailable", "58030": "unavailable",
			"53100": "full", "54000": "unstorable", "22021": "unstorable", "22P05": "unstorable",
			"42501": "other", "42P01": "other", "42883": "other", "XX000": "other", "P0001": "other",
			"08006": "unknown", "08P01": "unknown", "57P01": "unknown", "57P02": "unknown", "57P03": "unknown",
		} {
			t.Run(state+" "+when, func(t *testing.T) {
				exec(t, admin, `UPDATE state SET code = $1`, state)
				b := creation(key.ForPointer("w", newID()))
				err := s.Apply(t.Context(), b)
				if got := kindOf(err); got != want {
					t.Errorf("got %s: %v, want %s", got, err, want)
				}
				if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "SELECT") {
					t.Errorf("it tells too much: %v", err)
				}
				exec(t, admin, `UPDATE state SET code = ''`)
				if want == "unknown" {
					wantOutcome(t, s, b, store.NotApplied)
				} else if r, err := s.Get(t.Context(), b.Writes[0].Key); err != nil || r.Exists() {
					t.Errorf("got %v, %v, want no record", r, err)
				}
			})
		}
	}
}

// What a role, a database or a server refuses in reality.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		refuse, allow string
		pooled        bool
		want          string
	}{
		"a role has too many connections": {"ALTER ROLE %s CONNECTION LIMIT 0", "ALTER ROLE %s CONNECTION LIMIT -1", false, "unavailable"},
		"it became read-only":             {"ALTER ROLE %s SET default_transaction_read_only = on", "ALTER ROLE %s RESET default_transaction_read_only", false, "unavailable"},
		"a role lost its rights":          {"REVOKE ALL ON landfast.records FROM %s", "GRANT ALL ON landfast.records TO %s", false, "other"},
		"a role may not log in":           {"ALTER ROLE %s NOLOGIN", "ALTER ROLE %s LOGIN", false, "unavailable"},
		"isolation was raised":            {"ALTER ROLE %s SET default_transaction_isolation = serializable", "ALTER ROLE %s RESET default_transaction_isolation", true, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			url := cluster.Database(t)
			role, as := newRole(t, url)
			s := open(t, postgres.Options{URL: as, Patience: 300 * time.Millisecond, Pooled: c.pooled})
			create(t, s, key.ForPointer("w", "before"))
			admin := connect(t, url)
			exec(t, admin, fmt.Sprintf(c.refuse, role))
			b := creation(key.ForPointer("w", "k"))
			exec(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", role)
			until(t, "the connections are new", func() bool {
				err := s.Apply(t.Context(), b)
				if kindOf(err) == "unknown" { // an old one
					wantOutcomeSoon(t, s, b)
					b.ID = newID()
					return false
				}
				if kindOf(err) == "unavailable" && c.want != "unavailable" { // a new one takes longer than we have patience
					return false
				}
				if kindOf(err) != c.want {
					t.Fatalf("got %v, want %s", err, c.want)
				}
				return true
			})
			if c.want == "unavailable" && !strings.Contains(name, "read-only") {
				if _, err := s.Get(t.Context(), b.Writes[0].Key); kindOf(err) != c.want {
					t.Errorf("get: got %v", err)
				}
				if _, err := s.List(t.Context(), key.PointersIn("w"), "", 1); kindOf(err) != c.want {
					t.Errorf("list: got %v", err)
				}
				if _, err := s.Outcome(t.Context(), b); kindOf(err) != c.want {
					t.Errorf("outcome: got %v", err)
				}
			}
			exec(t, admin, fmt.Sprintf(c.allow, role))
			if c.pooled {
				exec(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", role)
			}
			until(t, "it works again", func() bool {
				err := s.Apply(t.Context(), b)
				if kindOf(err) == "unknown" {
					wantOutcomeSoon(t, s, b)
					b.ID = newID()
				}
				return err == nil
			})
		})
	}
}

// wantOutcomeSoon wants the batch not applied, as soon as anybody can be asked.
func wantOutcomeSoon(t *testing.T, s *postgres.Store, b store.Batch) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o, err := s.Outcome(ctx, b); err == nil && o != store.NotApplied {
		t.Fatalf("the outcome is %v", o)
	}
}

// newRole makes a role that owns the database, and gives its name and the URL with it.
func newRole(t testing.TB, url string) (role, as string) {
	t.Helper()
	admin := connect(t, url)
	database := value[string](t, admin, "SELECT current_database()")
	role = "of_" + database
	exec(t, admin, "CREATE ROLE "+role+" LOGIN")
	exec(t, admin, "ALTER DATABASE "+database+" OWNER TO "+role)
	return role, strings.Replace(url, "postgres@", role+"@", 1)
}

// The server is down: every call says so in time, and that nothing was applied; and it is found again.
func TestServerDown(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	s := open(t, postgres.Options{URL: server.Database(t), Patience: 300 * time.Millisecond})
	v := create(t, s, key.ForPointer("w", "before"))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	b := creation(key.ForPointer("w", "k"))
	for range 20 { // those that were idle are found to be dead
		if err := s.Apply(t.Context(), b); kindOf(err) == "unavailable" {
			break
		} else if kindOf(err) != "unknown" {
			t.Fatalf("apply: got %v", err)
		}
	}
	began := time.Now()
	if err := s.Apply(t.Context(), b); kindOf(err) != "unavailable" {
		t.Errorf("apply: got %v", err)
	}
	if _, err := s.Get(t.Context(), b.Writes[0].Key); kindOf(err) != "unavailable" {
		t.Errorf("get: got %v", err)
	}
	if _, err := s.List(t.Context(), key.PointersIn("w"), "", 1); kindOf(err) != "unavailable" {
		t.Errorf("list: got %v", err)
	}
	if _, err := s.Outcome(t.Context(), b); kindOf(err) != "unavailable" {
		t.Errorf("outcome: got %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	foundAgain(t, s, key.ForPointer("w", "before"), v)
	if err := s.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
}

// foundAgain wants the record, from a server that is there again: where the machine is busy a new connection takes longer than a
// store with little patience waits for it.
func foundAgain(t *testing.T, s *postgres.Store, k key.Key, want store.Version) {
	t.Helper()
	until(t, "the server is found again", func() bool {
		r, err := s.Get(t.Context(), k)
		if kindOf(err) == "unavailable" {
			return false
		}
		if err != nil || r.Version != want {
			t.Fatalf("got %v, %v, want version %s", r, err, want)
		}
		return true
	})
}

// What cannot be stored is refused before it is sent, and what cannot be there is not found.
func TestUnstorable(t *testing.T) {
	s := open(t, postgres.Options{URL: cluster.Database(t)})
	long := key.Key{Level: key.Pointer, Path: strings.Repeat("x", postgres.PathMax)}
	v := create(t, s, long)
	if r, err := s.Get(t.Context(), long); err != nil || r.Version != v {
		t.Errorf("the longest key: got version %q, %v", r.Version, err)
	}
	there := key.ForPointer("w", "there")
	is := create(t, s, there)
	for name, k := range map[string]key.Key{
		"too long": {Level: key.Pointer, Path: long.Path + "x"}, "NUL": {Level: key.Pointer, Path: "a\x00b"}, "no UTF-8": {Level: key.Pointer, Path: "a\xffb"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.Apply(t.Context(), creation(k)); !errors.Is(err, store.ErrUnstorable) || !strings.Contains(err.Error(), fmt.Sprint(postgres.PathMax)) {
				t.Errorf("got %v, want %v with the limit", err, store.ErrUnstorable)
			}
			if r, err := s.Get(t.Context(), k); err != nil || r.Exists() {
				t.Errorf("get: got %v, %v", r, err)
			}
			if rs, err := s.List(t.Context(), key.Prefix(k), "", 10); err != nil || len(rs) != 0 {
				t.Errorf("list: got %v, %v", rs, err)
			}
			for _, c := range []store.Cond{store.Is(k, is), store.Live(k, "i")} {
				err := s.Apply(t.Context(), batch([]store.Cond{store.Is(there, is), c}, put(there, "i", "{}")))
				if conflict, ok := errors.AsType[*store.ConflictError](err); !ok || len(conflict.Conds) != 1 || conflict.Conds[0] != c {
					t.Errorf("%v: got %v, want a conflict on it", c, err)
				}
			}
		})
	}
	t.Run("values", func(t *testing.T) {
		b := batch([]store.Cond{store.Is(there, is)}, store.Write{Key: there, ID: "i", Value: make([]byte, postgres.ValuesMax)})
		if err := s.Apply(t.Context(), b); !errors.Is(err, store.ErrUnstorable) || !strings.Contains(err.Error(), fmt.Sprint(postgres.ValuesMax)) {
			t.Errorf("got %v, want %v with the limit", err, store.ErrUnstorable)
		}
	})
}

// Whatever is set for the role, our own transactions are as they must be, and durable.
func TestSettingsOfTheRole(t *testing.T) {
	settings := []string{
		"default_transaction_isolation = 'serializable'", "default_transaction_isolation = 'repeatable read'", "synchronous_commit = off", "synchronous_commit = local",
		"statement_timeout = 1", "lock_timeout = 1", "client_encoding = 'LATIN1'", "standard_conforming_strings = off", "plan_cache_mode = force_generic_plan",
		"enable_indexscan = off", "enable_nestloop = off", "enable_indexonlyscan = off", "search_path = ''", "DateStyle = 'German'", "bytea_output = 'escape'", "jit_above_cost = 0",
		"plpgsql.variable_conflict = 'use_column'", "plpgsql.extra_errors = 'all'",
	}
	for _, pooled := range []bool{false, true} {
		for _, setting := range settings {
			t.Run(fmt.Sprintf("%s, pooled: %v", setting, pooled), func(t *testing.T) {
				url := cluster.Database(t)
				role, as := newRole(t, url)
				admin := connect(t, url)
				exec(t, admin, fmt.Sprintf("ALTER ROLE %s SET %s", role, setting))
				s, err := postgres.Open(t.Context(), postgres.Options{URL: as, Pooled: pooled})
				if pooled && strings.Contains(setting, "isolation") {
					if !errors.Is(err, postgres.ErrUnfit) || !strings.Contains(err.Error(), "ALTER ROLE") {
						t.Fatalf("got %v, want %v with its remedy", err, postgres.ErrUnfit)
					}
					return
				}
				if pooled && strings.HasPrefix(setting, "statement_timeout") {
					if err == nil {
						_ = s.Close()
					}
					return // a role whose statements end after 1 ms is of no use, but nothing hangs
				}
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				// At COMMIT, which is when it matters.
				exec(t, admin, `CREATE TABLE seen (name text, value text); GRANT ALL ON seen TO PUBLIC;
					CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
						INSERT INTO public.seen SELECT n, current_setting(n) FROM unnest(ARRAY['synchronous_commit', 'transaction_isolation', 'lock_timeout']) n; RETURN NULL;
					END $$;
					CREATE CONSTRAINT TRIGGER see AFTER INSERT ON landfast.applied DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`)
				k := key.ForPointer("w", "ä")
				if err := settled(t.Context(), s, batch([]store.Cond{store.Is(k, store.Absent)}, put(k, "ö", `{"a":"€\\"}`))); err != nil {
					t.Fatal(err)
				}
				if r, err := s.Get(t.Context(), k); err != nil || string(r.Value) != `{"a":"€\\"}` || r.ID != "ö" {
					t.Errorf("got %v, %v", r, err)
				}
				if o, err := s.Outcome(t.Context(), creation(k)); err != nil || o != store.NotApplied {
					t.Errorf("got %v, %v", o, err)
				}
				if err := s.ForgetOld(t.Context()); err != nil {
					t.Error(err)
				}
				rows, err := admin.Query(t.Context(), "SELECT DISTINCT name || ' ' || value FROM seen ORDER BY 1")
				if err != nil {
					t.Fatal(err)
				}
				got, err := pgx.CollectRows(rows, pgx.RowTo[string])
				want := "lock_timeout 1ms, synchronous_commit on, transaction_isolation read committed"
				if strings.Join(got, ", ") != want || err != nil {
					t.Errorf("at COMMIT: got %v, %v, want %v", got, err, want)
				}
			})
		}
	}
}

// The server becomes a standby, which may be behind: nothing is read from it. When it is promoted, it is found again.
func TestStandby(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	for _, pooled := range []bool{false, true} {
		t.Run(fmt.Sprintf("pooled: %v", pooled), func(t *testing.T) {
			o := postgres.Options{URL: server.Database(t), Patience: 300 * time.Millisecond, Pooled: pooled}
			s := open(t, o)
			k := key.ForPointer("w", "k")
			v := create(t, s, k)
			if err := server.Demote(); err != nil {
				t.Fatal(err)
			}
			until(t, "it says what to do", func() bool { // it may be so far behind that the database is not there yet
				_, err := s.Get(t.Context(), k)
				if kindOf(err) != "unavailable" {
					t.Fatalf("get: got %v, want %v", err, store.ErrUnavailable)
				}
				return strings.Contains(err.Error(), "primary")
			})
			if err := s.Apply(t.Context(), creation(key.ForPointer("w", "new"))); kindOf(err) != "unavailable" {
				t.Errorf("apply: got %v, want %v", err, store.ErrUnavailable)
			}
			if _, err := postgres.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "primary") {
				t.Errorf("open: got %v, want the remedy", err)
			}
			exec(t, connect(t, server.URL("postgres")), "SELECT pg_promote()")
			foundAgain(t, s, k, v)
			create(t, s, key.ForPointer("w", "new"))
		})
	}
}
