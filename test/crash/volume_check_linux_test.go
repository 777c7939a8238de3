package crash

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A volume refuses as the kernel does: who writes when it is full, who opens when it is
// read-only. Both pass.
func TestVolume(t *testing.T) {
	v, err := newVolume(filepath.Join(t.TempDir(), "volume"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(v.dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(want error) {
		t.Helper()
		if _, err := f.Write(make([]byte, 64<<10)); !errors.Is(err, want) {
			t.Errorf("write: %v, want %v", err, want)
		}
	}
	create := func(want error) {
		t.Helper()
		other, err := os.Create(filepath.Join(v.dir, "other"))
		if !errors.Is(err, want) {
			t.Errorf("create: %v, want %v", err, want)
		}
		if err == nil {
			other.Close()
		}
	}
	steps := []struct {
		name          string
		do            func() error
		write, create error
	}{
		{"new", func() error { return nil }, nil, nil},
		{"full", func() error { return v.fill(8 << 10) }, syscall.ENOSPC, nil},
		{"emptied", v.empty, nil, nil},
		{"protected", v.protect, nil, syscall.EROFS},
		{"unprotected", v.unprotect, nil, nil},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			write(step.write)
			create(step.create)
		})
	}
	kept := t.TempDir()
	if err := v.keep(kept); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(kept, "file")); err != nil || info.Size() < 3*64<<10 {
		t.Errorf("kept: %v, %v", info, err)
	}
	f.Close()
	if err := v.close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(v.dir); err != nil || len(left) > 0 {
		t.Errorf("after the end: %v, %v", left, err)
	}
}
