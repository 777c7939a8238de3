package catalog_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// Every operation's plan, conditions, writes, files and outcome, as a text that a
// reviewer can read. It is the same with a queue that lets everyone in at once.
func TestTranscripts(t *testing.T) {
	scope := blob.Scope{{URI: "file:///w/lake", Dir: "/w/lake"}, {URI: "file:///shared", Dir: "/shared"}}
	scenarios := map[string][]kernel.Operation{
		"warehouses": {
			&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "other", Root: scope[0]}},
			&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
				ID: "lake-id", Name: "lake", Root: scope[0], Allowed: scope[1:], Properties: map[string]string{"owner": "ada"},
			}},
			&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{ID: "lake-id-2", Name: "lake", Root: scope[0]}},
			&catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: "lake"}},
			&catalog.ListWarehouses{Request: catalog.ListWarehousesRequest{Page: catalog.Page{Size: 1}}},
			&catalog.SetWarehouseS3{Request: catalog.SetWarehouseS3Request{Name: "lake", S3: blob.S3Options{Region: "eu-central-1"}}},
			&catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
				ID: "bucket-id", Name: "bucket", Root: blob.Root{URI: "s3://bucket/lake"}, Allowed: scope[1:],
			}},
			&catalog.SetWarehouseS3{Request: catalog.SetWarehouseS3Request{Name: "bucket", S3: blob.S3Options{Region: "eu-central-1"}}},
			&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "lake", Levels: []string{"ns"}}},
			&catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "lake"}},
			&catalog.DropNamespace{Request: catalog.DropNamespaceRequest{Warehouse: "lake", Levels: []string{"ns"}}},
			&catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: "lake"}},
			&catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: "lake"}},
		},
		"namespaces": {
			createNamespace("a", "owner", "ada"),
			createNamespace("a"),
			createNamespace("a.b"),
			createNamespace("x.y"),
			createNamespace("elsewhere", "location", "file:///w/main/else/"),
			&catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: "main", Levels: []string{"a"}}},
			&catalog.ListNamespaces{Request: catalog.ListNamespacesRequest{Warehouse: "main"}},
			&catalog.ListNamespaces{Request: catalog.ListNamespacesRequest{Warehouse: "main", Parent: []string{"a"}}},
			&catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
				Warehouse: "main", Levels: []string{"a"}, Removals: []string{"owner", "none"}, Updates: map[string]string{"k": "v"},
			}},
			&catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
				Warehouse: "main", Levels: []string{"a"}, Removals: []string{"k"}, Updates: map[string]string{"k": "v"},
			}},
			dropNamespace("a"),
			dropNamespace("a.b"),
			dropNamespace("a"),
			dropNamespace("a"),
		},
		"tables": {
			createNamespace("ns"),
			createTable("ns.t"),
			createTable("ns.t"),
			&catalog.ListTables{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: []string{"ns"}}},
			&catalog.TableExists{Request: catalog.TableExistsRequest{Warehouse: "main", Table: ident("ns.t")}},
			loadTable("ns.t"),
			setProperty("ns.t", "k", "v"),
			setProperty("ns.t", "k", "v"),
			commitTable("ns.t", `[{"type":"assert-current-schema-id","current-schema-id":7}]`, `[]`),
			renameTable("ns.t", "ns.u"),
			loadTable("ns.t"),
			dropNamespace("ns"),
			dropTable("ns.u", true),
			&catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}},
			&catalog.EndDying{Request: catalog.EndDyingRequest{Warehouse: "main", IDs: []string{"00000000-0000-4000-8000-000000000008"}}},
			dropTable("ns.u", false),
		},
		"locations": {
			createNamespace("ns"),
			createTableAt("ns.t", "file:/w/main/own/t/"),
			createTableAt("ns.below", "file:///w/main/own/t/x"),
			createTableAt("ns.area", "file:///w/main/ns"),
			createTableAt("ns.out", "file:///elsewhere/t"),
			commitTable("ns.t", noAssert, `[{"action":"set-location","location":"file:///w/main/own/t/deeper"}]`),
			createTableAt("ns.again", "file:///w/main/own/t/x"),
			stagedCreate("ns.staged", "file:///w/main/own/staged"),
			stagedCreate("ns.staged", "file:///w/main/own/staged"),
			dropTable("ns.t", false),
		},
		"registration": {
			createNamespace("ns"),
			createTable("ns.t"),
			dropTable("ns.t", false),
			register("ns.u", "file:///w/main/ns/t-00000000-0000-4000-8000-000000000008/metadata/00000-00000000-0000-4000-8000-000000000009.metadata.json"),
			register("ns.u", "file:///w/main/none.metadata.json"),
			overwriting(register("ns.u", "file:///w/main/ns/t-00000000-0000-4000-8000-000000000008/metadata/00000-00000000-0000-4000-8000-000000000009.metadata.json")),
		},
		"views": {
			createNamespace("ns"),
			createView("ns.v"),
			createView("ns.v"),
			createTable("ns.v"),
			createTable("ns.t"),
			createView("ns.t"),
			&catalog.ListViews{Request: catalog.ListTablesRequest{Warehouse: "main", Namespace: []string{"ns"}}},
			&catalog.ViewExists{Request: view("ns.v")},
			&catalog.LoadView{Request: view("ns.v")},
			&catalog.LoadView{Request: view("ns.t")},
			loadTable("ns.v"),
			replaceView("ns.v", noAssert, `[{"action":"set-properties","updates":{"k":"v"}}]`),
			replaceView("ns.v", `[{"type":"assert-view-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}]`, `[]`),
			renameView("ns.v", "ns.t"),
			renameView("ns.v", "ns.w"),
			dropNamespace("ns"),
			&catalog.DropView{Request: view("ns.w")},
			&catalog.DropView{Request: view("ns.w")},
			registerView("ns.again", "file:///w/main/ns/v-00000000-0000-4000-8000-000000000008/metadata/00000-00000000-0000-4000-8000-000000000009.gz.metadata.json"),
		},
		"transactions": {
			createNamespace("ns"),
			createTable("ns.a"),
			createTable("ns.b"),
			transaction(
				change("ns.a", noAssert, `[{"action":"set-properties","updates":{"k":"1"}}]`),
				change("ns.b", noAssert, `[{"action":"set-properties","updates":{"k":"1"}}]`),
				change("ns.a", noAssert, `[{"action":"set-properties","updates":{"k":"2"}}]`),
			),
			transaction(
				change("ns.a", noAssert, `[{"action":"set-properties","updates":{"k":"3"}}]`),
				change("ns.b", `[{"type":"assert-current-schema-id","current-schema-id":7}]`, `[]`),
			),
			transaction(
				change("ns.a", `[{"type":"assert-current-schema-id","current-schema-id":0}]`, `[]`),
				staged("ns.c", "file:///w/main/c"),
			),
			transaction(staged("ns.d", "file:///w/main/d"), staged("ns.e", "file:///w/main/d/e")),
			transaction(change("ns.none", noAssert, `[]`)),
			&catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: "main", Table: ident("ns.a")}},
			loadTable("ns.a"),
		},
		"reclaiming": {
			createNamespace("ns"),
			createTable("ns.t"),
			commitTable("ns.t", noAssert, `[{"action":"set-properties","updates":{
				"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"true"}}]`),
			setProperty("ns.t", "k", "1"),
			&catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: "main"}},
			overwriting(register("ns.t", "file:///w/main/ns/t-00000000-0000-4000-8000-000000000008/metadata/00000-00000000-0000-4000-8000-000000000009.metadata.json")),
			&catalog.FindTables{Request: catalog.FindTablesRequest{Warehouse: "main"}},
			giveUp(
				"file:///w/main/ns/t-00000000-0000-4000-8000-000000000008/metadata/00001-lost.metadata.json",
				"file:///w/main/ns/t-00000000-0000-4000-8000-000000000008/metadata/00002-00000000-0000-4000-8000-000000000015.metadata.json",
				"file:///w/main/nobody/metadata/00001-lost.metadata.json",
			),
			&catalog.EndDying{Request: catalog.EndDyingRequest{Warehouse: "main", IDs: []string{"00000000-0000-4000-8000-000000000016", "ended"}}},
			setProperty("ns.t", "write.metadata.path", "file:///w/main/elsewhere"),
			dropTable("ns.t", true),
		},
		"duties": {
			takeDuties("a", 0, "purge/main/1", "purge/main/2"),
			takeDuties("b", 0, "purge/main/2", "purge/main/3"),
			takeDuties("a", 0, "purge/main/1"),
			endDuties("b", false, "purge/main/1", "purge/main/3"),
			endDuties("a", false, "purge/main/1", "none"),
			takeDuties("a", time.Hour, "sweep/main"),
			endDuties("a", true, "sweep/main"),
			takeDuties("a", time.Hour, "sweep/main"),
			takeDuties("b", time.Second, "sweep/main"),
			renewDuties("b", "sweep/main"),
			renewDuties("a", "sweep/main", "purge/main/1", "purge/main/2"),
			renewDuties("", "none"),
			endDuties("b", true, "sweep/main"),
			renewDuties("b", "sweep/main"),
		},
		"once": {
			createNamespace("ns"),
			once("k1", createTable("ns.t")),
			once("k1", createTable("ns.t")),
			once("k1", createTable("ns.u")),
			once("k2", createTable("ns.t")),
			once("k2", dropTable("ns.t", false)),
			once("k2", dropTable("ns.t", false)),
			once("k1", createTable("ns.t")),
			&catalog.FindExpired{},
			&catalog.ForgetExpired{Request: catalog.ForgetExpiredRequest{Keys: []key.Key{key.ForOnce("main", "k1"), key.ForOnce("main", "none")}}},
		},
	}
	transcribed := map[string]bool{"bootstrap": true, "once": true}
	for _, steps := range scenarios {
		for _, op := range steps {
			transcribed[op.Plan().Op] = true
		}
	}
	for name := range catalog.Operations {
		if !transcribed[name] {
			t.Errorf("%s is in no transcript", name)
		}
	}
	for name, steps := range scenarios {
		for queue, newQueue := range queues {
			t.Run(name+"/"+queue, func(t *testing.T) {
				s := newStack(t, newQueue())
				var got strings.Builder
				s.transcribe(&got, "bootstrap", nil)
				for _, op := range steps {
					s.transcribe(&got, "", op)
				}
				path := filepath.Join("testdata", name+".txt")
				if *update {
					if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), got.String()); d != "" {
					t.Errorf("-want +got; go test -run TestTranscripts -update rewrites it:\n%s", d)
				}
			})
		}
	}
}

