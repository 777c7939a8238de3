package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// priceList is what the test of package catalog says that each operation asks of PostgreSQL, from where `make bench` runs.
const priceList = "internal/catalog/testdata/cost/far.txt"

const (
	costRow   = "cost/postgres"
	costWidth = len("create-namespace, where locations may overlap")
)

// How often each operation is measured: without the images of pages, and right after a checkpoint.
const (
	walTimes        = 25
	walAfterTimes   = 7
	walUnmeasured   = 3 // the first ones fill caches, of plans and of guesses
	walQuietMinutes = 60
)

func costSection() section {
	return section{
		title: "What an operation costs PostgreSQL",
		about: "Round trips and statements are those of `" + priceList + "`, which a test keeps true: statements are counted from what the\n" +
			"store is asked, those inside of a batch's one call included. The rest is measured, with one instance and one client on a PostgreSQL of\n" +
			"their own that does nothing else. `counted` is the statements that pg_stat_statements counted, where PostgreSQL has it: one more or less\n" +
			"where this operation does not guess its pointer and that of the list does, or the other way round. WAL is how\n" +
			"far `pg_current_wal_insert_lsn` got with one operation: the median and the mean of " + strconv.Itoa(walTimes) + ", with `full_page_writes` off, so\n" +
			"that no image of a page is among them; and, with it on, the median of " + strconv.Itoa(walAfterTimes) + " that each follow a checkpoint and carry an image of every\n" +
			"page that they touch, up to 8 KiB each: the pages of these young tables are not full.",
		columns:   []string{sideColumn, "round trips", "statements", "counted", "WAL bytes", "mean", "after a checkpoint"},
		rows:      []row{{name: costRow, run: runCost}},
		sideWidth: costWidth,
	}
}

// price is what one operation asks.
type price struct {
	operation              string
	roundTrips, statements int
}

var priceText = regexp.MustCompile(`(?m)^## (.+)\n(\d+) round trips?, (\d+) statements?:`)

// readPrices reads the price list.
func readPrices(list []byte) (prices []price, err error) {
	for _, m := range priceText.FindAllSubmatch(list, -1) {
		p := price{operation: string(m[1])}
		var errs [2]error
		p.roundTrips, errs[0] = strconv.Atoi(string(m[2]))
		p.statements, errs[1] = strconv.Atoi(string(m[3]))
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		prices = append(prices, p)
	}
	if len(prices) == 0 {
		return nil, errors.New("the price list has no prices")
	}
	return prices, nil
}

// runCost is the row: a line for each operation of the price list.
func runCost(ctx context.Context, s *site) (result, error) {
	list, err := os.ReadFile(filepath.FromSlash(priceList))
	if err != nil {
		return result{}, err
	}
	prices, err := readPrices(list)
	if err != nil {
		return result{}, err
	}
	plain, err := measureCosts(ctx, s, "cost-plain", walTimes, false)
	if err != nil {
		return result{}, err
	}
	after, err := measureCosts(ctx, s, "cost-after", walAfterTimes, true)
	if err != nil {
		return result{}, err
	}
	var r result
	for _, p := range prices {
		cells := []string{p.operation, strconv.Itoa(p.roundTrips), strconv.Itoa(p.statements), none, none, none, none}
		if m, ok := plain[p.operation]; ok {
			if m.counted {
				cells[3] = strconv.FormatInt(median(m.statements), 10)
			}
			cells[4], cells[5], cells[6] = count(median(m.wal)), count(mean(m.wal)), count(median(after[p.operation].wal))
			delete(plain, p.operation)
		}
		r.lines = append(r.lines, line{side: p.operation, cells: cells})
	}
	for operation := range plain {
		return result{}, fmt.Errorf("%s has no price for %s", priceList, operation)
	}
	return r, nil
}

// costs are those of one operation, each time.
type costs struct {
	wal, statements []int64
	counted         bool // statements were counted
}

func median(list []int64) int64 { return slices.Sorted(slices.Values(list))[len(list)/2] }

func mean(list []int64) (sum int64) {
	for _, v := range list {
		sum += v
	}
	return sum / int64(len(list))
}

// measureCosts does each operation so many times on an instance and a PostgreSQL server of their own.
func measureCosts(ctx context.Context, s *site, name string, times int, afterCheckpoint bool) (_ map[string]costs, err error) {
	images := "off"
	if afterCheckpoint {
		images = "on"
	}
	// Nothing but what is measured is to write.
	settings := []string{"full_page_writes=" + images, "autovacuum=off", fmt.Sprintf("checkpoint_timeout=%dmin", walQuietMinutes)}
	counting := []string{"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all"}
	counted := true
	cluster, err := pgtest.Start(slices.Concat(settings, counting)...)
	if err != nil { // it may be installed without its extensions
		counted = false
		cluster, err = pgtest.Start(settings...)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	base, p, err := s.startInstancesOn(ctx, cluster, name, 1)
	if err != nil {
		return nil, err
	}
	defer p.end()
	c, err := newCatalog(ctx, name, base, "cost")
	if err != nil {
		return nil, err
	}
	// Not the catalog's database, whose statements are counted.
	conn, err := pgx.Connect(ctx, cluster.URL("template1"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	m := meter{conn: conn, counted: counted, afterCheckpoint: afterCheckpoint}
	if counted {
		if _, err := conn.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
			return nil, err
		}
	}
	if err := c.createNamespace(ctx); err != nil {
		return nil, err
	}
	all := map[string]costs{}
	for _, op := range costOperations(c) {
		one, err := m.measure(ctx, times, op.do)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.name, err)
		}
		all[op.name] = one
	}
	return all, nil
}

