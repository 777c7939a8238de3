package postgres_test

import (
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/planted"
)

// bends are the mistakes that are made in the functions of the schema: of a function, what is replaced.
var bends = map[planted.Bug]struct {
	function string
	replace  func(body string) string
}{
	planted.EmptyBeforeLocks: {"landfast.apply_1", func(body string) string {
		// The conditions are read by a snapshot from before the locks.
		before, locks := cut(body, "FOR n IN 1 .. coalesce(cardinality(lock_level)")
		locks, check := cut(locks, "SELECT array_agg")
		check, after := cut(check, "IF failed IS NULL THEN")
		return before + check + "PERFORM pg_sleep(0.002);" + locks + after
	}},
	planted.LiveUnlocked: {"landfast.apply_1", func(body string) string {
		return replaceAll(body, "WHEN 1 THEN PERFORM FROM landfast.records r WHERE", "WHEN 1 THEN PERFORM pg_sleep(0.002); PERFORM FROM landfast.records r WHERE false AND")
	}},
	planted.OutcomeByLook: {"landfast.outcome_1", func(body string) string {
		return replaceAll(body, "INSERT INTO landfast.applied VALUES (batch, true) ON CONFLICT DO NOTHING;", "PERFORM 1 WHERE false;")
	}},
	planted.OutcomeUnsynced: {"landfast.outcome_1", func(body string) string {
		return replaceAll(body, "WHERE a.batch_id = batch FOR UPDATE;", "WHERE a.batch_id = batch;")
	}},
	planted.CreationUnchecked: {"landfast.apply_1", func(body string) string {
		return replaceAll(body, "IF NOT FOUND THEN -- made", "IF false THEN -- made")
	}},
	planted.ForgottenUnchecked: {"landfast.apply_1", func(body string) string {
		return replaceAll(body, "IF batch <= (", "IF false AND batch <= (")
	}},
}

// bend makes the planted mistake, if it is one of the database's, in the database of a test.
func bend(t testing.TB, url string) {
	t.Helper()
	for bug, b := range bends {
		if !planted.Is(bug) {
			continue
		}
		conn := connect(t, url)
		exec(t, conn, b.replace(value[string](t, conn, "SELECT pg_get_functiondef($1::regproc)", b.function)))
	}
}

func cut(text, at string) (before, after string) {
	i := strings.Index(text, at)
	if i < 0 {
		panic("the function has changed: there is no " + at)
	}
	return text[:i], text[i:]
}

func replaceAll(text, from, to string) string {
	cut(text, from)
	return strings.ReplaceAll(text, from, to)
}
