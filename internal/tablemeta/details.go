package tablemeta

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/rawjson"
)

// This file holds the changes to a table's identity, properties and side files.

const upgradeFormatVersion = "upgrade-format-version"

// ids is a member that must be an array of ids of schemas or specs.
func (f *fields) ids(name string) map[int]bool {
	ids := map[int]bool{}
	for _, id := range f.int64s(name, math.MinInt32, math.MaxInt32) {
		ids[int(id)] = true
	}
	return ids
}

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

type setProperties struct{ members []rawjson.Member }

// decodeSetProperties also reads the name that old clients send.
func decodeSetProperties(f *fields) change {
	name := "updates"
	if _, ok := f.lookup(name); !ok {
		if _, old := f.lookup("updated"); old {
			name = "updated"
		}
	}
	return setProperties{f.stringMap(name)}
}

func (c setProperties) apply(b *builder) error {
	if len(c.members) == 0 {
		return nil
	}
	at := make(map[string]int, b.properties.len())
	for i := range b.properties.entries {
		at[b.properties.entries[i].head] = i
	}
	for _, m := range c.members {
		if i, ok := at[m.Name]; ok {
			b.properties.replace(i, m.Name, m.Value)
		} else {
			b.properties.add(m.Name, m.Value)
		}
	}
	b.changed = true
	return nil
}

type removeProperties struct{ names map[string]bool }

// decodeRemoveProperties also reads the name that old clients send.
func decodeRemoveProperties(f *fields) change {
	name := "removals"
	if _, ok := f.lookup(name); !ok {
		if _, old := f.lookup("removed"); old {
			name = "removed"
		}
	}
	names := map[string]bool{}
	for _, key := range f.strings(name) {
		names[key] = true
	}
	return removeProperties{names}
}

func (c removeProperties) apply(b *builder) error {
	if b.properties.remove(func(name *string) bool { return c.names[*name] }) > 0 {
		b.changed = true
	}
	return nil
}

// setStatistics replaces the statistics file of a snapshot, or its partition
// statistics file.
type setStatistics struct {
	snapshotID int64
	partition  bool
	value      []byte
}

func decodeSetStatistics(f *fields) change {
	// The snapshot-id beside it is an older spelling; the one inside counts.
	c := setStatistics{value: f.nested("statistics")}
	if f.err != nil {
		return nil
	}
	file := fields{what: f.what, object: c.value}
	c.snapshotID = file.int64("snapshot-id")
	file.string("statistics-path")
	file.int64("file-size-in-bytes")
	file.int64("file-footer-size-in-bytes")
	blobs, ok := file.required("blob-metadata")
	if ok && blobs[0] != '[' {
		file.fail("field %q must be an array, got %s", "blob-metadata", excerpt(blobs))
	}
	for element := range rawjson.Elements(blobs) {
		blob := fields{what: f.what + ": blob-metadata", object: element}
		blob.string("type")
		blob.int64("snapshot-id")
		blob.int64("sequence-number")
		blob.int64s("fields", math.MinInt32, math.MaxInt32)
		blob.optionalStringMap("properties")
		if blob.err != nil && file.err == nil {
			file.err = blob.err
		}
	}
	f.err = file.err
	return c
}

func decodeSetPartitionStatistics(f *fields) change {
	c := setStatistics{value: f.nested("partition-statistics"), partition: true}
	if f.err != nil {
		return nil
	}
	file := fields{what: f.what, object: c.value}
	c.snapshotID = file.int64("snapshot-id")
	file.string("statistics-path")
	file.int64("file-size-in-bytes")
	f.err = file.err
	return c
}

func (b *builder) statisticsList(partition bool) *list[int64] {
	if partition {
		return &b.partitionStatistics
	}
	return &b.statistics
}

func (c setStatistics) apply(b *builder) error {
	files := b.statisticsList(c.partition)
	same := func(id *int64) bool { return *id == c.snapshotID }
	b.changed = true
	i := files.index(same)
	if i < 0 {
		files.add(c.snapshotID, c.value)
		return nil
	}
	files.replace(i, c.snapshotID, c.value)
	// Other writers may have left more than one.
	if rest := files.entries[i+1:]; slices.ContainsFunc(rest, func(e entry[int64]) bool { return same(&e.head) }) {
		kept := slices.DeleteFunc(rest, func(e entry[int64]) bool { return same(&e.head) })
		files.entries = files.entries[:i+1+len(kept)]
	}
	return nil
}

type removeStatistics struct {
	snapshotID int64
	partition  bool
}

func (c removeStatistics) apply(b *builder) error {
	if b.statisticsList(c.partition).remove(func(id *int64) bool { return *id == c.snapshotID }) > 0 {
		b.changed = true
	}
	return nil
}

type addEncryptionKey struct {
	id    string
	value []byte
}

func decodeAddEncryptionKey(f *fields) change {
	value := f.nested("encryption-key")
	if f.err != nil {
		return nil
	}
	key := fields{what: f.what, object: value}
	id := key.string("key-id")
	metadata := key.string("encrypted-key-metadata")
	if _, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(metadata, "=")); err != nil {
		key.fail("field %q must be base64: %v", "encrypted-key-metadata", err)
	}
	key.optionalString("encrypted-by-id")
	key.optionalStringMap("properties")
	f.err = key.err
	return addEncryptionKey{id, value}
}

// apply keeps an existing key: data may be encrypted with it.
func (c addEncryptionKey) apply(b *builder) error {
	if b.encryptionKeys.index(func(id *string) bool { return *id == c.id }) < 0 {
		b.encryptionKeys.add(c.id, c.value)
		b.changed = true
	}
	return nil
}

type removeEncryptionKey struct{ id string }

func (c removeEncryptionKey) apply(b *builder) error {
	if b.encryptionKeys.remove(func(id *string) bool { return *id == c.id }) > 0 {
		b.changed = true
	}
	return nil
}