// meter reads what operations cost.
type meter struct {
	conn                     *pgx.Conn
	counted, afterCheckpoint bool
}

const (
	walNow = `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn`
	// Not counted is the call that a batch is: what it executes is.
	statementsNow = `SELECT coalesce(sum(s.calls), 0)::bigint FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
		WHERE d.datname = 'postgres' AND s.query NOT LIKE 'SELECT landfast.apply!_%' ESCAPE '!'`
)

// read gives the position in the WAL, and the statements executed so far.
func (m *meter) read(ctx context.Context) (wal, statements int64, err error) {
	if err := m.conn.QueryRow(ctx, walNow).Scan(&wal); err != nil || !m.counted {
		return wal, 0, err
	}
	return wal, statements, m.conn.QueryRow(ctx, statementsNow).Scan(&statements)
}

// measure does one operation again and again: at first unmeasured, and then so many times.
func (m *meter) measure(ctx context.Context, times int, do func(ctx context.Context, n int) error) (all costs, err error) {
	all.counted = m.counted
	for n := range walUnmeasured + times {
		if m.afterCheckpoint {
			if _, err := m.conn.Exec(ctx, "CHECKPOINT"); err != nil {
				return costs{}, err
			}
		}
		wal, statements, err := m.read(ctx)
		if err != nil {
			return costs{}, err
		}
		if err := do(ctx, n); err != nil {
			return costs{}, err
		}
		walThen, statementsThen, err := m.read(ctx)
		if err != nil {
			return costs{}, err
		}
		if n >= walUnmeasured {
			all.wal = append(all.wal, walThen-wal)
			all.statements = append(all.statements, statementsThen-statements)
		}
	}
	return all, nil
}

// costOperation is one operation of the price list, as a client asks for it the nth time.
type costOperation struct {
	name string
	do   func(ctx context.Context, n int) error
}

// costOperations are those whose WAL is measured, in an order that works on an empty namespace.
func costOperations(c *catalog) []costOperation {
	post := func(ctx context.Context, path, body string, headers ...string) error {
		_, _, err := call(ctx, http.MethodPost, "http://"+c.address+path, []byte(body), headers...)
		return err
	}
	table := func(n int) string { return fmt.Sprintf("table_%02d", n) }
	update := func(n int) string {
		return fmt.Sprintf(`"requirements":[],"updates":[{"action":"set-properties","updates":{"value":"%0*d"}}]`, valueDigits, n)
	}
	change := func(t string, n int) string {
		return fmt.Sprintf(`{"identifier":{"namespace":[%q],"name":%q},%s}`, c.namespace, t, update(n))
	}
	ident := func(name string) string { return fmt.Sprintf(`{"namespace":[%q],"name":%q}`, c.namespace, name) }
	return []costOperation{
		{"create-table", func(ctx context.Context, n int) error { return post(ctx, c.tablesPath(), string(creation(table(n)))) }},
		{"commit-table", func(ctx context.Context, n int) error { return post(ctx, c.tablePath(table(0)), "{"+update(n)+"}") }},
		{"once, of commit-table", func(ctx context.Context, n int) error {
			return post(ctx, c.tablePath(table(0)), "{"+update(n)+"}", "Idempotency-Key", uuid.NewString())
		}},
		{"commit-transaction, of two tables", func(ctx context.Context, n int) error {
			return post(ctx, c.path+"/transactions/commit", `{"table-changes":[`+change(table(0), n)+","+change(table(1), n)+"]}")
		}},
		{"update-namespace-properties", func(ctx context.Context, n int) error {
			return post(ctx, c.path+"/namespaces/"+c.namespace+"/properties", fmt.Sprintf(`{"removals":[],"updates":{"value":"%0*d"}}`, valueDigits, n))
		}},
		{"rename-table", func(ctx context.Context, n int) error {
			return post(ctx, c.path+"/tables/rename", fmt.Sprintf(`{"source":%s,"destination":%s}`, ident(table(n)), ident("to_"+table(n))))
		}},
		{"drop-table", func(ctx context.Context, n int) error {
			_, _, err := c.call(ctx, http.MethodDelete, c.tablePath("to_"+table(n)), nil)
			return err
		}},
	}
}
