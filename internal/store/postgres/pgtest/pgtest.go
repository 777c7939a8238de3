// Package pgtest starts PostgreSQL servers for tests: real ones, each with a throwaway cluster.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// binVariable names the directory of initdb and postgres; without it the newest that is installed is taken.
const binVariable = "LANDFAST_POSTGRES_BIN"

// Cluster is a running server. Its superuser is postgres, it trusts everybody who reaches its socket or its port
// on 127.0.0.1, and its data is gone after Stop.
type Cluster struct {
	Port int
	dir  string
	bin  string
	process
	n atomic.Int64
}

// Main runs the tests of a package with one server, for TestMain.
func Main(m *testing.M, use func(*Cluster)) int {
	c, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Stop()
	use(c)
	return m.Run()
}

// portTries is how often another port is tried, when somebody else has taken one that was free.
const portTries = 5

// Start makes a cluster and starts its server, on a free port of 127.0.0.1. The server ends with this process, whatever becomes of it.
func Start(settings ...string) (_ *Cluster, err error) {
	bin, err := findBin()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lfpg")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := own(dir); err != nil {
		return nil, err
	}
	init := c.command("initdb", "--pgdata", c.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	for range portTries {
		if c.Port, err = freePort(); err != nil {
			return nil, err
		}
		if err = c.Restart(settings...); err == nil {
			return c, nil
		}
		if !strings.Contains(c.Log(), "could not bind") {
			break
		}
	}
	return nil, err
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// Restart starts the server, which must not run, on its port.
func (c *Cluster) Restart(settings ...string) error {
	args := []string{
		"-D", c.data(), "-p", strconv.Itoa(c.Port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + c.dir,
		"-c", "max_connections=200", "-c", "fsync=on", "-c", "log_min_messages=warning",
	}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	c.process = process{cmd: c.command("postgres", args...)}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.start(); err != nil {
		return err
	}
	if !c.answers(c.URL("postgres")) {
		return errors.Join(fmt.Errorf("pgtest: postgres does not answer\n%s", c.Log()), c.Kill())
	}
	return nil
}

// startMax is how long a server may take to start.
const startMax = 30 * time.Second

// Log is what the server has written.
func (c *Cluster) Log() string {
	log, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(log))
}

// URL is that of a database.
func (c *Cluster) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", c.Port, database)
}

// Database makes an empty database and gives its URL.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("test_%d", c.n.Add(1))
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return c.URL(name)
}

// Standby makes and starts a synchronous standby of the server, which is stopped for that moment and then commits nothing without it.
func (c *Cluster) Standby(settings ...string) (_ *Cluster, err error) {
	dir, err := os.MkdirTemp("", "lfpg")
	if err != nil {
		return nil, err
	}
	s := &Cluster{dir: dir, bin: c.bin}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := c.end(syscall.SIGINT); err != nil { // in good order
		return nil, err
	}
	if out, err := exec.Command("cp", "-a", c.data(), s.data()).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pgtest: copy the cluster: %w\n%s", err, out)
	}
	signal := filepath.Join(s.data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return nil, err
	}
	if err := errors.Join(own(dir), own(signal)); err != nil {
		return nil, err
	}
	if s.Port, err = freePort(); err != nil {
		return nil, err
	}
	if err := c.Restart(append(settings, "synchronous_standby_names=*")...); err != nil {
		return nil, err
	}
	return s, s.Restart(append(settings, fmt.Sprintf("primary_conninfo=host=127.0.0.1 port=%d user=postgres", c.Port))...)
}

// Kill ends the server as a crash of PostgreSQL would: at once, without a checkpoint. Restart recovers.
func (c *Cluster) Kill() error {
	return c.end(syscall.SIGQUIT)
}

// Demote makes a standby of the server, which follows nobody: it can be read, until pg_promote is called.
func (c *Cluster) Demote() error {
	if err := c.Kill(); err != nil {
		return err
	}
	signal := filepath.Join(c.data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	if err := own(signal); err != nil {
		return err
	}
	return c.Restart()
}

// Stop ends the server and removes its data.
func (c *Cluster) Stop() error {
	return errors.Join(c.Kill(), os.RemoveAll(c.dir))
}

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	return command(c.dir, filepath.Join(c.bin, name), args...)
}

// findBin gives the directory of PostgreSQL's programs.
func findBin() (string, error) {
	if dir := os.Getenv(binVariable); dir != "" {
		return dir, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(strings.Split(strings.TrimPrefix(dir, "/usr/lib/postgresql/"), "/")[0])
		return n
	}
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("pgtest: PostgreSQL's server is not installed (no initdb in PATH or /usr/lib/postgresql); install it with scripts/postgres, or set %s to its bin directory", binVariable)
	}
	return filepath.Dir(initdb), nil
}
