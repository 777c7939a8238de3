package icebergo

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// deviation is one way in which ours and iceberg-go differ, on purpose.
type deviation struct {
	name string
	// why ours is as it is. "As Java" is what the reference does, and iceberg-go does not.
	why string
	// is reports whether a difference is this one, and no other.
	is func(f *finding) bool
	// instead is what iceberg-go must be told to make what ours makes of the commit; nil if there is no way.
	instead func(f *finding) []json.RawMessage
}

// deviations is what may differ. Each difference that is found must be exactly one of these.
var deviations = [...]deviation{
	// ---- What is current, and what -1 means.
	{
		name: "-1 never means what was there before",
		why:  "As Java: what was not added by this commit was not added last, even if it was sent again.",
		is: ourRefusal("has been added", func(f *finding) bool {
			return slices.ContainsFunc(f.updates(), func(u object) bool {
				set, _ := u["action"].(string)
				return integer(u[idOf[set]]) == -1 && f.has(adds[set])
			})
		}),
	},
	{
		name: "a schema gets the next id, not the client's",
		why:  "As Java: a client cannot know which ids others have taken.",
		is: func(f *finding) bool {
			if f.what == "accepted" {
				return f.has("add-schema") && (says(f.ours.err, []string{"to unknown schema", "Cannot remove the current schema"}) || says(f.theirs.err, []string{"schema with id"}))
			}
			return f.has("add-schema") && slices.Contains([]string{"schemas", "schema", "current-schema-id"}, f.what) && f.renumbered("schemas", "schema-id")
		},
		instead: func(f *finding) []json.RawMessage {
			return f.with("add-schema", func(u object) {
				s := u["schema"].(object)
				s["schema-id"] = 0
			})
		},
	},
	{
		name: "a spec that is there is not added again under another id",
		why:  "As Java: ids do not tell specs apart.",
		is: func(f *finding) bool {
			if f.what == "accepted" {
				return f.has("add-spec") && (says(f.ours.err, []string{"to unknown spec", "Cannot remove the default partition spec"}) || says(f.theirs.err, []string{"remove default partition spec"}))
			}
			return f.ofSpecs() && !f.hasFieldZero() && (f.moreSpecs() || f.what == "default-spec-id" && defaultSpec(f.ours) == defaultSpec(f.theirs))
		},
		instead: (*finding).withOurSpecs,
	},
	{
		name: "partition fields without ids get new ones",
		why:  "Stricter than Java, which numbers them from 1000 in each spec: an id must mean one thing in all data files.",
		is: func(f *finding) bool {
			return f.ofSpecs() && !f.hasFieldZero() && f.withoutFieldIDs() && f.onlyOurs() == nil && f.what != "default-spec-id" && !f.moreSpecs()
		},
		instead: (*finding).withOurSpecs,
	},
	{
		name: "a partition field's id may be 0",
		why:  "As Java, which takes every number; to iceberg-go it is none.",
		is: func(f *finding) bool {
			return f.ofSpecs() && f.hasFieldZero() || ourRefusal("id 0 is used twice")(f)
		},
	},
	{
		name: "the current schema keeps the columns that the default spec is made of",
		why:  "As Java: nothing could be written.",
		is:   ourRefusal("Cannot find source column for partition field"),
	},
	{
		name: "no partition field has the name of another column of the current schema",
		why:  "As Java, of all specs.",
		is:   ourRefusal("sourced from different field in schema", func(f *finding) bool { return f.has("set-current-schema") }),
	},
	{
		name: "a sort order that is sent fits the current schema, even if the table has it",
		why:  "As Java, which binds it before it looks for an equal one.",
		is:   ourRefusal("Cannot find source column for sort field", func(f *finding) bool { return f.has("add-sort-order") }),
	},
	{
		name: "a transform must take the type of its column",
		why:  "As Java: nothing could be written.",
		is:   ourRefusalOf([]string{"Invalid source type", "Cannot partition by non-primitive"}),
	},
	{
		name: "a new table begins with the ids 0",
		why:  "As Java: what is never made current is current if its id is 0.",
		is:   theirRefusalOf([]string{"no current schema", "default-sort-order-id must be set", "default-sort-order-id -1", "defaultSpecID is invalid"}, func(f *finding) bool { return f.creates() }),
		instead: func(f *finding) []json.RawMessage {
			var all []json.RawMessage
			for _, u := range f.Updates {
				all = append(all, u)
				for set, add := range adds {
					if decode(u).(object)["action"] == add && !f.has(set) {
						all = append(all, encode(object{"action": set, idOf[set]: 0}))
					}
				}
			}
			return all
		},
	},

	// ---- Snapshots and refs.
	{
		name:    "to remove a ref that is not there is no change",
		why:     "As Java.",
		is:      theirRefusal("snapshot ref not found", func(f *finding) bool { return f.has("remove-snapshot-ref") }),
		instead: (*finding).withoutLast,
	},
	{
		name: "the current snapshot can be removed",
		why:  "As Java: main goes with it.",
		is:   theirRefusal("current snapshot cannot be removed", func(f *finding) bool { return f.has("remove-snapshots") }),
		instead: func(f *finding) (all []json.RawMessage) {
			for i, u := range f.updates() {
				if u["action"] == "remove-snapshots" {
					all = append(all, json.RawMessage(`{"action":"remove-snapshot-ref","ref-name":"main"}`))
				}
				all = append(all, f.Updates[i])
			}
			return all
		},
	},
	{
		name: "main is no tag",
		why:  "As Java.",
		is:   ourRefusal("Cannot set main to a tag", func(f *finding) bool { return f.has("set-snapshot-ref") }),
	},
	{
		name: "statistics go with a snapshot that is removed, not with one that was not there",
		why:  "As Java.",
		is: func(f *finding) bool {
			if f.what != "statistics" && f.what != "partition-statistics" {
				return false
			}
			known := map[string]bool{}
			for _, s := range members(f.base(), "snapshots") {
				known[text(s["snapshot-id"])] = true
			}
			again := strings.Count(text(f.Updates), "remove-snapshots") > 1 // it was there, before the first
			extra := more(f.difference.ours, f.difference.theirs)
			return len(extra) > 0 && len(more(f.difference.theirs, f.difference.ours)) == 0 && !slices.ContainsFunc(extra, func(s object) bool {
				return known[text(s["snapshot-id"])] && !again
			})
		},
	},
	{
		name: "a retention that is not positive is refused",
		why:  "As Java; iceberg-go leaves it out.",
		is: ourRefusalOf([]string{"must be greater than 0", "Tags do not support"}, func(f *finding) bool {
			return slices.ContainsFunc([]string{`"max-ref-age-ms":`, `"max-snapshot-age-ms":`, `"min-snapshots-to-keep":`}, func(name string) bool {
				return f.mentions(name+"0") || f.mentions(name+"-1")
			})
		}),
	},
	{
		name: "a snapshot may be older than the log on a side branch, and is put right in the log",
		why:  "Java takes the first, and times in our logs never run back.",
		is:   theirRefusal("invalid snapshot timestamp", func(f *finding) bool { return f.has("add-snapshot") }),
	},
	{
		name: "a snapshot does not come from the future",
		why:  "Stricter than Java, which takes it and then refuses all other commits.",
		is:   ourRefusal("ahead of the server's clock", func(f *finding) bool { return f.has("add-snapshot") }),
	},
	{
		name: "the last sequence number does not fall",
		why:  "Java refuses the metadata that results; iceberg-go writes it.",
		is:   ourRefusal("older than last sequence number", func(f *finding) bool { return f.adds(func(s object) bool { return s["parent-snapshot-id"] == nil }) }),
	},
	{
		name: "version 1 has no sequence numbers",
		why:  "As Java.",
		is:   ourRefusal("Sequence number must be 0 in v1", func(f *finding) bool { return f.has("add-snapshot") }),
	},
	{
		name: "a snapshot has a manifest list, or manifests",
		why:  "As Java, which cannot read it otherwise.",
		is:   ourRefusal("neither manifest-list nor manifests", func(f *finding) bool { return f.adds(func(s object) bool { return s["manifest-list"] == nil }) }),
	},
	{
		name: "numbers of a snapshot are not negative",
		why:  "As Java for rows, whatever the version; other readers cannot take negative ids.",
		is:   ourRefusalOf([]string{"Invalid added-rows", "Invalid first-row-id", "Invalid sequence number", "Invalid snapshot id"}, func(f *finding) bool { return f.has("add-snapshot") }),
	},
	{
		name: "an empty operation is kept",
		why:  "As Java.",
		is:   theirRefusal("found empty operation", func(f *finding) bool { return f.has("add-snapshot") }),
	},
	{
		name: "a snapshot keeps its key-id",
		why:  "As Java: without it the manifest list cannot be decrypted.",
		is:   func(f *finding) bool { return f.keeps("key-id") },
	},
	{
		name: "a summary without an operation stays so",
		why:  "What a writer did is not guessed in its own metadata; Java reads it as overwrite, and so does iceberg-go.",
		is: func(f *finding) bool {
			return f.what == "snapshots" && slices.Equal(f.onlyTheirs(), []string{"operation"})
		},
	},
	{
		name: "manifests beside a manifest list stay",
		why:  "Nobody reads them, but they are the writer's.",
		is:   func(f *finding) bool { return f.keeps("manifests") && !f.keeps("key-id") },
	},
	{
		name: "the log forgets what was current within one commit only, even if nothing is in the end",
		why:  "As Java.",
		is: func(f *finding) bool {
			if f.what != "snapshot-log" || integer(f.ours.metadata["current-snapshot-id"]) > 0 {
				return false
			}
			added := addedSnapshots(f.commit)
			extra := more(f.difference.theirs, f.difference.ours)
			return len(extra) > 0 && len(more(f.difference.ours, f.difference.theirs)) == 0 && !slices.ContainsFunc(extra, func(entry object) bool {
				return !added[text(entry["snapshot-id"])]
			})
		},
	},

	{
		name: "times in the log never run back",
		why:  "Stricter than Java, which takes back up to a minute.",
		is: func(f *finding) bool {
			if f.what != "snapshot-log" {
				return false
			}
			earlier := map[int64]bool{newest(f.base(), "snapshot-log"): true}
			for _, u := range f.updates() {
				if s, ok := u["snapshot"].(object); ok {
					earlier[integer(s["timestamp-ms"])] = true
				} else if u["ref-name"] == "main" && !addedSnapshots(f.commit)[text(u["snapshot-id"])] {
					earlier[rollbackTime(f.commit, f.base())] = true
				}
			}
			// The differences are what agreeOnTimes has left.
			return slices.EqualFunc(entries(f.difference.ours), entries(f.difference.theirs), func(a, b object) bool {
				x, y := integer(a["timestamp-ms"]), integer(b["timestamp-ms"])
				return a["snapshot-id"] == b["snapshot-id"] && (x == y || x > y && earlier[x])
			})
		},
	},

	// ---- Identity, properties, files.
	{
		name: "a uuid is never changed",
		why:  "Stricter than Java: clients tell by it whether a name still means their table.",
		is:   ourRefusal("Cannot reassign uuid", func(f *finding) bool { return f.has("assign-uuid") }),
	},
	{
		name: "a uuid has dashes",
		why:  "The form of RFC 9562; Java takes any text.",
		is:   ourRefusal("must be a UUID", func(f *finding) bool { return f.has("assign-uuid") }),
	},
	{
		name: "the uuid of zeros is one",
		why:  "As Java.",
		is:   theirRefusal("cannot set uuid to nil", func(f *finding) bool { return f.mentions(noUUID) }),
	},
	{
		name: "a location is not empty",
		why:  "Stricter than Java: every path of the table would be wrong.",
		is:   ourRefusalOf([]string{`"location" must not be empty`, "Table location is required"}),
	},
	{
		name: "a location has no slash at its end",
		why:  "As Java.",
		is: func(f *finding) bool {
			return f.what == "location" && strings.TrimSuffix(f.theirs.metadata["location"].(string), "/") == f.ours.metadata["location"]
		},
		instead: func(f *finding) []json.RawMessage {
			return f.with("set-location", func(u object) { u["location"] = strings.TrimSuffix(u["location"].(string), "/") })
		},
	},
	{
		name: "reserved properties can be set and removed",
		why:  "As Java's builder: only a request to create a table gives them a meaning.",
		is:   theirRefusal("reserved property"),
	},
	{
		name: "write.metadata.previous-versions-max is a number",
		why:  "As Java; iceberg-go takes its default.",
		is:   ourRefusal("write.metadata.previous-versions-max must have integer value"),
	},
	{
		name:    "an encryption key is never replaced",
		why:     "As Java: data may be encrypted with it.",
		is:      func(f *finding) bool { return f.what == "encryption-keys" && f.has("add-encryption-key") },
		instead: (*finding).withoutLast,
	},
	{
		name: "encryption keys in every version",
		why:  "As Java.",
		is:   theirRefusal("encryption keys are only supported for format version 3"),
	},
	{
		name: "what is in an encryption key is its owner's",
		why:  "As Java, whose base64 may go without padding, and be empty.",
		is:   theirRefusal("encrypted key metadata must be"),
	},

	{
		name: "metadata is compressed in ways that Java knows",
		why:  "As Java.",
		is:   ourRefusal("Invalid codec name"),
	},

	// ---- How things are written.
	{
		name: "unknown members are kept",
		why:  "What a newer writer says must not get lost here.",
		is: func(f *finding) bool {
			return (f.keeps("unheard-of") || f.keeps("null-order") || f.keeps("direction")) && !f.keeps("key-id") && !f.keeps("manifests")
		},
	},
	{
		name: "actions, types of refs, directions and types are read without case",
		why:  "As Java.",
		is: theirRefusalOf([]string{"unknown update action: SET-LOCATION", "invalid snapshot ref type", "invalid sort direction", "invalid null order", "unrecognized field type"}, func(f *finding) bool {
			return slices.ContainsFunc([]string{`"SET-LOCATION"`, `"BRANCH"`, `"ASC"`, `"INT"`}, func(upper string) bool { return f.mentions(upper) })
		}),
		instead: func(f *finding) []json.RawMessage {
			var all []json.RawMessage
			for _, u := range f.Updates {
				for _, upper := range []string{`"SET-LOCATION"`, `"BRANCH"`, `"ASC"`, `"INT"`} {
					u = json.RawMessage(strings.ReplaceAll(string(u), upper, strings.ToLower(upper)))
				}
				all = append(all, u)
			}
			return all
		},
	},
	{
		name: "an integer has 32 bits",
		why:  "As Java.",
		is:   ourRefusal("must be an integer of 32 bits", func(f *finding) bool { return f.mentions("2147483648") }),
	},
	{
		name: "null is no value in a list or a map",
		why:  "As Java; Go's decoder makes it 0 or empty.",
		is:   ourRefusal("got null"),
	},
	{
		name: "statistics files are whole",
		why:  "As Java, which cannot load the table otherwise.",
		is: ourRefusal("missing field", func(f *finding) bool {
			return f.has("set-statistics") || f.has("set-partition-statistics")
		}),
	},
	{
		name: "properties that a statistics blob has not are not null",
		why:  "As Java, which cannot load the table otherwise.",
		is: func(f *finding) bool {
			return f.what == "ours reads what iceberg-go wrote" && strings.Contains(f.difference.ours, `"properties" must not be null`)
		},
	},
	{
		name: "a default keeps its digits",
		why:  "As Java; iceberg-go makes a float of it.",
		is: func(f *finding) bool {
			return (f.what == "schemas" || f.what == "schema") && strings.Contains(f.difference.ours, beyondFloats) &&
				strings.ReplaceAll(f.difference.ours, beyondFloats, roundedFloat) == f.difference.theirs
		},
	},
	{
		name: "the id of a spec or of an order need not be said",
		why:  "It is the server's to give; Java wants one, and does not use it either.",
		is:   theirRefusalOf([]string{"spec-id cannot be null", "spec ID must be non-negative", "missing required 'order-id'", "sort order ID -1 must be"}),
		instead: func(f *finding) []json.RawMessage {
			f.Updates = f.with("add-sort-order", func(u object) {
				order := u["sort-order"].(object)
				order["order-id"] = min(1, len(members(order, "fields")))
			})
			return f.withOurSpecs()
		},
	},
	{
		name:    "a partition field's id may be null",
		why:     "The same as no id.",
		is:      theirRefusal("partition field ID cannot be null"),
		instead: (*finding).withOurSpecs,
	},
	{
		name: "a void partition field may be of any column, or of one that has gone",
		why:  "As Java: it is what remains of a field that was dropped.",
		is:   theirRefusalOf([]string{"cannot find source column with id", "cannot partition by variant"}, func(f *finding) bool { return f.mentions(`"void"`) }),
	},
	{
		name: "a column's id may be 0 or less",
		why:  "As Java; iceberg-go takes such a column, and then leaves its id out, or cannot read what it wrote.",
		is: func(f *finding) bool {
			return slices.Equal(f.onlyOurs(), []string{"source-id"}) || theirRefusalOf([]string{"partition source ID must be", "invalid sort source ID"})(f) ||
				f.what == "iceberg-go reads what ours wrote" && says(errors.New(f.difference.theirs), []string{"source ID must be positive"})
		},
	},
	{
		name: "an identifier field is one, however often it is named",
		why:  "As Java.",
		is: func(f *finding) bool {
			return slices.Contains([]string{"schemas", "schema", "current-schema-id"}, f.what) && !f.renumbered("schemas", "schema-id") &&
				strings.Contains(text(f.theirs.metadata["schemas"]), `"identifier-field-ids":[1,1]`)
		},
	},
	{
		name: "a void partition field has a source-id",
		why:  "As Java.",
		is:   ourRefusal("source-id is missing", func(f *finding) bool { return f.mentions(`"void"`) }),
	},
	{
		name: "an unknown transform may have any name",
		why:  "As Java.",
		is:   theirRefusal("empty transform"),
	},
	{
		name: "two partition fields may be of one column and one transform",
		why:  "As Java, which looks for that in specs that a program builds, not in those of a commit.",
		is:   theirRefusal("redundant partition field"),
	},
	{
		name: "source-ids of one column may stand beside its source-id",
		why:  "They say the same.",
		is:   theirRefusal("both source-id and source-ids"),
	},
	{
		name: "a column's name may be empty",
		why:  "As Java.",
		is:   theirRefusal("missing required 'name'", func(f *finding) bool { return f.mentions(`"name":""`) }),
	},
	{
		name: "identifier fields exist, and are required",
		why:  "As Java.",
		is:   ourRefusal("as an identifier field"),
	},
	{
		name: "a struct has fields, even none",
		why:  "As Java.",
		is:   ourRefusal("a struct must have an array of fields"),
	},
	{
		name: "a default has the type of its column",
		why:  "As Java, which cannot read the schema otherwise.",
		is:   ourRefusal("is not a default value of type"),
	},
	{
		name: "a write-default is no matter of the version",
		why:  "As Java, which looks at initial defaults only.",
		is:   theirRefusal("invalid schema: for v", func(f *finding) bool { return f.mentions(`"write-default"`) }),
	},
	{
		name: "ids of metadata columns are reserved, all of them",
		why:  "Stricter than both: no reader could tell the columns apart.",
		is:   ourRefusal("is reserved for metadata columns"),
	},

	// ---- Requirements.
	{
		name: "a requirement on a ref without snapshot-id wants that there is none",
		why:  "As Java: absent is null.",
		is:   theirRefusal(`missing required field "snapshot-id"`, func(f *finding) bool { return len(f.Requirements) > 0 }),
	},
}

