// Package local keeps files in directories of a local or mounted file system.
//
// A [Store] serves every file: root; the scope of each call says which. All it
// does below a root goes through [os.Root], so that neither a `..` nor a symbolic
// link, not even one that is swapped in during the call, leads out of it. Links
// that stay inside a root are followed; absolute ones are refused, wherever they
// lead. Pipes, sockets, devices and directories are refused without waiting for
// them.
//
// Create writes to a temporary name in the same directory, syncs the file, gives
// it its name by a hard link, which never replaces, and syncs the directory.
// Directories that it had to make, or that this process has not seen to be
// durable, are synced first. A process that is killed in the middle leaves at most
// a file `.landfast-*.tmp`, which nothing names.
//
// Caveats. On Windows a directory cannot be synced: see platform_windows.go. Two
// machines may share a root only on a file system on which link is atomic for
// both. On one without hard links an empty file has the name for a moment before the
// whole one does. Modes of files and directories are what the umask leaves of 0666 and 0777.
package local
