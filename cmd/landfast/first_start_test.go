package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestKilledFirstStart kills first starts as soon as a part of the data directory
// shows, from the first to the last. What is left either has a VERSION and is
// served as it is, or has none and is begun with: the next start never asks for help.
func TestKilledFirstStart(t *testing.T) {
	for _, part := range []string{"LOCK", "warehouses", "catalog.db", "catalog.db-wal", "catalog.db-shm", "warehouses/main", "VERSION"} {
		t.Run(filepath.Base(part), func(t *testing.T) {
			data, err := os.MkdirTemp("", "landfast-test-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(data); err != nil {
					t.Error(err)
				}
			})
			data = filepath.Join(data, "data")
			first, _ := startProcess(t, data)
			awaitFile(t, filepath.Join(data, part))
			if err := first.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if got := statusOfProcess(<-first.ended); got != "killed" {
				t.Fatalf("it ended with %s", got)
			}
			_, err = os.Lstat(filepath.Join(data, "VERSION"))
			t.Logf("VERSION is there: %v", err == nil)

			second, log := startProcess(t, data)
			select {
			case <-log.url:
			case err := <-second.ended:
				t.Errorf("the next start ended: %v", err)
			case <-time.After(readyMax):
				t.Error("the next start was not ready")
			}
			_ = second.cmd.Process.Kill() // fails when it has ended
			<-second.ended
			if written, err := os.ReadFile(log.file.Name()); err != nil || t.Failed() {
				t.Fatalf("%v\n%s", err, written)
			}
			if version, err := os.ReadFile(filepath.Join(data, "VERSION")); err != nil || !bytes.HasPrefix(version, []byte("1\n")) {
				t.Errorf("VERSION %q, %v", version, err)
			}
		})
	}
}

// startProcess starts `landfast serve`: this binary, see TestMain.
func startProcess(t *testing.T, data string) (*process, *watchedLog) {
	t.Helper()
	program, err := exec.LookPath("landfast")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	log := &watchedLog{file: file, url: make(chan string, 1)}
	cmd := exec.Command(program, "serve", "--data", data, "--listen", "127.0.0.1:0")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, make(chan error, 1)}
	go func() {
		p.ended <- cmd.Wait()
		close(p.ended)
	}()
	return p, log
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < readyMax; runtime.Gosched() {
		if _, err := os.Lstat(path); err == nil {
			return
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			t.Fatal(err)
		}
	}
	t.Fatalf("%s never appeared", path)
}
