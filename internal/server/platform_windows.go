package server

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockExclusive tries to take the lock; it ends when the file is closed. Windows
// keeps others from reading what is locked, so the lock is on a byte far behind
// the text that says who holds it.
func lockExclusive(f *os.File) (taken bool, err error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// syncDir does nothing: Windows has no call that makes the names of a directory
// durable. NTFS journals them in order.
func syncDir(string) error { return nil }
