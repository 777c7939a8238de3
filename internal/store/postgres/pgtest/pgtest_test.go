package pgtest_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// childVariable makes this binary start a server and wait for its end.
const childVariable = "PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	c, err := pgtest.Start()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.URL("postgres"))
	select {}
}

// A server ends with the process that started it, even if that is killed, and says so to those who are connected.
func TestServerEndsWithItsTest(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+shared(t))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	url = strings.TrimSpace(url)
	if err != nil || !strings.HasPrefix(url, "postgres://") {
		_ = child.Process.Kill()
		t.Fatalf("the child said %q, %v", url, err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		again, err := pgx.Connect(t.Context(), url)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = again.Close(t.Context())
		}
		if time.Now().After(end) {
			t.Fatal("the server is still there")
		}
	}
}

// shared is a folder into which another user may go, removed with what a killed child has left.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lfpgt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Several packages may start servers at the same moment.
func TestTogether(t *testing.T) {
	results := make(chan error)
	const n = 3
	for range n {
		go func() {
			c, err := pgtest.Start()
			if err == nil {
				err = errors.Join(c.Kill(), c.Restart(), c.Stop())
			}
			results <- err
		}()
	}
	for range n {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
