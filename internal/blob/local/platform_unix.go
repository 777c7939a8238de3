//go:build !windows

package local

import (
	"errors"
	"os"
	"syscall"
)

// openNonblock keeps the opening of a pipe from waiting for its other end.
const openNonblock = syscall.O_NONBLOCK

// namesClosedOnly: an open file can be given another name.
const namesClosedOnly = false

// syncDir makes the names in the directory durable.
func syncDir(d *os.File) error { return d.Sync() }

// diskFull are the errors of a disk, or of the user's quota on it, that is used up.
var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT}

// lacksLinks tells whether a failed link means that the file system has no hard links: some say so, some say EPERM.
func lacksLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM)
}

// osPath is the path of this operating system behind the path of a file: URI.
func osPath(slashed string) (string, error) { return slashed, nil }
