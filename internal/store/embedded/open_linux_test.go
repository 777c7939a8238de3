package embedded

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs do as a user whom file modes bind, as they do not bind root. The
// change is for one thread only, which ends with it.
func asNobody(t *testing.T, dir string, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	const nobody = 65534
	for ; strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		runtime.LockOSThread() // and never unlocked
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Errorf("setfsuid: %v", err)
			return
		}
		do()
	}()
	<-finished
}

// A file or directory that may not be written is refused with its path and what
// must be writable; nothing is left behind.
func TestOpenReadOnly(t *testing.T) {
	for name, c := range map[string]struct{ file, dir os.FileMode }{
		"file":               {0o400, 0o700},
		"directory":          {0o600, 0o500},
		"both":               {0o400, 0o500},
		"directory, no file": {0, 0o500},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "catalog.db")
			if c.file != 0 {
				path = seeded(t, 1)
			}
			dir := filepath.Dir(path)
			if os.Geteuid() == 0 {
				if err := os.Chown(path, 65534, 65534); err != nil && c.file != 0 {
					t.Fatal(err)
				}
			}
			if c.file != 0 {
				if err := os.Chmod(path, c.file); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, c.dir); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(dir, 0o700)
			asNobody(t, dir, func() {
				s, err := Open(t.Context(), path, Options{})
				if err == nil {
					s.Close()
					t.Error("it was opened")
					return
				}
				t.Log(err)
				for _, part := range []string{path, "writ", "this user"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not say %q", part)
					}
				}
			})
			entries, err := os.ReadDir(dir)
			if err != nil || (c.file == 0) != (len(entries) == 0) || len(entries) > 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}
