package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

var stressSeed = flag.Uint64("seed", 0, "seed of TestStress; 0: another each time")

// Eight clients do everything to few names at few locations, on a store that
// takes its time and answers a tenth of the batches with "unknown". In the end:
// names and pointers are bound to each other, every pointer's file is there, no
// location is equal to or above another, every claim has its table, nothing is
// dying, no namespace has lost its parent. On the way no commit or load meets a
// missing file, and every refusal is one that a client can understand.
func TestStress(t *testing.T) {
	seed := *stressSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	rounds := 20
	if kerneltest.OnPostgres() {
		rounds = 5 // in real time
	}
	for name, queue := range queues {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				bubble(t, func(t *testing.T) { stress(t, queue(), seed+uint64(round)) })
			}
		})
	}
}

// slowStore waits a little, in the bubble's time, before it touches its state.
type slowStore struct {
	store.Atomic
	random *random
}

type random struct {
	sync.Mutex
	*rand.Rand
}

func (r *random) n(below int) int {
	r.Lock()
	defer r.Unlock()
	return r.IntN(below)
}

func (s slowStore) wait() { time.Sleep(time.Duration(s.random.n(120)) * time.Microsecond) }

func (s slowStore) Get(ctx context.Context, k key.Key) (store.Record, error) {
	s.wait()
	return s.Atomic.Get(ctx, k)
}

func (s slowStore) List(ctx context.Context, p key.Prefix, after string, limit int) ([]store.Record, error) {
	s.wait()
	return s.Atomic.List(ctx, p, after, limit)
}

func (s slowStore) Apply(ctx context.Context, b store.Batch) error {
	s.wait()
	switch s.random.n(20) {
	case 0:
		return errors.Join(store.ErrOutcomeUnknown, s.Atomic.Apply(ctx, b))
	case 1:
		return store.ErrOutcomeUnknown
	}
	return s.Atomic.Apply(ctx, b)
}

func stress(t *testing.T, queue lock.Locker, seed uint64) {
	files, db := &kerneltest.Files{}, newStore(t)
	run := kernel.New(kernel.Options{
		Store: slowStore{db, &random{Rand: rand.New(rand.NewPCG(seed, 99))}}, Files: files, Queue: queue,
	})
	root := blob.Root{URI: "file:///w/main", Dir: "/w/main"}
	if err := run.Do(t.Context(), &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "m", Root: root}}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 10_000) // locations of metadata files that were written
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			c := client{
				T: t, random: rand.New(rand.NewPCG(seed, uint64(i))), run: run, files: files, seen: seen,
				namespaces: []string{"a", "b", "a.c"}, names: []string{"x", "y"},
			}
			for range 40 {
				c.step()
			}
		})
	}
	clients.Wait()
	find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
	if err := run.Do(t.Context(), find); err != nil {
		t.Fatal(err)
	}
	for _, list := range find.Result.Lists {
		if err := reclaim(t.Context(), run, files, "main", list.ID); err != nil {
			t.Error(err)
		}
	}
	checkInvariants(t, db.Snapshot(), files.Locations(), blob.Scope{root})
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

type client struct {
	*testing.T
	random *rand.Rand
	run    kernel.Runner
	files  *kerneltest.Files
	seen   chan string

	namespaces, names []string // that it uses
}

func (c *client) pick(from ...string) string { return from[c.random.IntN(len(from))] }

func (c *client) namespace() string { return c.pick(c.namespaces...) }

func (c *client) table() string { return c.namespace() + "." + c.pick(c.names...) }

func (c *client) step() {
	if op := c.next(); op != nil {
		c.look(op, c.run.Do(c.Context(), op))
	}
}

// next is what it does next; nil: nothing.
func (c *client) next() (op kernel.Operation) {
	place := func() string {
		return c.pick("file:///w/main/l1", "file:///w/main/l1/in", "file:/w/main/l2", "file:///w/main/a/z", "file:///w/main/a/c")
	}
	switch c.random.IntN(26) {
	case 0:
		op = createNamespace(c.namespace())
	case 1:
		op = createNamespace(c.namespace(), "location", place())
	case 2:
		op = dropNamespace(c.namespace())
	case 3:
		op = createTable(c.table())
	case 4:
		op = createTableAt(c.table(), place())
	case 5:
		op = stagedCreate(c.table(), place())
	case 6:
		op = dropTable(c.table(), false)
	case 7, 8:
		op = dropTable(c.table(), true)
	case 9:
		op = renameTable(c.table(), c.table())
	case 10, 11:
		select {
		case file := <-c.seen:
			again := register(c.table(), file)
			again.Request.Overwrite = c.random.IntN(2) == 0
			op = again
		default:
		}
	case 12:
		op = setProperty(c.table(), "p", fmt.Sprint(c.random.IntN(1000)))
	case 13:
		op = commitTable(c.table(), noAssert, fmt.Sprintf(`[{"action":"set-location","location":%q}]`, place()))
	case 14:
		op = &catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
			Warehouse: "main", Levels: strings.Split(c.namespace(), "."), Updates: map[string]string{"location": place()},
		}}
	case 15:
		op = loadTable(c.table())
	case 16:
		op = createView(c.table())
	case 17:
		op = createViewAt(c.table(), place())
	case 18:
		op = replaceView(c.table(), noAssert, fmt.Sprintf(`[{"action":"set-location","location":%q}]`, place()))
	case 19:
		op = renameView(c.table(), c.table())
	case 20:
		op = &catalog.DropView{Request: view(c.table())}
	case 21:
		op = &catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident(c.table())}}
	case 22:
		op = commitTable(c.table(), noAssert, fmt.Sprintf(`[{"action":"set-properties","updates":{
			"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"true","write.metadata.path":%q}}]`,
			c.pick(place(), "file:///w/main/shared")))
	case 23:
		both := fmt.Sprintf(`[{"action":"set-properties","updates":{"p":"%d"}}]`, c.random.IntN(1000))
		op = transaction(change(c.table(), noAssert, both), staged(c.table(), place()), change(c.table(), noAssert, both))
	case 24:
		op = once(c.pick("k1", "k2"), createTable(c.table()))
	case 25:
		select {
		case file := <-c.seen:
			op = giveUp(file)
		default:
		}
	}
	return op
}

