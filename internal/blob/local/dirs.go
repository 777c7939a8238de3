package local

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// openedDir is a directory, opened twice: as a root for the names in it, and as a file to sync.
type openedDir struct {
	in   *os.Root
	self *os.File
}

func (d openedDir) Close() {
	d.self.Close()
	d.in.Close()
}

// openDir opens the directory of the target, made and durable.
//
// A file whose directory may vanish is not durable. To have just made a directory, or to find it made,
// says nothing: who made it may still be about to sync the name, or may have been killed before. So this process
// syncs every directory's name once itself, before it puts the first file below it.
func (s *Store) openDir(t target) (openedDir, error) {
	path := filepath.Dir(t.path)
	dir, err := openOnly(t.in, path)
	if err == nil && (path == "." || s.durable.has(dirKey{t.root.Dir, path}, dir.self)) {
		return dir, nil
	}
	if err == nil {
		dir.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return openedDir{}, err
	}
	for above := range downTo(path) {
		if err := s.makeDir(t, above); err != nil {
			return openedDir{}, err
		}
	}
	return openOnly(t.in, path)
}

// downTo gives the directories on the way to path and path itself, the uppermost first.
func downTo(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for end := range len(path) + 1 {
			if (end == len(path) || os.IsPathSeparator(path[end])) && !yield(path[:end]) {
				return
			}
		}
	}
}

// makeDir makes one directory, whose parent is durable, unless it is there, and makes its name durable.
func (s *Store) makeDir(t target, path string) error {
	err := s.sys.mkdir(t.in, path)
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	self, err := t.in.Open(asDir(path))
	if err != nil {
		return err
	}
	defer self.Close()
	key := dirKey{t.root.Dir, path}
	if !made && s.durable.has(key, self) {
		return nil
	}
	parent, err := t.in.Open(asDir(filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := s.sys.syncDir(parent); err != nil {
		return err
	}
	return s.durable.add(key, self)
}

func openOnly(in *os.Root, path string) (openedDir, error) {
	dir, err := in.OpenRoot(asDir(path))
	if err != nil {
		return openedDir{}, err
	}
	self, err := dir.Open(".")
	if err != nil {
		dir.Close()
		return openedDir{}, err
	}
	return openedDir{in: dir, self: self}, nil
}

// asDir spells a path so that opening it fails where it is no directory. Otherwise opening a pipe there,
// as a directory, would wait for its other end.
func asDir(path string) string { return path + string(filepath.Separator) + "." }

// durableMax bounds what durableDirs remembers. To forget costs one sync for each directory that is used again.
const durableMax = 4096

// durableDirs remembers the directories whose names, up to the root, are durable. It remembers which directory it
// was, for a directory that was removed and made again needs its sync anew. One that somebody else removed and made
// again between two of our calls, and to which the file system gave the same inode, is taken for the old one.
type durableDirs struct {
	mu   sync.Mutex
	seen map[dirKey]fs.FileInfo // at most durableMax
}

type dirKey struct{ root, path string }

func (d *durableDirs) has(key dirKey, self *os.File) bool {
	d.mu.Lock()
	was, ok := d.seen[key]
	d.mu.Unlock()
	if !ok {
		return false
	}
	is, err := self.Stat()
	return err == nil && os.SameFile(was, is)
}

func (d *durableDirs) add(key dirKey, self *os.File) error {
	info, err := self.Stat()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil || len(d.seen) >= durableMax {
		d.seen = make(map[dirKey]fs.FileInfo)
	}
	d.seen[dirKey{strings.Clone(key.root), strings.Clone(key.path)}] = info
	return nil
}