// beyondFloats is what a float of 64 bits cannot hold, and roundedFloat is what becomes of it.
const beyondFloats, roundedFloat = "9007199254740993", "9007199254740992"

// ourRefusal recognizes what ours refuses with a text, and iceberg-go accepts.
func ourRefusal(part string, also ...func(f *finding) bool) func(f *finding) bool {
	return ourRefusalOf([]string{part}, also...)
}

func ourRefusalOf(parts []string, also ...func(f *finding) bool) func(f *finding) bool {
	return func(f *finding) bool {
		return f.what == "accepted" && f.theirs.err == nil && says(f.ours.err, parts) && all(f, also)
	}
}

// theirRefusal recognizes what iceberg-go refuses with a text, and ours accepts.
func theirRefusal(part string, also ...func(f *finding) bool) func(f *finding) bool {
	return theirRefusalOf([]string{part}, also...)
}

func theirRefusalOf(parts []string, also ...func(f *finding) bool) func(f *finding) bool {
	return func(f *finding) bool {
		return f.what == "accepted" && f.ours.err == nil && says(f.theirs.err, parts) && all(f, also)
	}
}

func says(err error, parts []string) bool {
	return err != nil && slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(err.Error(), part) })
}

func all(f *finding, conditions []func(f *finding) bool) bool {
	return !slices.ContainsFunc(conditions, func(holds func(f *finding) bool) bool { return !holds(f) })
}

