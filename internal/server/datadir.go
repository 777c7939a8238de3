package server

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/landfast/landfast/internal/blob"
)

// layoutVersion is the version of the data directory's layout that this program
// writes. It only ever grows; a directory of an older one is brought forward.
const layoutVersion = 1

// The names in a data directory.
const (
	catalogFile   = "catalog.db"
	lockFile      = "LOCK"
	versionFile   = "VERSION"
	warehousesDir = "warehouses"
)

// dataDir is a data directory that this process holds.
type dataDir struct {
	path string // absolute, its links resolved, and fit to stand in a URI
	lock *dirLock
	// served tells that a server once had its catalog here: there is a VERSION.
	served bool
}

// openDataDir makes the directory if it is missing, takes its lock, checks its
// version, and that the catalog of a directory that was served is there. Every
// error names the remedy.
//
// The directory's mode is what the umask leaves of 0777, because the files of
// tables lie in it and the clients that read them may be other users. The catalog
// itself is only for its owner.
func openDataDir(name string) (_ *dataDir, err error) {
	path, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if bad, ok := errors.AsType[*blob.LocationError](checkPath(path)); ok {
		return nil, fmt.Errorf("data directory %s: the locations of tables would begin with %q, and %s; choose a path of letters, digits and any of / - . _ ~",
			path, bad.Location, bad.Problem)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, unusable(path, err)
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	d := &dataDir{path: path, lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.served, err = checkVersion(d.file(versionFile)); err != nil {
		return nil, err
	}
	if d.served {
		info, err := os.Stat(d.file(catalogFile))
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			return nil, d.catalogGone()
		}
	}
	if err := os.MkdirAll(d.file(warehousesDir), 0o777); err != nil {
		return nil, unusable(path, err)
	}
	return d, nil
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// warehouseRoot is the location of a warehouse that names none.
func (d *dataDir) warehouseRoot(name string) string {
	return blob.DirURI(d.file(filepath.Join(warehousesDir, name)))
}

// close gives the directory up.
func (d *dataDir) close() error { return d.lock.release() }

// resolve is the absolute path of a directory that may not exist yet, with the
// links resolved of the part that does.
func resolve(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("data directory %s: %w; name it by an absolute path", name, err)
	}
	for there, missing := path, ""; ; {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			return filepath.Join(real, missing), nil
		}
		above := filepath.Dir(there)
		if !errors.Is(err, fs.ErrNotExist) || above == there {
			return "", unusable(path, err)
		}
		there, missing = above, filepath.Join(filepath.Base(there), missing)
	}
}

// checkPath refuses a path that could not stand in a URI as it is.
func checkPath(path string) error {
	_, err := blob.Normalize(blob.DirURI(path))
	return err
}

// unusable adds the remedy to what the operating system said about the directory.
func unusable(path string, err error) error {
	var remedy string
	if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
		remedy = "it is a file: name a directory with --data"
	} else {
		remedy = "it must be a directory in which this user can write: change its owner or mode, or choose another with --data"
	}
	return fmt.Errorf("data directory %s cannot be used: %w; %s", path, err, remedy)
}

// checkVersion reads the version file, if there is one. Later lines than the first
// are for later versions.
func checkVersion(path string) (exists bool, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w; this user must be able to read it", path, err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	version, err := strconv.Atoi(first)
	if err != nil || version < 1 {
		return false, fmt.Errorf("%s is damaged: its first line is %.40q and not a version; delete it, and the next start writes it anew", path, first)
	}
	if version > layoutVersion {
		return false, fmt.Errorf("the data directory %s has version %d, and this landfast knows versions up to %d; run the landfast that wrote it, or a newer one",
			filepath.Dir(path), version, layoutVersion)
	}
	return true, nil
}

// markServed writes the version file where there is none. It is called when the
// catalog's first records are durable, and never before: a directory with the file
// and without those records has lost them, one without the file is new, holds a
// restored catalog.db, or was left by a first start that did not come to its end.
func (d *dataDir) markServed() error {
	if d.served {
		return nil
	}
	if err := writeDurably(d.file(versionFile), fmt.Appendln(nil, layoutVersion)); err != nil {
		return err
	}
	d.served = true
	return nil
}

// catalogGone refuses to begin anew where a catalog has been: its tables would
// seem never to have been there.
func (d *dataDir) catalogGone() error {
	return fmt.Errorf("%s is missing or empty in a directory that was served before; restore a backup, or delete %s to begin anew",
		d.file(catalogFile), d.file(versionFile))
}

// writeDurably makes a file of these bytes that is whole or not there.
func writeDurably(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return unusable(dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// dirLock is the lock of a data directory. It ends with the process, however that ends.
type dirLock struct {
	file *os.File
}

// takeLock takes the lock, or says who has it.
func takeLock(dir string) (*dirLock, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, unusable(dir, err)
	}
	taken, err := lockExclusive(f)
	if err == nil && taken {
		l := &dirLock{f}
		if err := l.describe(""); err != nil {
			return nil, errors.Join(err, l.release())
		}
		return l, nil
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w; the data directory must be on a file system with locks", path, err), f.Close())
	}
	holder, err := os.ReadFile(path)
	holder = bytes.TrimSpace(holder)
	if err != nil || len(holder) == 0 {
		holder = []byte("another process")
	}
	return nil, errors.Join(fmt.Errorf("the data directory %s is in use by %s; stop that one first, or choose another directory with --data", dir, holder), f.Close())
}

// describe writes who holds the lock, for the process that is refused; url is empty until there is one.
func (l *dirLock) describe(url string) error {
	who := fmt.Sprintf("process %d", os.Getpid())
	if url != "" {
		who += ", which serves " + url
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	if _, err := l.file.WriteAt([]byte(who+"\n"), 0); err != nil {
		return fmt.Errorf("write %s: %w", l.file.Name(), err)
	}
	return nil
}

// release gives the lock up. The file stays: to delete it would let two processes
// hold locks on two files of one name.
func (l *dirLock) release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}
