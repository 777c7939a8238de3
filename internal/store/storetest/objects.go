package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/landfast/landfast/internal/store"
)

var objectsCases = []struct {
	name string
	run  func(h *objectsHarness)
}{
	{"a missing object", testObjectMissing},
	{"put and get", testObjectPutGet},
	{"create only if absent", testObjectCreate},
	{"a stale tag", testObjectStaleTag},
	{"a tag on a missing object", testObjectTagOnMissing},
	{"one of many creators wins", testObjectCreators},
	{"one of many swappers wins", testObjectSwappers},
	{"lists see every write", testObjectListSees},
	{"lists are in the order of bytes", testObjectListOrder},
	{"lists come in pages", testObjectListPages},
	{"a prefix is a prefix", testObjectListPrefix},
	{"delete", testObjectDelete},
	{"age", testObjectAge},
	{"contents come back whole", testObjectContents},
	{"names with odd bytes", testObjectNames},
	{"the caller owns what it gives", testObjectOwnership},
	{"a cancelled context changes nothing", testObjectCancelled},
}

// RunObjects runs the suite of [store.Objects], each case on an empty store of its own. It never
// sees store.ErrOutcomeUnknown: what it runs on must be in good health.
func RunObjects(t *testing.T, open func(t *testing.T) store.Objects) {
	for _, c := range objectsCases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), caseTimeout)
			defer cancel()
			c.run(&objectsHarness{T: t, ctx: ctx, objects: open(t)})
		})
	}
}

// objectsHarness is one case under way.
type objectsHarness struct {
	*testing.T
	ctx     context.Context
	objects store.Objects
}

func (h *objectsHarness) put(name string, match store.Tag, data string) store.Tag {
	h.Helper()
	tag, err := h.objects.Put(h.ctx, name, match, []byte(data))
	if err != nil {
		h.Fatalf("put %q if %q: %v", name, match, err)
	}
	if tag == store.NoTag {
		h.Fatalf("put %q: the new object has no tag", name)
	}
	return tag
}

func (h *objectsHarness) mustMismatch(name string, match store.Tag) {
	h.Helper()
	if _, err := h.objects.Put(h.ctx, name, match, []byte("another")); !errors.Is(err, store.ErrMismatch) {
		h.Fatalf("put %q if %q: got %v, want ErrMismatch", name, match, err)
	}
}

func (h *objectsHarness) get(name string) store.Object {
	h.Helper()
	o, err := h.objects.Get(h.ctx, name)
	if err != nil {
		h.Fatalf("get %q: %v", name, err)
	}
	return o
}

func (h *objectsHarness) mustBe(name string, tag store.Tag, data string) {
	h.Helper()
	want := store.Object{Name: name, Tag: tag, Data: []byte(data)}
	if diff := cmp.Diff(want, h.get(name), cmpopts.IgnoreFields(store.Object{}, "Age"), cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("get %q (-want +got):\n%s", name, diff)
	}
}

