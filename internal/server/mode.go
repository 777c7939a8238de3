package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
	"github.com/landfast/landfast/internal/store/postgres"
)

// records is where the catalog's records are kept: the open store of the mode.
type records interface {
	store.Atomic
	Close() error
}

// openRecords opens the store of the configured mode, with all that it needs for itself.
func (s *server) openRecords(ctx context.Context) error {
	if s.config.Store == config.StorePostgres {
		return s.openPostgres(ctx)
	}
	return s.openEmbedded(ctx)
}

// openEmbedded takes the data directory and opens the file in it.
func (s *server) openEmbedded(ctx context.Context) (err error) {
	if s.dir, err = openDataDir(s.config.Data); err != nil {
		return err
	}
	if err = s.dir.lock.describe(s.url); err != nil {
		return err
	}
	s.state = s.dir.path + "  (catalog.db, warehouses/)"
	db, err := embedded.Open(ctx, s.dir.file(catalogFile), embedded.Options{
		Observe: s.metrics.committed, Log: s.log, Retention: s.retention(), Forgot: s.ids.Above,
	})
	if err != nil {
		return err
	}
	s.store = db
	return nil
}

// retention is how long the store remembers a batch. Its id may be as old as the request.
func (s *server) retention() time.Duration { return max(outcomeRetention, 2*s.config.RequestTimeout) }

// openPostgres connects to the database. There is no data directory: nothing here outlives the process.
func (s *server) openPostgres(ctx context.Context) error {
	c := s.config.Postgres
	password, err := readPassword(c.PasswordFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	db, err := postgres.Open(ctx, postgres.Options{
		URL: c.URL, Password: password, Connections: c.MaxConnections, Pooled: c.PgBouncer,
		RetryInterval: s.config.Catalog.LockRetryInterval, Slice: min(lockSlice, s.config.Catalog.LockTimeout), NoWait: s.config.Catalog.LockTimeout == 0,
		Retention: s.retention(), Forgot: s.ids.Above, Name: s.instance, Observe: newPostgresMetrics(s.metrics).happened, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.metrics.registry.MustRegister(poolMetrics{db.Connections})
	s.store, s.postgres, s.state = db, db, "PostgreSQL: "+db.Place()
	return nil
}

// readPassword reads the first line of a file, if one is named.
func readPassword(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return "", fmt.Errorf("postgres.password_file: %s: %w; name a file that this user may read", path, err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("postgres.password_file: the first line of %s is empty; write the password there", path)
	}
	return line, nil
}
