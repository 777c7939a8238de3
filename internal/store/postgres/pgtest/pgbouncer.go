package pgtest

import (
	"context"
	"errors"
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

// Bouncer is a running PgBouncer, in transaction mode.
type Bouncer struct {
	Port    int
	cluster *Cluster
	dir     string
	process
}

// PgBouncer starts one before the cluster, with so many connections to a database,
// until the test ends. It gives what makes the URL of a database one that leads through it.
func (c *Cluster) PgBouncer(t testing.TB, connections int) func(url string) string {
	t.Helper()
	b, err := c.StartPgBouncer(connections)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b.through
}

// through makes the URL of a database one that leads through it.
func (b *Bouncer) through(url string) string {
	return strings.Replace(url, fmt.Sprintf("127.0.0.1:%d", b.cluster.Port), fmt.Sprintf("127.0.0.1:%d", b.Port), 1)
}

// StartPgBouncer starts one before the cluster, with so many connections to a database. It ends with this process, whatever
// becomes of it.
func (c *Cluster) StartPgBouncer(connections int) (_ *Bouncer, err error) {
	program, err := findPgBouncer()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lfpgb")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := own(dir); err != nil {
		return nil, err
	}
	b := &Bouncer{cluster: c, dir: dir}
	for range portTries {
		if b.Port, err = freePort(); err != nil {
			return nil, err
		}
		if err = b.launch(program, connections); err == nil {
			return b, nil
		}
	}
	return nil, err
}

func findPgBouncer() (string, error) {
	program, err := exec.LookPath("pgbouncer")
	if err == nil {
		return program, nil
	}
	const debian = "/usr/sbin/pgbouncer" // not in everybody's PATH
	if _, err := os.Stat(debian); err != nil {
		return "", errors.New("pgtest: PgBouncer is not installed; install it with scripts/postgres")
	}
	return debian, nil
}

// launch starts it on its port.
func (b *Bouncer) launch(program string, connections int) error {
	settings := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"unix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = %d\nmax_client_conn = 500\nserver_login_retry = 1\n", b.cluster.Port, b.Port, connections)
	file := filepath.Join(b.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	b.process = process{cmd: command(b.dir, program, file)}
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.start(); err != nil {
		return err
	}
	if b.answers(b.through(b.cluster.URL("postgres"))) {
		return nil
	}
	said, err := os.ReadFile(filepath.Join(b.dir, "log"))
	return errors.Join(fmt.Errorf("pgtest: PgBouncer does not answer\n%s", said), err, b.end(syscall.SIGKILL))
}

// Stop ends it.
func (b *Bouncer) Stop() error {
	return errors.Join(b.end(syscall.SIGQUIT), os.RemoveAll(b.dir))
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
