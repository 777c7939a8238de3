//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

const postgresPage = "../../docs/postgres.md"

// TestPostgresPage runs what docs/postgres.md tells a newcomer to paste, in its order, as one script: from an empty
// PostgreSQL to two instances, a backup and its restore. Addresses and directories are replaced.
func TestPostgresPage(t *testing.T) {
	page, err := os.ReadFile(postgresPage)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	lake, err := os.MkdirTemp("", "landfast-test-") // its name needs no escapes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(lake); err != nil {
			t.Error(err)
		}
	})
	text := strings.NewReplacer("127.0.0.1:5432", fmt.Sprintf("127.0.0.1:%d", cluster.Port), ":8181", ":"+freePort(t), ":8182", ":"+freePort(t),
		"file:///srv/lake", "file://"+lake).Replace(string(page))
	script := "set -euo pipefail\ntrap 'kill $(jobs -p); wait' EXIT\n"
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		script += b[1]
	}
	// The restored database serves what was backed up.
	port := freePort(t)
	script += fmt.Sprintf(`
export LANDFAST_POSTGRES_URL="${LANDFAST_POSTGRES_URL%%/landfast}/restored"
landfast serve --instance restored --listen 127.0.0.1:%[1]s &
until curl -sf http://127.0.0.1:%[1]s/readyz; do sleep 0.1; done
curl -sf http://127.0.0.1:%[1]s/v1/main/namespaces
printf '\ndone\n'
`, port)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+strconv.Itoa(cluster.Port), "PGUSER=postgres", "LANDFAST_URL=", "LANDFAST_DATA=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\ndone\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`"namespaces":[["sales"]]`, "nothing is held, nobody waits", "landfast catalog-1", "landfast catalog-2", "instance=catalog-2",
		"PostgreSQL: database landfast at 127.0.0.1:", "PostgreSQL: database restored at 127.0.0.1:", `"name":"create-namespace"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %s", want)
		}
	}
	if n := strings.Count(string(out), `msg="a new catalog"`); n != 1 {
		t.Errorf("%d catalogs were made", n)
	}
	if strings.Contains(string(out), "choose-one") {
		t.Error("the password is shown")
	}
	if left, err := filepath.Glob(filepath.Join(cmd.Dir, "landfast-data*")); err != nil || len(left) != 0 {
		t.Errorf("there is %v, %v", left, err)
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	var last error
	for range 100 {
		port := strconv.Itoa(15_000 + rand.IntN(17_000)) // no system gives one of these to who asks for any
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
			return port
		}
		last = err
	}
	t.Fatal(last)
	return ""
}

// TestPostgresInReadme: what README.md tells to paste is what docs/postgres.md does, which is run.
func TestPostgresInReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(postgresPage)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Several instances on PostgreSQL\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n.*?```").FindAllString(section, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(string(page), b) {
			t.Errorf("docs/postgres.md has not:\n%s", b)
		}
	}
}

// TestPostgresPageSettings: the settings that the page proposes are accepted.
func TestPostgresPageSettings(t *testing.T) {
	page, err := os.ReadFile(postgresPage)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		file := filepath.Join(t.TempDir(), "landfast.yaml")
		if err := os.WriteFile(file, []byte(b[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		c, warnings, err := config.Load(config.Sources{File: file})
		if err != nil || len(warnings) != 0 || c.Catalog == config.Default().Catalog {
			t.Errorf("%v, warnings %v:\n%s", err, warnings, b[1])
		}
	}
}
