package txn

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

var samePage = cmp.Options{
	cmp.AllowUnexported(page{}, entry{}, intent{}, seal{}, done{}), cmpopts.EquateEmpty(),
}

func object(name string, data []byte) store.Object {
	return store.Object{Name: name, Tag: "tag", Data: data, Age: time.Minute}
}

var (
	drawText  = rapid.StringN(0, 5, 10)
	drawBytes = rapid.SliceOfN(rapid.Byte(), 0, 10)
	drawKey   = rapid.Custom(func(t *rapid.T) key.Key {
		return key.Key{Level: key.Level(rapid.IntRange(1, 8).Draw(t, "level")), Path: drawText.Draw(t, "path")}
	})
)

// drawPage draws a page as every batch leaves it: sorted, and without entries that hold nothing.
var drawPage = rapid.Custom(func(t *rapid.T) *page {
	p := &page{name: "page", gen: rapid.Uint64().Draw(t, "gen"), forgotten: rapid.Uint64().Draw(t, "forgotten")}
	for _, k := range rapid.SliceOfDistinct(drawKey, func(k key.Key) key.Key { return k }).Draw(t, "keys") {
		e := p.open(k)
		if rapid.Bool().Draw(t, "settled") {
			e.version, e.id, e.value = "v"+store.Version(drawText.Draw(t, "version")), drawText.Draw(t, "id"), drawBytes.Draw(t, "value")
		}
		atLeast := 1
		if e.version != store.Absent {
			atLeast = 0
		}
		for range rapid.IntRange(atLeast, 3).Draw(t, "intents") {
			e.intents = append(e.intents, intent{
				batch: drawText.Draw(t, "batch"), home: drawText.Draw(t, "home"), digest: drawText.Draw(t, "digest"),
				mode: mode(rapid.IntRange(1, 4).Draw(t, "mode")), id: drawText.Draw(t, "id"), value: drawBytes.Draw(t, "value"),
			})
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "seals") {
		p.seals = append(p.seals, seal{batch: drawText.Draw(t, "batch"), digest: drawText.Draw(t, "digest"), prefix: key.Prefix(drawKey.Draw(t, "prefix"))})
	}
	for range rapid.IntRange(0, 5).Draw(t, "recent") {
		p.recent = append(p.recent, done{
			batch: drawText.Draw(t, "batch"), applied: rapid.Bool().Draw(t, "applied"), births: rapid.SliceOfN(drawText, 0, 2).Draw(t, "births"),
		})
	}
	return p
})

// A page is read as it was written, with the tag and the age of its object.
func TestPageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPage.Draw(t, "page")
		got, err := decodePage(object("page", p.encode()))
		if err != nil {
			t.Fatal(err)
		}
		p.tag, p.age = "tag", time.Minute
		if diff := cmp.Diff(p, got, samePage); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A page leaves out what holds nothing, and remembers the last batches only.
func TestPageForgets(t *testing.T) {
	p := &page{name: "page"}
	p.open(letter("A"))
	for i := range recentMax + 3 {
		p.remember(done{batch: string(rune('a' + i)), applied: true})
	}
	got, err := decodePage(object("page", p.encode()))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := got.memory(string(rune('a' + 2))); ok || len(got.recent) != recentMax || got.forgotten == 0 || len(got.entries) > 0 {
		t.Errorf("%d batches, forgotten: %d, %d entries", len(got.recent), got.forgotten, len(got.entries))
	}
	if _, ok := got.memory(string(rune('a' + 3))); !ok {
		t.Error("the oldest of the last is forgotten too")
	}
}

// An object that does not exist is an empty page, and no status record.
func TestAbsentObjects(t *testing.T) {
	p, err := decodePage(store.Object{Name: "page"})
	if diff := cmp.Diff(&page{name: "page"}, p, samePage); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if st, err := decodeStatus(store.Object{Name: "tx/t"}); err != nil || st != nil {
		t.Error(st, err)
	}
}

// example is a page that has everything.
func example() *page {
	p := &page{name: "page", gen: 300, forgotten: 7}
	settled := p.open(letter("A"))
	settled.version, settled.id, settled.value = "t0", "i", []byte("value")
	settled.intents = []intent{{batch: "t1", digest: "d", mode: put, id: "i", value: []byte("new")}, {batch: "t2", digest: "d", mode: holdLive}}
	p.open(letter("B")).intents = []intent{{batch: "t3", home: "C", mode: put, id: "j"}}
	p.seals = []seal{{batch: "t1", digest: "d", prefix: children.prefix}}
	p.recent = []done{{batch: "t0", applied: true, births: []string{"p", "q"}}, {batch: "t9"}}
	return p
}

func exampleStatus() *status {
	return &status{Batch: "t1", State: pending, Pages: []string{"A", "B"}, Digest: "d", LeaseMillis: 10_000}
}

// Every cut, every byte that is another, and everything that follows is refused.
func TestDamagedObjects(t *testing.T) {
	for name, c := range map[string]struct {
		data   []byte
		decode func([]byte) error
	}{
		"page": {example().encode(), func(data []byte) error { _, err := decodePage(object("page", data)); return err }},
		"status record": {exampleStatus().encode(), func(data []byte) error {
			_, err := decodeStatus(object("tx/t1", data))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.decode(c.data); err != nil {
				t.Fatal(err)
			}
			refused := func(what string, at int, data []byte) {
				t.Helper()
				if err := c.decode(data); !errors.Is(err, errDamaged) {
					t.Errorf("%s at %d of %d: %v", what, at, len(c.data), err)
				}
			}
			for n := range c.data {
				refused("cut", n, c.data[:n])
				for _, bits := range []byte{1, 0x80, 0xff} {
					other := slices.Clone(c.data)
					other[n] ^= bits
					refused("another byte", n, other)
				}
			}
			refused("one more byte", len(c.data), append(slices.Clone(c.data), 0))
			refused("another object", 0, []byte("{}"))
		})
	}
}

// with puts a magic number and the right checksum around a body.
func with(magic, body []byte) []byte {
	data := slices.Concat(magic, body)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// A body that no page has is refused although its checksum is right.
func TestPageRefusesNonsense(t *testing.T) {
	unsorted := example()
	slices.Reverse(unsorted.entries)
	for name, data := range map[string][]byte{
		"no body":              with(magic, nil),
		"more than it says":    with(magic, append(slices.Clone(example().encode()[len(magic):len(example().encode())-crc32.Size]), 0)),
		"counts beyond it":     with(magic, []byte{1, 0xff, 0xff, 0xff, 0xff, 0x0f}),
		"a number that is cut": with(magic, []byte{1, 0x80}),
		"entries out of order": unsorted.encode(),
	} {
		if _, err := decodePage(object("page", data)); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, body := range []string{"", "null", "{}", `{"state":"DONE"}`, `{"state":"PENDING"`} {
		if _, err := decodeStatus(object("tx/t", with(statusMagic, []byte(body)))); err == nil {
			t.Errorf("a status record %s is read", body)
		}
	}
}

// Tags are hashes of the content, and two pages of one content would be mistaken for each other:
// each write has another generation.
func TestGenerationsDiffer(t *testing.T) {
	p := example()
	before := p.encode()
	p.gen++
	if slices.Equal(before, p.encode()) {
		t.Error("two generations have one content")
	}
}

func TestStatusRoundTrip(t *testing.T) {
	want := exampleStatus()
	got, err := decodeStatus(object("tx/t1", want.encode()))
	if err != nil {
		t.Fatal(err)
	}
	want.tag, want.age = "tag", time.Minute
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(status{})); diff != "" {
		t.Error(diff)
	}
	for age, leased := range map[time.Duration]bool{0: true, 10*time.Second - 1: true, 10 * time.Second: false, time.Hour: false} {
		if got.age = age; got.leased() != leased {
			t.Errorf("leased after %v: %v", age, !leased)
		}
	}
}

// What is decoded at all is encoded to the same again.
func FuzzDecodePage(f *testing.F) {
	for _, p := range []*page{{}, example()} {
		data := p.encode()
		f.Add(data[len(magic) : len(data)-crc32.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decodePage(object("page", with(magic, body)))
		if err != nil {
			return
		}
		data := p.encode()
		again, err := decodePage(object("page", data))
		if err != nil {
			t.Fatalf("%v\n%q", err, data)
		}
		if diff := cmp.Diff(p, again, samePage); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzDecodeStatus(f *testing.F) {
	data := exampleStatus().encode()
	f.Add(data[len(statusMagic) : len(data)-crc32.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		st, err := decodeStatus(object("tx/t", with(statusMagic, body)))
		if err != nil {
			return
		}
		again, err := decodeStatus(object("tx/t", st.encode()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(st, again, cmp.AllowUnexported(status{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
