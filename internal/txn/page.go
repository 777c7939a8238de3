package txn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// mode is what an intent does with its record.
type mode uint8

const (
	holdLive mode = 1 // holds Live: the incarnation stays
	holdIs   mode = 2 // holds Is: the version stays
	put      mode = 3
	remove   mode = 4
)

func (m mode) writes() bool { return m >= put }

// intent is what one batch under way does to one record.
type intent struct {
	batch  string
	home   string // the page that decides its fate; empty: its status record
	digest string // of the batch: the status record must have the same
	mode   mode
	id     string // the incarnation that is put
	value  []byte
}

// seal forbids all others to write under a prefix, in this page.
type seal struct {
	batch  string
	digest string
	prefix key.Prefix
}

// entry is a record in a page. Its settled value is what every reader saw last; only
// roll-forward and batches of one page change it.
type entry struct {
	key     key.Key
	version store.Version // Absent: there is no settled record, only intents
	id      string
	value   []byte
	intents []intent
}

func (e *entry) record() store.Record {
	if e.version == store.Absent {
		return store.Record{Key: e.key}
	}
	return store.Record{Key: e.key, Version: e.version, ID: e.id, Value: bytes.Clone(e.value)}
}

// done is a batch that this page remembers.
type done struct {
	batch   string
	applied bool     // otherwise void: it never will be
	births  []string // pages with births of it that may not be settled yet
}

// page is one object: a copy of its reader's own.
type page struct {
	name string
	tag  store.Tag
	age  time.Duration

	// gen rises with every write, so that no two contents are equal, nor two tags.
	gen     uint64
	entries []*entry // by key; each has a settled record or an intent
	seals   []seal
	// recent are the last batches that were applied here or made void, oldest first, at
	// most recentMax. A batch that is not among them was not applied in this page as long as none was forgotten.
	recent []done
	// forgotten is how many it remembers no more.
	forgotten uint64
}

// recentMax is how many batches a page remembers.
const recentMax = 256

func (p *page) find(k key.Key) (int, bool) {
	return slices.BinarySearchFunc(p.entries, k, func(e *entry, k key.Key) int { return key.Compare(e.key, k) })
}

// entry is the one of a key, or nil.
func (p *page) entry(k key.Key) *entry {
	if i, ok := p.find(k); ok {
		return p.entries[i]
	}
	return nil
}

// open is the entry of a key, a new one if need be.
func (p *page) open(k key.Key) *entry {
	i, ok := p.find(k)
	if !ok {
		p.entries = slices.Insert(p.entries, i, &entry{key: k})
	}
	return p.entries[i]
}

// memory is what the page knows of a batch.
func (p *page) memory(batch string) (done, bool) {
	for _, d := range p.recent {
		if d.batch == batch {
			return d, true
		}
	}
	return done{}, false
}

// remembered is how many batches the page ever remembered. One that was remembered since the
// number was first is remembered still, as long as it rose by no more than recentMax.
func (p *page) remembered() uint64 { return p.forgotten + uint64(len(p.recent)) }

func (p *page) remember(d done) {
	if _, ok := p.memory(d.batch); !ok {
		p.recent = append(p.recent, d)
	}
}

// holds reports whether the page has an intent or a seal of a batch.
func (p *page) holds(batch string) bool {
	return slices.ContainsFunc(p.seals, func(s seal) bool { return s.batch == batch }) ||
		slices.ContainsFunc(p.entries, func(e *entry) bool { return e.holds(batch) })
}

func (e *entry) holds(batch string) bool {
	return slices.ContainsFunc(e.intents, func(i intent) bool { return i.batch == batch })
}

// settle makes the intents of a batch in one entry settled values, or drops them.
func (e *entry) settle(batch string, committed bool) {
	version := store.Version(batch)
	if planted.Is(planted.VersionOfRollForward) {
		version += "'"
	}
	for _, i := range e.intents {
		if i.batch != batch || !committed {
			continue
		}
		switch i.mode {
		case put:
			e.version, e.id, e.value = version, i.id, i.value
		case remove:
			e.version, e.id, e.value = store.Absent, "", nil
		}
	}
	e.intents = slices.DeleteFunc(e.intents, func(i intent) bool { return i.batch == batch || planted.Is(planted.BlindClear) })
}

// settle is the end of a batch in this page.
func (p *page) settle(batch string, committed bool) {
	for _, e := range p.entries {
		e.settle(batch, committed)
	}
	p.seals = slices.DeleteFunc(p.seals, func(s seal) bool { return s.batch == batch })
	if committed {
		p.remember(done{batch: batch, applied: true})
	}
}

// The format of a page: a magic number with the version, counted fields, a checksum.
var magic = []byte("LFP1")

