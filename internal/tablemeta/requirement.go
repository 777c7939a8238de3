package tablemeta

import (
	"slices"
	"strconv"
	"strings"

	"github.com/landfast/landfast/internal/rawjson"
)

// Requirement is one condition of a commit on the state of the table. Its zero
// value is none; it is made by decoding JSON, and encodes to the same in normal
// form, unknown members included. It is immutable, and safe for concurrent use.
type Requirement struct {
	kind  string
	raw   []byte
	check requirement
}

// requirement compares with the metadata of a table that exists.
type requirement func(base *state) error

// requirementKinds decodes each type of requirement.
var requirementKinds = map[string]func(f *fields) requirement{
	assertCreate:                        func(*fields) requirement { return tableMissing },
	"assert-table-uuid":                 assertUUID,
	"assert-ref-snapshot-id":            assertRef,
	"assert-last-assigned-field-id":     assertInt("last-assigned-field-id", "last assigned field id", func(s *state) int { return s.lastColumnID }),
	"assert-current-schema-id":          assertInt("current-schema-id", "current schema", func(s *state) int { return s.currentSchemaID }),
	"assert-last-assigned-partition-id": assertInt("last-assigned-partition-id", "last assigned partition id", func(s *state) int { return s.lastPartitionID }),
	"assert-default-spec-id":            assertInt("default-spec-id", "default partition spec", func(s *state) int { return s.defaultSpecID }),
	"assert-default-sort-order-id":      assertInt("default-sort-order-id", "default sort order", func(s *state) int { return s.defaultOrderID }),
	assertViewUUIDKind:                  assertViewUUID,
}

const (
	assertCreate       = "assert-create"
	assertViewUUIDKind = "assert-view-uuid"
)

// UnmarshalJSON refuses an unknown type and a missing field with an
// [*InvalidError] that names it.
func (r *Requirement) UnmarshalJSON(data []byte) error {
	kind, raw, f, err := decodeTagged(data, "type", "requirement")
	if err != nil {
		return err
	}
	decode, ok := requirementKinds[kind]
	if !ok {
		return invalid("Unrecognized update requirement: %q", excerpt(kind))
	}
	check := decode(f)
	if f.err != nil {
		return f.err
	}
	*r = Requirement{kind: kind, raw: raw, check: check}
	return nil
}

// decodeTagged validates one JSON object and reads the member that says what it
// is. Java compares that without case.
func decodeTagged(data []byte, tag, what string) (kind string, raw []byte, f *fields, err error) {
	// A copy, because data is only lent; and normalized, so that what a commit
	// writes does not depend on how often the message was encoded on its way.
	raw, err = rawjson.Normalize(data)
	if err != nil {
		return "", nil, nil, err
	}
	if err := rawjson.CheckLimits(raw); err != nil {
		return "", nil, nil, &InvalidError{Message: what + ": " + err.Error(), Err: err}
	}
	f = &fields{what: what, object: raw}
	if raw[0] != '{' {
		return "", nil, nil, invalid("%s: must be an object, got %s", what, excerpt(raw))
	}
	kind = strings.ToLower(f.string(tag))
	if f.err != nil {
		return "", nil, nil, f.err
	}
	f.what = what + " " + strconv.Quote(excerpt(kind))
	return kind, raw, f, nil
}

// MarshalJSON gives the requirement back as it was decoded, in normal form.
func (r Requirement) MarshalJSON() ([]byte, error) {
	if r.raw == nil {
		return nil, invalid("requirement: not decoded from JSON")
	}
	return r.raw, nil
}

// IsCreate reports whether the commit is to create its table.
func IsCreate(reqs []Requirement) bool {
	return slices.ContainsFunc(reqs, func(r Requirement) bool { return r.kind == assertCreate })
}

// Check compares requirements with the metadata of the table, nil if there is no
// table. It returns a [*RequirementError] for the first that does not hold, or an
// [*InvalidError] for requirements that cannot stand together or are not about
// tables.
func Check(base *Metadata, reqs []Requirement) error {
	if len(reqs) > stepsMax {
		return invalid("Too many requirements in one commit: more than %d", stepsMax)
	}
	if IsCreate(reqs) {
		const othersMax = 20 // in one message
		var others []string
		for _, r := range reqs {
			if r.kind != assertCreate && len(others) < othersMax {
				others = append(others, r.kind)
			}
		}
		if others != nil {
			return invalid("Invalid create requirements: %v", others)
		}
		if base != nil {
			return tableMissing(&base.state)
		}
		return nil
	}
	for _, r := range reqs {
		if r.check == nil {
			return invalid("requirement: not decoded from JSON")
		}
		if base == nil {
			return requirementFailed("table does not exist")
		}
		if err := r.check(&base.state); err != nil {
			return err
		}
	}
	return nil
}

func tableMissing(*state) error { return requirementFailed("table already exists") }

func assertUUID(f *fields) requirement {
	uuid := f.string("uuid")
	return func(base *state) error {
		if base.uuid == "" || !strings.EqualFold(uuid, base.uuid) {
			return requirementFailed("UUID does not match: expected %s != %s", orNull(base.uuid), excerpt(uuid))
		}
		return nil
	}
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

// assertViewUUID is known, so that sending it to a table is told from a typing
// error.
func assertViewUUID(f *fields) requirement {
	f.string("uuid")
	return func(*state) error { return invalid("Cannot validate AssertViewUUID against a table") }
}

func assertRef(f *fields) requirement {
	name := f.string("ref")
	// Absent means null: the ref must not exist.
	want := f.optionalInt64("snapshot-id")
	return func(base *state) error {
		i := base.refIndex(name)
		if i < 0 {
			if want != nil {
				return requirementFailed("branch or tag %s is missing, expected %d", excerpt(name), *want)
			}
			return nil
		}
		r := &base.refs.entries[i].head
		switch {
		case want == nil:
			return requirementFailed("%s %s was created concurrently", r.kind(), excerpt(name))
		case *want != r.snapshotID:
			return requirementFailed("%s %s has changed: expected id %d != %d", r.kind(), excerpt(name), *want, r.snapshotID)
		}
		return nil
	}
}

// assertInt decodes requirements on one of the counters and ids of a table.
func assertInt(field, what string, value func(*state) int) func(*fields) requirement {
	return func(f *fields) requirement {
		want := f.int(field)
		return func(base *state) error {
			if got := value(base); got != want {
				return requirementFailed("%s changed: expected id %d != %d", what, want, got)
			}
			return nil
		}
	}
}
