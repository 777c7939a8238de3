//go:build !unix

package embedded

// syncDir does nothing: here a directory cannot be opened to be synced, and the
// file system journals its names.
func syncDir(string) error { return nil }