// encode gives the page's bytes, without the entries that hold nothing any more.
func (p *page) encode() []byte {
	w := writer(slices.Clone(magic))
	w.number(p.gen)
	p.entries = slices.DeleteFunc(p.entries, func(e *entry) bool { return e.version == store.Absent && len(e.intents) == 0 })
	w.number(uint64(len(p.entries)))
	for _, e := range p.entries {
		w.number(uint64(e.key.Level))
		w.text(e.key.Path)
		w.text(string(e.version))
		w.text(e.id)
		w.bytes(e.value)
		w.number(uint64(len(e.intents)))
		for _, i := range e.intents {
			w.text(i.batch)
			w.text(i.home)
			w.text(i.digest)
			w.number(uint64(i.mode))
			w.text(i.id)
			w.bytes(i.value)
		}
	}
	w.number(uint64(len(p.seals)))
	for _, s := range p.seals {
		w.text(s.batch)
		w.text(s.digest)
		w.number(uint64(s.prefix.Level))
		w.text(s.prefix.Path)
	}
	if over := len(p.recent) - recentMax; over > 0 {
		p.recent, p.forgotten = p.recent[over:], p.forgotten+uint64(over)
	}
	w.number(p.forgotten)
	w.number(uint64(len(p.recent)))
	for _, d := range p.recent {
		w.text(d.batch)
		w.flag(d.applied)
		w.number(uint64(len(d.births)))
		for _, b := range d.births {
			w.text(b)
		}
	}
	return binary.BigEndian.AppendUint32(w, crc32.ChecksumIEEE(w))
}

// errDamaged is what decoding gives for bytes that no object of this version has. It is never repaired.
var errDamaged = errors.New("txn: not an object that this version can read")

// checked gives what lies between the magic number and the checksum.
func checked(o store.Object, magic []byte) ([]byte, error) {
	body := len(o.Data) - crc32.Size
	if body < len(magic) || !bytes.HasPrefix(o.Data, magic) || binary.BigEndian.Uint32(o.Data[body:]) != crc32.ChecksumIEEE(o.Data[:body]) {
		return nil, fmt.Errorf("%w: %s", errDamaged, o.Name)
	}
	return o.Data[len(magic):body], nil
}

func decodePage(o store.Object) (*page, error) {
	p := &page{name: o.Name, tag: o.Tag, age: o.Age}
	if !o.Exists() {
		return p, nil
	}
	body, err := checked(o, magic)
	if err != nil {
		return nil, err
	}
	r := reader{data: body}
	p.gen = r.number()
	p.entries = make([]*entry, r.count())
	for n := range p.entries {
		e := &entry{key: key.Key{Level: key.Level(r.number()), Path: r.text()}, version: store.Version(r.text()), id: r.text(), value: r.bytes()}
		e.intents = make([]intent, r.count())
		for j := range e.intents {
			e.intents[j] = intent{batch: r.text(), home: r.text(), digest: r.text(), mode: mode(r.number()), id: r.text(), value: r.bytes()}
		}
		p.entries[n] = e
	}
	p.seals = make([]seal, r.count())
	for n := range p.seals {
		p.seals[n] = seal{batch: r.text(), digest: r.text(), prefix: key.Prefix{Level: key.Level(r.number()), Path: r.text()}}
	}
	p.forgotten = r.number()
	p.recent = make([]done, r.count())
	for n := range p.recent {
		d := done{batch: r.text(), applied: r.flag()}
		d.births = make([]string, r.count())
		for j := range d.births {
			d.births[j] = r.text()
		}
		p.recent[n] = d
	}
	if r.bad || len(r.data) > 0 || !slices.IsSortedFunc(p.entries, func(a, b *entry) int { return key.Compare(a.key, b.key) }) {
		return nil, fmt.Errorf("%w: %s", errDamaged, o.Name)
	}
	return p, nil
}

// writer appends fields.
type writer []byte

func (w *writer) number(n uint64) { *w = binary.AppendUvarint(*w, n) }
func (w *writer) flag(b bool) {
	if b {
		w.number(1)
	} else {
		w.number(0)
	}
}
func (w *writer) text(s string)  { w.number(uint64(len(s))); *w = append(*w, s...) }
func (w *writer) bytes(b []byte) { w.number(uint64(len(b))); *w = append(*w, b...) }

// reader takes fields off; after the first that is cut short it gives zeroes.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.bad, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

func (r *reader) flag() bool { return r.number() != 0 }

func (r *reader) bytes() []byte {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return nil
	}
	b := r.data[:n:n]
	r.data = r.data[n:]
	return b
}

func (r *reader) text() string { return string(r.bytes()) }

// count is the number of things that follow, each of at least one byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return 0
	}
	return int(n)
}
