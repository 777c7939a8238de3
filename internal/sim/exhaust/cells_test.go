package exhaust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/store"
)

// content is what a cell can hold.
type content struct {
	tag    store.Tag
	data   []byte
	record store.Record
	what   store.Outcome // of a batch
	leased bool          // it is a status record with a lease, which ends by its age
}

// cell is a number of a content, shifted left by one; the lowest bit says that it is older
// than a lease. Zero: there is nothing.
type cell int32

func (c cell) content() int { return int(c >> 1) }
func (c cell) old() bool    { return c&1 != 0 }

// cells are what all share at one moment, by the number of the name; what is not
// there any more, or not yet, is zero. Never changed once made.
type cells []cell

func (c cells) at(name int) cell {
	if name >= len(c) {
		return 0
	}
	return c[name]
}

// space numbers the names and contents of one world.
type space struct {
	names    []string
	numbers  map[string]int
	contents []content
	known    map[string]int
	// births says that objects are born whose age matters, too.
	births bool
}

func newSpace(births bool) *space {
	return &space{births: births, numbers: map[string]int{}, known: map[string]int{}, contents: make([]content, 1)}
}

func (sp *space) name(n string) int {
	i, ok := sp.numbers[n]
	if !ok {
		i = len(sp.names)
		sp.numbers[n] = i
		sp.names = append(sp.names, n)
	}
	return i
}

// statusRecords begins the names of the only objects that are ever deleted.
const statusRecords = "tx/"

func (sp *space) content(identity string, make func() content) int {
	i, ok := sp.known[identity]
	if !ok {
		i = len(sp.contents)
		sp.known[identity] = i
		sp.contents = append(sp.contents, make())
	}
	return i
}

// number is that of the name of the cell that an access is about.
func (sp *space) number(a *access) int {
	if a.number == 0 && a.verb != list && a.verb != records {
		a.number = sp.name(a.cell) + 1
	}
	return a.number - 1
}

// bytes is the number of what an access writes.
func (sp *space) bytes(a *access) int {
	if a.content == 0 {
		a.content = sp.content("bytes "+string(a.data), func() content {
			hash := sha256.Sum256(a.data)
			return content{
				tag: store.Tag(hex.EncodeToString(hash[:16])), data: a.data, leased: bytes.Contains(a.data, []byte(`"PENDING"`)),
			}
		})
	}
	return a.content
}

func (sp *space) written(w store.Write, version string) int {
	return sp.content("record "+version+" "+w.Key.String()+" "+w.ID+" "+string(w.Value), func() content {
		return content{record: store.Record{Key: w.Key, Version: store.Version(version), ID: w.ID, Value: slices.Clone(w.Value)}}
	})
}

func (sp *space) fate(o store.Outcome) int {
	return sp.content("fate "+o.String(), func() content { return content{what: o} })
}

// leased reports whether a cell has an age that somebody looks at: that of a status record with a lease, or
// of a page that may be being born.
//
//go:norace
func (sp *space) leased(name int, c cell) bool {
	return sp.contents[c.content()].leased || c != 0 && sp.births && strings.HasPrefix(sp.names[name], objectCells+"pointers/")
}

// older makes everything old that has an age, and reports whether anything was young.
//
//go:norace
func (sp *space) older(c cells) (cells, bool) {
	c, young := slices.Clone(c), false
	for n, there := range c {
		if !there.old() && sp.leased(n, there) {
			c[n], young = there|1, true
		}
	}
	return c, young
}

func (sp *space) tag(c cell) store.Tag { return sp.contents[c.content()].tag }

// set changes one cell of a copy.
//
//go:norace
func (sp *space) set(c cells, name int, to int) cells {
	n := slices.Grow(slices.Clone(c), max(0, len(sp.names)-len(c)))[:max(len(sp.names), len(c))]
	n[name] = cell(to << 1)
	return n
}

// code is how an access ended.
type code uint8

const (
	fine code = iota
	absent
	mismatch
	unknown
	conflict
	exists
	fault
)

// answer is how an access ended, as a value that can be compared: the code of an actor
// is a function of the answers it got.
type answer struct {
	code code
	cell cell   // that was read, or as it was written
	many string // of a list: names, or numbers; of a conflict: the conditions
}

// perform does an access to the cells.
//
//go:norace
func (sp *space) perform(c cells, a *access) (answer, cells) {
	n := sp.number(a)
	switch a.verb {
	case get, read, record:
		if c.at(n) == 0 {
			return answer{code: absent}, c
		}
		return answer{cell: c.at(n)}, c
	case put:
		if sp.tag(c.at(n)) != a.match && !a.blind {
			return answer{code: mismatch}, c
		}
		c = sp.set(c, n, sp.bytes(a))
		return answer{cell: c[n]}, c
	case create:
		if c.at(n) != 0 {
			return answer{code: exists}, c
		}
		return answer{}, sp.set(c, n, sp.bytes(a))
	case remove:
		if c.at(n) == 0 {
			return answer{}, c
		}
		return answer{}, sp.set(c, n, 0)
	case list:
		return answer{many: strings.Join(sp.under(c, a), "\n")}, c
	case records:
		var many []string
		for _, name := range sp.under(c, a) {
			many = append(many, strconv.Itoa(c.at(sp.name(name)).content()))
		}
		return answer{many: strings.Join(many, " ")}, c
	case apply:
		return sp.apply(c, n, &a.batch)
	case outcome:
		if c.at(n) == 0 {
			c = sp.set(c, n, sp.fate(store.NotApplied))
		}
		return answer{cell: c.at(n)}, c
	}
	panic("exhaust: no access " + a.verb)
}

