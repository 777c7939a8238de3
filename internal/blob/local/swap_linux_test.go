package local

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// As TestLinksSwappedDuringCalls, with a directory that becomes a link in one step.
func TestDirectorySwappedForLinkDuringCalls(t *testing.T) {
	swapDuringCalls(t, func(t *testing.T, root string) (swap func()) {
		a, link := filepath.Join(root, "a"), filepath.Join(root, "link")
		must(t, os.Symlink("../outside", link))
		return func() { unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) }
	})
}
