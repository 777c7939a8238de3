package embedded

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/store"
)

// process is a store and who makes its ids, both by one clock. Its ids follow the clock, as those of a fresh process do.
type process struct {
	*Store
	ids *store.IDs
	now time.Time
}

func begin(t *testing.T, path string, now time.Time) *process {
	t.Helper()
	p := &process{now: now}
	p.ids = store.NewIDs(func() string { return fmt.Sprintf("%s-7000%s", idFloor(p.now), uuid.NewString()[18:]) })
	p.Store = openStore(t, path, Options{Now: func() time.Time { return p.now }, Retention: time.Minute, Forgot: p.ids.Above})
	return p
}

func (p *process) write(t *testing.T, name string) {
	t.Helper()
	if err := p.Apply(t.Context(), *writes(p.ids.Next(), name, store.Absent).batch); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// forget writes twice, so far apart that the first id is forgotten.
func (p *process) forget(t *testing.T, name string) {
	t.Helper()
	p.write(t, name)
	p.now = p.now.Add(time.Hour)
	p.write(t, name+", an hour later")
}

// Property: wherever the clock is set, and whenever, the new batches of a process are not taken for such as were forgotten.
func TestClockIsSetBack(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000)
	t.Run("before the first id", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "catalog.db")
		p := begin(t, path, start)
		p.forget(t, "a")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p = begin(t, path, start.Add(time.Hour))
		p.now = start.Add(-24 * time.Hour)
		p.write(t, "b")
		p.forget(t, "c")
	})
	t.Run("while it runs", func(t *testing.T) {
		p := begin(t, filepath.Join(t.TempDir(), "catalog.db"), start)
		p.forget(t, "a")
		p.now = start.Add(-24 * time.Hour)
		p.write(t, "b")
		p.forget(t, "c")
	})
	t.Run("when ids of its future were forgotten", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "catalog.db")
		p := begin(t, path, start.Add(12*time.Hour))
		p.write(t, "ahead")
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p = begin(t, path, start)
		p.write(t, "a")
		b := *writes(p.ids.Next(), "b", store.Absent).batch
		p.now = start.Add(24 * time.Hour) // for a moment, in which no id is made
		if err := p.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		p.now = start
		p.write(t, "c")
	})
}