// adds is the update that adds what another makes current; idOf is the latter's member.
var (
	adds = map[string]string{"set-current-schema": "add-schema", "set-default-spec": "add-spec", "set-default-sort-order": "add-sort-order"}
	idOf = map[string]string{"set-current-schema": "schema-id", "set-default-spec": "spec-id", "set-default-sort-order": "sort-order-id"}
)

// updates is the updates, decoded.
func (f *finding) updates() (all []object) {
	for _, u := range f.Updates {
		if o, ok := decode(u).(object); ok {
			all = append(all, o)
		}
	}
	return all
}

// mentions reports whether an update or a requirement has the text.
func (f *finding) mentions(part string) bool {
	return strings.Contains(text(f.Updates), part) || strings.Contains(text(f.Requirements), part)
}

// has reports whether there is such an update.
func (f *finding) has(action string) bool {
	return slices.ContainsFunc(f.updates(), func(u object) bool { return u["action"] == action })
}

// adds reports whether such a snapshot is added.
func (f *finding) adds(such func(s object) bool) bool {
	return slices.ContainsFunc(f.updates(), func(u object) bool {
		s, ok := u["snapshot"].(object)
		return ok && such(s)
	})
}

// ofSpecs reports whether the difference is of what a commit that adds a spec changes.
func (f *finding) ofSpecs() bool {
	return slices.Contains([]string{"partition-specs", "partition-spec", "default-spec-id", "last-partition-id"}, f.what)
}

