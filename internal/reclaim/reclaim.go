package reclaim

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/duty"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/planted"
)

const (
	// roundEvery is how often all lists that are due are looked for.
	roundEvery = 10 * time.Minute
	// sweepFirst is when all warehouses are first swept, sweepEvery when again.
	sweepFirst = time.Hour
	sweepEvery = 24 * time.Hour

	// startsMax is how many purges that were started run at once, and queueMax how many wait.
	startsMax = 2
	queueMax  = 64
	// listsMax is how many lists of one page a round works on at once.
	listsMax = 4
	// deletesMax is how many files are deleted at once, by all purges together.
	deletesMax = 32
	// lostMax is how many files of decisions that lost are remembered. A sweep finds the others.
	lostMax = 10_000

	// pageSize is how many records are read at a time. endFilesMax and endListsMax bound
	// the lists that one operation ends, giveUpMax the files that one gives up.
	pageSize    = 100
	endListsMax = 100
	endFilesMax = 1000
	giveUpMax   = 100
)

// Files is what of a blob.Store and of blob.Roots is needed here.
type Files interface {
	Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error)
	Delete(ctx context.Context, scope blob.Scope, location string) error
	List(ctx context.Context, scope blob.Scope, location string, yield func(blob.Entry) error) error
	CheckMark(ctx context.Context, root blob.Root, id string) error
}

// Options are what a Reclaimer is made of. Runner, Files and Log are required.
type Options struct {
	Runner kernel.Runner
	Files  Files
	Log    *slog.Logger
	// Grace is how long a file stays that a reader or a decision on its way may still name: longer
	// than any request may take.
	Grace time.Duration
	// Settled returns once no crash can bring back a file of the warehouse that is there now and is deleted. May be nil.
	Settled func(ctx context.Context, warehouse string) error
	// Duties are shared with the other instances that reclaim in the same catalog. Nil: there are none.
	Duties *duty.Roster
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Reclaimer deletes files. It is safe for concurrent use.
type Reclaimer struct {
	opt      Options
	queue    chan listID
	deleting chan struct{} // holds one element for each file that is being deleted
	sweeping chan struct{} // holds an element while a sweep runs
	// elsewhere holds an element when another instance had a list, which may die and leave it.
	elsewhere chan struct{}

	mu sync.Mutex
	// taken are the lists that wait in the queue or are worked on. Each channel is closed when that ends.
	taken   map[listID]chan struct{}
	stopped bool // Run has ended
	lost    []lostFile
}

type listID struct{ warehouse, id string }

// duty is the name of the work on a list.
func (l listID) duty() string { return "purge/" + l.warehouse + "/" + l.id }

type lostFile struct {
	warehouse, location string
	since               time.Time
}

// New makes a Reclaimer. It panics when a required option is missing.
func New(opt Options) *Reclaimer {
	if opt.Runner == nil || opt.Files == nil || opt.Log == nil {
		panic("reclaim: Runner, Files and Log are required")
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Reclaimer{
		opt:      opt,
		queue:    make(chan listID, queueMax),
		deleting: make(chan struct{}, deletesMax),
		sweeping: make(chan struct{}, 1), elsewhere: make(chan struct{}, 1),
		taken: map[listID]chan struct{}{},
	}
}

// Run works until ctx is done: on what Start asks for, at once and every ten minutes on all
// lists that are due, and daily it sweeps every warehouse. What fails is logged and tried again
// in the next round. It is called once.
func (r *Reclaimer) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range startsMax {
		workers.Go(func() { r.serveStarts(ctx) })
	}
	r.rounds(ctx)
	workers.Wait()

	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for l, done := range r.taken {
		close(done)
		delete(r.taken, l)
	}
}

// Start begins to delete the files of a list without waiting for the next round. The channel
// is closed when they are gone, or when that failed and is left to the next round; so it is
// at once where too many purges wait already.
func (r *Reclaimer) Start(warehouse, id string) <-chan struct{} {
	l := listID{warehouse, id}
	r.mu.Lock()
	defer r.mu.Unlock()
	if done, ok := r.taken[l]; ok {
		return done
	}
	done := make(chan struct{})
	if !r.stopped {
		select {
		case r.queue <- l:
			r.taken[l] = done
			return done
		default:
		}
	}
	close(done)
	return done
}

// Lost remembers metadata files of decisions that certainly lost: nothing names them, and
// nothing ever will. They are given up, and deleted, when the time of grace has passed.
func (r *Reclaimer) Lost(warehouse string, files []string) {
	now := r.opt.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range files {
		if len(r.lost) < lostMax {
			r.lost = append(r.lost, lostFile{warehouse, f, now})
		}
	}
}

// take reserves a list, unless somebody has it.
func (r *Reclaimer) take(l listID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.taken[l]; ok {
		return false
	}
	r.taken[l] = make(chan struct{})
	return true
}

// release ends a reservation and tells those who wait for it.
func (r *Reclaimer) release(l listID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.taken[l])
	delete(r.taken, l)
}

func (r *Reclaimer) serveStarts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-r.queue:
			r.warn(ctx, "a purge failed, and is tried again", r.started(ctx, l), l.warehouse, slog.String("list", l.id))
			r.release(l)
		}
	}
}

