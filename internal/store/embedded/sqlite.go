package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver
	sqlite3 "modernc.org/sqlite/lib"
)

// conn is one connection to the file with its prepared statements. It is used
// by one goroutine at a time. Its calls take no context on purpose: a statement
// that a caller's cancellation interrupts would undo its neighbours' group.
type conn struct {
	db   *sql.DB
	one  *sql.Conn
	stmt map[string]*sql.Stmt // by its text
}

// dial opens a connection to the file at path, which must exist.
func dial(path string, readOnly bool) (*conn, error) {
	mode := "rw"
	if readOnly {
		mode = "ro"
	}
	query := url.Values{
		"mode": {mode},
		"_dqs": {"0"},
		"_pragma": {
			"busy_timeout(5000)",
			"synchronous(FULL)",
			"fullfsync(1)", "checkpoint_fullfsync(1)", // where fsync alone does not reach the platter (macOS)
			"cache_size(-2000)", // KiB; bounds the memory of each connection
			fmt.Sprintf("wal_autocheckpoint(%d)", writerCheckpointAt),
			"journal_size_limit(67108864)", // a log that a long reader let grow is cut back
			"temp_store(MEMORY)",           // no files outside the data directory
			"trusted_schema(0)",
		},
	}
	slashed := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		slashed = "/" + slashed // C:/x is file:///C:/x
	}
	dsn := url.URL{Scheme: "file", Path: slashed, RawQuery: query.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	one, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &conn{db: db, one: one, stmt: map[string]*sql.Stmt{}}, nil
}

// prepared keeps every statement it was asked for: the package has few texts.
func (c *conn) prepared(text string) (*sql.Stmt, error) {
	if s, ok := c.stmt[text]; ok {
		return s, nil
	}
	s, err := c.one.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	c.stmt[text] = s
	return s, nil
}

func (c *conn) exec(text string, args ...any) error {
	_, err := c.change(text, args...)
	return err
}

// change is exec that gives the number of rows that were changed.
func (c *conn) change(text string, args ...any) (int64, error) {
	s, err := c.prepared(text)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *conn) query(text string, args ...any) (*sql.Rows, error) {
	s, err := c.prepared(text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.Background(), args...)
}

// first reads the first row into dest and reports whether there was one.
func (c *conn) first(text string, args []any, dest ...any) (bool, error) {
	s, err := c.prepared(text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// script runs several statements that return nothing.
func (c *conn) script(text string) error {
	_, err := c.one.ExecContext(context.Background(), text)
	return err
}

// close ends the connection and, with it, a transaction that is still open.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmt {
		errs = append(errs, s.Close()) // else SQLite keeps the connection, and its locks, alive
	}
	err := c.one.Raw(func(any) error { return driver.ErrBadConn })
	if !errors.Is(err, driver.ErrBadConn) {
		errs = append(errs, err)
	}
	if err := c.one.Close(); !errors.Is(err, sql.ErrConnDone) {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.db.Close())...)
}

// codeOf is SQLite's extended result code of an error, or 0.
func codeOf(err error) int {
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return e.Code()
	}
	return 0
}

// isPrimary reports whether the error's result code is of one of these families.
func isPrimary(err error, families ...int) bool {
	code := codeOf(err) & 0xff
	for _, f := range families {
		if code == f {
			return true
		}
	}
	return false
}

// distrust reports whether the error says that an fsync failed: what the kernel
// holds in its page cache may then differ from what reached the disk, and a
// second fsync would claim success.
func distrust(err error) bool {
	switch codeOf(err) {
	case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_CORRUPTFS:
		return true
	}
	return false
}