// look checks an answer by itself, and goes on from it.
func (c *client) look(op kernel.Operation, err error) {
	var refusal *catalog.Error
	if err != nil && !errors.As(err, &refusal) {
		c.Errorf("%s: %v", op.Plan().Op, err)
	}
	again, registers := op.(*catalog.RegisterTable)
	switch {
	case errors.Is(err, catalog.ErrDamaged), errors.Is(err, catalog.ErrMissingFile) && !registers:
		c.Errorf("%s: %v", op.Plan().Op, err)
	case registers && again.Request.Overwrite && errors.Is(err, catalog.ErrAlreadyExists) && !strings.HasPrefix(err.Error(), "View"):
		c.Errorf("overwriting: %v", err)
	case err != nil:
		return
	}
	switch op := op.(type) {
	case *catalog.CreateTable:
		c.seen <- op.Result.MetadataLocation
	case *catalog.CommitTable:
		c.seen <- op.Result.MetadataLocation
	case *catalog.DropTable:
		if id := op.Result.DyingID; id != "" {
			if err := reclaim(c.Context(), c.run, c.files, "main", id); err != nil {
				c.Error(err)
			}
		}
	}
}

// checkInvariants looks at a catalog at rest.
func checkInvariants(t *testing.T, records []store.Record, files []string, scope blob.Scope) {
	at := map[key.Key]store.Record{}
	for _, r := range records {
		at[r.Key] = r
	}
	var locations []string
	for _, r := range records {
		var v struct {
			Ident            catalog.Ident `json:"ident"`
			NamespaceID      string        `json:"namespace-id"`
			Location         string        `json:"location"`
			MetadataLocation string        `json:"metadata-location"`
			Claim            string        `json:"claim"`
			Kept             []string      `json:"kept"`
			Pointer          string        `json:"pointer"`
			Levels           []string      `json:"levels"`
		}
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Errorf("%v: %v", r.Key, err)
		}
		switch r.Key.Level {
		case key.TableName:
			if !at[key.ForPointer("main", r.ID)].Exists() {
				t.Errorf("%v has no pointer", r.Key)
			}
		case key.Namespace:
			if above := v.Levels[:len(v.Levels)-1]; len(above) > 0 && !at[key.ForNamespace("main", above)].Exists() {
				t.Errorf("%v has no parent", r.Key)
			}
		case key.Dying:
			t.Errorf("%v is left", r.Key)
		case key.Once:
			continue
		case key.Location:
			if v.Pointer == "" {
				continue
			}
			var p struct {
				Claim string   `json:"claim"`
				Kept  []string `json:"kept"`
			}
			err := json.Unmarshal(at[key.ForPointer("main", v.Pointer)].Value, &p)
			if err != nil || !slices.ContainsFunc(append(p.Kept, p.Claim), func(c string) bool { return key.ForLocation(c) == r.Key }) {
				t.Errorf("%v is claimed by nobody: %v", r.Key, err)
			}
		case key.Pointer:
			if at[key.ForTableName("main", v.Ident.Namespace, v.Ident.Name)].ID != r.ID {
				t.Errorf("%v does not have the name %v", r.Key, v.Ident)
			}
			if at[key.ForNamespace("main", v.Ident.Namespace)].ID != v.NamespaceID {
				t.Errorf("%v is in a namespace that is gone", r.Key)
			}
			if !slices.Contains(files, v.MetadataLocation) {
				t.Errorf("%v names a file that is gone: %s", v.Ident, v.MetadataLocation)
			}
			c, err := scope.Canonical(v.Location)
			if err != nil {
				t.Error(err)
			}
			if v.Claim != "" && v.Claim != c {
				t.Errorf("%v is at %s but claims %s", v.Ident, c, v.Claim)
			}
			for _, kept := range v.Kept {
				if at[key.ForLocation(kept)].ID != r.ID {
					t.Errorf("%v keeps %s, which it does not claim", v.Ident, kept)
				}
			}
			locations = append(locations, c)
		}
	}
	for i, a := range locations {
		for j, b := range locations {
			if i != j && blob.Within(a, b) {
				t.Errorf("locations meet: %s and %s", a, b)
			}
		}
	}
}
