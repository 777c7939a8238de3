package kernel_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// server is the PostgreSQL server of the tests that need one: the first of them starts it.
var server struct {
	sync.Once
	*pgtest.Cluster
	err error
}

// withServer are the tests of this package. When they have ended, so has the server.
type withServer struct{ *testing.M }

func (m withServer) Run() int {
	code := m.M.Run()
	if server.Cluster != nil {
		if err := server.Stop(); err != nil {
			slog.Error("the server does not stop", "error", err)
			return 1
		}
	}
	return code
}

// database is an empty one.
func database(t *testing.T) string {
	t.Helper()
	server.Do(func() { server.Cluster, server.err = pgtest.Start() })
	if server.err != nil {
		t.Fatal(server.err)
	}
	return server.Database(t)
}

func openPostgres(t *testing.T, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestKernelOnPostgres(t *testing.T) {
	kerneltest.Run(t, func(t *testing.T) kerneltest.Env {
		return kerneltest.Env{Store: openPostgres(t, database(t)), Queue: local.New(local.Options{})}
	})
}

// While somebody else holds the lock of a row, a change of it waits, and no other. It lands when the lock is given back, with
// the file that was written first; who has not so much patience is told that nothing was changed.
func TestRowLockedFromOutside(t *testing.T) {
	url := database(t)
	db := kerneltest.NewStore(openPostgres(t, url))
	applies := make(chan store.Batch, 100)
	db.Fault = func(b store.Batch) kerneltest.Fault {
		applies <- b
		return kerneltest.Fault{}
	}
	files := &kerneltest.Files{}
	var reports []kernel.Report // of the operations on the locked row, which come one after the other
	observe := func(r kernel.Report) { reports = append(reports, r) }
	patient := kernel.Options{Store: db, Files: files, Queue: local.New(local.Options{}), Observe: observe}
	hasty := patient
	hasty.BlockedLimit = 2 * time.Second
	write := func(k key.Key, file bool) *op {
		return &op{decide: func(ctx context.Context, tx *kernel.Tx) error {
			r, err := tx.Get(ctx, k)
			if err != nil {
				return err
			}
			if file {
				tx.File(kernel.File{Scope: lostScope, Location: "file:///w/" + tx.NewID()})
			}
			tx.Put(r.Key, "a", []byte("1"))
			return nil
		}}
	}
	if err := kernel.New(patient).Do(t.Context(), write(tableA, false)); err != nil {
		t.Fatal(err)
	}
	other, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM landfast.records FOR UPDATE"); err != nil {
		t.Fatal(err)
	}

	err = kernel.New(hasty).Do(t.Context(), write(tableA, true))
	if !errors.Is(err, kernel.ErrBlocked) {
		t.Errorf("got %v, want blocked", err)
	}
	if last := reports[len(reports)-1]; last.Blocked < 2 || last.Decisions != 1 {
		t.Errorf("report %+v", last)
	}
	for len(applies) > 0 {
		<-applies
	}

	before := len(files.Locations())
	done := make(chan error)
	go func() { done <- kernel.New(patient).Do(t.Context(), write(tableA, true)) }()
	first := (<-applies).ID
	if again := (<-applies).ID; again != first {
		t.Errorf("batch %s was sent, and then %s", first, again)
	}
	alone := patient
	alone.Observe = nil
	if err := kernel.New(alone).Do(t.Context(), write(tableB, false)); err != nil {
		t.Errorf("on another row: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if written := len(files.Locations()) - before; written != 1 {
		t.Errorf("%d files were written, want 1", written)
	}
	if last := reports[len(reports)-1]; last.Blocked < 1 || last.Decisions != 1 || last.Conflicts != 0 {
		t.Errorf("report %+v", last)
	}
}
