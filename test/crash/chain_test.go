package crash

import (
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
)

// liveTable checks the files of a table from its pointer back to its creation, and
// that every operation on it is among them.
func (c *checker) liveTable(t *table, head loaded) {
	c.live++
	chain, ok := c.chain(t, head.location, true)
	if !ok {
		return
	}
	last := chain[len(chain)-1]
	if chain[0].number > 0 {
		c.forgotten++
		return
	}
	for _, f := range c.filesOf(t) {
		c.reached[f] = true
		if !c.obs.files.exists(f) {
			c.problem("table %s: file %s is missing", t.id, f)
		}
	}
	shown := *head.metadata
	shown.location, shown.number = last.location, last.number // a load has no file of its own
	if !reflect.DeepEqual(&shown, last) {
		c.problem("table %s: a load answers other metadata than is in %s", t.id, head.location)
	}
	at := c.explain(t, chain)
	c.complete(t, chain, at, true)
	c.history(t, chain)
}

// filesOf are the data files, manifests and their lists that a table has for certain.
func (c *checker) filesOf(t *table) []string {
	var files []string
	for _, o := range t.ops {
		if o.edit != nil && c.finally(o) == done {
			files = append(files, o.edit.files...)
		}
	}
	return files
}

// droppedTable checks what a dropped table leaves behind: all its files if it was
// not purged, none of them if it was.
func (c *checker) droppedTable(t *table) {
	newest, number, purged, created, unheard := "", -1, false, false, 0
	known := map[string]int{}
	for _, o := range t.ops {
		if o.naming != nil && o.naming.purge && o.outcome != refused {
			purged = true
		}
		created = created || o.outcome == done
		if o.edit != nil && o.location == "" && o.outcome != refused {
			unheard++
		}
		if o.location == "" {
			continue
		}
		n, err := fileNumber(o.location)
		if err != nil {
			c.problem("table %s: %s answered: %v", t.id, o, err)
			continue
		}
		known[o.location] = n
		if n > number {
			newest, number = o.location, n
		}
	}
	switch {
	case !created || newest == "":
		return // it never was
	case purged:
		c.purged++
		// A purge deletes what the table's last metadata names. The commits whose answers
		// were lost, or name no file, may have pushed the oldest out of its log.
		for location, n := range known {
			if n > number-t.keepsLog+unheard {
				c.doomed = append(c.doomed, location)
			}
		}
		c.doomed = append(c.doomed, c.filesOf(t)...)
		return
	}
	c.dropped++
	chain, ok := c.chain(t, newest, false)
	if !ok {
		return
	}
	if chain[0].number > 0 {
		c.forgotten++
		return
	}
	for _, f := range c.filesOf(t) {
		c.reached[f] = true
		if !c.obs.files.exists(f) {
			c.problem("table %s, dropped without purge: file %s is missing", t.id, f)
		}
	}
	at := c.explain(t, chain)
	c.complete(t, chain, at, false)
	c.history(t, chain)
}

// chain is the versions of a table, the oldest first, found by going from file to
// file. It wants every file that is named to be there and right. The head of a
// table that is not live is the newest that anybody was told of: what came after it
// may have made it fall off the log.
func (c *checker) chain(t *table, head string, live bool) ([]*version, bool) {
	var chain []*version
	gone, visited := map[*version]bool{}, map[string]bool{}
	for location := head; location != ""; {
		if visited[location] {
			c.problem("table %s: the metadata log goes in a circle at %s", t.id, location)
			return nil, false
		}
		visited[location] = true
		v, err := c.obs.files.version(location)
		c.reached[location] = true
		if errors.Is(err, fs.ErrNotExist) && t.forgets && (!live || len(chain) > t.keepsLog) {
			if v = c.obs.files.remembered(location); v == nil {
				break // it was deleted before anybody looked
			}
			err, gone[v] = nil, true
			delete(c.reached, location)
		}
		if errors.Is(err, fs.ErrNotExist) {
			c.problem("table %s: metadata file %s is missing", t.id, location)
			return nil, false
		}
		if err != nil {
			c.problem("table %s: metadata file %s is damaged: %v", t.id, location, err)
			return nil, false
		}
		chain = append(chain, v)
		location = ""
		if n := len(v.MetadataLog); n > 0 {
			location = v.MetadataLog[n-1].File
		}
	}
	if len(chain) == 0 {
		c.forgotten++
		return nil, false
	}
	slices.Reverse(chain)
	c.versions += len(chain)
	c.forgetting(t, chain, gone)
	first := 0
	if t.forgets {
		first = chain[0].number
	}
	for i, v := range chain {
		if v.UUID != chain[0].UUID || v.UUID == "" {
			c.problem("table %s: %s has uuid %s, not %s", t.id, v.location, v.UUID, chain[0].UUID)
		}
		if v.number != first+i {
			c.problem("table %s: %s is version %d and is numbered %d", t.id, v.location, first+i, v.number)
		}
		if first == 0 {
			c.metadataLog(t, chain[:i+1])
		}
		c.readable(t, v)
	}
	return chain, true
}

