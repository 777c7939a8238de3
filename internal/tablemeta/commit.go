package tablemeta

import (
	"strconv"
	"time"

	"github.com/landfast/landfast/internal/planted"
)

// Change is a commit: updates to the metadata of one table.
type Change struct {
	// Base is the current metadata; nil if the table is to be created.
	Base *Metadata
	// BaseFile is the location of the file that holds Base. It becomes the newest
	// entry of the metadata log. Empty, or of no use without Base: no entry.
	BaseFile string
	// Updates are applied in order. [Check] is the caller's to call.
	Updates []Update
	// UUID is given to a table that has none and whose updates assign none.
	UUID string
	// Now is the server's time. It is used to the millisecond.
	Now time.Time
}

// stepsMax bounds the requirements and the updates of one commit, where a run of
// removals counts as one. Each may look through a whole list.
const stepsMax = 10_000

// Commit applies the updates and returns the metadata that results, or Base and
// false if they changed nothing and there is nothing to write.
//
// Errors: [*InvalidError] for what is wrong in itself or on this base,
// [*StaleError] for values that another commit overtook. Nothing is changed then.
func Commit(c Change) (m *Metadata, changed bool, err error) {
	b, err := newBuilder(c)
	if err != nil {
		return nil, false, err
	}
	steps := 0
	for i := 0; i < len(c.Updates); i++ {
		if steps++; steps > stepsMax {
			return nil, false, invalid("Too many updates in one commit: more than %d", stepsMax)
		}
		next := c.Updates[i].change
		if first, ok := next.(removal); ok {
			// Java expires snapshots with an update for each, and between them one
			// for each statistics file. Their order does not matter, and together
			// they cost one pass.
			run := i + 1
			for run < len(c.Updates) && isRemoval(c.Updates[run]) {
				run++
			}
			next = first.and(c.Updates[i+1 : run])
			i = run - 1
		}
		if next == nil {
			return nil, false, invalid("update: not decoded from JSON")
		}
		if err := next.apply(b); err != nil {
			return nil, false, err
		}
	}
	if !b.changed {
		if c.Base == nil {
			return nil, false, invalid("Cannot create a table without updates")
		}
		return c.Base, false, nil
	}
	if err := b.finish(c); err != nil {
		return nil, false, err
	}
	return b.render(), true, nil
}

// builder is metadata that is being changed.
type builder struct {
	state
	base *Metadata // nil while a table is created
	now  int64     // ms; the server's clock
	// changed is set by every update that is not a no-op.
	changed bool
	// propertyAt is the positions of the properties by name; nil until it is needed.
	propertyAt map[string]int

	schemaTracking
	snapshotTracking
}

func newBuilder(c Change) (*builder, error) {
	b := &builder{base: c.Base, now: c.Now.UnixMilli()}
	if c.Base != nil {
		b.state = c.Base.state
		if b.location == "" {
			return nil, invalid("Cannot commit to a table in format v%d that has no location", b.formatVersion)
		}
		return b, nil
	}
	b.formatVersion = formatDefault
	b.currentSnapshot = noSnapshot
	for _, u := range c.Updates {
		if upgrade, ok := u.change.(upgrade); ok {
			if upgrade.version < formatMin || upgrade.version > formatCreateMax {
				return nil, invalid("Unsupported format version: v%d (supported: v%d)", upgrade.version, formatCreateMax)
			}
			b.formatVersion = upgrade.version
			break
		}
	}
	return b, nil
}

// time is when the changes of this commit happen: now, unless the table has seen
// a later time already.
func (b *builder) time() int64 {
	if planted.Is(planted.TimeRunsBack) {
		return b.now
	}
	t := max(b.now, b.newestLogTime())
	if b.base != nil {
		t = max(t, b.base.lastUpdated)
	}
	return t
}

// finish checks what can only be told when all updates are applied, and brings
// the logs and the time of the commit up to date.
func (b *builder) finish(c Change) error {
	if b.uuid == "" && (b.base == nil || b.formatVersion > 1) {
		if c.UUID == "" {
			return invalid("UUID is required in format v%d", b.formatVersion)
		}
		b.uuid = c.UUID
	}
	if err := b.checkLayout(); err != nil {
		return err
	}
	b.pruneSnapshotLog()
	keep, err := b.previousVersions()
	if err != nil {
		return err
	}
	if c.Base != nil && c.BaseFile != "" {
		b.logPreviousFile(c.BaseFile, keep)
	}
	b.lastUpdated = b.time()
	if b.location == "" {
		return invalid("Table location is required in format v%d", b.formatVersion)
	}
	if _, err := codec(&b.properties, codecNone); err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	return nil
}

const (
	previousVersionsMax        = "write.metadata.previous-versions-max"
	previousVersionsMaxDefault = 100
)

// previousVersions is how many former files the properties, as they are in the
// end, let the metadata log have.
func (b *builder) previousVersions() (int, error) {
	text, ok := b.property(previousVersionsMax)
	if !ok {
		return previousVersionsMaxDefault, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, invalid("Table property %s must have integer value: %s", previousVersionsMax, excerpt(text))
	}
	return max(1, int(n)), nil
}

// logPreviousFile appends the base's file to the metadata log and keeps the newest
// entries.
func (b *builder) logPreviousFile(file string, keep int) {
	timestamp := b.base.lastUpdated
	if n := b.metadataLog.len(); n > 0 {
		timestamp = max(timestamp, b.metadataLog.entries[n-1].head)
	}
	b.metadataLog.dropFirst(b.metadataLog.len() - keep + 1)
	b.metadataLog.add(timestamp, appendMetadataLogEntry(nil, timestamp, file))
}
