package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/sim/history"
	"github.com/landfast/landfast/internal/tablemeta"
)

// Pointer is a table or view that is there in the end.
type Pointer struct {
	Name history.Name
	View bool
	File string // its metadata file
	// Registered says that older metadata files may belong to another table, too: one of
	// them may be missing.
	Registered bool
}

// Files are what is there in the end, for [Chains].
type Files struct {
	Pointers []Pointer
	// Read gives a metadata file. An error that is fs.ErrNotExist or blob.ErrNotFound says
	// that there is none.
	Read func(location string) ([]byte, error)
	// Dying are the metadata files that a batch has given up.
	Dying []string
	// Earlier tells the tokens of operations that are not in the history, because they were
	// before it; nil: there are none.
	Earlier func(token string) bool
}

// skewMax is how far times may run back before the Java reader refuses metadata, in
// milliseconds. It compares the entries of each log with each other, and the time of the
// metadata with the last entry of each.
const skewMax = 60_000

// Chains follows every table from its pointer back through its metadata log, and says what
// is wrong, if anything is:
//
//   - an acknowledged commit is in the chain of its table, unless the table was dropped or
//     registered anew, or the file was deleted because the log had become too long;
//   - nothing that was refused is there, nor what nobody wrote, nor anything twice;
//   - what was over before another was sent comes before it;
//   - the files that pointers and their logs name are there and not dying;
//   - times and sequence numbers do not run back, and the Java reader takes them.
//
// Views have no log: of them it sees the last change only.
func Chains(ops []history.Operation, f Files) []string {
	c := &chains{Files: f, writers: map[string]*request{}, known: map[string]*version{}, inChain: map[string]bool{}, dying: map[string]bool{}}
	ops = withLooks(ops)
	c.requests, _ = requestsOf(ops)
	for _, r := range c.requests {
		if r.first.Token != "" {
			c.writers[r.first.Token] = r
		}
	}
	for _, file := range f.Dying {
		c.dying[file] = true
	}
	pointers := slices.Clone(f.Pointers)
	slices.SortStableFunc(pointers, func(a, b Pointer) int { // whoever may share files comes last
		switch {
		case a.Registered == b.Registered:
			return 0
		case a.Registered:
			return 1
		}
		return -1
	})
	for _, p := range pointers {
		if ch := c.walk(p); ch != nil {
			c.all = append(c.all, ch)
			c.judge(ch)
		}
	}
	c.acknowledged(ops)
	c.latest(ops)
	slices.Sort(c.wrong)
	return slices.Compact(c.wrong)
}

type chains struct {
	Files
	requests []*request
	writers  map[string]*request // by token
	all      []*chain
	known    map[string]*version // files that were read; nil: there is none
	inChain  map[string]bool     // files
	dying    map[string]bool
	wrong    []string
}

// chain is the metadata of one table, the oldest first.
type chain struct {
	Pointer
	versions []*version
	// whole is set when it begins with the creation; otherwise older files are gone.
	whole bool
}

func (ch *chain) head() *version { return ch.versions[len(ch.versions)-1] }

// version is a metadata file, as far as it is looked at.
type version struct {
	file         string
	UUID         string            `json:"table-uuid"`
	ViewUUID     string            `json:"view-uuid"`
	LastUpdated  int64             `json:"last-updated-ms"`
	LastSequence int64             `json:"last-sequence-number"`
	Properties   map[string]string `json:"properties"`
	Current      *int64            `json:"current-snapshot-id"`
	Snapshots    []struct {
		ID       int64 `json:"snapshot-id"`
		Sequence int64 `json:"sequence-number"`
	} `json:"snapshots"`
	SnapshotLog []struct {
		Time int64 `json:"timestamp-ms"`
	} `json:"snapshot-log"`
	MetadataLog []struct {
		Time int64  `json:"timestamp-ms"`
		File string `json:"metadata-file"`
	} `json:"metadata-log"`
}

func (v *version) token() string { return v.Properties["token"] }

