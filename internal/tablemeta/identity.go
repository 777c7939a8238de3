package tablemeta

import (
	"strings"

	"github.com/google/uuid"
)

// This file holds the changes to which table it is: its uuid, format version and
// location.

const upgradeFormatVersion = "upgrade-format-version"

type assignUUID struct{ uuid string }

func decodeAssignUUID(f *fields) change {
	id := f.string("uuid")
	if f.err == nil && (len(id) != 36 || uuid.Validate(id) != nil) {
		f.fail("field %q must be a UUID, got %q", "uuid", excerpt(id))
	}
	return assignUUID{id}
}

// apply refuses to change a uuid: clients tell by it whether a name still means
// the table that they know.
func (c assignUUID) apply(b *builder) error {
	if strings.EqualFold(c.uuid, b.uuid) {
		return nil
	}
	if b.uuid != "" {
		return invalid("Cannot reassign uuid: the table has %s, the update %s", b.uuid, c.uuid)
	}
	b.uuid, b.changed = c.uuid, true
	return nil
}

type upgrade struct{ version int }

func decodeUpgrade(f *fields) change { return upgrade{f.int("format-version")} }

func (c upgrade) apply(b *builder) error {
	switch {
	case c.version == b.formatVersion:
		return nil
	case c.version < b.formatVersion:
		return invalid("Cannot downgrade v%d table to v%d", b.formatVersion, c.version)
	case c.version > formatCreateMax:
		return invalid("Cannot upgrade table to unsupported format version: v%d (supported: v%d)", c.version, formatCreateMax)
	}
	b.formatVersion, b.changed = c.version, true
	return nil
}

type setLocation struct{ location string }

func decodeSetLocation(f *fields) change {
	location := stripTrailingSlash(f.string("location"))
	if f.err == nil && location == "" {
		f.fail("field %q must not be empty", "location")
	}
	return setLocation{location}
}

func (c setLocation) apply(b *builder) error {
	if c.location != b.location {
		b.location, b.changed = c.location, true
	}
	return nil
}