// under are the names of a list, in order.
//
//go:norace
func (sp *space) under(c cells, a *access) []string {
	var found []string
	for i, there := range c {
		if name := sp.names[i]; there != 0 && strings.HasPrefix(name, a.cell) && name > a.after {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found[:min(len(found), a.limit)]
}

func (sp *space) apply(c cells, batch int, b *store.Batch) (answer, cells) {
	switch sp.contents[c.at(batch).content()].what {
	case store.Applied:
		return answer{}, c
	case store.NotApplied:
		return answer{code: conflict}, c
	}
	var failed []string
	for i, cond := range b.Conds {
		if !sp.holds(c, cond, b.Writes) {
			failed = append(failed, strconv.Itoa(i))
		}
	}
	if len(failed) > 0 {
		return answer{code: conflict, many: strings.Join(failed, " ")}, c
	}
	for _, w := range b.Writes {
		to := 0
		if !w.Delete {
			to = sp.written(w, b.ID)
		}
		n := sp.name(recordCell(w.Key))
		c = sp.set(c, n, to)
	}
	return answer{}, sp.set(c, batch, sp.fate(store.Applied))
}

func (sp *space) holds(c cells, cond store.Cond, writes []store.Write) bool {
	there := sp.contents[c.at(sp.name(recordCell(cond.Key))).content()].record
	switch cond.Kind {
	case store.KindIs:
		return there.Version == cond.Version
	case store.KindLive:
		return there.ID == cond.ID
	}
	for i, under := range c {
		if under == 0 || !strings.HasPrefix(sp.names[i], recordsUnder(cond.Prefix)) {
			continue
		}
		k := sp.contents[under.content()].record.Key
		if !slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key == k }) {
			return false
		}
	}
	return true
}

// longAgo is the age of what is older than a lease, though not older than any request that is still under way.
const longAgo = time.Hour

// result is an answer as the code gets it.
func (sp *space) result(a *access, ans answer) result {
	var r result
	there := sp.contents[ans.cell.content()]
	switch ans.code {
	case mismatch:
		return result{err: store.ErrMismatch}
	case unknown:
		return result{err: fmt.Errorf("%w: the reply was lost", store.ErrOutcomeUnknown)}
	case exists:
		return result{err: blob.ErrExists}
	case fault:
		return result{err: errFault}
	case conflict:
		failed := &store.ConflictError{}
		for _, i := range numbers(ans.many) {
			failed.Conds = append(failed.Conds, a.batch.Conds[i])
		}
		return result{err: failed}
	case absent:
		if a.verb == read {
			r.err = blob.ErrNotFound
		}
		return r
	}
	switch a.verb {
	case get, put, read:
		r.object = store.Object{Tag: there.tag, Data: slices.Clone(there.data)}
		if ans.cell.old() {
			r.object.Age = longAgo
		}
	case record:
		r.records = []store.Record{copied(there.record)}
	case list:
		if ans.many != "" {
			for name := range strings.SplitSeq(ans.many, "\n") {
				r.names = append(r.names, strings.TrimPrefix(name, objectCells))
			}
		}
	case records:
		for _, i := range numbers(ans.many) {
			r.records = append(r.records, copied(sp.contents[i].record))
		}
	case outcome:
		r.outcome = there.what
	}
	return r
}

func copied(r store.Record) store.Record {
	r.Value = slices.Clone(r.Value)
	return r
}

func numbers(list string) []int {
	var all []int
	for f := range strings.FieldsSeq(list) {
		n, err := strconv.Atoi(f)
		if err != nil {
			panic(err)
		}
		all = append(all, n)
	}
	return all
}

// show is an answer in a transcript.
func (sp *space) show(a *access, ans answer) string {
	age := ""
	if ans.cell.old() {
		age = ", old"
	}
	switch there := sp.contents[ans.cell.content()]; ans.code {
	case absent:
		return "absent"
	case mismatch:
		return "has another tag"
	case unknown:
		return "no reply"
	case exists:
		return "exists already"
	case fault:
		return "CANNOT BE READ"
	case conflict:
		return fmt.Sprint(sp.result(a, ans).err)
	default:
		switch a.verb {
		case get:
			return fmt.Sprintf("%s%s: %s", short(there.tag), age, excerpt(there.data))
		case put:
			return "done, " + short(there.tag)
		case read:
			return fmt.Sprintf("%d bytes", len(there.data))
		case record:
			return fmt.Sprintf("version %s: %s", there.record.Version, excerpt(there.record.Value))
		case list:
			return strings.ReplaceAll(ans.many, "\n", ", ")
		case records:
			return fmt.Sprintf("%d records", len(numbers(ans.many)))
		case outcome:
			return there.what.String()
		}
		return "done"
	}
}
