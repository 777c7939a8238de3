package tablemeta

import (
	"maps"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/schema"
)

// NewView is what a client asks for when it creates a view.
type NewView struct {
	UUID     string
	Location string
	// Schema and Version are JSON. Their ids and the version's time are the
	// client's, and are not kept.
	Schema, Version []byte
	// Properties may be nil.
	Properties map[string]string
	// Now is the server's time. It is used to the millisecond.
	Now time.Time
}

const (
	firstVersionID  = 1
	firstViewSchema = 0
)

// CreateView is the first metadata of a view: one version of one schema. Columns
// keep their ids. Representations that are not SQL are kept, where the reference
// refuses them. Errors are [*InvalidError].
func CreateView(n NewView) (*View, error) {
	switch {
	case n.UUID == "":
		return nil, invalid("Invalid view uuid: null")
	case n.Location == "":
		return nil, invalid("Invalid location: null")
	case n.Schema == nil:
		return nil, invalid("Cannot create view without specifying schema")
	case n.Version == nil:
		return nil, invalid("Cannot create view without specifying a query")
	}
	columns, err := schema.Parse(n.Schema)
	if err != nil {
		return nil, invalidBecause(err)
	}
	b := &viewBuilder{now: n.Now.UnixMilli()}
	b.uuid, b.location = n.UUID, n.Location
	b.schemas.add(firstViewSchema, columns.WithID(firstViewSchema).JSON())
	if err := b.setFirstVersion(n.Version); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
		b.properties.add(key, rawjson.AppendString(nil, n.Properties[key]))
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	doc := b.render()
	if err := rawjson.CheckLimits(doc); err != nil {
		return nil, &InvalidError{Message: "Invalid view: " + err.Error(), Err: err}
	}
	return ParseView(doc)
}

func (b *viewBuilder) setFirstVersion(sent []byte) error {
	const what = "view version"
	value, err := rawjson.Normalize(sent)
	if err != nil {
		return &InvalidError{Message: what + ": " + err.Error(), Err: err}
	}
	if value[0] != '{' {
		return invalid("%s: must be an object, got %s", what, excerpt(value))
	}
	value = withoutNulls(value)
	f := fields{what: what, object: value}
	f.viewVersion()
	if n := f.representations(); f.err == nil && n == 0 {
		return invalid("Cannot create view without specifying a query")
	}
	if f.err != nil {
		return f.err
	}
	if err := checkDialects(value); err != nil {
		return err
	}
	first := viewVersion{id: firstVersionID, schemaID: firstViewSchema, timestamp: b.now}
	b.addVersion(first, renumbered(value, first))
	b.setCurrent(first)
	return nil
}
