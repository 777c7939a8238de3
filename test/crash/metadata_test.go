package crash

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// metadataLogDefault is how many entries a metadata log has at most, unless the table says otherwise.
const metadataLogDefault = 100

// version is a metadata file: what the checker looks at in it.
type version struct {
	location string // its own
	number   int    // that its name starts with

	Format       int                  `json:"format-version"`
	UUID         string               `json:"table-uuid"`
	Location     string               `json:"location"`
	LastUpdated  int64                `json:"last-updated-ms"`
	LastSequence int64                `json:"last-sequence-number"`
	Properties   map[string]string    `json:"properties"`
	Current      *int64               `json:"current-snapshot-id"`
	Snapshots    []snapshot           `json:"snapshots"`
	Refs         map[string]reference `json:"refs"`
	SnapshotLog  []snapshotLogEntry   `json:"snapshot-log"`
	MetadataLog  []logEntry           `json:"metadata-log"`

	// Of a view.
	ViewUUID       string         `json:"view-uuid"`
	ViewVersions   []viewVersion  `json:"versions"`
	CurrentVersion int            `json:"current-version-id"`
	VersionLog     []viewLogEntry `json:"version-log"`
}

type viewLogEntry struct {
	ID int `json:"version-id"`
}

// viewVersion is one query of a view. Its text is the token of the operation that set it.
type viewVersion struct {
	ID      int         `json:"version-id"`
	Queries []viewQuery `json:"representations"`
}

type viewQuery struct {
	SQL string `json:"sql"`
}

type reference struct {
	ID int64 `json:"snapshot-id"`
}

type snapshotLogEntry struct {
	ID   int64 `json:"snapshot-id"`
	Time int64 `json:"timestamp-ms"`
}

type logEntry struct {
	File string `json:"metadata-file"`
	Time int64  `json:"timestamp-ms"`
}

// snapshot is a snapshot as it is sent and as it is stored.
type snapshot struct {
	ID           int64             `json:"snapshot-id"`
	Parent       *int64            `json:"parent-snapshot-id,omitempty"`
	Sequence     int64             `json:"sequence-number"`
	Time         int64             `json:"timestamp-ms"`
	ManifestList string            `json:"manifest-list"`
	Summary      map[string]string `json:"summary"`
	SchemaID     int               `json:"schema-id"`
}

// main is the snapshot at the head of main, or nil.
func (v *version) main() *int64 {
	if r, ok := v.Refs["main"]; ok {
		return &r.ID
	}
	return nil
}

// previous is the metadata file before it, as its log says; empty: there was none.
func (v *version) previous() string {
	if n := len(v.MetadataLog); n > 0 {
		return v.MetadataLog[n-1].File
	}
	return ""
}

// parseVersion reads a metadata file, compressed or not.
func parseVersion(location string, data []byte) (*version, error) {
	if strings.HasSuffix(location, ".gz.metadata.json") {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		if data, err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	v := &version{location: location}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	var err error
	v.number, err = fileNumber(location)
	return v, err
}

// fileNumber is the number that the name of a metadata file starts with.
func fileNumber(location string) (int, error) {
	name := location[strings.LastIndexByte(location, '/')+1:]
	digits, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(digits)
	if err != nil || len(digits) < 5 {
		return 0, fmt.Errorf("%s is not named like a metadata file", location)
	}
	return n, nil
}

// archive is where metadata files lie.
type archive interface {
	// version reads a file; fs.ErrNotExist if it is not there.
	version(location string) (*version, error)
	// exists tells whether a file is there.
	exists(location string) bool
	// remembered is a file that was read before and is gone; nil if it never was.
	remembered(location string) *version
}

// disk is the archive of file: locations. Metadata files never change, so each is
// parsed once; that it is still there, in its full length, is looked at each time.
type disk struct{ parsed map[string]parsedFile }

type parsedFile struct {
	*version
	bytes int64
}

func (d *disk) version(location string) (*version, error) {
	path, err := filePath(location)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if known, ok := d.parsed[location]; ok && known.bytes == info.Size() {
		return known.version, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v, err := parseVersion(location, data)
	if err != nil {
		return nil, err
	}
	d.parsed[location] = parsedFile{v, int64(len(data))}
	return v, nil
}

func (d *disk) remembered(location string) *version { return d.parsed[location].version }

func (d *disk) exists(location string) bool {
	path, err := filePath(location)
	if err != nil {
		return false
	}
	_, err = os.Stat(path)
	return err == nil
}

func filePath(location string) (string, error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", err
	}
	if u.Scheme != "file" || u.Path == "" {
		return "", fmt.Errorf("%s is not a file: location", location)
	}
	return filepath.FromSlash(u.Path), nil
}

// sweep looks at every metadata file under the directory that a location names,
// also at those that no pointer leads to, and returns those that are there under their
// final name but broken, and why.
func (d *disk) sweep(root string) (broken map[string]error, err error) {
	path, err := filePath(root)
	if err != nil {
		return nil, err
	}
	broken = map[string]error{}
	err = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, ".metadata.json") {
			return err
		}
		location := strings.TrimSuffix(root, "/") + filepath.ToSlash(strings.TrimPrefix(p, path))
		if _, err := d.version(location); err != nil && !errors.Is(err, fs.ErrNotExist) { // a purge may be under way
			broken[location] = err
		}
		return nil
	})
	return broken, err
}
