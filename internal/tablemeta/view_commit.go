package tablemeta

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/schema"
)

// ViewChange is a commit: updates to the metadata of one view.
type ViewChange struct {
	// Base is the current metadata. It is not nil: views are made by [CreateView].
	Base *View
	// Updates are applied in order. [CheckView] is the caller's to call.
	Updates []ViewUpdate
	// Now is the server's time. It is used to the millisecond.
	Now time.Time
}

const (
	versionHistorySize        = "version.history.num-entries"
	versionHistorySizeDefault = 10
	dropDialectAllowed        = "replace.drop-dialect.allowed"
)

// CommitView applies the updates and returns the metadata that results, or Base
// and false if they changed nothing and there is nothing to write.
// Errors are [*InvalidError]. Nothing is changed then.
func CommitView(c ViewChange) (v *View, changed bool, err error) {
	if len(c.Updates) > stepsMax {
		return nil, false, invalid("Too many updates in one commit: more than %d", stepsMax)
	}
	b := &viewBuilder{viewState: c.Base.viewState, base: c.Base, now: c.Now.UnixMilli()}
	for _, u := range c.Updates {
		if u.change == nil {
			return nil, false, invalid("update: not decoded from JSON")
		}
		if err := u.change.applyToView(b); err != nil {
			return nil, false, err
		}
	}
	if !b.changed {
		return c.Base, false, nil
	}
	if err := b.finish(); err != nil {
		return nil, false, err
	}
	v, err = ParseView(b.render())
	return v, err == nil, err
}

// viewBuilder is the metadata of a view that is being changed.
type viewBuilder struct {
	viewState
	base *View // nil while a view is created
	now  int64 // ms; the server's clock
	// changed is set by every update that is not a no-op.
	changed bool
	// propertyAt is the positions of the properties by name; nil until it is needed.
	propertyAt map[string]int
	// parsedSchemas is schemas that were parsed or added already, by id.
	parsedSchemas map[int]*schema.Schema
	// byKey is the versions' ids by versionKey, and highest the highest of them;
	// byKey is nil until they are needed.
	byKey   map[string]int
	highest int
	// The ids that -1 stands for; nil while it stands for nothing.
	lastSchema, lastVersion *int
	// added is the versions that this commit adds.
	added map[int]bool
	// logged is the entry that the log gets, one at most: what was current only
	// within a commit was never current to anybody.
	logged *viewLogEntry
}

// versionIDs is byKey. Of versions that are the same it has the first.
func (b *viewBuilder) versionIDs() map[string]int {
	if b.byKey == nil {
		b.byKey = make(map[string]int, b.versions.len())
		for i := range b.versions.entries {
			b.index(b.versions.entries[i].head.id, b.versions.value(i))
		}
	}
	return b.byKey
}

func (b *viewBuilder) index(id int, version []byte) {
	key := versionKey(version)
	if _, ok := b.byKey[key]; !ok {
		b.byKey[key] = id
	}
	b.highest = max(b.highest, id)
}

func (b *viewBuilder) highestVersion() int {
	b.versionIDs()
	return b.highest
}

func (b *viewBuilder) addVersion(v viewVersion, value []byte) {
	b.versionIDs()
	b.versions.add(v, value)
	b.index(v.id, value)
	if b.added == nil {
		b.added = map[int]bool{}
	}
	b.added[v.id] = true
}

// setCurrent logs a version that this commit adds under the time that its writer
// gave it, unless that is so far ahead that it would hold up the log's time.
func (b *viewBuilder) setCurrent(v viewVersion) {
	at := b.now
	if b.added[v.id] && !before(b.now, v.timestamp) {
		at = v.timestamp
	}
	b.currentVersion = v.id
	b.logged = &viewLogEntry{timestamp: at, version: v.id}
}

// finish checks what can only be told when all updates are applied, and brings
// the log and the history up to date.
func (b *viewBuilder) finish() error {
	if b.logged != nil {
		entry := *b.logged
		entry.timestamp = max(entry.timestamp, b.lastLogTime())
		b.log.add(entry, appendVersionLogEntry(nil, entry))
	}
	if err := b.checkDroppedDialects(); err != nil {
		return err
	}
	keep, err := b.historySize()
	if err != nil {
		return err
	}
	b.expireVersions(keep)
	if _, err := codec(&b.properties, codecGzip); err != nil {
		return err
	}
	return nil
}

// checkDroppedDialects keeps one engine from taking the view away from another.
func (b *viewBuilder) checkDroppedDialects() error {
	if allowed, _ := property(&b.properties, dropDialectAllowed); b.base == nil || strings.EqualFold(allowed, "true") {
		return nil
	}
	sorted := func(s *viewState) []string {
		found := dialects(s.versions.value(s.versionIndex(s.currentVersion)))
		slices.Sort(found)
		return slices.Compact(found)
	}
	previous, current := sorted(&b.base.viewState), sorted(&b.viewState)
	for _, dialect := range previous {
		if _, ok := slices.BinarySearch(current, dialect); !ok {
			return invalid("Cannot replace view due to loss of view dialects (%s=false):\nPrevious dialects: [%s]\nNew dialects: [%s]",
				dropDialectAllowed, excerpt(strings.Join(previous, ", ")), excerpt(strings.Join(current, ", ")))
		}
	}
	return nil
}

