package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// postgresConfig is that of an instance on a database, with main in an empty directory.
func postgresConfig(t *testing.T, url string) config.Config {
	t.Helper()
	c := testConfig(filepath.Join(plainTempDir(t), "data"))
	c.Store, c.Coordination, c.Postgres.URL = config.StorePostgres, config.CoordinationRows, url
	c.Warehouse.Main.Location = "file://" + plainTempDir(t)
	return c
}

// TestTwoOnPostgres: two instances that start at the same moment on an empty database make one catalog,
// and each sees what the other did, also after both were stopped.
func TestTwoOnPostgres(t *testing.T) {
	url := database(t)
	first, second := postgresConfig(t, url), postgresConfig(t, url)
	second.Warehouse.Main.Location = first.Warehouse.Main.Location
	first.Instance = "catalog-1"
	type started struct {
		*instance
		err error
	}
	others := make(chan started, 1)
	go func() {
		i, err := tryRun(t, second)
		others <- started{i, err}
	}()
	a := run(t, first)
	other := <-others
	if other.err != nil {
		t.Fatal(other.err)
	}
	b := other.instance
	if n := strings.Count(a.log.String()+b.log.String(), `msg="a new catalog"`); n != 1 {
		t.Errorf("%d catalogs were made:\n%s\n%s", n, a.log, b.log)
	}
	_, mainOfA := a.do(t, "GET", "/management/v1/warehouses/main", "")
	b.want(t, "GET", "/management/v1/warehouses/main", "", 200, mainOfA)
	a.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	b.want(t, "POST", "/v1/namespaces/ns/tables", s3Table, 200, `"metadata-location":"`+first.Warehouse.Main.Location+`/ns/t-`)
	for n, i := range []*instance{a, b, a, b} {
		i.want(t, "POST", "/v1/namespaces/ns/tables/t", fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"k%d":"v"}}]}`, n), 200, "")
	}
	for _, i := range []*instance{a, b} {
		i.want(t, "GET", "/v1/namespaces/ns/tables/t", "", 200, `"k3":"v"`)
		i.want(t, "GET", "/readyz", "", 200, "ready")
		if screen := i.screen.String(); !strings.Contains(screen, "PostgreSQL: database test_") || strings.Contains(screen, "catalog.db") {
			t.Errorf("the start screen:\n%s", screen)
		}
		if err := i.end(); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(a.log.String(), "instance=catalog-1") {
		t.Errorf("the log lacks the instance's name:\n%s", a.log)
	}
	for _, c := range []config.Config{first, second} {
		if _, err := os.Lstat(c.Data); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a data directory: %v", err)
		}
	}
	run(t, second).want(t, "GET", "/v1/namespaces/ns/tables/t", "", 200, `"k3":"v"`)
}

// TestPostgresIsDown: without its database an instance is alive and not ready, tells nobody SQL, and goes on when it is back.
func TestPostgresIsDown(t *testing.T) {
	cluster, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := postgresConfig(t, cluster.Database(t))
	c.RequestTimeout = 3 * time.Second // bounds as well what must succeed
	i := run(t, c)
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	i.want(t, "GET", "/readyz", "", 503, "the store does not answer")
	i.want(t, "GET", "/healthz", "", 200, "ok")
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/namespaces/ns", "", 503}, {"GET", "/v1/namespaces", "", 503}, {"POST", "/v1/namespaces", `{"namespace":["other"]}`, 429},
	} {
		response, body := i.do(t, r.method, r.path, r.body)
		if response.StatusCode != r.status || strings.Contains(body, "postgres") || strings.Contains(body, "landfast.") {
			t.Errorf("%s %s: %d %s", r.method, r.path, response.StatusCode, body)
		}
	}
	_, report := i.do(t, "GET", "/management/v1/locks", "")
	if !strings.Contains(report, `"problem":"`) || !strings.Contains(report, `"held":0`) {
		t.Errorf("the report of locks: %s", report)
	}
	if err := cluster.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, i)
	i.want(t, "GET", "/v1/namespaces/ns", "", 200, "ns")
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["again"]}`, 200, "again")
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(i.end(), cluster.Restart()); err != nil {
		t.Errorf("stopped without its database: %v", err)
	}
}

func awaitReady(t *testing.T, i *instance) {
	t.Helper()
	for began := time.Now(); ; {
		response, body := i.do(t, "GET", "/readyz", "")
		if response.StatusCode == 200 {
			return
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("never ready again: %s\n%s", body, i.log)
		}
	}
}

// TestPostgresRoots: there is no data directory for warehouses without a location, and a directory that not all
// instances share is found out by its marker.
func TestPostgresRoots(t *testing.T) {
	url := database(t)
	c := postgresConfig(t, url)
	a := run(t, c)
	a.want(t, "POST", "/management/v1/warehouses", `{"name":"lake"}`, 400, "name a bucket (s3://bucket/prefix), or a directory that all instances share")
	a.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")

	// Another machine: the same path, another file system.
	root := strings.TrimPrefix(c.Warehouse.Main.Location, "file://")
	if err := errors.Join(os.Rename(root, root+".elsewhere"), os.Mkdir(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root + ".elsewhere"); err != nil {
			t.Error(err)
		}
	})
	other := postgresConfig(t, url)
	b := run(t, other)
	if log := b.log.String(); !strings.Contains(log, "a warehouse is not served until its root is put right") || !strings.Contains(log, root) {
		t.Errorf("the log does not tell:\n%s", log)
	}
	b.want(t, "GET", "/v1/namespaces/ns", "", 200, "ns")
	b.want(t, "POST", "/v1/namespaces/ns/tables", s3Table, 422, "mount the volume that holds the warehouse's files")
}

// TestPostgresStartErrors: why an instance does not start, and what to do.
func TestPostgresStartErrors(t *testing.T) {
	dir := plainTempDir(t)
	write(t, filepath.Join(dir, "empty"), "\nsecret\n")
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"nobody listens": {func(c *config.Config) { c.Postgres.URL = "postgres://u@127.0.0.1:1/none?sslmode=disable" },
			"postgres: database none at 127.0.0.1:1: "},
		"no database": {func(c *config.Config) { c.Postgres.URL = strings.Replace(c.Postgres.URL, "/test_", "/none_", 1) },
			"createdb --encoding UTF8"},
		"no password file":       {func(c *config.Config) { c.Postgres.PasswordFile = filepath.Join(dir, "none") }, "postgres.password_file: " + dir + "/none: no such file or directory; name a file"},
		"an empty password file": {func(c *config.Config) { c.Postgres.PasswordFile = filepath.Join(dir, "empty") }, "the first line of " + dir + "/empty is empty; write the password there"},
		"a URL that is none":     {func(c *config.Config) { c.Postgres.URL = "postgres://u:s3cr3t@host:port/x" }, "the URL is not one that PostgreSQL's own programs take"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := postgresConfig(t, database(t))
			c.change(&cfg)
			_, err := tryRun(t, cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestPasswordFile: its first line, without the end of the line, is the password.
func TestPasswordFile(t *testing.T) {
	for text, want := range map[string]string{"p w\n": "p w", "p\r\nq": "p", "p": "p"} {
		file := filepath.Join(t.TempDir(), "password")
		write(t, file, text)
		if got, err := readPassword(file); got != want || err != nil {
			t.Errorf("of %q: %q, %v", text, got, err)
		}
	}
}

// TestInstanceName: as it is configured, or the end of the host's name with the port.
func TestInstanceName(t *testing.T) {
	if got := instanceName(config.Config{Instance: "catalog-1"}, "1"); got != "catalog-1" {
		t.Error(got)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	got := instanceName(config.Config{}, "8181")
	if whole := host + ":8181"; len(got) > config.InstanceMax || !strings.HasSuffix(whole, got) || len(got) != min(len(whole), config.InstanceMax) {
		t.Errorf("%q of %q", got, whole)
	}
}

// operations that are cut in application_name are still told apart.
func TestOperationOf(t *testing.T) {
	for cut, want := range map[string]string{
		"update-namespa": "update-namespace-properties", "commit-transac": "commit-transaction", "commit-table": "commit-table", "": "", "-": "-",
	} {
		if got := operationOf(cut); got != want {
			t.Errorf("%q: %q, want %q", cut, got, want)
		}
	}
	for name := range catalog.Operations {
		if cut := name[:min(len(name), 14)]; operationOf(cut) != name {
			t.Errorf("%q is cut to %q, which is that of %q", name, cut, operationOf(cut))
		}
	}
}
