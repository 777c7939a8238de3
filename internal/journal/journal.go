package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// Files is where the files lie.
type Files interface {
	blob.Deferrer
	Exists(ctx context.Context, scope blob.Scope, location string) (bool, error)
	CheckMark(ctx context.Context, root blob.Root, id string) error
}

// File is one immutable file.
type File struct {
	Warehouse string // whose file it is, by name
	Scope     blob.Scope
	Location  string
	Data      []byte
}

// Options are what a Journal is made of. Store, Files and NewID are required; the zero value of each other
// field stands for its default.
type Options struct {
	Store store.Atomic
	Files Files
	// NewID makes the ids of batches: UUIDv7.
	NewID func() string
	// Interval is how long files ride at most, while all is well. Default 1 s.
	Interval time.Duration
	// MaxBytes is how much rides at once. Default 64 MiB.
	MaxBytes int
	// MaxFile is the size up to which a file may ride: what is written twice should be small. Default 256 KiB.
	MaxFile int
	// Observe is told, on the goroutine of Run, of each group of files that became durable: how many, how many bytes ride
	// still, and how long it took. It must not block. Default: nothing.
	Observe func(files, inFlight int, took time.Duration)
	// Log is told what an operator should know. Default slog.Default().
	Log *slog.Logger
}

// Journal keeps the bytes of files that are not yet durable. It is safe for concurrent use.
type Journal struct {
	opt  Options
	wake chan struct{} // Run has reason to be early
	made atomic.Bool   // files were made since the last Sync began

	mu       sync.Mutex
	inFlight int                        // bytes of admitted and applied
	admitted map[string]*riding         // by location: from Admit until Applied or Drop
	applied  map[string]*group          // by batch: what is to be made durable
	places   map[place]bool             // whether files may ride there, as far as it was asked
	stuck    map[store.Version]leftover // records that Recover could not settle

	// For Recover and Run alone, which come one after the other.
	warned map[string]bool // what was said since it was last looked
}

// riding is a file between Admit and Applied.
type riding struct {
	place   place
	size    int
	suspect bool
}

// group is the files of one applied batch.
type group struct {
	files, bytes int
	warehouses   []string // whose files these are
	// suspect says that a Sync has failed since some of the files were made: they must be rewritten.
	suspect bool
}

// New returns a Journal. It does nothing by itself: see Recover and Run.
func New(opt Options) *Journal {
	if opt.Store == nil || opt.Files == nil || opt.NewID == nil {
		panic("journal: Store, Files and NewID are required")
	}
	if opt.Interval <= 0 {
		opt.Interval = time.Second
	}
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = 64 << 20
	}
	if opt.MaxFile <= 0 {
		opt.MaxFile = 256 << 10
	}
	if opt.Observe == nil {
		opt.Observe = func(int, int, time.Duration) {}
	}
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	return &Journal{
		opt: opt, wake: make(chan struct{}, 1),
		admitted: map[string]*riding{}, applied: map[string]*group{}, places: map[place]bool{},
		stuck: map[store.Version]leftover{}, warned: map[string]bool{},
	}
}

// Admit reports whether a file may ride, and if so keeps room for it until Applied or Drop. One that may not
// must be made durable by itself, before its batch: it is too large, or too much rides already, or its root is
// one that cannot defer, or that Recover could not tell from an unmounted volume. No other file may
// have its location.
func (j *Journal) Admit(ctx context.Context, f File) bool {
	if len(f.Data) > j.opt.MaxFile {
		return false
	}
	root, ok := f.Scope.Find(f.Location)
	if !ok {
		return false
	}
	// The id is read each time: one from before the warehouse was made again would let Recover take the file for
	// nobody's. If that happens from now on, the batch fails its conditions.
	w, err := j.opt.Store.Get(ctx, key.ForWarehouse(f.Warehouse))
	if err != nil || !w.Exists() {
		return false
	}
	p := place{warehouse: f.Warehouse, id: w.ID, uri: root.URI, dir: root.Dir}
	if !j.ridesIn(ctx, p, f) {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inFlight+len(f.Data) > j.opt.MaxBytes || j.admitted[f.Location] != nil {
		return false
	}
	j.inFlight += len(f.Data)
	j.admitted[f.Location] = &riding{place: p, size: len(f.Data)}
	return true
}

// ridesIn tells whether files may ride in the place. It remembers the answer until the next look.
func (j *Journal) ridesIn(ctx context.Context, p place, f File) bool {
	j.mu.Lock()
	rides, known := j.places[p]
	j.mu.Unlock()
	if known {
		return rides
	}
	var err error
	rides = j.opt.Files.Defers(f.Scope, f.Location)
	if rides {
		err = j.check(ctx, p)
		rides = err == nil
	}
	if err == nil || errors.Is(err, blob.ErrMarkMissing) {
		j.mu.Lock()
		j.places[p] = rides
		j.mu.Unlock()
	}
	return rides
}

// Create makes an admitted file, visible at once and not yet durable. After an error there is no file,
// and no room is kept for it. Errors are those of [blob.Store]'s Create.
func (j *Journal) Create(ctx context.Context, f File) error {
	j.made.Store(true)
	err := j.opt.Files.CreateDeferred(ctx, f.Scope, f.Location, f.Data)
	if err != nil {
		j.Drop([]File{f})
	}
	return err
}

// Write is what the batch with this id must carry for the files that ride in it, at least one.
func (j *Journal) Write(batch string, files []File) (store.Write, store.Cond) {
	ride := make([]placed, len(files))
	j.mu.Lock()
	for i, f := range files {
		r := j.admitted[f.Location]
		if r == nil {
			j.mu.Unlock()
			panic(fmt.Sprintf("journal: %s was not admitted", f.Location))
		}
		ride[i] = placed{place: r.place, location: f.Location, data: f.Data}
	}
	j.mu.Unlock()
	k := key.ForUnsynced(batch)
	return store.Write{Key: k, ID: batch, Value: encode(ride)}, store.Is(k, store.Absent)
}

// Applied says that the batch is durable: its files are settled soon.
func (j *Journal) Applied(batch string, files []File) {
	j.mu.Lock()
	defer j.mu.Unlock()
	g := &group{}
	for _, f := range files {
		if r := j.admitted[f.Location]; r != nil {
			delete(j.admitted, f.Location)
			g.files++
			g.bytes += r.size
			g.suspect = g.suspect || r.suspect
			if !slices.Contains(g.warehouses, r.place.warehouse) {
				g.warehouses = append(g.warehouses, r.place.warehouse)
			}
		}
	}
	j.applied[batch] = g
	if j.inFlight > j.opt.MaxBytes/2 {
		j.hurry()
	}
}

// hurry has Run settle now what was applied.
func (j *Journal) hurry() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Drop gives back the room of files that ride in no batch: theirs was not applied, or nobody knows whether it was.
func (j *Journal) Drop(files []File) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range files {
		if r := j.admitted[f.Location]; r != nil {
			delete(j.admitted, f.Location)
			j.inFlight -= r.size
		}
	}
}
