package server

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

func TestMain(m *testing.M) {
	status := m.Run()
	stopPostgres()
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	os.Exit(status)
}

// shared is the PostgreSQL server of the tests that need one, started by the first of them.
var shared struct {
	sync.Mutex
	cluster *pgtest.Cluster
}

// database makes an empty database and gives its URL.
func database(t *testing.T) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		var err error
		if shared.cluster, err = pgtest.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return shared.cluster.Database(t)
}

func stopPostgres() {
	if shared.cluster == nil {
		return
	}
	if err := shared.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: run with -update and look at the change:\n%s", file, diff)
	}
}