// historySize is how many versions the properties, as they are in the end, let the
// view have.
func (b *viewBuilder) historySize() (int, error) {
	text, ok := property(&b.properties, versionHistorySize)
	if !ok {
		return versionHistorySizeDefault, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, invalid("View property %s must have integer value: %s", versionHistorySize, excerpt(text))
	}
	if n <= 0 {
		return 0, invalid("%s must be positive but was %d", versionHistorySize, n)
	}
	return int(n), nil
}

// expireVersions keeps the current version, those that this commit adds, and of
// the others those with the highest ids, as far as there is room for them.
func (b *viewBuilder) expireVersions(keep int) {
	needed := len(b.added)
	if !b.added[b.currentVersion] {
		needed++
	}
	keep = max(keep, needed)
	if b.versions.len() <= keep {
		return
	}
	ids := sortedIDs(&b.versions, func(v *viewVersion) int64 { return int64(v.id) })
	kept := map[int]bool{b.currentVersion: true}
	for i := len(ids) - 1; len(kept) < keep; i-- {
		kept[int(ids[i])] = true
	}
	b.versions.remove(func(v *viewVersion) bool { return !kept[v.id] })
	// The log cannot tell what was before a version that is not known any more.
	for i := b.log.len() - 1; i >= 0; i-- {
		if !kept[b.log.entries[i].head.version] {
			b.log.dropFirst(i + 1)
			break
		}
	}
}

// viewMember is one of the members of a view's document.
type viewMember struct {
	name   string
	append func(dst []byte, s *viewState) []byte
}

// viewMembers is in the order in which the reference implementation writes.
var viewMembers = []viewMember{
	{"view-uuid", func(dst []byte, s *viewState) []byte { return rawjson.AppendString(dst, s.uuid) }},
	{"format-version", func(dst []byte, _ *viewState) []byte { return rawjson.AppendInt(dst, viewFormat) }},
	{"location", func(dst []byte, s *viewState) []byte { return rawjson.AppendString(dst, s.location) }},
	{"properties", func(dst []byte, s *viewState) []byte {
		dst, _ = s.properties.appendTo(dst, func(name *string) string { return *name })
		return dst
	}},
	{"schemas", func(dst []byte, s *viewState) []byte { dst, _ = s.schemas.appendTo(dst, nil); return dst }},
	{"current-version-id", func(dst []byte, s *viewState) []byte { return rawjson.AppendInt(dst, int64(s.currentVersion)) }},
	{"versions", func(dst []byte, s *viewState) []byte { dst, _ = s.versions.appendTo(dst, nil); return dst }},
	{"version-log", func(dst []byte, s *viewState) []byte { dst, _ = s.log.appendTo(dst, nil); return dst }},
}

// render is the document of the builder's state. Members come in the order of the
// base, known ones that it lacks behind them. What did not change and what is
// unknown keeps its bytes.
func (b *viewBuilder) render() []byte {
	var old []rawjson.Member
	if b.base != nil {
		old = b.base.members
	}
	doc := []byte{'{'}
	present := map[string]bool{}
	for _, m := range old {
		doc = rawjson.AppendName(doc, m.Name)
		known := slices.IndexFunc(viewMembers, func(k viewMember) bool { return k.name == m.Name })
		if known < 0 {
			doc = append(doc, m.Value...)
			continue
		}
		doc = viewMembers[known].append(doc, &b.viewState)
		present[m.Name] = true
	}
	for _, m := range viewMembers {
		if !present[m.name] && (m.name != "properties" || b.properties.len() > 0) {
			doc = m.append(rawjson.AppendName(doc, m.name), &b.viewState)
		}
	}
	return append(doc, '}')
}

func appendVersionLogEntry(dst []byte, e viewLogEntry) []byte {
	dst = append(dst, `{"timestamp-ms":`...)
	dst = rawjson.AppendInt(dst, e.timestamp)
	dst = append(dst, `,"version-id":`...)
	dst = rawjson.AppendInt(dst, int64(e.version))
	return append(dst, '}')
}

// CheckView compares requirements with the metadata of a view that exists. It
// returns a [*RequirementError] for the first that does not hold, or an
// [*InvalidError] for requirements that are not about views.
func CheckView(base *View, requirements []Requirement) error {
	if len(requirements) > stepsMax {
		return invalid("Too many requirements in one commit: more than %d", stepsMax)
	}
	for _, r := range requirements {
		switch {
		case r.check == nil:
			return invalid("requirement: not decoded from JSON")
		case r.kind != assertViewUUIDKind:
			return invalid("Cannot validate %s against a view", r.kind)
		}
		f := fields{object: r.raw}
		if uuid := f.string("uuid"); !strings.EqualFold(uuid, base.uuid) {
			return requirementFailed("view UUID does not match: expected %s != %s", excerpt(base.uuid), excerpt(uuid))
		}
	}
	return nil
}
