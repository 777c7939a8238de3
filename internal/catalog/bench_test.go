package catalog_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/embedded"
	"github.com/landfast/landfast/internal/store/mem"
)

// BenchmarkCommit is a commit of small metadata, beside HTTP and the files' disk.
func BenchmarkCommit(b *testing.B) {
	for _, kind := range []string{"mem", "embedded"} {
		for _, hot := range []bool{true, false} {
			for _, writers := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/hot=%v/writers=%d", kind, hot, writers), func(b *testing.B) {
					var db store.Atomic = mem.New()
					if kind == "embedded" {
						e, err := embedded.Open(b.Context(), filepath.Join(b.TempDir(), "catalog.db"), embedded.Options{})
						if err != nil {
							b.Fatal(err)
						}
						defer e.Close()
						db = e
					}
					k := kernel.New(kernel.Options{Store: db, Files: &kerneltest.Files{}, Queue: local.New(local.Options{})})
					must := func(op kernel.Operation) {
						if err := k.Do(b.Context(), op); err != nil {
							b.Fatal(err)
						}
					}
					must(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: blob.Root{URI: "file:///w/main", Dir: "/w/main"}}})
					must(createNamespace("ns"))
					name := func(i int) string {
						if hot {
							i = 0
						}
						return fmt.Sprintf("t%d", i)
					}
					for i := range writers {
						if i > 0 && hot {
							break
						}
						must(&catalog.CreateTable{Request: catalog.CreateTableRequest{
							Warehouse: "main", Table: catalog.Ident{Namespace: []string{"ns"}, Name: name(i)},
							Schema:     []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamptz"},{"id":3,"name":"v","required":false,"type":"string"}]}`),
							Properties: map[string]string{"write.metadata.previous-versions-max": "1"},
						}})
					}
					b.ReportAllocs()
					b.ResetTimer()
					var wg sync.WaitGroup
					for i := range writers {
						wg.Go(func() {
							for n := i; n < b.N; n += writers {
								if err := k.Do(b.Context(), &catalog.CommitTable{Request: catalog.CommitTableRequest{
									Warehouse: "main", Table: catalog.Ident{Namespace: []string{"ns"}, Name: name(i)},
									Requirements: []byte(`[]`),
									Updates:      fmt.Appendf(nil, `[{"action":"set-properties","updates":{"value-%d":"%d"}}]`, i, n),
								}}); err != nil {
									b.Error(err)
								}
							}
						})
					}
					wg.Wait()
				})
			}
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	db := mem.New()
	k := kernel.New(kernel.Options{Store: db, Files: &kerneltest.Files{}, Queue: local.New(local.Options{})})
	must := func(op kernel.Operation) {
		if err := k.Do(b.Context(), op); err != nil {
			b.Fatal(err)
		}
	}
	must(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: blob.Root{URI: "file:///w/main", Dir: "/w/main"}}})
	must(createNamespace("ns"))
	must(&catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse: "main", Table: catalog.Ident{Namespace: []string{"ns"}, Name: "t"},
		Schema: []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamptz"},{"id":3,"name":"v","required":false,"type":"string"}]}`),
	}})
	b.ReportAllocs()
	for b.Loop() {
		must(&catalog.LoadTable{Request: catalog.LoadTableRequest{Warehouse: "main", Table: catalog.Ident{Namespace: []string{"ns"}, Name: "t"}}})
	}
}
