package tablemeta

// Update is one change that a commit makes. Its zero value is none; it is made
// by decoding JSON, and encodes to the same in normal form, unknown members
// included. It is immutable, and safe for concurrent use.
type Update struct {
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
	"assign-uuid":                 decodeAssignUUID,
	upgradeFormatVersion:          decodeUpgrade,
	"add-schema":                  decodeAddSchema,
	"set-current-schema":          func(f *fields) change { return setCurrentSchema{f.int("schema-id")} },
	"remove-schemas":              func(f *fields) change { return removeSchemas{f.ids("schema-ids")} },
	"add-spec":                    decodeAddSpec,
	"set-default-spec":            func(f *fields) change { return setDefaultSpec{f.int("spec-id")} },
	"remove-partition-specs":      func(f *fields) change { return removeSpecs{f.ids("spec-ids")} },
	"add-sort-order":              decodeAddSortOrder,
	"set-default-sort-order":      func(f *fields) change { return setDefaultSortOrder{f.int("sort-order-id")} },
	"add-snapshot":                decodeAddSnapshot,
	"remove-snapshots":            decodeRemoveSnapshots,
	"set-snapshot-ref":            func(f *fields) change { return setRef{f.ref(f.string("ref-name"))} },
	"remove-snapshot-ref":         func(f *fields) change { return removeRef{f.string("ref-name")} },
	"set-properties":              decodeSetProperties,
	"remove-properties":           decodeRemoveProperties,
	"set-location":                decodeSetLocation,
	"set-statistics":              decodeSetStatistics,
	"remove-statistics":           decodeRemoveStatistics,
	"set-partition-statistics":    decodeSetPartitionStatistics,
	"remove-partition-statistics": decodeRemovePartitionStatistics,
	"add-encryption-key":          decodeAddEncryptionKey,
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
	*u = Update{raw: raw, change: decoded}
	return nil
}

// MarshalJSON gives the update back as it was decoded, in normal form.
func (u Update) MarshalJSON() ([]byte, error) {
	if u.raw == nil {
		return nil, invalid("update: not decoded from JSON")
	}
	return u.raw, nil
}

// forView is an update that is known, but not for tables.
type forView string

func (c forView) apply(*builder) error {
	return invalid("Cannot apply update %s to a table", string(c))
}