// grace is how long the server leaves a file that fell off a log; see requestTimeLimit.
const grace = requestTimeLimit + 30*time.Second

// forgetting wants files that fell off the log of a table to stay for the time of
// grace, and to be gone when the server was started after it.
func (c *checker) forgetting(t *table, chain []*version, gone map[*version]bool) {
	if !t.forgets {
		return
	}
	const slack = 2 * time.Second
	for i, v := range chain[:max(0, len(chain)-1-t.keepsLog)] {
		ends := chain[i+1+t.keepsLog].LastUpdated + grace.Milliseconds()
		switch {
		case c.obs.clockMoved:
		case gone[v] && c.obs.now < ends:
			c.problem("table %s: %s was deleted %v before its time", t.id, v.location, time.Duration(ends-c.obs.now)*time.Millisecond)
		case !gone[v] && c.obs.started > ends+slack.Milliseconds():
			c.doomed = append(c.doomed, v.location)
			delete(c.reached, v.location)
		}
	}
}

// metadataLog checks the log of the last of some versions against those before it.
func (c *checker) metadataLog(t *table, chain []*version) {
	v, before := chain[len(chain)-1], chain[:len(chain)-1]
	before = before[max(0, len(before)-t.keepsLog):]
	if len(v.MetadataLog) != len(before) {
		c.problem("table %s: the metadata log of %s has %d entries instead of %d", t.id, v.location, len(v.MetadataLog), len(before))
		return
	}
	newest := int64(0)
	for i, e := range v.MetadataLog {
		switch {
		case e.File != before[i].location:
			c.problem("table %s: the metadata log of %s names %s instead of %s", t.id, v.location, e.File, before[i].location)
		case e.Time < newest:
			c.problem("table %s: the metadata log of %s runs back at %s", t.id, v.location, e.File)
		case e.Time != before[i].LastUpdated:
			c.problem("table %s: the metadata log of %s dates %s %d instead of %d", t.id, v.location, e.File, e.Time, before[i].LastUpdated)
		}
		newest = e.Time
	}
	if v.LastUpdated < newest {
		c.problem("table %s: last-updated-ms of %s runs back: %d after %d", t.id, v.location, v.LastUpdated, newest)
	}
}

// readerTolerance is how far times may run back for the readers that are written in Java.
const readerTolerance = time.Minute

// readable wants the times in a metadata file to be such that no reader refuses it.
func (c *checker) readable(t *table, v *version) {
	inOrder := func(log string, times []int64) {
		for i, at := range append(times, v.LastUpdated) {
			if i > 0 && at < times[i-1]-readerTolerance.Milliseconds() {
				c.problem("table %s: no reader accepts %s: %d follows %d in its %s log and last-updated-ms", t.id, v.location, at, times[i-1], log)
			}
		}
	}
	var files, snapshots []int64
	for _, e := range v.MetadataLog {
		files = append(files, e.Time)
	}
	for _, e := range v.SnapshotLog {
		snapshots = append(snapshots, e.Time)
	}
	inOrder("metadata", files)
	inOrder("snapshot", snapshots)
}

// explain finds the operations that made each version, and returns in which
// version each is.
func (c *checker) explain(t *table, chain []*version) map[*operation]int {
	at := map[*operation]int{}
	for i, v := range chain {
		var previous version
		if i > 0 {
			previous = *chain[i-1]
		}
		var made []*operation
		tokens := map[string]bool{}
		for k, token := range v.Properties {
			if !strings.HasPrefix(k, writerProperty) || previous.Properties[k] == token {
				continue
			}
			tokens[token] = true
			o := c.h.byToken[token]
			if o == nil || o.table != t {
				c.problem("table %s: phantom change %s in %s", t.id, token, v.location)
				continue
			}
			switch {
			case o.outcome == refused:
				c.problem("table %s: %s was refused (%d) and is visible in %s", t.id, o, o.status, v.location)
			case o.hopeless:
				c.problem("table %s: %s could never succeed and is visible in %s", t.id, o, v.location)
			case o.outcome == unknown:
				c.resolved[o] = done
				c.versionsOf[o] = v
			case o.showsLatest() && o.latest == (shown{}):
				c.versionsOf[o] = v
			}
			if first, twice := at[o]; twice {
				c.problem("table %s: %s was applied twice, in versions %d and %d", t.id, o, first, i)
			}
			at[o] = i
			made = append(made, o)
		}
		if len(tokens) == 0 {
			c.problem("table %s: nothing explains the version %s", t.id, v.location)
			continue
		}
		if !tokens[v.Properties[lastProperty]] {
			c.problem("table %s: %s has %s=%s, which is not of this version", t.id, v.location, lastProperty, v.Properties[lastProperty])
		}
		if i == 0 {
			c.creation(t, v, made)
			continue
		}
		c.exactly(t, &previous, v, made)
	}
	return at
}

