package tablemeta

import (
	"math"
	"strings"

	"github.com/landfast/landfast/internal/schema"
)

// ViewUpdate is one change that a commit makes to a view. Its zero value is none;
// it is made by decoding JSON, and encodes to the same in normal form, unknown
// members included. It is immutable, and safe for concurrent use.
type ViewUpdate struct {
	raw    []byte
	change viewChange
}

// viewChange is a decoded update.
type viewChange interface {
	// applyToView makes the change, after those before it in the same commit.
	applyToView(b *viewBuilder) error
}

// viewActions decodes each action on views. Those that tables have too are decoded
// as for tables.
var viewActions = map[string]func(f *fields) viewChange{
	"assign-uuid":              shared("assign-uuid"),
	upgradeFormatVersion:       shared(upgradeFormatVersion),
	"add-schema":               shared("add-schema"),
	"set-properties":           shared("set-properties"),
	"remove-properties":        shared("remove-properties"),
	"set-location":             decodeSetViewLocation,
	"add-view-version":         decodeAddViewVersion,
	"set-current-view-version": func(f *fields) viewChange { return setCurrentViewVersion{f.int("view-version-id")} },
}

// shared decodes an action on tables whose change can be made to views as well.
func shared(action string) func(f *fields) viewChange {
	return func(f *fields) viewChange {
		decoded, _ := actions[action](f).(viewChange) // nil after an error
		return decoded
	}
}

// UnmarshalJSON refuses an unknown action and a missing or wrong field with an
// [*InvalidError] that names it.
func (u *ViewUpdate) UnmarshalJSON(data []byte) error {
	action, raw, f, err := decodeTagged(data, "action", "update")
	if err != nil {
		return err
	}
	var decoded viewChange
	if decode, ok := viewActions[action]; ok {
		decoded = decode(f)
	} else if decode, ok := actions[action]; ok {
		decode(f)
		decoded = forTable(action)
	} else {
		return invalid("Unrecognized view update: %q", excerpt(action))
	}
	if f.err != nil {
		return f.err
	}
	*u = ViewUpdate{raw: raw, change: decoded}
	return nil
}

// MarshalJSON gives the update back as it was decoded, in normal form.
func (u ViewUpdate) MarshalJSON() ([]byte, error) {
	if u.raw == nil {
		return nil, invalid("update: not decoded from JSON")
	}
	return u.raw, nil
}

// forTable is an update that is known, but not for views.
type forTable string

func (c forTable) applyToView(*viewBuilder) error {
	return invalid("Cannot apply update %s to a view", string(c))
}

func (c assignUUID) applyToView(b *viewBuilder) error {
	if !strings.EqualFold(c.uuid, b.uuid) {
		return invalid("Cannot reassign uuid: the view has %s, the update %s", excerpt(b.uuid), c.uuid)
	}
	return nil
}

func (c upgrade) applyToView(*viewBuilder) error {
	switch {
	case c.version < viewFormat:
		return invalid("Cannot downgrade v%d view to v%d", viewFormat, c.version)
	case c.version > viewFormat:
		return invalid("Unsupported format version: %d", c.version)
	}
	return nil
}

// applyToView gives an equal schema the id of the one that is there. Then the
// schema that was added last, which -1 stands for, is still the one before.
func (c addSchema) applyToView(b *viewBuilder) error {
	for i := range b.schemas.entries {
		existing, err := parsed(&b.parsedSchemas, &b.schemas, i, schema.Parse)
		if err != nil {
			return err
		}
		if existing.SameAs(c.schema) {
			return nil
		}
	}
	id, err := nextID(&b.schemas, 0)
	if err != nil {
		return err
	}
	added := c.schema.WithID(id)
	b.schemas.add(id, added.JSON())
	put(&b.parsedSchemas, id, added)
	b.lastSchema, b.changed = &id, true
	return nil
}

func (c setProperties) applyToView(b *viewBuilder) error {
	if c.set(&b.properties, &b.propertyAt) {
		b.changed = true
	}
	return nil
}

func (c removeProperties) applyToView(b *viewBuilder) error {
	if c.remove(&b.properties, &b.propertyAt) {
		b.changed = true
	}
	return nil
}

type setViewLocation struct{ location string }

// decodeSetViewLocation leaves a trailing slash where it is, as the reference does
// for views.
func decodeSetViewLocation(f *fields) viewChange {
	location := f.string("location")
	if f.err == nil && location == "" {
		f.fail("field %q must not be empty", "location")
	}
	return setViewLocation{location}
}

func (c setViewLocation) applyToView(b *viewBuilder) error {
	if c.location != b.location {
		b.location, b.changed = c.location, true
	}
	return nil
}

type addViewVersion struct {
	viewVersion
	value []byte
}

func decodeAddViewVersion(f *fields) viewChange {
	value := f.kept("view-version")
	if f.err != nil {
		return nil
	}
	v := fields{what: "view version", object: value}
	c := addViewVersion{viewVersion: v.viewVersion(), value: value}
	if v.err != nil {
		f.err = v.err
		return nil
	}
	return c
}

// applyToView compares before it resolves the schema that -1 stands for: a version
// of a new schema is a new version.
func (c addViewVersion) applyToView(b *viewBuilder) error {
	if id, ok := b.versionIDs()[versionKey(c.value)]; ok {
		b.lastVersion = nil
		if b.added[id] {
			b.lastVersion = &id
		}
		return nil
	}
	added := c.viewVersion
	if added.id <= b.highestVersion() {
		if b.highestVersion() == math.MaxInt32 {
			return invalid("No version id above %d is left", math.MaxInt32)
		}
		added.id = b.highestVersion() + 1
	}
	if added.schemaID == lastAdded {
		if b.lastSchema == nil {
			return invalid("Cannot set last added schema: no schema has been added")
		}
		added.schemaID = *b.lastSchema
	}
	if position(&b.schemas, added.schemaID) < 0 {
		return invalid("Cannot add version with unknown schema: %d", added.schemaID)
	}
	if err := checkDialects(c.value); err != nil {
		return err
	}
	b.addVersion(added, renumbered(c.value, added))
	b.lastVersion, b.changed = &added.id, true
	return nil
}

type setCurrentViewVersion struct{ id int }

func (c setCurrentViewVersion) applyToView(b *viewBuilder) error {
	id := c.id
	if id == lastAdded {
		if b.lastVersion == nil {
			return invalid("Cannot set last version id: no current version id has been set")
		}
		id = *b.lastVersion
	}
	if id == b.currentVersion {
		return nil
	}
	i := b.versionIndex(id)
	if i < 0 {
		return invalid("Cannot set current version to unknown version: %d", id)
	}
	b.setCurrent(b.versions.entries[i].head)
	b.changed = true
	return nil
}
