package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	sqlite3 "modernc.org/sqlite/lib"
)

// Errors of Open, which say in full what to do.
var (
	// ErrNewer: the file was written by a newer version of the program.
	ErrNewer = errors.New("the file has a newer schema than this version knows")
	// ErrNotCatalog: the file is damaged, or was never a catalog.
	ErrNotCatalog = errors.New("the file is damaged, or not a catalog")
	// ErrInUse: this process has the file open already.
	ErrInUse = errors.New("the file is already open in this process")
)

// applicationID marks the file as ours: "LFst".
const applicationID = 0x4c467374

// migrations are the steps from each schema version to the next. They only ever
// grow: a step that was released is never edited.
var migrations = []string{
	`
	CREATE TABLE meta (
		key   TEXT PRIMARY KEY,
		value TEXT NOT NULL
	) STRICT, WITHOUT ROWID;

	-- The settled records. Text is compared as bytes: that is the lock order.
	CREATE TABLE records (
		level   INTEGER NOT NULL,
		path    TEXT NOT NULL COLLATE BINARY,
		version TEXT NOT NULL, -- the id of the batch that wrote it
		id      TEXT NOT NULL, -- the incarnation
		value   TEXT NOT NULL,
		PRIMARY KEY (level, path)
	) STRICT, WITHOUT ROWID;

	-- The batches whose outcome is settled, until they are forgotten.
	CREATE TABLE applied (
		batch_id TEXT PRIMARY KEY COLLATE BINARY,
		void     INTEGER NOT NULL, -- 1: it was declared not applied and never can be
		ops      TEXT,             -- the operations decided in it, as JSON
		at_ms    INTEGER NOT NULL
	) STRICT, WITHOUT ROWID;

	INSERT INTO meta VALUES
		('schema', '1'),
		('forgotten', ''); -- the greatest batch id that was removed from applied
	`,
}

// create makes sure that there is a file that only its owner can read, and that
// what lies beside it belongs to it.
func create(path string) error {
	log, err := os.Stat(path + "-wal")
	hasLog := err == nil && log.Size() > 0
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if hasLog {
			return fmt.Errorf("%w: it is missing, but its log %s-wal is there; put the file back, or move the log away to start empty", ErrNotCatalog, path)
		}
		// Not by SQLite, which would leave the mode to the umask.
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("%w; the directory must exist and this user must be able to write in it", err)
		}
		return errors.Join(f.Close(), syncDir(filepath.Dir(path)))
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is no regular file; choose another data directory", ErrNotCatalog)
	}
	// SQLite would create a log before it finds that it may not write the file.
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w; the file must be writable by this user", err)
	}
	defer f.Close()
	if hasLog {
		if err := checkLogBelongs(f); err != nil {
			return err
		}
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := f.Chmod(0o600); err != nil {
			return fmt.Errorf("%w; others may read the file, and only its owner can change that: chmod 600 it as its owner, or serve as that owner", err)
		}
	}
	return nil
}

// checkLogBelongs refuses a file that was never in WAL mode beside a log that is
// not empty: a backup, restored where another catalog had crashed. SQLite would
// replay that log into it.
func checkLogBelongs(f *os.File) error {
	log := f.Name() + "-wal"
	var header [20]byte
	if _, err := io.ReadFull(f, header[:]); err != nil {
		return fmt.Errorf("%w: it is empty or cut short, but its log %s is there; restore a backup", ErrNotCatalog, log)
	}
	const writeVersion, rollbackJournal = 18, 1 // byte offset and value, SQLite file format 1.3
	if header[writeVersion] == rollbackJournal {
		return fmt.Errorf("%w: it is a restored backup, but %s is the log of what was there before; move that and the -shm file away", ErrNotCatalog, log)
	}
	return nil
}

// prepare makes the file a catalog of the current schema, or refuses it
// unchanged.
func prepare(c *conn, options Options) error {
	var id, tables int
	if _, err := c.first("PRAGMA application_id", nil, &id); err != nil {
		return err
	}
	if _, err := c.first("SELECT count(*) FROM sqlite_schema", nil, &tables); err != nil {
		return err
	}
	if fresh := id == 0 && tables == 0; !fresh && id != applicationID {
		return fmt.Errorf("%w: it is an SQLite database of another program (application id %d); choose another data directory", ErrNotCatalog, id)
	}
	var mode string
	if _, err := c.first("PRAGMA journal_mode = WAL", nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("SQLite cannot keep a write-ahead log here (journal mode %q); use a local file system", mode)
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := migrate(c); err != nil {
		return err // closing the connection undoes the transaction
	}
	// A horizon in the future comes from a clock that was wrong, and would have
	// every new batch taken for a forgotten one. Whoever used those ids is gone
	// with the process that made them.
	now := idFloor(options.Now())
	var horizon string
	ahead, err := c.first("SELECT value FROM meta WHERE key = 'forgotten' AND value > ?", []any{now}, &horizon)
	if err != nil {
		return err
	}
	if ahead {
		options.Log.Warn("the clock was ahead when the catalog was last used, or is behind now", "forgotten", horizon, "now", now)
		if err := c.exec("UPDATE meta SET value = ? WHERE key = 'forgotten'", now); err != nil {
			return err
		}
	}
	return c.exec("COMMIT")
}

func migrate(c *conn) error {
	version := 0
	var tables int
	if _, err := c.first("SELECT count(*) FROM sqlite_schema", nil, &tables); err != nil {
		return err
	}
	if tables > 0 {
		var text string
		if _, err := c.first("SELECT value FROM meta WHERE key = 'schema'", nil, &text); err != nil {
			return err
		}
		var err error
		if version, err = strconv.Atoi(text); err != nil || version < 1 {
			return fmt.Errorf("%w: its schema version is %q; restore a backup", ErrNotCatalog, text)
		}
	}
	if version > len(migrations) {
		return fmt.Errorf("%w: %d, not %d; run the version that wrote it, or a newer one", ErrNewer, version, len(migrations))
	}
	if version == len(migrations) {
		return nil
	}
	for _, step := range migrations[version:] {
		if err := c.script(step); err != nil {
			return fmt.Errorf("migrate from schema version %d: %w", version, err)
		}
	}
	if err := c.exec("UPDATE meta SET value = ? WHERE key = 'schema'", strconv.Itoa(len(migrations))); err != nil {
		return err
	}
	return c.script(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
}

// explain adds what to do to an error that SQLite gave for the file as a whole,
// when it is opened, read or written.
func explain(err error) error {
	switch {
	case isPrimary(err, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
		return fmt.Errorf("%w: %w; restore a backup, or choose another data directory", ErrNotCatalog, err)
	case isPrimary(err, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
		return fmt.Errorf("%w; the file and its directory must be writable by this user", err)
	case isPrimary(err, sqlite3.SQLITE_FULL):
		return fmt.Errorf("%w; free some space", err)
	case isPrimary(err, sqlite3.SQLITE_BUSY):
		return fmt.Errorf("%w; another process is using the file, stop it first", err)
	}
	return err
}
