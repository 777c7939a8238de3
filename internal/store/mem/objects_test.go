package mem_test

import (
	"testing"
	"time"

	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/storetest"
)

func TestObjects(t *testing.T) {
	storetest.RunObjects(t, func(*testing.T) store.Objects { return mem.NewObjects() })
}

// A tag is that of the content, as that of a bucket is: it returns when the content does.
func TestObjectsTagsReturn(t *testing.T) {
	o := mem.NewObjects()
	put := func(name string, match store.Tag, data string) store.Tag {
		t.Helper()
		tag, err := o.Put(t.Context(), name, match, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	first := put("a", store.NoTag, "1")
	if back := put("a", put("a", first, "2"), "1"); back != first {
		t.Errorf("the first content has the tags %q and %q", first, back)
	}
	if other := put("b", store.NoTag, "1"); other != first {
		t.Errorf("one content has the tags %q and %q", first, other)
	}
}

// Ages are told by the bucket's own clock, and are not negative when it goes back.
func TestObjectsAge(t *testing.T) {
	o := mem.NewObjects()
	now := time.Unix(1000, 0)
	o.Now = func() time.Time { return now }
	tag, err := o.Put(t.Context(), "a", store.NoTag, nil)
	if err != nil {
		t.Fatal(err)
	}
	age := func() time.Duration {
		t.Helper()
		a, err := o.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return a.Age
	}
	for _, c := range []struct{ passed, want time.Duration }{{0, 0}, {time.Minute, time.Minute}, {-time.Hour, 0}} {
		now = time.Unix(1000, 0).Add(c.passed)
		if got := age(); got != c.want {
			t.Errorf("%v after the write: %v", c.passed, got)
		}
	}
	if _, err := o.Put(t.Context(), "a", tag, []byte("2")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if got := age(); got != time.Second {
		t.Errorf("a second after it was written again: %v", got)
	}
}
