package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/tablemeta"
)

// Ident names a table or a view.
type Ident struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

// String is the dotted form that the messages of the Java reference use.
func (i Ident) String() string {
	return strings.Join(append(append([]string{}, i.Namespace...), i.Name), ".")
}

func (i Ident) equal(o Ident) bool {
	return i.Name == o.Name && slices.Equal(i.Namespace, o.Namespace)
}

func dotted(levels []string) string { return strings.Join(levels, ".") }

// Page asks for a part of a list. The zero Page asks for everything.
type Page struct {
	Token string `json:"token,omitempty"` // NextToken of the page before; opaque
	Size  int    `json:"size,omitempty"`  // at most so many; 0: no bound
}

// Warehouse is a named place for namespaces, with the roots its files may lie in.
type Warehouse struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Root            blob.Root         `json:"root"`
	Allowed         []blob.Root       `json:"allowed,omitempty"`
	Properties      map[string]string `json:"properties,omitempty"` // clients receive them as defaults
	CreatedAtMillis int64             `json:"created-at-ms"`
	OverlapAllowed  bool              `json:"overlap-allowed,omitempty"` // opted out of the location index
}

// Scope is where the files of the warehouse may lie.
func (w Warehouse) Scope() blob.Scope {
	return append(blob.Scope{w.Root}, w.Allowed...)
}

// TableState is the answer of every operation that returns a table.
type TableState struct {
	MetadataLocation string `json:"metadata-location,omitempty"` // empty: staged, not created
	Metadata         []byte `json:"metadata"`                    // the JSON document
	ETag             string `json:"etag,omitempty"`              // without quotes; of the default representation unless another was asked for
	// Root is where the warehouse keeps its files, without secrets: clients are told how to reach it.
	Root blob.Root `json:"root"`
}

// tableState is the answer for a metadata file and what it holds.
func tableState(w Warehouse, file metadataFile, m *tablemeta.Metadata, s Snapshots) TableState {
	json := m.JSON()
	if s == SnapshotsRefs {
		json = m.RefsOnlyJSON()
	}
	return TableState{MetadataLocation: file.location, Metadata: json, ETag: etag(file, s), Root: w.Root.Public()}
}

// Snapshots says which snapshots an answer holds.
type Snapshots string

// The representations of a table. The zero value is SnapshotsAll.
const (
	SnapshotsAll  Snapshots = "all"
	SnapshotsRefs Snapshots = "refs"
)

// etag is the entity tag of a representation of a metadata file. While a file is bound its
// location never names other content, so the tag need not look at it.
func etag(file metadataFile, s Snapshots) string {
	if s == "" {
		s = SnapshotsAll
	}
	var room [320]byte // most locations fit
	b := append(append(room[:0], s...), '\n')
	b = append(append(b, file.binding...), '\n')
	sum := sha256.Sum256(append(b, file.location...))
	var tag [32]byte
	hex.Encode(tag[:], sum[:16])
	return string(tag[:])
}
