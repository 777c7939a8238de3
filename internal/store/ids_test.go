package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/landfast/landfast/internal/store"
)

// idAt is a UUIDv7 of a time in ms since 1970, or any 48 bits.
func idAt(ms, counter uint64) string {
	return fmt.Sprintf("%08x-%04x-7%03x%s", ms>>16&0xffffffff, ms&0xffff, counter&0xfff, uuid.NewString()[18:])
}

// Property: whatever the clock does and whatever it is told of, an id is greater than all before it, and a UUIDv7 with the
// random half of the fresh one; and while the clock is right it is the fresh one.
func TestIDsRise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fresh, greatest string
		ids := store.NewIDs(func() string { return fresh })
		const year2100 = 4_102_444_800_000
		time := rapid.OneOf(rapid.Uint64Range(1, 3), rapid.Uint64Range(1<<16-2, 1<<16+1), rapid.Uint64Range(1, year2100))
		counter := rapid.OneOf(rapid.Uint64Range(0, 1), rapid.Uint64Range(0xffe, 0xfff))
		for range rapid.IntRange(1, 50).Draw(t, "ids") {
			fresh = idAt(time.Draw(t, "ms"), counter.Draw(t, "counter"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				ids.Above(fresh)
				greatest = max(greatest, fresh[:18]+"~") // all that begin so
			case 1:
				ids.Above(fresh[:13])
				greatest = max(greatest, fresh[:13]+"~")
			default:
				id := ids.Next()
				if u, err := uuid.Parse(id); err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 || id[18:] != fresh[18:] {
					t.Fatalf("%q is no UUIDv7 made of %q: %v", id, fresh, err)
				}
				if id <= greatest {
					t.Fatalf("%q comes after %q", id, greatest)
				}
				if fresh[:18] > greatest && id != fresh {
					t.Fatalf("%q was changed into %q after %q", fresh, id, greatest)
				}
				greatest = id[:18] + "~"
			}
		}
	})
}

// Property: what is no UUIDv7 says nothing, and none may be given.
func TestIDsOfAnotherKind(t *testing.T) {
	fresh := idAt(1, 1)
	ids := store.NewIDs(func() string { return fresh })
	for _, id := range []string{"", "b", "ffffffff-fff", "ffffffff-ffff-4fff-8fff-ffffffffffff", "gggggggg-ffff-7fff-8fff-ffffffffffff", "ffffffff+ffff-7fff-8fff-ffffffffffff"} {
		ids.Above(id)
	}
	if id := ids.Next(); id != fresh {
		t.Errorf("%q; want %q", id, fresh)
	}
	defer func() {
		if recover() == nil {
			t.Error("an id of another kind was given")
		}
	}()
	fresh = uuid.NewString()
	ids.Next()
}

// Property: no two goroutines get one id, and each sees its own rise.
func TestIDsAtOnce(t *testing.T) {
	const goroutines, each = 8, 1000
	ids := store.NewIDs(func() string { return idAt(0, 0) })
	var seen sync.Map
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			last := ""
			for range each {
				id := ids.Next()
				if _, twice := seen.LoadOrStore(id[:18], true); twice || id <= last {
					t.Errorf("%q after %q, given twice: %v", id, last, twice)
				}
				last = id
			}
		})
	}
	wg.Wait()
}