func (c *chains) problem(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// metadataBytesMax bounds a metadata file, decompressed.
const metadataBytesMax = 64 << 20

// read gives a version; nil: there is no such file.
func (c *chains) read(file string) (*version, error) {
	if v, ok := c.known[file]; ok {
		return v, nil
	}
	data, err := c.Read(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, blob.ErrNotFound) {
		c.known[file] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := tablemeta.Decode(data, metadataBytesMax)
	if err != nil {
		return nil, err
	}
	v := &version{file: file}
	if err := json.Unmarshal(doc, v); err != nil {
		return nil, err
	}
	c.known[file] = v
	return v, nil
}

// walk reads the chain of a pointer.
func (c *chains) walk(p Pointer) *chain {
	ch := &chain{Pointer: p, whole: true}
	logged := map[string]bool{}
	for file := p.File; file != ""; {
		if c.inChain[file] && !p.Registered && !ch.has(file) {
			c.problem("%v: the file %s is also that of another table", p.Name, file)
		}
		if ch.has(file) {
			c.problem("%v: the metadata log leads in a circle at %s", p.Name, file)
			break
		}
		v, err := c.read(file)
		switch {
		case err != nil:
			c.problem("%v: the file %s cannot be read: %v", p.Name, file, err)
			return nil
		case v == nil && file == p.File:
			c.problem("%v: its metadata file is missing: %s", p.Name, file)
			return nil
		case v == nil:
			if logged[file] && !p.Registered {
				c.problem("%v: the file %s is missing, and is in the metadata log", p.Name, file)
			}
			ch.whole = false
			slices.Reverse(ch.versions)
			return ch
		}
		if c.dying[file] && (file == p.File || logged[file] && !p.Registered) {
			c.problem("%v: the file %s is dying, and the table refers to it", p.Name, file)
		}
		c.inChain[file] = true
		if ch.versions = append(ch.versions, v); len(ch.versions) == 1 {
			for _, e := range v.MetadataLog {
				logged[e.File] = true
			}
		}
		file = ""
		if n := len(v.MetadataLog); n > 0 {
			file = v.MetadataLog[n-1].File
		}
	}
	slices.Reverse(ch.versions)
	return ch
}

func (ch *chain) has(file string) bool {
	return slices.ContainsFunc(ch.versions, func(v *version) bool { return v.file == file })
}

// judge looks at a chain by itself.
func (c *chains) judge(ch *chain) {
	seen := map[string]string{} // files, by token
	latest, last := int64(math.MinInt64), (*history.Operation)(nil)
	for i, v := range ch.versions {
		c.times(ch, v)
		token := v.token()
		if before, ok := seen[token]; ok && token != "" {
			c.problem("%v: the operation with the token %s was applied twice: %s and %s", ch.Name, token, before, v.file)
		}
		seen[token] = v.file
		switch w := c.writers[token]; {
		case token == "" || w == nil && c.Earlier != nil && c.Earlier(token):
		case w == nil:
			c.problem("%v: phantom: nobody wrote the token %q of %s", ch.Name, token, v.file)
		case !w.happened():
			c.problem("%v: phantom: what was refused is in %s:\n  %v", ch.Name, v.file, w.first)
		default:
			from, to := w.span()
			if to < latest {
				c.problem("%v: wrong order: in %s comes, after what was sent when it was over, \n  %v\n  %v", ch.Name, v.file, last, w.first)
			}
			if from > latest {
				latest, last = from, w.first
			}
		}
		if i == 0 {
			continue
		}
		before := ch.versions[i-1]
		if v.UUID != before.UUID {
			c.problem("%v: the uuid changes from %s to %s in %s", ch.Name, before.UUID, v.UUID, v.file)
		}
		if v.LastUpdated < before.LastUpdated {
			c.problem("%v: last-updated-ms runs back from %d to %d in %s", ch.Name, before.LastUpdated, v.LastUpdated, v.file)
		}
		if v.LastSequence < before.LastSequence {
			c.problem("%v: last-sequence-number runs back from %d to %d in %s", ch.Name, before.LastSequence, v.LastSequence, v.file)
		}
	}
}

// times wants what the Java reader wants of the times in one file, and that the sequence
// numbers fit.
func (c *chains) times(ch *chain, v *version) {
	log := func(what string, n int, at func(int) int64) {
		for i := 1; i < n; i++ {
			if at(i) < at(i-1)-skewMax {
				c.problem("%v: Java refuses %s: the %s runs back from %d to %d", ch.Name, v.file, what, at(i-1), at(i))
			}
		}
		if n > 0 && v.LastUpdated < at(n-1)-skewMax {
			c.problem("%v: Java refuses %s: last-updated-ms %d is more than %d s before the last entry of the %s, %d",
				ch.Name, v.file, v.LastUpdated, skewMax/1000, what, at(n-1))
		}
	}
	log("snapshot log", len(v.SnapshotLog), func(i int) int64 { return v.SnapshotLog[i].Time })
	log("metadata log", len(v.MetadataLog), func(i int) int64 { return v.MetadataLog[i].Time })
	current := v.Current == nil || *v.Current <= 0
	for _, s := range v.Snapshots {
		current = current || s.ID == *v.Current
		if s.Sequence > v.LastSequence {
			c.problem("%v: snapshot %d in %s has the sequence number %d, later than the last, %d", ch.Name, s.ID, v.file, s.Sequence, v.LastSequence)
		}
	}
	if !current {
		c.problem("%v: the current snapshot %d is not in %s", ch.Name, *v.Current, v.file)
	}
}

// acknowledged wants every acknowledged change to be there, or to be gone by rule.
func (c *chains) acknowledged(ops []history.Operation) {
	ends := c.ends(ops)
	for _, r := range c.requests {
		if !r.has(history.Done) {
			continue
		}
		if isOfView(r.first.Kind) {
			c.view(r)
			continue
		}
		seen := r.shown()
		for _, p := range partsOf(r.first) {
			names := ends.reach(p.Name, seen.UUID)
			from, _ := r.span()
			if !c.holds(r, names, seen) && !ends.after(from, names, seen.UUID) {
				c.problem("lost: %v was acknowledged, and is not in the metadata of the table:\n  %v", p.Name, r.first)
			}
		}
	}
}

// holds reports whether a change is in a chain, or was in one and its file was deleted. Where
// the answer did not show the file, it is found by its token.
func (c *chains) holds(r *request, names map[history.Name]bool, seen history.State) bool {
	return slices.ContainsFunc(c.all, func(ch *chain) bool {
		switch {
		case ch.View || !names[ch.Name] && ch.head().UUID != seen.UUID:
			return false
		case slices.ContainsFunc(ch.versions, func(v *version) bool {
			return v.file == seen.Location || seen.Location == "" && v.token() == r.first.Token
		}):
			return true
		case ch.whole || seen.Location == "":
			return !ch.whole
		}
		v, err := c.read(seen.Location)
		return v == nil && err == nil
	})
}

// view wants the last change of a view to be no older than an acknowledged one.
func (c *chains) view(r *request) {
	if r.first.Kind == history.LoadView {
		return
	}
	seen := r.shown()
	from, _ := r.span()
	for _, ch := range c.all {
		if !ch.View || ch.head().ViewUUID != seen.UUID {
			continue
		}
		if w := c.writers[ch.head().token()]; w != nil && w != r {
			if _, to := w.span(); to < from {
				c.problem("lost: the view %v was changed by\n  %v\nand is as it was left by\n  %v", ch.Name, r.first, w.first)
			}
		}
	}
}

// endings are how tables may have come to an end, or to other metadata.
type endings struct {
	renames []*request
	// removals and registrations have the names at which they were; registrations also have
	// the uuid that the file holds, empty where no answer showed it.
	removals, registrations []*request
	uuids                   map[string]string // of files
	bearers                 map[string]map[history.Name]bool
}

func (c *chains) ends(ops []history.Operation) *endings {
	e := &endings{uuids: map[string]string{}, bearers: map[string]map[history.Name]bool{}}
	for i := range ops {
		o := &ops[i]
		if !showsState(o) || o.Seen.UUID == "" {
			continue
		}
		e.uuids[o.Seen.Location] = o.Seen.UUID
		if e.bearers[o.Seen.UUID] == nil {
			e.bearers[o.Seen.UUID] = map[history.Name]bool{}
		}
		e.bearers[o.Seen.UUID][o.Name] = true
	}
	for _, r := range c.requests {
		if !r.happened() {
			continue
		}
		switch r.first.Kind {
		case history.RenameTable:
			e.renames = append(e.renames, r)
		case history.DropTable, history.Unregister:
			e.removals = append(e.removals, r)
		case history.RegisterTable:
			e.registrations = append(e.registrations, r)
		}
	}
	return e
}

// reach is the names that a table may have had which was at one of them: by its uuid also
// at those at which answers showed it.
func (e *endings) reach(n history.Name, uuid string) map[history.Name]bool {
	names := map[history.Name]bool{n: true}
	for n := range e.bearers[uuid] {
		names[n] = true
	}
	for grown := true; grown; {
		grown = false
		for _, r := range e.renames {
			if names[r.first.Name] && !names[r.first.To] {
				names[r.first.To], grown = true, true
			}
		}
	}
	return names
}

// after reports whether, at a moment or later, a table that may have had one of the names
// may have been dropped, or got other metadata.
func (e *endings) after(moment int64, names map[history.Name]bool, uuid string) bool {
	later := func(r *request) bool {
		_, to := r.span()
		return to >= moment
	}
	return slices.ContainsFunc(e.removals, func(r *request) bool { return names[r.first.Name] && later(r) }) ||
		slices.ContainsFunc(e.registrations, func(r *request) bool {
			file := e.uuids[r.first.From]
			return later(r) && (r.first.Overwrite && names[r.first.Name] || file == "" || file == uuid)
		})
}
