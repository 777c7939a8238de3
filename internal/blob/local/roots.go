package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/landfast/landfast/internal/blob"
)

// Resolve implements [blob.Roots]. The URI of the root is the normal form of what was written; Dir is
// the directory that it leads to now. Both must be free of characters that need escaping.
func (s *Store) Resolve(ctx context.Context, uri string, s3 blob.S3Options) (blob.Root, error) {
	if err := ctx.Err(); err != nil {
		return blob.Root{}, err
	}
	normal, err := blob.Normalize(uri)
	if err != nil {
		return blob.Root{}, err
	}
	slashed, ok := strings.CutPrefix(normal, "file://")
	if !ok {
		return blob.Root{}, &blob.LocationError{Location: uri, Problem: "it is not a directory of this machine", Remedy: "write file:///absolute/path"}
	}
	if s3 != (blob.S3Options{}) {
		return blob.Root{}, &blob.LocationError{Location: uri, Problem: "it is not on S3, but has S3 options", Remedy: "leave them out, or write s3://bucket/prefix"}
	}
	given, err := osPath(slashed)
	if err != nil {
		return blob.Root{}, &blob.LocationError{Location: uri, Problem: err.Error(), Remedy: "write an absolute path"}
	}
	if err := s.makeRoot(given); err != nil {
		return blob.Root{}, fmt.Errorf("root %s: the directory cannot be reached or made: %w", normal, err)
	}
	dir, err := filepath.EvalSymlinks(given)
	if err != nil {
		return blob.Root{}, fmt.Errorf("root %s: it cannot be reached: %w", normal, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return blob.Root{}, fmt.Errorf("root %s: cannot be reached: %w", normal, err)
	}
	if !info.IsDir() {
		return blob.Root{}, &blob.LocationError{Location: uri, Problem: "it is not a directory", Remedy: "name a directory"}
	}
	if _, err := blob.Normalize(blob.DirURI(dir)); err != nil {
		return blob.Root{}, fmt.Errorf("root %s leads by symbolic links to a place that cannot be a root: %w", normal, err)
	}
	return blob.Root{URI: normal, Dir: dir}, nil
}

// makeRoot makes the directory and all above it that are missing, each name durable. What is there, of any kind, stays.
func (s *Store) makeRoot(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	above := filepath.Dir(dir)
	if above == dir {
		return fs.ErrNotExist
	}
	if err := s.makeRoot(above); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	parent, err := os.Open(above)
	if err != nil {
		return err
	}
	defer parent.Close()
	return s.sys.syncDir(parent)
}

// Mark implements [blob.Roots]. The marker is a file whose one line is the id.
func (s *Store) Mark(ctx context.Context, root blob.Root, id string) error {
	t, err := openBelow(root, blob.MarkPrefix+id)
	if err != nil {
		return err
	}
	defer t.in.Close()
	err = s.create(ctx, t, []byte(id+"\n"))
	if errors.Is(err, blob.ErrExists) {
		return s.CheckMark(ctx, root, id)
	}
	if err != nil {
		return fmt.Errorf("mark root %s: %w", root.URI, createNamed(err, root.URI))
	}
	return nil
}

// CheckMark implements [blob.Roots]. The name of the marker says all: it is not opened.
func (s *Store) CheckMark(ctx context.Context, root blob.Root, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := os.Lstat(filepath.Join(root.Dir, blob.MarkPrefix+id))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s", blob.ErrNotRegular, info.Mode().Type())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s (%v); mount the volume that holds the warehouse's files, or, if they were moved or restored to this place, make an empty file %s",
			blob.ErrMarkMissing, root.URI, err, filepath.Join(root.Dir, blob.MarkPrefix+id))
	case err != nil:
		return fmt.Errorf("check the marker of root %s: %w", root.URI, err)
	}
	return nil
}
