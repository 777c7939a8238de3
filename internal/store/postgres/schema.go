package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Errors of Open, which say in full what to do.
var (
	// ErrNewer: the schema was made by a newer version of the program.
	ErrNewer = errors.New("the schema landfast is newer than this version knows")
	// ErrUnfit: the database cannot hold a catalog, for a reason that the text gives.
	ErrUnfit = errors.New("the database cannot hold a catalog")
)

// steps are the migrations 1.sql, 2.sql and so on. They only ever grow: one that was
// released is never edited. A step leaves what the version before it uses in place, and says in landfast.meta which
// is the oldest that may use it (usable_by), so that two neighbouring versions may run, and start, while instances are
// replaced one by one.
//
//go:embed migrations/*.sql
var steps embed.FS

// schemaVersion is the number of the last step.
const schemaVersion = 1

// leastServer is the oldest server that is supported, as server_version_num.
const leastServer = 130000

// migrationLock is the advisory lock of a transaction that migrates: "Landfast" as a number.
const migrationLock = 0x4c616e6466617374

// prepare checks that the database is fit, and brings its schema up to date: the first of
// several instances does, the others wait for it.
func prepare(ctx context.Context, pool *pgxpool.Pool, o Options) error {
	var server int
	var encoding, commit, locked, fsync, isolation string
	err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
		current_setting('synchronous_commit'), current_setting('transaction_read_only'), current_setting('fsync'),
		current_setting('transaction_isolation')`).
		Scan(&server, &encoding, &commit, &locked, &fsync, &isolation)
	switch {
	case err != nil:
		return err
	case server < leastServer:
		return fmt.Errorf("%w: the server is older than PostgreSQL 13 (%d); upgrade it", ErrUnfit, server)
	case encoding != "UTF8":
		return fmt.Errorf("%w: its encoding is %s; make one with createdb --encoding UTF8 --template template0 NAME", ErrUnfit, encoding)
	case locked == "on":
		return fmt.Errorf("%w: default_transaction_read_only is on for the server, the database or the role; set it off", ErrUnfit)
	case isolation != "read committed": // only where a pooler keeps us from choosing it
		return fmt.Errorf("%w: transactions are %s; %s", ErrUnfit, isolation, isolationRemedy)
	}
	if fsync != "on" {
		o.Log.Warn("PostgreSQL runs with fsync off: a crash of its machine can lose or damage the catalog", "remedy", "set fsync = on")
	}
	if commit != "on" && commit != "remote_apply" {
		o.Log.Info("synchronous_commit is set to on for the catalog's own transactions", "was", commit)
	}
	version, err := readVersion(ctx, pool)
	if err != nil || version >= schemaVersion {
		return err
	}
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return migrate(ctx, tx)
	})
}

// queryer is a pool or a transaction.
type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readVersion gives the schema's version, 0 where there is none, and refuses a newer one that this program
// may not use.
func readVersion(ctx context.Context, q queryer) (int, error) {
	var there bool
	// Not to_regclass: within a transaction it answers from what the session remembers, which another has changed meanwhile.
	if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'landfast' AND c.relname = 'meta')`).Scan(&there); err != nil || !there {
		return 0, err
	}
	var text, oldest string
	err := q.QueryRow(ctx, `SELECT coalesce((SELECT value FROM landfast.meta WHERE key = 'schema'), ''),
		coalesce((SELECT value FROM landfast.meta WHERE key = 'usable_by'), '')`).Scan(&text, &oldest)
	if err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	switch {
	case err != nil || version < 1:
		return 0, fmt.Errorf("%w: landfast.meta says that its schema is %q; restore a backup", ErrUnfit, text)
	case version > schemaVersion:
		if usableBy, err := strconv.Atoi(oldest); err == nil && usableBy <= schemaVersion {
			return version, nil
		}
		return 0, fmt.Errorf("%w: %d, not %d; run the version that made it, or a newer one", ErrNewer, version, schemaVersion)
	}
	return version, nil
}

func migrate(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', '60s', true), set_config('synchronous_commit', 'on', true)`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return err
	}
	version, err := readVersion(ctx, tx) // by a later statement than the one that waited
	if err != nil || version >= schemaVersion {
		return err
	}
	if version == 0 {
		if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS landfast`); err != nil {
			return err
		}
	}
	for n := version + 1; n <= schemaVersion; n++ {
		step, err := steps.ReadFile(fmt.Sprintf("migrations/%d.sql", n))
		if err != nil {
			return err
		}
		if _, err := tx.Conn().PgConn().Exec(ctx, string(step)).ReadAll(); err != nil {
			return fmt.Errorf("migrate the schema to version %d: %w", n, err)
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO landfast.meta VALUES ('schema', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, strconv.Itoa(schemaVersion))
	return err
}
