package journal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var files = rapid.Custom(func(t *rapid.T) placed {
	places := []place{{"w", "1", "file:///lake", "/lake"}, {"w", "2", "file:///lake", "/lake"}, {"\x00é", "", "", "C:\\lake"}}
	return placed{
		place:    rapid.SampledFrom(places).Draw(t, "place"),
		location: rapid.String().Draw(t, "location"),
		data:     rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
	}
})

// Properties: what was encoded reads back, any bytes included, and no part of it does.
func TestCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(files, 1, 5).Draw(t, "files")
		value := encode(want)
		got, err := decode(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(placed{}, place{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		short := value[:rapid.IntRange(0, len(value)-1).Draw(t, "cut")]
		if got, err := decode(short); err == nil {
			t.Fatalf("%d of %d bytes decode to %v", len(short), len(value), got)
		}
		if _, err := decode(append(value, 0)); err == nil {
			t.Fatal("a byte too many is not seen")
		}
	})
}

// Property: no value makes decode panic, or take more memory than it deserves.
func FuzzDecode(f *testing.F) {
	f.Add(encode([]placed{{place{"w", "i", "u", "d"}, "l", []byte("x")}}))
	f.Add([]byte{format, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{format, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		if got, err := decode(value); err == nil && len(got) > len(value) {
			t.Errorf("%d files in %d bytes", len(got), len(value))
		}
	})
}
