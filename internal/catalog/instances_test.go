package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
)

const (
	instances = 3
	rounds    = 200 // of each race between them
	lanes     = 4   // rounds that run at once, so that what is slow about one is not about all
)

// fleet are several processes that serve one catalog: each has a kernel of its own, with a queue and a memory, and
// its own way to the store. They share the files.
type fleet struct {
	*testing.T
	stores  []*kerneltest.Store
	kernels []*kernel.Kernel
	files   *kerneltest.Files
}

func newFleet(t *testing.T) *fleet {
	return newFleetThrough(t, func(db store.Atomic) store.Atomic { return db })
}

// newFleetThrough has each of them see the store through something.
func newFleetThrough(t *testing.T, glass func(store.Atomic) store.Atomic) *fleet {
	f := &fleet{T: t, files: &kerneltest.Files{}}
	for _, db := range newInstances(t, instances) {
		hooked := kerneltest.NewStore(db)
		f.stores = append(f.stores, hooked)
		f.kernels = append(f.kernels, kernel.New(kernel.Options{
			Store: glass(hooked), Files: f.files, Queue: local.New(local.Options{}), Limit: 30 * time.Second,
		}))
	}
	f.must(0, &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: mainRoot}})
	t.Cleanup(func() {
		if !t.Failed() {
			checkInvariants(t, f.records(), f.files.Locations(), blob.Scope{mainRoot})
		}
		if cluster != nil && strings.Contains(cluster.Log(), "deadlock detected") {
			t.Errorf("PostgreSQL has met a deadlock\n%s", cluster.Log())
		}
	})
	return f
}

// do runs an operation on one of the instances; any number names one.
func (f *fleet) do(instance int, op kernel.Operation) error {
	return f.kernels[instance%instances].Do(f.Context(), op)
}

func (f *fleet) must(instance int, op kernel.Operation) {
	f.Helper()
	if err := f.do(instance, op); err != nil {
		f.Errorf("%s: %v", op.Plan().Op, err)
	}
}

// reclaim deletes all files that are dying.
func (f *fleet) reclaim() {
	f.Helper()
	find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
	f.must(0, find)
	for i, list := range find.Result.Lists {
		if err := reclaim(f.Context(), f.kernels[i%instances], f.files, "main", list.ID); err != nil {
			f.Error(err)
		}
	}
}

// records are all that are there, in key order.
func (f *fleet) records() []store.Record {
	at := map[key.Key]store.Record{}
	for _, s := range f.stores {
		for _, r := range s.Snapshot() {
			at[r.Key] = r
		}
	}
	all := []store.Record{}
	for _, r := range at {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b store.Record) int { return key.Compare(a.Key, b.Key) })
	return all
}

// properties are those of a table, as an instance shows it.
func (f *fleet) properties(instance int, table string) map[string]string {
	f.Helper()
	load := loadTable(table)
	f.must(instance, load)
	var m struct {
		Properties map[string]string `json:"properties"`
	}
	if err := json.Unmarshal(load.Result.Metadata, &m); err != nil {
		f.Errorf("%s: %v", table, err)
	}
	return m.Properties
}

// race runs rounds, some at a time. In each, the operations begin at once, each on another instance than the one
// before it, and judge gets their errors.
func (f *fleet) race(prepare func(round int) []kernel.Operation, judge func(round int, ops []kernel.Operation, errs []error)) {
	var next atomic.Int64
	var running sync.WaitGroup
	for range lanes {
		running.Go(func() {
			for {
				round := int(next.Add(1))
				if round > rounds || f.Failed() {
					return
				}
				ops := prepare(round)
				errs := make([]error, len(ops))
				var racers sync.WaitGroup
				for i, op := range ops {
					racers.Go(func() { errs[i] = f.do(round+i, op) })
				}
				racers.Wait()
				judge(round, ops, errs)
			}
		})
	}
	running.Wait()
}