func (h *objectsHarness) mustList(prefix, after string, limit int, want ...string) {
	h.Helper()
	got, err := h.objects.List(h.ctx, prefix, after, limit)
	if err != nil {
		h.Fatalf("list %q after %q: %v", prefix, after, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		h.Fatalf("list %q after %q, at most %d (-want +got):\n%s", prefix, after, limit, diff)
	}
}

func (h *objectsHarness) delete(name string) {
	h.Helper()
	if err := h.objects.Delete(h.ctx, name); err != nil {
		h.Fatalf("delete %q: %v", name, err)
	}
}

// What is not there is no error, and has no tag.
func testObjectMissing(h *objectsHarness) {
	h.mustBe("a", store.NoTag, "")
	h.mustList("", "", 10)
	h.delete("a")
}

// A put is read as it was written, under the tag that it gave; another content has another tag.
func testObjectPutGet(h *objectsHarness) {
	first := h.put("dir/a", store.NoTag, "1")
	h.mustBe("dir/a", first, "1")
	second := h.put("dir/a", first, "2")
	if second == first {
		h.Fatalf("two contents have the tag %q", first)
	}
	h.mustBe("dir/a", second, "2")
	h.mustBe("dir", store.NoTag, "")
}

func testObjectCreate(h *objectsHarness) {
	tag := h.put("a", store.NoTag, "1")
	h.mustMismatch("a", store.NoTag)
	h.mustBe("a", tag, "1")
	h.put("b", store.NoTag, "1") // what one object holds says nothing of another
}

func testObjectStaleTag(h *objectsHarness) {
	first := h.put("a", store.NoTag, "1")
	second := h.put("a", first, "2")
	h.mustMismatch("a", first)
	h.mustMismatch("a", "no such tag")
	h.mustBe("a", second, "2")
}

// Whoever asks for a tag does not want to create.
func testObjectTagOnMissing(h *objectsHarness) {
	h.mustMismatch("a", "no such tag")
	h.mustBe("a", store.NoTag, "")
	tag := h.put("a", store.NoTag, "1")
	h.delete("a")
	h.mustMismatch("a", tag)
	h.mustBe("a", store.NoTag, "")
}

// contend lets many put their own content at once, and wants one winner, whose content is there.
func (h *objectsHarness) contend(name string, match store.Tag) (store.Tag, string) {
	h.Helper()
	var mu sync.Mutex
	var winners []string
	var tag store.Tag
	var writers []func()
	for i := range 8 {
		writers = append(writers, func() {
			data := fmt.Sprintf("%s by %d", match, i)
			won, err := h.objects.Put(h.ctx, name, match, []byte(data))
			if errors.Is(err, store.ErrMismatch) {
				return
			}
			if err != nil {
				h.Errorf("put %q: %v", name, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			winners, tag = append(winners, data), won
		})
	}
	race(writers...)
	if len(winners) != 1 {
		h.Fatalf("%s: %d of %d writers won: %q", name, len(winners), len(writers), winners)
	}
	h.mustBe(name, tag, winners[0])
	return tag, winners[0]
}

func testObjectCreators(h *objectsHarness) {
	for round := range raceRounds {
		h.contend(fmt.Sprint("a", round), store.NoTag)
	}
}

func testObjectSwappers(h *objectsHarness) {
	tag, _ := h.contend("a", store.NoTag)
	for range raceRounds {
		tag, _ = h.contend("a", tag)
	}
}

// A write that was answered is in every list from then on, and a deleted object in none.
func testObjectListSees(h *objectsHarness) {
	var names []string
	for i := range 20 {
		name := fmt.Sprintf("a/%02d", i)
		names = append(names, name)
		h.put(name, store.NoTag, "")
		h.mustList("a/", "", 100, names...)
	}
	for len(names) > 0 {
		h.delete(names[0])
		names = names[1:]
		h.mustList("a/", "", 100, names...)
	}
}

func testObjectListOrder(h *objectsHarness) {
	names := []string{"a", "a/b", "a-b", "a0", "B", "b", "é", "ab", "a/", "~", "0"}
	for _, name := range names {
		h.put(name, store.NoTag, "")
	}
	slices.Sort(names)
	h.mustList("", "", 100, names...)
}

func testObjectListPages(h *objectsHarness) {
	var names []string
	for i := range 25 {
		names = append(names, fmt.Sprintf("p/%02d", i))
		h.put(names[i], store.NoTag, "")
	}
	h.put("q", store.NoTag, "")
	for _, limit := range []int{1, 7, 25, 100} {
		after := ""
		for from := 0; from < len(names); from += limit {
			page := names[from:min(from+limit, len(names))]
			h.mustList("p/", after, limit, page...)
			after = page[len(page)-1]
		}
		h.mustList("p/", after, limit)
	}
	h.mustList("p/", "p/03x", 2, names[4:6]...) // after a name that is not there
	h.mustList("p/", "a", 2, names[:2]...)
	for _, limit := range []int{0, -1} {
		if _, err := h.objects.List(h.ctx, "p/", "", limit); err == nil {
			h.Errorf("a list of at most %d is answered", limit)
		}
	}
}

func testObjectListPrefix(h *objectsHarness) {
	for _, name := range []string{"a", "a/1", "a/1/2", "ab", "b/a/1"} {
		h.put(name, store.NoTag, "")
	}
	h.mustList("a", "", 10, "a", "a/1", "a/1/2", "ab")
	h.mustList("a/", "", 10, "a/1", "a/1/2")
	h.mustList("a/1", "a/1", 10, "a/1/2")
	h.mustList("c", "", 10)
}

// Delete asks for nothing, and a name may be made again.
func testObjectDelete(h *objectsHarness) {
	h.put("a", store.NoTag, "1")
	b := h.put("b", store.NoTag, "1")
	h.delete("a")
	h.mustBe("a", store.NoTag, "")
	h.mustBe("b", b, "1")
	h.delete("a")
	h.mustBe("a", h.put("a", store.NoTag, "2"), "2")
}

// An age grows, is counted from the last write, and never is negative.
func testObjectAge(h *objectsHarness) {
	began := time.Now()
	first := h.put("a", store.NoTag, "1")
	young := h.get("a").Age
	old := h.get("a").Age
	second := h.put("a", first, "2")
	h.mustBe("a", second, "2")
	again := h.get("a").Age
	// A bucket may tell ages by the second.
	if most := time.Since(began) + 2*time.Second; young < 0 || old < young || again < 0 || old > most || again > most {
		h.Fatalf("ages of %v, %v and, written again, %v in a case of %v", young, old, again, time.Since(began))
	}
}

func testObjectContents(h *objectsHarness) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, data := range []string{"", "\x00", string(all), "\r\n", string(bytes.Repeat(all, 1<<12))} {
		name := fmt.Sprint("a", i)
		tag := h.put(name, store.NoTag, data)
		if o := h.get(name); string(o.Data) != data || o.Tag != tag || !o.Exists() {
			h.Errorf("object %d of %d bytes came back with %d, tag %q, want %q", i, len(data), len(o.Data), o.Tag, tag)
		}
	}
}

// Names are what keys are escaped to: no control characters, but every other text.
func testObjectNames(h *objectsHarness) {
	var names []string
	for _, name := range []string{"a b", "a%2Fb", "a+b", "a?b", "a#b", "ä/ö", "a//b", "..a", "a/.b", "a'b\"c", "日本"} {
		h.mustBe(name, h.put(name, store.NoTag, name), name)
		names = append(names, name)
	}
	slices.Sort(names)
	h.mustList("", "", 100, names...)
}

// What the caller does with its bytes after Put changes nothing.
func testObjectOwnership(h *objectsHarness) {
	data := []byte("mine")
	tag, err := h.objects.Put(h.ctx, "a", store.NoTag, data)
	if err != nil {
		h.Fatal(err)
	}
	copy(data, "your")
	h.mustBe("a", tag, "mine")
	before := h.get("a")
	h.put("a", tag, "next")
	if string(before.Data) != "mine" {
		h.Fatalf("what was read before is now %q", before.Data)
	}
}

func testObjectCancelled(h *objectsHarness) {
	dead, cancel := context.WithCancel(h.ctx)
	cancel()
	tag := h.put("a", store.NoTag, "1")
	_, getErr := h.objects.Get(dead, "a")
	_, putErr := h.objects.Put(dead, "a", tag, []byte("2"))
	_, createErr := h.objects.Put(dead, "b", store.NoTag, []byte("2"))
	_, listErr := h.objects.List(dead, "", "", 1)
	for call, err := range map[string]error{
		"get": getErr, "put": putErr, "create": createErr, "list": listErr, "delete": h.objects.Delete(dead, "a"),
	} {
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrOutcomeUnknown) {
			h.Errorf("%s with a cancelled context: got %v, want context.Canceled", call, err)
		}
	}
	h.mustBe("a", tag, "1")
	h.mustList("", "", 10, "a")
}
