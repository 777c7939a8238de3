package server

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/landfast/landfast/internal/blob"
)

// roots are the places that warehouses may have, where clients put files. None lies
// among the files of the catalog itself. A warehouse's own root does not lie above
// them either; a further place may, as /tmp would, where clients choose each
// table's location.
type roots struct {
	blob.Roots
	data string // path of the data directory
}

// Resolve implements [blob.Roots].
func (r roots) Resolve(ctx context.Context, uri string, s3 blob.S3Options) (blob.Root, error) {
	if dir, ok := dirOf(uri); ok && within(dir, r.data) && !within(dir, filepath.Join(r.data, warehousesDir)) {
		return blob.Root{}, r.refuse(uri) // before the directory is made
	}
	return r.Roots.Resolve(ctx, uri, s3)
}

// Mark implements [blob.Roots]. Only the root of a warehouse gets a marker.
func (r roots) Mark(ctx context.Context, root blob.Root, id string) error {
	if within(r.data, root.Dir) {
		return r.refuse(root.URI)
	}
	return r.Roots.Mark(ctx, root, id)
}

func (r roots) refuse(uri string) error {
	return &blob.LocationError{Location: uri, Problem: "the catalog itself is there, in " + r.data,
		Remedy: "choose a directory beside that one, or in its " + warehousesDir + "/"}
}

// dirOf is the directory that a location leads to, which may not exist yet. What is
// wrong with one that leads to none is for Resolve to say.
func dirOf(uri string) (string, bool) {
	normal, err := blob.Normalize(uri)
	if err != nil {
		return "", false
	}
	path, ok := strings.CutPrefix(normal, "file://")
	if !ok {
		return "", false
	}
	if drive := strings.TrimPrefix(path, "/"); filepath.VolumeName(drive) != "" {
		path = drive
	}
	dir, err := resolve(filepath.FromSlash(path))
	return dir, err == nil
}

// within tells whether the path is dir, or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