// Sixteen clients change the properties of one namespace, each its own, through three instances: nothing that was
// acknowledged is lost.
func TestNamespacePropertiesAcrossInstances(t *testing.T) {
	f := newFleet(t)
	f.must(0, createNamespace("ns"))
	const clients, updates = 16, 20
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			for u := range updates {
				f.must(c, &catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
					Warehouse: "main", Levels: []string{"ns"}, Updates: map[string]string{fmt.Sprintf("client-%d-%d", c, u): "v"},
				}})
			}
		})
	}
	running.Wait()
	for i := range instances {
		get := &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: "main", Levels: []string{"ns"}}}
		f.must(i, get)
		kept := 0
		for k := range get.Result.Properties {
			if strings.HasPrefix(k, "client-") {
				kept++
			}
		}
		if kept != clients*updates {
			t.Errorf("%d updates were acknowledged, and instance %d shows %d", clients*updates, i, kept)
		}
	}
}

// A namespace is dropped while a table, a view and a namespace come into being in it: either it is gone and all of them
// were refused, or it stays and all of them are alive.
func TestDropNamespaceAcrossInstances(t *testing.T) {
	f := newFleet(t)
	var dropped atomic.Int64
	f.race(func(round int) []kernel.Operation {
		ns := fmt.Sprintf("r%d", round)
		f.must(round, createNamespace(ns))
		return []kernel.Operation{dropNamespace(ns), createTable(ns + ".t"), createView(ns + ".v"), createNamespace(ns + ".c")}
	}, func(round int, ops []kernel.Operation, errs []error) {
		want := catalog.ErrNoSuchNamespace
		switch {
		case errs[0] == nil:
			dropped.Add(1)
		case errors.Is(errs[0], catalog.ErrNotEmpty):
			want = nil
			ns := fmt.Sprintf("r%d", round)
			f.must(round, loadTable(ns+".t"))
			f.must(round, &catalog.LoadView{Request: view(ns + ".v")})
			f.must(round, &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: "main", Levels: []string{ns, "c"}}})
		default:
			t.Errorf("drop: %v", errs[0])
		}
		for i, err := range errs[1:] {
			if !errors.Is(err, want) {
				t.Errorf("round %d: drop: %v, but %s: %v", round, errs[0], ops[i+1].Plan().Op, err)
			}
		}
	})
	t.Logf("%d of %d namespaces were dropped", dropped.Load(), rounds)
}

// A table is renamed while others commit to it under its old name: what was acknowledged is in it, and nothing else.
func TestRenameAcrossInstances(t *testing.T) {
	f := newFleet(t)
	f.must(0, createNamespace("ns"))
	f.must(0, createNamespace("other"))
	var missed atomic.Int64
	f.race(func(round int) []kernel.Operation {
		from := fmt.Sprintf("ns.t%d", round)
		f.must(round, createTable(from))
		return []kernel.Operation{
			setProperty(from, "k1", "v"), renameTable(from, fmt.Sprintf("other.t%d", round)), setProperty(from, "k2", "v"), setProperty(from, "k3", "v"),
		}
	}, func(round int, _ []kernel.Operation, errs []error) {
		if errs[1] != nil {
			t.Errorf("rename: %v", errs[1])
		}
		properties := f.properties(round, fmt.Sprintf("other.t%d", round))
		for i, k := range map[int]string{0: "k1", 2: "k2", 3: "k3"} {
			if errs[i] != nil && !errors.Is(errs[i], catalog.ErrNoSuchTable) {
				t.Errorf("commit: %v", errs[i])
			}
			if (properties[k] == "v") != (errs[i] == nil) {
				t.Errorf("round %d: the commit of %s gave %v, and the table has %q", round, k, errs[i], properties[k])
			}
			if errs[i] != nil {
				missed.Add(1)
			}
		}
		if err := f.do(round+1, loadTable(fmt.Sprintf("ns.t%d", round))); !errors.Is(err, catalog.ErrNoSuchTable) {
			t.Errorf("the old name: %v", err)
		}
	})
	t.Logf("%d of %d commits came after the rename", missed.Load(), 3*rounds)
}

