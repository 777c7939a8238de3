package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// crashVariable tells a child process of the test binary which file to write.
const crashVariable = "EMBEDDED_TEST_CRASH_TARGET"

func crashTarget() (string, bool) { return os.LookupEnv(crashVariable) }

// crashWriters is how many goroutines the child applies batches from.
const crashWriters = 8

// writeUntilKilled applies batches that each write a pair of records and, from
// their second one on, replace a pair, and prints each id that was acknowledged.
// It never returns.
func writeUntilKilled(path string) {
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var wg sync.WaitGroup
	var out sync.Mutex
	for i := range crashWriters {
		wg.Go(func() {
			left, right := pointer(fmt.Sprint("left ", i)), pointer(fmt.Sprint("right ", i))
			r, err := s.Get(context.Background(), left)
			for version := r.Version; err == nil; {
				b := newBatch("record of its own")
				b.Writes[0].Key = pointer(b.ID)
				b.Conds[0].Key = b.Writes[0].Key
				for _, k := range []key.Key{left, right} {
					b.Conds = append(b.Conds, store.Is(k, version))
					b.Writes = append(b.Writes, store.Write{Key: k, ID: "i", Value: []byte(b.ID)})
				}
				err = s.Apply(context.Background(), b)
				version = store.Version(b.ID)
				out.Lock()
				fmt.Println("acknowledged", b.ID)
				out.Unlock()
			}
			fmt.Println("error", err)
			os.Exit(1)
		})
	}
	wg.Wait()
}

// A process that is killed in the middle of its writers loses nothing that it
// acknowledged, leaves no batch half done, and remembers what it applied. (It is
// the process that dies here, not the machine: that the data is on the disk rests
// on synchronous=FULL.)
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	acknowledged := map[string]bool{}
	for round := range 8 {
		acks := killAfter(t, path, 40*(round+1), func(int) {})
		for _, id := range acks {
			acknowledged[id] = true
		}
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for id := range acknowledged {
			if !s.exists(t, id) {
				t.Errorf("round %d: acknowledged batch %s is gone", round, id)
			}
			if o, err := s.Outcome(t.Context(), store.Batch{ID: id}); err != nil || o != store.Applied {
				t.Errorf("round %d: outcome of %s: %v, %v", round, id, o, err)
			}
		}
		for i := range crashWriters {
			left, err1 := s.Get(t.Context(), pointer(fmt.Sprint("left ", i)))
			right, err2 := s.Get(t.Context(), pointer(fmt.Sprint("right ", i)))
			if err1 != nil || err2 != nil || left.Version != right.Version {
				t.Errorf("round %d: half a batch: %s and %s (%v, %v)", round, left.Version, right.Version, err1, err2)
			}
			if left.Exists() && !s.exists(t, string(left.Version)) {
				t.Errorf("round %d: of batch %s one write is missing", round, left.Version)
			}
		}
		var verdict string
		c := <-s.readers
		if _, err := c.first("PRAGMA integrity_check", nil, &verdict); err != nil || verdict != "ok" {
			t.Errorf("round %d: integrity: %s, %v", round, verdict, err)
		}
		s.readers <- c
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d acknowledged batches survived", len(acknowledged))
}

// Two processes on one file take turns: all that either acknowledged is there,
// a refusal for want of a turn is true, and the death of one in the middle is no
// trouble to the other.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	s := openStore(t, path, Options{})
	var mine []string
	apply := func() {
		b := newBatch("")
		b.Writes[0].Key = pointer(b.ID)
		b.Conds[0].Key = b.Writes[0].Key
		err := s.Apply(t.Context(), b)
		for isPrimary(err, sqlite3.SQLITE_BUSY) && !errors.Is(err, store.ErrOutcomeUnknown) {
			err = s.Apply(t.Context(), b)
		}
		if err != nil {
			t.Error(err)
		}
		mine = append(mine, b.ID)
	}
	theirs := killAfter(t, path, 200, func(n int) {
		if n%10 == 1 {
			apply()
		}
	})
	apply()
	for _, id := range append(theirs, mine...) {
		if !s.exists(t, id) {
			t.Errorf("acknowledged batch %s is gone", id)
		}
	}
	t.Logf("%d batches here, %d there", len(mine), len(theirs))
}

// killAfter runs a writing child on path, kills it when it has acknowledged some
// batches, and gives every id that it acknowledged. each is called after each
// acknowledgement with how many there are.
func killAfter(t *testing.T, path string, some int, each func(int)) []string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashVariable+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var ids []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
		if !ok {
			t.Errorf("the child says: %s", lines.Text())
			break
		}
		ids = append(ids, id)
		each(len(ids))
		if len(ids) == some {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.Exited() {
		t.Errorf("the child was not killed: %v", child.ProcessState)
	}
	if len(ids) < some {
		t.Fatalf("the child acknowledged %d batches, want %d", len(ids), some)
	}
	return ids
}
