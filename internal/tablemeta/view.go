package tablemeta

import (
	"fmt"
	"math"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/schema"
)

// viewFormat is the only format version of views.
const viewFormat = 1

// View is the metadata of one view at one time. It is immutable and safe for
// concurrent use.
type View struct {
	// doc is the JSON document. Everything below is read from it.
	doc     []byte
	members []rawjson.Member // of doc, in order

	viewState
}

// viewState is what commits to a view look at and change.
type viewState struct {
	uuid           string
	location       string // as it was given: not empty
	currentVersion int    // is in versions

	schemas    list[int]         // by schema-id
	versions   list[viewVersion] // by version-id; the current one has its schema in schemas
	log        list[viewLogEntry]
	properties list[string]
}

type viewVersion struct {
	id        int // unique in the view
	schemaID  int
	timestamp int64 // ms
}

// viewLogEntry says that a version became the current one at a time, in ms.
type viewLogEntry struct {
	timestamp int64
	version   int
}

// ParseView reads a view's metadata document. The view owns doc from then on.
//
// What every reader needs is checked here: scalars, ids that must be unique or
// must exist. Schemas and the queries of versions are read when a commit needs
// them; [View.Verify] reads all.
// Errors are [*InvalidError].
func ParseView(doc []byte) (*View, error) {
	const what = "Invalid view metadata"
	members, err := rawjson.Object(doc)
	if err != nil {
		return nil, &InvalidError{Message: what + ": " + err.Error(), Err: err}
	}
	v := &View{doc: doc, members: members}
	d := document{fields: fields{what: what, object: doc}, members: members}
	d.readView(&v.viewState)
	if d.err != nil {
		return nil, d.err
	}
	if err := v.check(); err != nil {
		return nil, &InvalidError{Message: what + ": " + err.Message}
	}
	return v, nil
}

func (d *document) readView(s *viewState) {
	s.uuid = d.string("view-uuid")
	version := d.int("format-version")
	s.location = d.string("location")
	switch {
	case d.err != nil:
	case version != viewFormat:
		d.err = invalid("Unsupported format version: %d", version)
	case s.uuid == "":
		d.fail("view-uuid must not be empty")
	case s.location == "":
		d.fail("location must not be empty")
	}
	s.currentVersion = d.int("current-version-id")
	d.readProperties(&s.properties)
	for _, name := range []string{"schemas", "versions", "version-log"} {
		d.required(name)
	}
	s.schemas = readArray(d, "schemas", func(element []byte) int { return d.id("schemas", element, "schema-id", false) })
	s.versions = readArray(d, "versions", func(element []byte) viewVersion {
		timestamp, _ := rawjson.Lookup(element, "timestamp-ms")
		return viewVersion{
			id:        d.id("versions", element, "version-id", true),
			schemaID:  d.id("versions", element, "schema-id", true),
			timestamp: d.elementInt("versions", element, "timestamp-ms", timestamp, true),
		}
	})
	s.log = readArray(d, "version-log", func(element []byte) viewLogEntry {
		timestamp, _ := rawjson.Lookup(element, "timestamp-ms")
		return viewLogEntry{
			timestamp: d.elementInt("version-log", element, "timestamp-ms", timestamp, true),
			version:   d.id("version-log", element, "version-id", true),
		}
	})
}

// check holds of all views that this package reads or makes.
func (s *viewState) check() *InvalidError {
	current := s.versionIndex(s.currentVersion)
	if current < 0 {
		return invalid("Cannot find current version %d in view versions", s.currentVersion)
	}
	if id := s.versions.entries[current].head.schemaID; position(&s.schemas, id) < 0 {
		return invalid("Cannot find current schema with id %d in schemas", id)
	}
	sorted := sortedIDs(&s.schemas, func(id *int) int64 { return int64(*id) })
	if i := repeated(sorted); i >= 0 {
		return invalid("schemas: id %d is used twice", sorted[i])
	}
	sorted = sortedIDs(&s.versions, func(v *viewVersion) int64 { return int64(v.id) })
	if i := repeated(sorted); i >= 0 {
		return invalid("versions: id %d is used twice", sorted[i])
	}
	return nil
}

// JSON is the document: the bytes given to [ParseView], or those that
// [CreateView] or [CommitView] wrote. The caller must not change them.
func (v *View) JSON() []byte { return v.doc }

// Size is about how many bytes the metadata takes in memory.
func (v *View) Size() int {
	return documentSize(v.doc, v.members) + v.schemas.size() + v.versions.size() + v.log.size() + v.properties.size()
}

// UUID tells the view from every other that had or will have its name.
func (v *View) UUID() string { return v.uuid }

// Location is the view's base location as its creator gave it, which may be with
// a trailing slash.
func (v *View) Location() string { return v.location }

// Property is the value of one of the view's properties.
func (v *View) Property(name string) (value string, ok bool) {
	return property(&v.properties, name)
}

// String is for logs and messages: which view, and how far it has come.
func (v *View) String() string {
	return fmt.Sprintf("view %s (version %d of %d)", v.uuid, v.currentVersion, v.versions.len())
}

// Verify reads what [ParseView] leaves unread: all schemas and all versions. It is
// for metadata from elsewhere, and refuses what the reference implementation cannot
// read. Errors are [*InvalidError].
func (v *View) Verify() error {
	d := fields{what: "Invalid view metadata", object: v.doc}
	if d.notNull("properties"); d.err != nil {
		return d.err
	}
	for i := range v.schemas.entries {
		if _, err := schema.Parse(v.schemas.value(i)); err != nil {
			return invalidBecause(err)
		}
	}
	for i := range v.versions.entries {
		f := fields{what: fmt.Sprintf("Invalid view version %d", v.versions.entries[i].head.id), object: v.versions.value(i)}
		if f.viewVersion(); f.err != nil {
			return f.err
		}
	}
	return nil
}

func (s *viewState) versionIndex(id int) int {
	return s.versions.index(func(v *viewVersion) bool { return v.id == id })
}

// lastLogTime is the time of the newest entry of the log.
func (s *viewState) lastLogTime() int64 {
	if n := s.log.len(); n > 0 {
		return s.log.entries[n-1].head.timestamp
	}
	return math.MinInt64
}

// ViewFileName is the location of the file for v, as [FileName] is for a table:
// numbered one higher than baseFile, or 0 if that is empty or has no number.
func ViewFileName(v *View, baseFile, uuid string) string {
	return fileName(&v.properties, v.location, codecGzip, baseFile, uuid)
}

// EncodeView is the bytes of the file for v: its JSON, compressed unless its
// properties say otherwise. The caller must not change them. [Decode] reads them.
// An unknown codec is an [*InvalidError].
func EncodeView(v *View) ([]byte, error) {
	return encode(&v.properties, codecGzip, v.doc)
}