// Of six that create a table of one name, one wins, and every instance shows its table.
func TestCreateAcrossInstances(t *testing.T) {
	f := newFleet(t)
	f.must(0, createNamespace("ns"))
	name := func(round int) string { return fmt.Sprintf("ns.t%d", round) }
	f.race(func(round int) (ops []kernel.Operation) {
		for range 2 * instances {
			ops = append(ops, createTable(name(round)))
		}
		return ops
	}, func(round int, ops []kernel.Operation, errs []error) {
		won := -1
		for i, err := range errs {
			switch {
			case err == nil && won < 0:
				won = i
			case err == nil:
				t.Errorf("round %d: two have created it", round)
			case !errors.Is(err, catalog.ErrAlreadyExists):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if won < 0 {
			t.Errorf("round %d: nobody has created it", round)
			return
		}
		want := ops[won].(*catalog.CreateTable).Result.MetadataLocation
		for i := range instances {
			load := loadTable(name(round))
			f.must(i, load)
			if load.Result.MetadataLocation != want {
				t.Errorf("round %d: instance %d shows %s, not %s", round, i, load.Result.MetadataLocation, want)
			}
		}
	})
}

// Transactions over two to four of four tables, in any order, beside commits to one of them: none is refused for
// another reason than contention, each that was acknowledged is in all of its tables, and no other is in any.
func TestTransactionsAcrossInstances(t *testing.T) {
	f := newFleet(t)
	f.must(0, createNamespace("ns"))
	tables := []string{"ns.a", "ns.b", "ns.c", "ns.d"}
	for _, table := range tables {
		f.must(0, createTable(table))
	}
	const clients, each = 16, 15
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	want := map[string]map[string]bool{} // by table, what was acknowledged
	for _, table := range tables {
		want[table] = map[string]bool{}
	}
	var mu sync.Mutex
	var contended atomic.Int64
	var running sync.WaitGroup
	for c := range clients {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for n := range each {
				mark := fmt.Sprintf("done-%d-%d", c, n)
				some := slices.Clone(tables)
				random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
				some = some[:1+random.IntN(len(some))]
				var changes []catalog.TableCommit
				for _, table := range some {
					changes = append(changes, change(table, noAssert, setting(mark, "v")))
				}
				var op kernel.Operation = transaction(changes...)
				if len(some) == 1 {
					op = setProperty(some[0], mark, "v")
				}
				switch err := f.do(c, op); {
				case err == nil:
					mu.Lock()
					for _, table := range some {
						want[table][mark] = true
					}
					mu.Unlock()
				case errors.Is(err, kernel.ErrContended):
					contended.Add(1)
				default:
					t.Errorf("%s: %v", op.Plan().Op, err)
				}
			}
		})
	}
	running.Wait()
	for i, table := range tables {
		got := 0
		for k := range f.properties(i, table) {
			if strings.HasPrefix(k, "done-") {
				got++
				if !want[table][k] {
					t.Errorf("%s has %s, which was not acknowledged", table, k)
				}
			}
		}
		if got != len(want[table]) {
			t.Errorf("%s has %d of the %d that were acknowledged", table, got, len(want[table]))
		}
	}
	t.Logf("%d of %d were contended", contended.Load(), clients*each)
}

// What TestStress does with one process: nine clients do everything to few names, each on one of the instances, while a
// tenth of the batches is answered with "unknown".
func TestStressAcrossInstances(t *testing.T) {
	seed := *stressSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for round := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed+round), func(t *testing.T) {
			pauses := &random{Rand: rand.New(rand.NewPCG(seed+round, 99))}
			f := newFleetThrough(t, func(db store.Atomic) store.Atomic { return slowStore{db, pauses} })
			seen := make(chan string, 10_000)
			var clients sync.WaitGroup
			for i := range 3 * instances {
				clients.Go(func() {
					c := client{
						T: t, random: rand.New(rand.NewPCG(seed+round, uint64(i))), run: f.kernels[i%instances], files: f.files, seen: seen,
						namespaces: []string{"a", "b", "a.c"}, names: []string{"x", "y"},
					}
					for range 40 {
						c.step()
					}
				})
			}
			clients.Wait()
			f.reclaim()
		})
	}
}
