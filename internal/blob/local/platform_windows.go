package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// openNonblock is nothing on Windows, where opening a path never waits for another process.
const openNonblock = 0

// namesClosedOnly: Windows can neither link nor remove an open file.
const namesClosedOnly = true

// syncDir does nothing: Windows has no call that makes the names of a directory durable. NTFS journals
// them in order, so that a loss of power can undo the last moments' names but not tear them: here a commit
// acknowledged right before the power fails may find its metadata file missing.
func syncDir(*os.File) error { return nil }

// diskFull are the errors of a disk, or of the user's quota on it, that is used up.
var diskFull = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}

// lacksLinks tells whether a failed link means that the file system has no hard links, as FAT.
func lacksLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, windows.ERROR_INVALID_FUNCTION)
}

// osPath is the path of this operating system behind the path of a file: URI: /C:/x is C:\x.
func osPath(slashed string) (string, error) {
	dir := filepath.FromSlash(strings.TrimPrefix(slashed, "/"))
	if !filepath.IsAbs(dir) {
		return "", errors.New("it names no drive")
	}
	return dir, nil
}