func overwriting(op *catalog.RegisterTable) *catalog.RegisterTable {
	op.Request.Overwrite = true
	return op
}

// transcribe runs an operation (nil: none; the stack has just started) and writes down what it did.
func (s *stack) transcribe(w *strings.Builder, title string, op kernel.Operation) {
	outcome := "done"
	filesBefore := s.files.Locations()
	if op != nil {
		s.batches = nil
		title = op.Plan().Op
		request, err := kernel.Encode(op)
		if err != nil {
			s.Fatal(err)
		}
		fmt.Fprintf(w, "## %s\n%s\nlocks  %v\n", title, requestOf(request), op.Plan().Locks)
		if err := s.do(op); err != nil {
			outcome = fmt.Sprintf("refused: %v", err)
		} else if result := resultOf(op); result != "" {
			outcome += " " + result
		}
	} else {
		fmt.Fprintf(w, "## %s\n", title)
	}
	for _, b := range s.batches {
		fmt.Fprintf(w, "batch  %s touches %d records\n", b.ID, touched(b.Conds, b.Writes))
		for _, c := range b.Conds {
			fmt.Fprintf(w, "  if   %v\n", c)
		}
		for _, x := range b.Writes {
			fmt.Fprintf(w, "  %v %s\n", x, x.Value)
		}
	}
	for _, f := range s.files.Locations() {
		if !strings.Contains(strings.Join(filesBefore, "\n")+"\n", f+"\n") {
			fmt.Fprintf(w, "file   %s\n", f)
		}
	}
	fmt.Fprintf(w, "%s\n\n", outcome)
}

