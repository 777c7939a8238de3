package tablemeta

import (
	"bytes"
)

// Update is one change that a commit makes. Its zero value is none; it is made
// by decoding JSON, and encodes to the same in normal form, unknown members
// included. It is immutable, and safe for concurrent use.
type Update struct {
	action string
	raw    []byte
	change change
}

// change is a decoded update.
type change interface {
	// apply makes the change, after those before it in the same commit.
	apply(b *builder) error
}

// actions decodes each action. What one value alone can show to be wrong is
// refused there, the rest when it is applied.
var actions = map[string]func(f *fields) change{
	"assign-uuid":                 func(f *fields) change { return decodeAssignUUID(f) },
	upgradeFormatVersion:          func(f *fields) change { return decodeUpgrade(f) },
	"add-schema":                  func(f *fields) change { return decodeAddSchema(f) },
	"set-current-schema":          func(f *fields) change { return setCurrentSchema{f.int("schema-id")} },
	"remove-schemas":              func(f *fields) change { return removeSchemas{f.ids("schema-ids")} },
	"add-spec":                    func(f *fields) change { return decodeAddSpec(f) },
	"set-default-spec":            func(f *fields) change { return setDefaultSpec{f.int("spec-id")} },
	"remove-partition-specs":      func(f *fields) change { return removeSpecs{f.ids("spec-ids")} },
	"add-sort-order":              func(f *fields) change { return decodeAddSortOrder(f) },
	"set-default-sort-order":      func(f *fields) change { return setDefaultSortOrder{f.int("sort-order-id")} },
	"add-snapshot":                func(f *fields) change { return decodeAddSnapshot(f) },
	"remove-snapshots":            func(f *fields) change { return decodeRemoveSnapshots(f) },
	"set-snapshot-ref":            func(f *fields) change { return setRef{f.ref(f.string("ref-name"))} },
	"remove-snapshot-ref":         func(f *fields) change { return removeRef{f.string("ref-name")} },
	"set-properties":              func(f *fields) change { return decodeSetProperties(f) },
	"remove-properties":           func(f *fields) change { return decodeRemoveProperties(f) },
	"set-location":                func(f *fields) change { return decodeSetLocation(f) },
	"set-statistics":              func(f *fields) change { return decodeSetStatistics(f) },
	"remove-statistics":           func(f *fields) change { return removeStatistics{snapshotID: f.int64("snapshot-id")} },
	"set-partition-statistics":    func(f *fields) change { return decodeSetPartitionStatistics(f) },
	"remove-partition-statistics": func(f *fields) change { return removeStatistics{f.int64("snapshot-id"), true} },
	"add-encryption-key":          func(f *fields) change { return decodeAddEncryptionKey(f) },
	"remove-encryption-key":       func(f *fields) change { return removeEncryptionKey{f.string("key-id")} },
	"add-view-version":            func(f *fields) change { f.nested("view-version"); return forView("AddViewVersion") },
	"set-current-view-version":    func(f *fields) change { f.int("view-version-id"); return forView("SetCurrentViewVersion") },
}

// lastAdded is the id that means: the one added last in this same commit.
const lastAdded = -1

// UnmarshalJSON refuses an unknown action and a missing or wrong field with an
// [*InvalidError] that names it.
func (u *Update) UnmarshalJSON(data []byte) error {
	action, raw, f, err := decodeTagged(data, "action", "update")
	if err != nil {
		return err
	}
	decode, ok := actions[action]
	if !ok {
		return invalid("Unrecognized table update: %q", excerpt(action))
	}
	decoded := decode(f)
	if f.err != nil {
		return f.err
	}
	*u = Update{action: action, raw: raw, change: decoded}
	return nil
}

// MarshalJSON gives the update back as it was decoded, in normal form.
func (u Update) MarshalJSON() ([]byte, error) {
	if u.raw == nil {
		return nil, invalid("update: not decoded from JSON")
	}
	return u.raw, nil
}

// Action is the update's action on the wire, in lower case.
func (u Update) Action() string { return u.action }

// Equal reports whether both were decoded from the same JSON.
func (u Update) Equal(o Update) bool { return bytes.Equal(u.raw, o.raw) }

// forView is an update that is known, but not for tables.
type forView string

func (c forView) apply(*builder) error {
	return invalid("Cannot apply update %s to a table", string(c))
}
