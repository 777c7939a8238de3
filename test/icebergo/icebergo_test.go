// Package icebergo runs iceberg-go against a server that is running: its own conformance suite, and what
// a program does with tables, views and transactions.
//
//	go test . -args -url http://127.0.0.1:8181 -warehouse NAME -s3-warehouse NAME -s3-access-key K -s3-secret-key S
//
// Both warehouses may be written to; what a test leaves there is dropped. No test is ever skipped: without
// a server, and without a bucket, all of them fail.
package icebergo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	icebergio "github.com/apache/iceberg-go/io"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // reads and writes s3:
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

var (
	serverURL   = flag.String("url", "", "base URL of the server, without /v1")
	warehouse   = flag.String("warehouse", "", "a warehouse of files")
	s3Warehouse = flag.String("s3-warehouse", "", "a warehouse in a bucket")
	s3AccessKey = flag.String("s3-access-key", "", "what opens the bucket")
	s3SecretKey = flag.String("s3-secret-key", "", "what opens the bucket")
)

// testTimeout bounds one test.
const testTimeout = 2 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	if *serverURL == "" || *warehouse == "" || *s3Warehouse == "" {
		fmt.Fprintln(os.Stderr, "icebergo: needs a running server: go test . -args -url URL -warehouse NAME -s3-warehouse NAME -s3-access-key K -s3-secret-key S")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// lakes are the warehouses that tests of data run in, by the scheme of their locations.
func lakes() map[string]string {
	return map[string]string{"file": *warehouse, "s3": *s3Warehouse}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a client of its own.
func connect(t *testing.T, warehouse string) *rest.Catalog {
	t.Helper()
	c, err := rest.NewCatalog(testContext(t), "landfast", *serverURL,
		rest.WithWarehouseLocation(warehouse),
		// The server says where the bucket is, and how it is addressed. What opens it is the client's own.
		rest.WithAdditionalProps(iceberg.Properties{
			icebergio.S3AccessKeyID: *s3AccessKey, icebergio.S3SecretAccessKey: *s3SecretKey,
		}))
	if err != nil {
		t.Fatalf("connect to warehouse %s: %v", warehouse, err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// namespace creates one, and drops it with all that is in it at the end of the test.
func namespace(t *testing.T, c *rest.Catalog) table.Identifier {
	t.Helper()
	ns := table.Identifier{"go_" + uuid.NewString()[:8]}
	check(t, c.CreateNamespace(testContext(t), ns, nil))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		var all []error
		for name, err := range c.ListTables(ctx, ns) {
			all = append(all, err)
			if err == nil {
				all = append(all, c.DropTable(ctx, name))
			}
		}
		for name, err := range c.ListViews(ctx, ns) {
			all = append(all, err)
			if err == nil {
				all = append(all, c.DropView(ctx, name))
			}
		}
		if err := errors.Join(append(all, c.DropNamespace(ctx, ns))...); err != nil {
			t.Errorf("clear up %v: %v", ns, err)
		}
	})
	return ns
}

func named(ns table.Identifier, name string) table.Identifier { return append(slices.Clone(ns), name) }

// check fails the test at once.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must is check for a call that returns something, too.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		check(t, err)
		return v
	}
}

// wantError fails the test unless err is want.
func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error = %v, want %v", err, want)
	}
}

var people = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "born", Type: iceberg.PrimitiveTypes.Date},
)

// rows makes a table of people with these ids.
func rows(t *testing.T, ids ...int64) arrow.Table {
	t.Helper()
	schema := must[*arrow.Schema](t)(table.SchemaToArrowSchema(people, nil, false, false))
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	for _, id := range ids {
		builder.Field(0).(*array.Int64Builder).Append(id)
		builder.Field(1).(*array.StringBuilder).Append(fmt.Sprint("person ", id))
		builder.Field(2).(*array.Date32Builder).Append(arrow.Date32(365 * (id % 3)))
	}
	batch := builder.NewRecordBatch()
	defer batch.Release()
	rows := array.NewTableFromRecords(schema, []arrow.RecordBatch{batch})
	t.Cleanup(rows.Release)
	return rows
}

// idsOf scans a table and returns its ids, sorted: a scan promises no order.
func idsOf(t *testing.T, tbl *table.Table, options ...table.ScanOption) []int64 {
	t.Helper()
	ctx := testContext(t)
	found := must[arrow.Table](t)(tbl.Scan(append(options, table.WithSelectedFields("id"))...).ToArrowTable(ctx))
	defer found.Release()
	var ids []int64
	for _, chunk := range found.Column(0).Data().Chunks() {
		ids = append(ids, chunk.(*array.Int64).Int64Values()...)
	}
	slices.Sort(ids)
	return ids
}

// load is the table as the server has it now.
func load(t *testing.T, c catalog.Catalog, name table.Identifier) *table.Table {
	t.Helper()
	return must[*table.Table](t)(c.LoadTable(testContext(t), name))
}
