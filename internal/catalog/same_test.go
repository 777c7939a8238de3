package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/lock/local"
)

// Whatever is done to a catalog in the embedded store and to one in this process's, one operation after the other: their
// answers, records and files are the same to the byte, as their ids and times come from the same source.
func TestSameAsEmbedded(t *testing.T) {
	seed := *stressSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for round := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed+round), func(t *testing.T) {
			p := &pair{
				T: t,
				a: newStackOn(t, kerneltest.NewStore(openEmbedded(t)), local.New(local.Options{})),
				b: newStack(t, local.New(local.Options{})),
			}
			c := client{
				T: t, random: rand.New(rand.NewPCG(seed+round, 0)), run: p, files: p.a.files, seen: make(chan string, 10_000),
				namespaces: []string{"a", "A", "ä", "a_", "a%", `\x41`, "a.c", "a.ä", "\U0001F9CA"},
				names:      []string{"x", "X", "x-y", "x_", "ß", "\uFFFD"},
			}
			for _, ns := range c.namespaces {
				p.must(createNamespace(ns))
			}
			for range 250 {
				c.step()
				c.ask()
			}
			find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}}
			p.must(find)
			for _, list := range find.Result.Lists {
				if err := reclaim(t.Context(), p, p.a.files, "main", list.ID); err != nil {
					t.Error(err)
				}
			}
			p.compare()
		})
	}
}

// oddTexts are such that a database may not hold, or take for something else.
var oddTexts = []string{"", "\x00", "a\x00b", `\x00`, `\\x41`, "\uFFFD", "\U0001F9CA", "'; --", strings.Repeat("long ", 1000)}

// ask does what the client of TestStress does not: it looks around, and writes odd texts. The pair looks at the answers.
func (c *client) ask() {
	levels := strings.Split(c.namespace(), ".")
	page := catalog.Page{Size: 1 + c.random.IntN(3)}
	var op kernel.Operation
	switch c.random.IntN(8) {
	case 0:
		for more := true; more; more = page.Token != "" {
			list := &catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: levels, Page: page}}
			_ = c.run.Do(c.Context(), list)
			page.Token = list.Result.NextToken
		}
		return
	case 1:
		for more := true; more; more = page.Token != "" {
			list := &catalog.ListNamespaces{Request: catalog.ListNamespacesRequest{Warehouse: "main", Page: page}}
			_ = c.run.Do(c.Context(), list)
			page.Token = list.Result.NextToken
		}
		return
	case 2:
		op = &catalog.ListViews{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: levels}}
	case 3:
		op = &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: "main", Levels: levels}}
	case 4:
		op = &catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
			Warehouse: "main", Levels: levels, Updates: map[string]string{c.pick(oddTexts...): c.pick(oddTexts...)}, Removals: []string{"k"},
		}}
	case 5:
		op = setProperty(c.table(), "odd", c.pick("\u2028", `\x41`))
	case 6:
		op = &catalog.FindTables{Request: catalog.FindTablesRequest{Warehouse: "main"}}
	case 7:
		op = &catalog.LoadView{Request: view(c.table())}
	}
	_ = c.run.Do(c.Context(), op)
}

// pair are two catalogs to which the same is done.
type pair struct {
	*testing.T
	a, b          *stack
	done, refused int
}

// Do implements kernel.Runner: it gives the first one's answer, if the other's is the same.
func (p *pair) Do(ctx context.Context, op kernel.Operation) error {
	p.mirror()
	data, err := kernel.Encode(op)
	if err != nil {
		p.Fatal(err)
	}
	twin, err := catalog.Operations.Decode(data)
	if err != nil {
		p.Fatal(err)
	}
	errA, errB := p.a.runner.Do(ctx, op), p.b.runner.Do(ctx, twin)
	p.done++
	if errA != nil {
		p.refused++
	}
	if diff := cmp.Diff(answerOf(op, errA), answerOf(twin, errB)); diff != "" {
		p.Fatalf("the answers to operation %d, %s, differ (-embedded +other)\n%s", p.done, data, diff)
	}
	return errA
}

func (p *pair) must(op kernel.Operation) {
	p.Helper()
	if err := p.Do(p.Context(), op); err != nil {
		p.Fatalf("%s: %v", op.Plan().Op, err)
	}
}

func answerOf(op kernel.Operation, err error) string {
	data, encodeErr := kernel.Encode(op)
	if encodeErr != nil {
		panic(encodeErr)
	}
	return fmt.Sprintf("%v\n%s", err, data)
}

// mirror deletes of the second's files what was deleted of the first's: a client deletes files without an operation.
func (p *pair) mirror() {
	kept := map[string]bool{}
	for _, f := range p.a.files.Locations() {
		kept[f] = true
	}
	for _, f := range p.b.files.Locations() {
		if kept[f] {
			continue
		}
		if err := p.b.files.Delete(p.Context(), blob.Scope{mainRoot}, f); err != nil {
			p.Fatal(err)
		}
	}
}

// compare compares all that is there in the end.
func (p *pair) compare() {
	p.mirror()
	p.Logf("%d operations, of which %d were refused", p.done, p.refused)
	if diff := cmp.Diff(p.a.store.String(), p.b.store.String()); diff != "" {
		p.Errorf("records (-embedded +other)\n%s", diff)
	}
	scope := blob.Scope{mainRoot}
	content := func(s *stack) map[string]string {
		all := map[string]string{}
		for _, f := range s.files.Locations() {
			data, err := s.files.Read(p.Context(), scope, f, 1<<20)
			if err != nil {
				p.Error(err)
			}
			all[f] = string(data)
		}
		return all
	}
	if diff := cmp.Diff(content(p.a), content(p.b)); diff != "" {
		p.Errorf("files (-embedded +other)\n%s", diff)
	}
	if len(p.a.store.Snapshot()) < 10 {
		p.Error("hardly anything is there")
	}
	checkInvariants(p.T, p.a.store.Snapshot(), p.a.files.Locations(), scope)
}
