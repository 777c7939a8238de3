// Package local keeps files in directories of a local or mounted file system.
//
// A [Store] serves every file: root; the scope of each call says which. All it
// does below a root goes through [os.Root], so that neither a `..` nor a symbolic
// link, not even one that is swapped in during the call, leads out of it. Links
// that stay inside a root are followed; absolute ones are refused, wherever they
// lead. Pipes, sockets, devices and directories are refused without waiting for
// them.
//
// Create writes to a temporary name in the same directory, gives the file its
// name by a hard link, which never replaces, and syncs file and directory.
// Directories that it had to make, or that this process has not seen to be
// durable, are synced first. A process that is killed in the middle leaves at most
// a file `.landfast-*.tmp`, or a whole one, which nothing names; the loss of power in
// the middle may leave a short one.
//
// CreateDeferred writes under the name itself and syncs nothing. Sync makes all of
// that durable by one syncfs(2) for each file system. It also writes what other programs have
// not yet written there, which takes as long as it takes: a data disk that others keep
// busy is no place for a hot catalog. Only Linux has the call, and only the file systems of
// local disks keep its promise (ext4, XFS, Btrfs, F2FS); elsewhere nothing is deferred.
//
// Caveats. On Windows a directory cannot be synced: see platform_windows.go. Two
// machines may share a root only on a file system on which link is atomic for
// both. On one without hard links an empty file has the name for a moment before the
// whole one does. Modes of files and directories are what the umask leaves of 0666 and 0777.
package local