// moreSpecs reports whether iceberg-go's table has more specs.
func (f *finding) moreSpecs() bool {
	return len(members(f.theirs.metadata, "partition-specs")) > len(members(f.ours.metadata, "partition-specs"))
}

// defaultSpec is the fields of the default spec.
func defaultSpec(o outcome) string {
	for _, spec := range members(o.metadata, "partition-specs") {
		if spec["spec-id"] == o.metadata["default-spec-id"] {
			return fieldsOf(spec)
		}
	}
	return ""
}

// hasFieldZero reports whether the table has a partition field with the id 0.
func (f *finding) hasFieldZero() bool {
	return strings.Contains(text(f.ours.metadata["partition-specs"]), `"field-id":0`)
}

// withoutFieldIDs reports whether a spec is added whose fields have no ids.
func (f *finding) withoutFieldIDs() bool {
	return slices.ContainsFunc(f.updates(), func(u object) bool {
		spec, _ := u["spec"].(object)
		return slices.ContainsFunc(members(spec, "fields"), func(field object) bool { return field["field-id"] == nil })
	})
}

// renumbered reports whether the lists differ in the elements' ids, and in nothing else.
func (f *finding) renumbered(list, id string) bool {
	a, b := members(normal(f.ours.metadata), list), members(normal(f.theirs.metadata), list)
	differ := false
	for i := range min(len(a), len(b)) {
		differ = differ || a[i][id] != b[i][id]
		delete(a[i], id)
		delete(b[i], id)
	}
	return differ && text(a) == text(b)
}