// creation checks the first version of a table.
func (c *checker) creation(t *table, v *version, made []*operation) {
	if v.Properties[createdProperty] != t.id {
		c.problem("table %s: its first version %s was created by %q", t.id, v.location, v.Properties[createdProperty])
	}
	for _, o := range made {
		for k, value := range o.edit.set {
			if v.Properties[k] != value {
				c.problem("table %s: half of %s is in %s: %s is %q", t.id, o, v.location, k, v.Properties[k])
			}
		}
	}
	if len(v.Snapshots) > 0 {
		c.problem("table %s: its first version %s has %d phantom snapshots", t.id, v.location, len(v.Snapshots))
	}
}

// exactly wants the difference between two neighbours to be that of the operations.
func (c *checker) exactly(t *table, previous, v *version, made []*operation) {
	want, added := previous.Properties, map[int64]*snapshot{}
	for _, o := range made {
		want = o.edit.apply(want)
		if s := o.edit.snapshot; s != nil {
			added[s.ID] = s
		}
	}
	want = maps.Clone(want)
	if want == nil {
		want = map[string]string{}
	}
	want[lastProperty] = v.Properties[lastProperty] // of which of them is checked elsewhere
	for k := range want {
		if v.Properties[k] != want[k] {
			c.problem("table %s: half a change in %s: %s is %q instead of %q", t.id, v.location, k, v.Properties[k], want[k])
		}
	}
	for k := range v.Properties {
		if _, ok := want[k]; !ok {
			c.problem("table %s: phantom property %s in %s", t.id, k, v.location)
		}
	}
	had := map[int64]bool{}
	for _, s := range previous.Snapshots {
		had[s.ID] = true
	}
	for _, s := range v.Snapshots {
		if had[s.ID] {
			delete(had, s.ID)
			continue
		}
		sent := added[s.ID]
		delete(added, s.ID)
		switch {
		case sent == nil:
			c.problem("table %s: phantom snapshot %d in %s", t.id, s.ID, v.location)
		case s.Sequence != sent.Sequence || !sameID(s.Parent, sent.Parent) || !maps.Equal(s.Summary, sent.Summary):
			c.problem("table %s: snapshot %d in %s is not as it was sent", t.id, s.ID, v.location)
		}
	}
	for id := range had {
		c.problem("table %s: snapshot %d is lost in %s", t.id, id, v.location)
	}
	for id := range added {
		c.problem("table %s: half a change in %s: snapshot %d is missing", t.id, v.location, id)
	}
}

// complete wants every operation that was acknowledged, and everything that was
// read, to be in the chain. The chain of a dropped table may end early: what came
// after the newest version that anybody was told of is not known.
func (c *checker) complete(t *table, chain []*version, at map[*operation]int, live bool) {
	index := map[string]int{}
	for i, v := range chain {
		index[v.location] = i
	}
	read := map[*operation]int{}
	var dropped *operation
	for _, o := range t.ops {
		if o.naming != nil && o.naming.drops() && o.outcome == done {
			dropped = o
		}
	}
	for _, o := range t.ops {
		i, there := at[o]
		told, known := index[o.location]
		switch {
		case o.outcome == done && o.edit != nil && !there && !live && o.location == "" && !t.toldAfter(o):
		case o.outcome == done && o.edit != nil && !there:
			c.problem("table %s: %s was acknowledged and is lost", t.id, o)
		case o.outcome == unknown && o.edit != nil && !there && live:
			c.resolved[o] = refused
		case o.location == "":
		case !known:
			c.problem("table %s: %s was answered with %s, which is not in the table's history", t.id, o, o.location)
		case there && told < i:
			c.problem("table %s: %s was answered with version %d and is in version %d", t.id, o, told, i)
		case o.updated != chain[told].LastUpdated:
			c.problem("table %s: %s was answered with other metadata than is in %s", t.id, o, o.location)
		case o.uuid != chain[0].UUID:
			c.problem("table %s: %s was answered with uuid %s instead of %s", t.id, o, o.uuid, chain[0].UUID)
		}
		if o.location != "" && dropped != nil && o.sent > dropped.answered {
			c.problem("table %s: %s was answered after the table was dropped", t.id, o)
		}
		if (o.edit == nil || o.showsLatest() && told > i) && known {
			read[o] = told
		}
	}
	c.reads += len(read)
	c.order(t, len(chain), at, read)
	if !live {
		return
	}
	// The reason why a requirement on main failed is still there.
	main := chain[len(chain)-1].main()
	for _, o := range t.ops {
		if o.outcome == refused && !o.busy && o.status == http.StatusConflict && !o.hopeless && o.edit != nil && o.edit.snapshot != nil && sameID(o.expectedMain, main) {
			c.problem("table %s: %s was refused because main had moved, which it has not", t.id, o)
		}
	}
}

