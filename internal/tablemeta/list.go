package tablemeta

import (
	"reflect"

	"github.com/landfast/landfast/internal/rawjson"
)

// list is an array or an object of the document, cut into its entries. Of each
// entry it knows a head H, the few values that commits look at, and the bytes.
//
// A list is a value: changing a copy leaves the original as it was, and what
// they have in common they share. The zero list is empty and absent from the
// document.
type list[H any] struct {
	// raw is the whole array or object, a span of the document that the list
	// was read from; nil if the document does not have it.
	raw     []byte
	entries []entry[H]
	// fresh holds the bytes of the entries that did not come from raw.
	fresh [][]byte
	// edited is true when raw no longer shows the entries. entries then belongs
	// to this list alone.
	edited bool
}

// entry is where the bytes of one entry are: raw[start:end] for one that was
// read, fresh[^start] for one that was added since, told apart by start < 0.
type entry[H any] struct {
	head       H
	start, end int
}

func (l *list[H]) len() int { return len(l.entries) }

// size is about how many bytes the list takes in memory beside raw.
func (l *list[H]) size() int {
	n := cap(l.entries) * int(reflect.TypeFor[entry[H]]().Size())
	for _, value := range l.fresh {
		n += cap(value)
	}
	return n
}

func (l *list[H]) value(i int) []byte {
	e := &l.entries[i]
	if e.start < 0 {
		return l.fresh[^e.start]
	}
	return l.raw[e.start:e.end:e.end]
}

// edit makes the entries this list's own, with room for more of them.
func (l *list[H]) edit(more int) {
	if l.edited {
		return
	}
	entries := make([]entry[H], len(l.entries), len(l.entries)+more)
	copy(entries, l.entries)
	l.entries, l.edited = entries, true
}

func (l *list[H]) add(head H, value []byte) {
	l.edit(1)
	l.fresh = append(l.fresh, value)
	l.entries = append(l.entries, entry[H]{head: head, start: ^(len(l.fresh) - 1)})
}

func (l *list[H]) replace(i int, head H, value []byte) {
	l.edit(0)
	l.fresh = append(l.fresh, value)
	l.entries[i] = entry[H]{head: head, start: ^(len(l.fresh) - 1)}
}

// remove drops the entries that drop is true of, and reports how many. It asks in
// order, once for each.
func (l *list[H]) remove(drop func(head *H) bool) int {
	first := l.index(drop)
	if first < 0 {
		return 0
	}
	l.edit(0)
	// In place, and by index: a copy of each entry would be allocated for drop.
	kept := l.entries[:first]
	for i := first + 1; i < len(l.entries); i++ {
		if !drop(&l.entries[i].head) {
			kept = append(kept, l.entries[i])
		}
	}
	removed := len(l.entries) - len(kept)
	clear(l.entries[len(kept):])
	l.entries = kept
	return removed
}

// dropFirst drops the first n entries, if n is positive.
func (l *list[H]) dropFirst(n int) {
	if n > 0 {
		l.edit(1)
		l.entries = l.entries[n:]
	}
}

// index is the position of the first entry that match is true of, or -1.
func (l *list[H]) index(match func(head *H) bool) int {
	for i := range l.entries {
		if match(&l.entries[i].head) {
			return i
		}
	}
	return -1
}

// appendTo writes the list behind dst, name by name if it is an object, and
// returns the list as it then stands in dst: unedited, its entries relative to
// its first byte. raw of the result is unset, because dst may still move.
//
// Entries that follow each other in raw are copied in one piece, with what is
// between them.
func (l *list[H]) appendTo(dst []byte, name func(head *H) string) ([]byte, list[H]) {
	if !l.edited && l.raw != nil {
		return append(dst, l.raw...), list[H]{entries: l.entries}
	}
	written := list[H]{entries: make([]entry[H], len(l.entries))}
	open, shut := byte('['), byte(']')
	if name != nil {
		open, shut = '{', '}'
	}
	origin := len(dst)
	dst = append(dst, open)
	for i := 0; i < len(l.entries); {
		e := &l.entries[i]
		if name != nil {
			dst = rawjson.AppendName(dst, name(&e.head))
		} else if i > 0 {
			dst = append(dst, ',')
		}
		// The run of entries i..j-1 is one piece of raw.
		j := i + 1
		for name == nil && e.start >= 0 && j < len(l.entries) && l.follows(j) {
			j++
		}
		piece := l.value(i)
		if j > i+1 {
			piece = l.raw[e.start:l.entries[j-1].end]
		}
		shift := len(dst) - origin - max(e.start, 0)
		dst = append(dst, piece...)
		for k := i; k < j; k++ {
			from := &l.entries[k]
			to := entry[H]{head: from.head, start: from.start + shift, end: from.end + shift}
			if from.start < 0 {
				to.start, to.end = shift, shift+len(piece)
			}
			written.entries[k] = to
		}
		i = j
	}
	return append(dst, shut), written
}

// follows reports whether in raw nothing but a separator is between entry j and
// the one before it.
func (l *list[H]) follows(j int) bool {
	before, e := &l.entries[j-1], &l.entries[j]
	if e.start < before.end || before.start < 0 {
		return false
	}
	for _, c := range l.raw[before.end:e.start] {
		if c != ',' && c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}