// started deletes the files of one list and ends it.
func (r *Reclaimer) started(ctx context.Context, l listID) error {
	if err := r.mounted(ctx, l.warehouse); err != nil {
		return err
	}
	taken, err := r.takeDuties(ctx, l.duty())
	if err != nil || len(taken) == 0 {
		return err
	}
	defer r.opt.Duties.Done(ctx, taken...)
	list, err := r.work(ctx, l)
	if err != nil || list.ID == "" {
		return err
	}
	return r.end(ctx, l.warehouse, []string{list.ID})
}

// work deletes the files of one list that is taken and returns it; the zero list if it has
// ended, or is not due. It is read only now, for only who has taken a list may end it.
func (r *Reclaimer) work(ctx context.Context, l listID) (catalog.Dying, error) {
	find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: l.warehouse, ID: l.id}}
	if err := r.opt.Runner.Do(ctx, find); err != nil {
		return catalog.Dying{}, err
	}
	if len(find.Result.Lists) == 0 || !r.due(find.Result.Lists[0]) {
		return catalog.Dying{}, nil
	}
	if r.opt.Settled != nil {
		if err := r.opt.Settled(ctx, l.warehouse); err != nil {
			return catalog.Dying{}, err
		}
	}
	list := find.Result.Lists[0]
	if planted.Is(planted.DyingEndedFirst) {
		if err := r.end(ctx, l.warehouse, []string{list.ID}); err != nil {
			return catalog.Dying{}, err
		}
	}
	return list, r.reclaim(ctx, l.warehouse, find.Result.Scope, list)
}

// rounds keeps the calendar.
func (r *Reclaimer) rounds(ctx context.Context) {
	sweepAt := r.opt.Now().Add(sweepFirst)
	for {
		r.nameLost(ctx)
		r.everywhere(ctx, r.round)
		if now := r.opt.Now(); !now.Before(sweepAt) {
			sweepAt = now.Add(sweepEvery)
			r.everywhere(ctx, func(ctx context.Context, warehouse string) error {
				return r.sweepDaily(ctx, warehouse)
			})
		}
		if !r.rest(ctx) {
			return
		}
	}
}

// rest waits for the time of the next round, and tells whether there is one. It comes early where another instance had
// a list: as soon as that may have died.
func (r *Reclaimer) rest(ctx context.Context) bool {
	next := time.NewTimer(roundEvery)
	defer next.Stop()
	elsewhere := r.elsewhere
	for {
		select {
		case <-ctx.Done():
			return false
		case <-next.C:
			return true
		case <-elsewhere:
			next.Reset(duty.Lifetime)
			elsewhere = nil
		}
	}
}

// takeDuties takes the work on lists that no other instance has.
func (r *Reclaimer) takeDuties(ctx context.Context, names ...string) ([]string, error) {
	taken, err := r.opt.Duties.Take(ctx, 0, names...)
	if err == nil && len(taken) < len(names) {
		select {
		case r.elsewhere <- struct{}{}:
		default:
		}
	}
	return taken, err
}

// sweepDaily sweeps a warehouse, unless another instance does or has done. It waits for a sweep on demand of this one.
func (r *Reclaimer) sweepDaily(ctx context.Context, warehouse string) error {
	select {
	case r.sweeping <- struct{}{}:
		defer func() { <-r.sweeping }()
	case <-ctx.Done():
		return ctx.Err()
	}
	taken, err := r.opt.Duties.Take(ctx, sweepEvery-sweepFirst, sweepDuty(warehouse))
	if err != nil || len(taken) == 0 {
		return err
	}
	if _, err := r.sweep(ctx, warehouse, false); err != nil {
		r.opt.Duties.Done(ctx, taken...)
		return err
	}
	r.opt.Duties.Recurs(ctx, taken...)
	return nil
}

// everywhere does something in every warehouse, one after the other, and logs what fails.
func (r *Reclaimer) everywhere(ctx context.Context, do func(ctx context.Context, warehouse string) error) {
	list := &catalog.ListWarehouses{}
	if err := r.opt.Runner.Do(ctx, list); err != nil {
		r.warn(ctx, "the warehouses cannot be listed", err, "")
		return
	}
	for _, w := range list.Result.Warehouses {
		r.warn(ctx, "not all files could be reclaimed", do(ctx, w.Name), w.Name)
	}
}

// warn logs an error, if there is one and it is not that the server stops.
func (r *Reclaimer) warn(ctx context.Context, message string, err error, warehouse string, more ...slog.Attr) {
	if err == nil || ctx.Err() != nil {
		return
	}
	attrs := append([]slog.Attr{slog.String("warehouse", warehouse), slog.Any("err", err)}, more...)
	r.opt.Log.LogAttrs(ctx, slog.LevelWarn, message, attrs...)
}

// mounted refuses a warehouse whose root is not the one that was marked for it: where no
// file is, none is missing.
func (r *Reclaimer) mounted(ctx context.Context, warehouse string) error {
	get := &catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: warehouse}}
	if err := r.opt.Runner.Do(ctx, get); err != nil {
		return err
	}
	return r.opt.Files.CheckMark(ctx, get.Result.Root, get.Result.ID)
}

