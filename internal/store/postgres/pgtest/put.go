package pgtest

import (
	"os"
	"path/filepath"
)

// Put writes a file into the server's data directory, where its settings find it by its bare name. Only the server may read
// it, which is what PostgreSQL wants of a private key. What Restart starts reads it.
func (c *Cluster) Put(name string, content []byte) error {
	path := filepath.Join(c.data(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return own(path)
}