// onlyOurs is the names of the members that ours has and iceberg-go's has not, if that is all that
// differs.
func (f *finding) onlyOurs() []string {
	if f.what == "accepted" {
		return nil
	}
	return surplus(normal(f.ours.metadata)[f.what], normal(f.theirs.metadata)[f.what])
}

func (f *finding) onlyTheirs() []string {
	if f.what == "accepted" {
		return nil
	}
	return surplus(normal(f.theirs.metadata)[f.what], normal(f.ours.metadata)[f.what])
}

// keeps reports whether ours has this member and iceberg-go's has not, and that nothing differs but such
// members.
func (f *finding) keeps(name string) bool {
	names := f.onlyOurs()
	return slices.Contains(names, name) && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.Contains([]string{"key-id", "manifests", "unheard-of", "null-order", "direction"}, name)
	})
}

// entries is the objects of an array.
func entries(array string) []object { return members(object{"": decode([]byte(array))}, "") }

// more is the entries of the first array that are not in the second.
func more(of, than string) []object {
	var known []string
	for _, entry := range entries(than) {
		known = append(known, text(entry))
	}
	return slices.DeleteFunc(entries(of), func(entry object) bool { return slices.Contains(known, text(entry)) })
}

// surplus is the names of members that are in a and not in b; nil if anything else differs.
func surplus(a, b any) []string {
	names := map[string]bool{}
	if !within(a, b, names) {
		return nil
	}
	var sorted []string
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	return sorted
}