// requestOf is the request in an encoded operation, with the documents in it
// (which travel as bytes) shown as the JSON they are.
func requestOf(encoded []byte) string {
	_, request, _ := bytes.Cut(encoded, []byte(`"request":`))
	request, _, _ = bytes.Cut(request, []byte(`,"result":`))
	return document.ReplaceAllStringFunc(string(request), func(m string) string {
		parts := document.FindStringSubmatch(m)
		data, err := base64.StdEncoding.DecodeString(parts[2])
		if err != nil {
			panic(err)
		}
		return parts[1] + strings.Join(strings.Fields(string(data)), " ")
	})
}

var document = regexp.MustCompile(`("(?:schema|requirements|updates)":)"([A-Za-z0-9+/=]*)"`)

func resultOf(op kernel.Operation) string {
	switch op := op.(type) {
	case *catalog.CreateTable:
		return op.Result.MetadataLocation + "\n" + string(op.Result.Metadata)
	case *catalog.CommitTable:
		return op.Result.MetadataLocation + "\n" + string(op.Result.Metadata)
	case *catalog.RegisterTable:
		return op.Result.MetadataLocation + "\n" + string(op.Result.Metadata)
	case *catalog.LoadTable:
		return op.Result.MetadataLocation + "\n" + string(op.Result.Metadata)
	}
	encoded, err := kernel.Encode(op)
	if err != nil {
		panic(err)
	}
	_, result, _ := bytes.Cut(encoded, []byte(`,"result":`))
	return strings.TrimSuffix(string(result), "}}")
}

func takeDuties(owner string, every time.Duration, names ...string) *catalog.TakeDuties {
	return &catalog.TakeDuties{Request: catalog.TakeDutiesRequest{Names: names, Owner: owner, Lifetime: time.Minute, Every: every}}
}

func renewDuties(owner string, names ...string) *catalog.RenewDuties {
	return &catalog.RenewDuties{Request: catalog.RenewDutiesRequest{Names: names, Owner: owner, Lifetime: time.Minute}}
}

func endDuties(owner string, recurs bool, names ...string) *catalog.EndDuties {
	return &catalog.EndDuties{Request: catalog.EndDutiesRequest{Names: names, Owner: owner, Recurs: recurs}}
}
