package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PgBouncer starts one before the cluster, in transaction mode and with so many connections to a database,
// until the test ends. It gives what makes the URL of a database one that leads through it.
func (c *Cluster) PgBouncer(t testing.TB, connections int) func(url string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		const debian = "/usr/sbin/pgbouncer" // not in everybody's PATH
		if _, err := os.Stat(debian); err != nil {
			t.Fatal("pgtest: PgBouncer is not installed; install it with scripts/postgres")
		}
		program = debian
	}
	dir, err := os.MkdirTemp("", "lfpgb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := own(dir); err != nil {
		t.Fatal(err)
	}
	for range portTries {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		settings := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
			"unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = %d\nmax_client_conn = 500\n", c.Port, port, connections)
		file := filepath.Join(dir, "pgbouncer.ini")
		if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
			t.Fatal(err)
		}
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		p := process{cmd: command(dir, program, file)}
		p.cmd.Stdout, p.cmd.Stderr = log, log
		err = p.start()
		_ = log.Close()
		if err != nil {
			t.Fatal(err)
		}
		through := func(url string) string {
			return strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", c.Port), fmt.Sprintf("127.0.0.1:%d", port), 1)
		}
		if p.answers(through(c.URL("postgres"))) {
			t.Cleanup(func() {
				if err := p.end(syscall.SIGQUIT); err != nil {
					t.Error(err)
				}
			})
			return through
		}
		_ = p.end(syscall.SIGKILL)
	}
	said, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Fatalf("pgtest: PgBouncer does not answer\n%s", said)
	return nil
}

// answers waits until the server takes connections; false: it has ended, or takes too long.
func (p *process) answers(url string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	for {
		if conn, err := pgx.Connect(ctx, url); err == nil {
			return conn.Close(ctx) == nil
		}
		select {
		case <-p.done:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}