// within reports whether a is b with more members, and collects their names.
func within(a, b any, names map[string]bool) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok {
			return false
		}
		for name := range b {
			if _, ok := a[name]; !ok {
				return false
			}
		}
		for name, value := range a {
			if other, ok := b[name]; !ok {
				names[name] = true
			} else if !within(value, other, names) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !within(a[i], b[i], names) {
				return false
			}
		}
		return true
	}
	return text(a) == text(b)
}

// withoutLast is the updates but for the last, which changes nothing.
func (f *finding) withoutLast() []json.RawMessage { return f.Updates[:len(f.Updates)-1] }

// with is the updates, of which those with the action are changed.
func (f *finding) with(action string, change func(u object)) []json.RawMessage {
	all := slices.Clone(f.Updates)
	for i, u := range all {
		if o, ok := decode(u).(object); ok && o["action"] == action {
			change(o)
			all[i] = encode(o)
		}
	}
	return all
}

// withOurSpecs is the updates, with the ids that ours gave to specs and their fields.
func (f *finding) withOurSpecs() []json.RawMessage {
	return f.with("add-spec", func(u object) {
		asked := fieldsOf(u["spec"].(object))
		specs := members(normal(f.ours.metadata), "partition-specs")
		if i := slices.IndexFunc(specs, func(spec object) bool { return fieldsOf(spec) == asked }); i >= 0 {
			u["spec"] = specs[i]
		}
	})
}

// fieldsOf is what tells a spec from others.
func fieldsOf(spec object) string {
	fields := []object{}
	for _, field := range members(spec, "fields") {
		source := field["source-id"]
		if several, ok := field["source-ids"].([]any); ok {
			source = several[0]
		}
		transform, _ := field["transform"].(string)
		fields = append(fields, object{"source-id": source, "name": field["name"], "transform": strings.ToLower(transform)})
	}
	return text(fields)
}
