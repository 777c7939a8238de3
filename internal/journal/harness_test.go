package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	root  = blob.Root{URI: "file:///lake", Dir: "/lake"}
	scope = blob.Scope{root, {URI: "s3://bucket/lake"}}
)

// disk is files of which some are only in memory.
type disk struct {
	mu    sync.Mutex
	seen  map[string]string // what a reader finds
	safe  map[string]string // what is there after the loss of power
	dirty map[string]bool   // what the next Sync would write
	mark  string            // the warehouse's id in the root; empty: not mounted
	rigid bool              // nothing is deferred

	failSync    error // once
	failRewrite func(location string) error
	failMark    error
	syncs       chan struct{} // not nil: Sync waits for one
}

func newDisk() *disk {
	return &disk{seen: map[string]string{}, safe: map[string]string{}, dirty: map[string]bool{}, mark: "w-id"}
}

func (d *disk) Defers(blob.Scope, string) bool { return !d.rigid }

func (d *disk) CreateDeferred(_ context.Context, scope blob.Scope, location string, data []byte) error {
	if _, _, err := scope.Locate(location); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, taken := d.seen[location]; taken {
		return blob.ErrExists
	}
	d.seen[location], d.dirty[location] = string(data), true
	return nil
}

// Sync gives up what is dirty when it fails, as the kernel does.
func (d *disk) Sync(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.syncs != nil {
		<-d.syncs
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.failSync
	d.failSync = nil
	for location := range d.dirty {
		if err == nil {
			d.safe[location] = d.seen[location]
		}
	}
	clear(d.dirty)
	return err
}

func (d *disk) Rewrite(_ context.Context, scope blob.Scope, location string, data []byte) error {
	if _, _, err := scope.Locate(location); err != nil {
		return err
	}
	if d.failRewrite != nil {
		if err := d.failRewrite(location); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[location], d.safe[location] = string(data), string(data)
	return nil
}

func (d *disk) Exists(_ context.Context, _ blob.Scope, location string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, there := d.seen[location]
	return there, nil
}

func (d *disk) CheckMark(_ context.Context, r blob.Root, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failMark != nil {
		return d.failMark
	}
	if r != root || d.mark != id {
		return fmt.Errorf("%w: %s", blob.ErrMarkMissing, r.URI)
	}
	return nil
}

func (d *disk) delete(location string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.seen, location)
	delete(d.safe, location)
	delete(d.dirty, location)
}

// crash takes the power away: of what is not safe, keep says how many bytes remain; less than 0: no file.
func (d *disk) crash(keep func(location string) int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := maps.Clone(d.safe)
	for location, data := range d.seen {
		if n := keep(location); after[location] != data && n >= 0 {
			after[location] = data[:min(n, len(data))]
		}
	}
	d.seen = after
	d.safe = maps.Clone(after)
	clear(d.dirty)
}

func (d *disk) mount(mark string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mark = mark
}

// failing makes the question for a marker fail; nil: no longer.
func (d *disk) failing(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failMark = err
}

// safely gives the bytes that the loss of power would leave of a file.
func (d *disk) safely(location string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.safe[location]
}

// harness is a journal on a store and a disk. It fails the test when a record is removed of which a file that is
// there could still be lost.
type harness struct {
	t     testing.TB
	store *mem.Store
	disk  *disk
	fault func(store.Batch) mem.Fault // of removals
	log   bytes.Buffer
	*Journal
}

func newHarness(t testing.TB, opt Options) *harness {
	h := &harness{t: t, store: mem.New(), disk: newDisk()}
	k := key.ForWarehouse("w")
	h.apply(store.Batch{ID: newID(), Conds: []store.Cond{store.Is(k, store.Absent)}, Writes: []store.Write{{Key: k, ID: "w-id"}}})
	h.store.Fault = func(b store.Batch) mem.Fault {
		if !b.Writes[0].Delete {
			return mem.Fault{}
		}
		for _, w := range b.Writes {
			h.safeRecord(w.Key)
		}
		if h.fault != nil {
			return h.fault(b)
		}
		return mem.Fault{}
	}
	h.restart(opt)
	return h
}

// restart begins again with nothing but store and disk.
func (h *harness) restart(opt Options) {
	opt.Store, opt.Files, opt.NewID, opt.Log = h.store, h.disk, newID, slog.New(slog.NewTextHandler(&h.log, nil))
	h.Journal = New(opt)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func (h *harness) safeRecord(k key.Key) {
	r, err := h.store.Get(context.Background(), k)
	if err != nil || !r.Exists() || h.disk.mark == "" {
		return
	}
	files, err := decode(r.Value)
	if err != nil {
		h.t.Errorf("a damaged record is removed: %v", err)
	}
	for _, f := range files {
		if there, _ := h.disk.Exists(context.Background(), nil, f.location); there && h.disk.safely(f.location) != string(f.data) {
			h.t.Errorf("the record of %s is removed before the file is durable", f.location)
		}
	}
}

func (h *harness) apply(b store.Batch) {
	h.t.Helper()
	if err := h.store.Apply(context.Background(), b); err != nil {
		h.t.Fatal(err)
	}
}

func file(name, data string) File {
	return File{Warehouse: "w", Scope: scope, Location: root.URI + "/t/metadata/" + name, Data: []byte(data)}
}

// create admits and makes files.
func (h *harness) create(files ...File) {
	h.t.Helper()
	for _, f := range files {
		if !h.Admit(context.Background(), f) {
			h.t.Fatalf("%s may not ride", f.Location)
		}
		if err := h.Create(context.Background(), f); err != nil {
			h.t.Fatal(err)
		}
	}
}

// batch applies a batch in which the files ride, and tells nobody.
func (h *harness) batch(files ...File) (id string) {
	h.t.Helper()
	id = newID()
	w, c := h.Write(id, files)
	h.apply(store.Batch{ID: id, Conds: []store.Cond{c}, Writes: []store.Write{w}})
	return id
}

// commit is the whole life of files up to their batch.
func (h *harness) commit(files ...File) {
	h.t.Helper()
	h.create(files...)
	h.Applied(h.batch(files...), files)
}

func (h *harness) records() int {
	h.t.Helper()
	records, err := h.store.List(context.Background(), key.Unsynceds(), "", 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(records)
}

// want checks how many records there are and how many bytes ride.
func (h *harness) want(records, inFlight int) {
	h.t.Helper()
	h.mu.Lock()
	bytes := h.inFlight
	h.mu.Unlock()
	if got := h.records(); got != records || bytes != inFlight {
		h.t.Errorf("%d records, %d bytes ride; want %d and %d", got, bytes, records, inFlight)
	}
}

func (h *harness) wantSafe(files ...File) {
	h.t.Helper()
	for _, f := range files {
		if got := h.disk.safely(f.Location); got != string(f.Data) {
			h.t.Errorf("%s: the loss of power would leave %q of %q", f.Location, got, f.Data)
		}
	}
}

// wantUnsafe checks that a file is there, and would not survive.
func (h *harness) wantUnsafe(f File) {
	h.t.Helper()
	if there, _ := h.disk.Exists(context.Background(), scope, f.Location); !there || h.disk.safely(f.Location) != "" {
		h.t.Errorf("%s is not there (%v), or safe already", f.Location, there)
	}
}

var errDisk = errors.New("disk on fire")