// toldAfter tells whether anybody was told a version of the table after an operation
// was acknowledged. A transaction is answered without one.
func (t *table) toldAfter(o *operation) bool {
	return slices.ContainsFunc(t.ops, func(other *operation) bool { return other.location != "" && other.sent > o.answered })
}

// order wants an operation that was answered before another was sent to be in an
// earlier version, and a read to have seen what was answered before it was sent and
// nothing that was sent after it was answered.
func (c *checker) order(t *table, versions int, at, read map[*operation]int) {
	// By version: the operation that was sent last among those up to it, and the
	// one that was answered first among those after it.
	sent, answered := make([]*operation, versions), make([]*operation, versions+1)
	for o, i := range at {
		if sent[i] == nil || o.sent > sent[i].sent {
			sent[i] = o
		}
		if answered[i] == nil || o.answered < answered[i].answered {
			answered[i] = o
		}
	}
	for i := 1; i < versions; i++ {
		if sent[i] == nil || sent[i-1] != nil && sent[i-1].sent > sent[i].sent {
			sent[i] = sent[i-1]
		}
	}
	for i := versions - 2; i >= 0; i-- {
		if answered[i] == nil || answered[i+1] != nil && answered[i+1].answered < answered[i].answered {
			answered[i] = answered[i+1]
		}
	}
	for o, i := range at {
		if later := answered[i+1]; later != nil && later.answered < o.sent {
			c.problem("table %s: %s comes after %s in the history, but was answered before that was sent", t.id, later, o)
		}
	}
	for o, i := range read {
		if missed := answered[i+1]; missed != nil && missed.answered < o.sent {
			c.problem("table %s: %s did not see %s, which was answered before it", t.id, o, missed)
		}
		if future := sent[i]; future != nil && future.sent > o.answered {
			c.problem("table %s: %s saw %s, which was sent after it", t.id, o, future)
		}
	}
	for part, i := range at {
		if len(part.sending.ops) < 2 {
			continue
		}
		for _, seen := range []map[*operation]int{at, read} {
			for o, j := range seen {
				switch after, before := c.after[part], c.before[part]; {
				case j >= i && (after == nil || o.answered < after.answered):
					c.after[part] = o
				case j < i && (before == nil || o.sent > before.sent):
					c.before[part] = o
				}
			}
		}
	}
}

// history checks the snapshots of a table's newest version: main leads through
// every one of them, from high sequence numbers to low.
func (c *checker) history(t *table, chain []*version) {
	head := chain[len(chain)-1]
	byID := map[int64]*snapshot{}
	for i := range head.Snapshots {
		byID[head.Snapshots[i].ID] = &head.Snapshots[i]
	}
	if len(byID) != len(head.Snapshots) {
		c.problem("table %s: a snapshot is in %s twice", t.id, head.location)
	}
	c.snapshots += len(byID)
	if len(byID) == 0 {
		return
	}
	sequence := head.LastSequence + 1
	ancestors := 0
	for id := head.main(); id != nil; ancestors++ {
		s := byID[*id]
		if s == nil {
			c.problem("table %s: snapshot %d in the ancestry of main is missing in %s", t.id, *id, head.location)
			return
		}
		if s.Sequence >= sequence {
			c.problem("table %s: the sequence numbers of main do not rise: %d after %d", t.id, sequence, s.Sequence)
			return // also what ends a circle
		}
		sequence, id = s.Sequence, s.Parent
	}
	if ancestors != len(byID) {
		c.problem("table %s: main leads through %d of %d snapshots in %s", t.id, ancestors, len(byID), head.location)
	}
	if !sameID(head.Current, head.main()) {
		c.problem("table %s: the current snapshot of %s is not that of main", t.id, head.location)
	}
	log := head.SnapshotLog
	if len(log) == 0 || log[len(log)-1].ID != *head.main() {
		c.problem("table %s: the snapshot log of %s does not end with the current snapshot", t.id, head.location)
	}
	for i := 1; i < len(log); i++ {
		if log[i].Time < log[i-1].Time {
			c.problem("table %s: the snapshot log of %s runs back", t.id, head.location)
		}
	}
}

func sameID(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