// due tells whether the files of a list may be deleted by now.
func (r *Reclaimer) due(list catalog.Dying) bool {
	return !list.Grace || !r.opt.Now().Before(time.UnixMilli(list.AtMillis).Add(r.opt.Grace))
}

// round works on all lists of a warehouse that are due. It goes on past one that fails.
func (r *Reclaimer) round(ctx context.Context, warehouse string) error {
	page := catalog.Page{Size: pageSize}
	var first error
	for {
		find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: warehouse, Page: page}}
		if err := r.opt.Runner.Do(ctx, find); err != nil {
			return cmp.Or(first, err)
		}
		var due []listID
		for _, list := range find.Result.Lists {
			if r.due(list) {
				due = append(due, listID{warehouse, list.ID})
			}
		}
		if len(due) > 0 {
			if err := r.mounted(ctx, warehouse); err != nil {
				return cmp.Or(first, err)
			}
			first = cmp.Or(first, r.workAll(ctx, warehouse, due))
		}
		if page.Token = find.Result.NextToken; page.Token == "" || ctx.Err() != nil {
			return first
		}
	}
}

// workAll works on several lists that nobody else has, and ends together those whose files are
// gone. The first error is returned.
func (r *Reclaimer) workAll(ctx context.Context, warehouse string, lists []listID) error {
	var g errgroup.Group
	g.SetLimit(listsMax)
	gone := make([]catalog.Dying, len(lists))
	var names []string
	for _, l := range lists {
		if r.take(l) {
			defer r.release(l) // once it has ended: who waits for it finds it gone
			names = append(names, l.duty())
		}
	}
	taken, err := r.takeDuties(ctx, names...)
	if err != nil {
		return err
	}
	defer r.opt.Duties.Done(ctx, taken...)
	for i, l := range lists {
		if !slices.Contains(taken, l.duty()) {
			continue
		}
		g.Go(func() error {
			list, err := r.work(ctx, l)
			if err == nil {
				gone[i] = list
			}
			return err
		})
	}
	first := g.Wait()
	var ids []string
	files := 0
	for _, list := range gone {
		if list.ID == "" {
			continue
		}
		if len(ids) == endListsMax || len(ids) > 0 && files+len(list.Files) > endFilesMax {
			first = cmp.Or(first, r.end(ctx, warehouse, ids))
			ids, files = nil, 0
		}
		ids, files = append(ids, list.ID), files+len(list.Files)
	}
	if len(ids) > 0 {
		first = cmp.Or(first, r.end(ctx, warehouse, ids))
	}
	return first
}

// end forgets lists whose files are gone, if it is still the right place that they
// were missing from.
func (r *Reclaimer) end(ctx context.Context, warehouse string, ids []string) error {
	for _, id := range ids {
		if !r.opt.Duties.Has(listID{warehouse, id}.duty()) {
			return errLost
		}
	}
	if err := r.mounted(ctx, warehouse); err != nil {
		return err
	}
	return r.opt.Runner.Do(ctx, &catalog.EndDying{Request: catalog.EndDyingRequest{Warehouse: warehouse, IDs: ids}})
}

// errLost says that another instance may be at the work by now: this one was frozen, or could not reach the store.
var errLost = errors.New("reclaim: another instance may have taken over")

// nameLost gives up the files of decisions that lost some time ago.
func (r *Reclaimer) nameLost(ctx context.Context) {
	now := r.opt.Now()
	r.mu.Lock()
	var old []lostFile
	r.lost = slices.DeleteFunc(r.lost, func(f lostFile) bool {
		if now.Sub(f.since) < r.opt.Grace {
			return false
		}
		old = append(old, f)
		return true
	})
	r.mu.Unlock()

	// Files of one table lie together, and an operation should touch few tables.
	slices.SortStableFunc(old, func(a, b lostFile) int {
		return cmp.Or(strings.Compare(a.warehouse, b.warehouse), strings.Compare(parent(a.location), parent(b.location)))
	})
	for len(old) > 0 {
		n := 0
		var files []string
		for n < len(old) && n < giveUpMax && old[n].warehouse == old[0].warehouse && parent(old[n].location) == parent(old[0].location) {
			files = append(files, old[n].location)
			n++
		}
		_, err := r.giveUp(ctx, old[0].warehouse, files)
		// What could not be named is forgotten here, and found by a sweep.
		r.warn(ctx, "files of refused commits are left to the next sweep", err, old[0].warehouse)
		old = old[n:]
	}
}

// giveUp names files as dying, those of them that no table has, and returns these.
func (r *Reclaimer) giveUp(ctx context.Context, warehouse string, files []string) ([]string, error) {
	op := &catalog.GiveUp{Request: catalog.GiveUpRequest{Warehouse: warehouse, Files: files}}
	err := r.opt.Runner.Do(ctx, op)
	return op.Result.Files, err
}

// parent is the directory of a location, without slash at its end.
func parent(location string) string { return location[:max(strings.LastIndexByte(location, '/'), 0)] }
