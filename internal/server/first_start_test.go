package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/store/embedded"
)

// TestLostCatalog: a directory that was served and has no catalog any more does
// not become a new, empty one. Deleting VERSION says that this is meant.
func TestLostCatalog(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, path string){
		"missing": func(*testing.T, string) {},
		"empty":   func(t *testing.T, path string) { write(t, path, "") },
		"a store without records": func(t *testing.T, path string) {
			if err := freshStore(t, path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(filepath.Join(plainTempDir(t), "data"))
			first := run(t, c)
			first.want(t, "POST", "/v1/namespaces", `{"namespace":["n"]}`, 200, "")
			if err := first.end(); err != nil {
				t.Fatal(err)
			}
			catalog, version := filepath.Join(c.Data, catalogFile), filepath.Join(c.Data, versionFile)
			if err := os.Rename(catalog, catalog+".lost"); err != nil {
				t.Fatal(err)
			}
			lose(t, catalog)
			before, _ := os.ReadFile(catalog)
			for range 2 {
				_, err := tryRun(t, c)
				if err == nil || !strings.Contains(err.Error(), "catalog.db is missing or empty in a directory that was served before; restore a backup, or delete "+version+" to begin anew") {
					t.Fatalf("got %v", err)
				}
			}
			if after, _ := os.ReadFile(catalog); len(before) == 0 && len(after) != 0 {
				t.Error("a new catalog was made all the same")
			}

			if err := os.Remove(version); err != nil {
				t.Fatal(err)
			}
			anew := run(t, c)
			anew.want(t, "GET", "/v1/namespaces/n", "", 404, "")
			if err := anew.end(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(catalog+".lost", catalog); err != nil {
				t.Fatal(err)
			}
			run(t, c).want(t, "GET", "/v1/namespaces/n", "", 200, "")
		})
	}
}

// freshStore makes a store that has its schema and nothing else.
func freshStore(t *testing.T, path string) error {
	s, err := embedded.Open(t.Context(), path, embedded.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// TestFirstStartThatBrokeOff: whatever the first start left when it broke off, the
// next one begins with it; VERSION is there only when the catalog is.
// TestKilledFirstStart in cmd/landfast kills real processes.
func TestFirstStartThatBrokeOff(t *testing.T) {
	for name, left := range map[string]func(t *testing.T, data string){
		"a directory":         func(t *testing.T, data string) { mkdirWith(t, data, lockFile, "process 1\n") },
		"an empty catalog.db": func(t *testing.T, data string) { mkdirWith(t, data, catalogFile, "") },
		"a store without records": func(t *testing.T, data string) {
			if err := errors.Join(os.Mkdir(data, 0o755), freshStore(t, filepath.Join(data, catalogFile))); err != nil {
				t.Fatal(err)
			}
		},
		"a root of main": func(t *testing.T, data string) {
			c := testConfig(data)
			c.Warehouse.Main.Location = "file://" + data + ".file/below"
			write(t, data+".file", "")
			if _, err := tryRun(t, c); err == nil || !strings.Contains(err.Error(), "the root of the warehouse main") {
				t.Fatalf("got %v", err)
			}
		},
		"all but VERSION, as a restored catalog.db": func(t *testing.T, data string) {
			if err := run(t, testConfig(data)).end(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(data, versionFile)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testConfig(filepath.Join(plainTempDir(t), "data"))
			left(t, c.Data)
			version := filepath.Join(c.Data, versionFile)
			if _, err := os.Lstat(version); err == nil {
				t.Fatal("there is a VERSION already")
			}
			i := run(t, c)
			i.want(t, "GET", "/management/v1/warehouses/main", "", 200, "")
			if data, err := os.ReadFile(version); err != nil || string(data) != "1\n" {
				t.Errorf("VERSION %q, %v", data, err)
			}
		})
	}
}
