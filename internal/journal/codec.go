package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/blob"
)

// place is where files lie: a root of a warehouse.
type place struct {
	warehouse, id string // name and id: another one may be made under the name
	uri, dir      string // of the root
}

func (p place) scope() blob.Scope { return blob.Scope{p.root()} }
func (p place) root() blob.Root   { return blob.Root{URI: p.uri, Dir: p.dir} }

// placed is a file with its place.
type placed struct {
	place    place
	location string
	data     []byte
}

// format is the first byte of a record's value. It changes when the rest does.
const format = 1

// encode makes the value of a record: the format; the number of places and each one's four texts; the number of
// files and of each the number of its place, its location and its bytes. Numbers are uvarints, texts and bytes come
// behind their length.
func encode(files []placed) []byte {
	size := 64
	for _, f := range files {
		size += len(f.location) + len(f.data) + 3*binary.MaxVarintLen64
	}
	out := append(make([]byte, 0, size), format)
	var places []place
	number := map[place]int{}
	for _, f := range files {
		if _, known := number[f.place]; !known {
			number[f.place] = len(places)
			places = append(places, f.place)
		}
	}
	out = binary.AppendUvarint(out, uint64(len(places)))
	for _, p := range places {
		out = appendText(appendText(appendText(appendText(out, p.warehouse), p.id), p.uri), p.dir)
	}
	out = binary.AppendUvarint(out, uint64(len(files)))
	for _, f := range files {
		out = binary.AppendUvarint(out, uint64(number[f.place]))
		out = appendText(appendText(out, f.location), f.data)
	}
	return out
}

func appendText[T string | []byte](out []byte, text T) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

var errDamaged = errors.New("the record is damaged")

// decode reads what encode has made. The files share the memory of value.
func decode(value []byte) ([]placed, error) {
	if len(value) == 0 {
		return nil, errDamaged
	}
	if value[0] != format {
		return nil, fmt.Errorf("the record has format %d, not %d: a newer version has written it", value[0], format)
	}
	d := decoder{rest: value[1:]}
	places := make([]place, d.count())
	for i := range places {
		places[i] = place{warehouse: string(d.text()), id: string(d.text()), uri: string(d.text()), dir: string(d.text())}
	}
	files := make([]placed, d.count())
	for i := range files {
		n := d.number()
		if n >= uint64(len(places)) {
			return nil, errDamaged
		}
		files[i] = placed{place: places[n], location: string(d.text()), data: d.text()}
	}
	if d.failed || len(d.rest) > 0 {
		return nil, errDamaged
	}
	return files, nil
}

// decoder reads from the front of rest. After the first failure it reads nothing but zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if d.failed || size <= 0 {
		d.rest, d.failed = nil, true
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count is a number of things of at least one byte each.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.rest, d.failed = nil, true
		return 0
	}
	return n
}

func (d *decoder) text() []byte {
	n := d.count()
	text := d.rest[:n:n]
	d.rest = d.rest[n:]
	return text
}
