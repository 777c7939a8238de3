package icebergo

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/google/go-cmp/cmp"
)

// inEveryLake runs a test in a warehouse of files and in one in a bucket.
func inEveryLake(t *testing.T, test func(t *testing.T, c *rest.Catalog, ns table.Identifier)) {
	for scheme, warehouse := range lakes() {
		t.Run(scheme, func(t *testing.T) {
			c := connect(t, warehouse)
			ns := namespace(t, c)
			tbl := must[*table.Table](t)(c.CreateTable(testContext(t), named(ns, "probe"), people))
			if !strings.HasPrefix(tbl.Location(), scheme+"://") {
				t.Fatalf("a table lies at %s, want scheme %s", tbl.Location(), scheme)
			}
			test(t, c, ns)
		})
	}
}

func wantIDs(t *testing.T, tbl *table.Table, want []int64, options ...table.ScanOption) {
	t.Helper()
	if diff := cmp.Diff(want, idsOf(t, tbl, options...)); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestAppendAndScan(t *testing.T) {
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "people")
		tbl := must[*table.Table](t)(c.CreateTable(ctx, name, people))
		wantIDs(t, tbl, nil)

		tbl = must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 1, 2, 3), 1024, iceberg.Properties{"by": "a test"}))
		first := tbl.CurrentSnapshot().SnapshotID
		tbl = must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 4, 5), 1024, nil))

		loaded := load(t, connect(t, lakes()[strings.SplitN(tbl.Location(), ":", 2)[0]]), name)
		wantIDs(t, loaded, []int64{1, 2, 3, 4, 5})
		wantIDs(t, loaded, []int64{3, 4, 5}, table.WithRowFilter(iceberg.GreaterThanEqual(iceberg.Reference("id"), int64(3))))
		wantIDs(t, loaded, []int64{1, 2, 3}, table.WithSnapshotID(first))
		if got := loaded.SnapshotByID(first).Summary.Properties["by"]; got != "a test" {
			t.Errorf("the summary of the first snapshot says by=%q", got)
		}
		if got := len(loaded.Metadata().Snapshots()); got != 2 {
			t.Errorf("%d snapshots, want 2", got)
		}
	})
}

func TestOverwriteAndDelete(t *testing.T) {
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "people")
		tbl := must[*table.Table](t)(c.CreateTable(ctx, name, people))
		tbl = must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 1, 2, 3, 4), 1024, nil))

		must[*table.Table](t)(tbl.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(2)), nil))
		wantIDs(t, load(t, c, name), []int64{1, 3, 4})

		must[*table.Table](t)(load(t, c, name).OverwriteTable(ctx, rows(t, 7, 8), 1024, nil))
		wantIDs(t, load(t, c, name), []int64{7, 8})
	})
}

func TestPartitions(t *testing.T) {
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "people")
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{
			SourceIDs: []int{3}, FieldID: 1000, Transform: iceberg.YearTransform{}, Name: "year",
		})
		tbl := must[*table.Table](t)(c.CreateTable(ctx, name, people, catalog.WithPartitionSpec(&spec)))
		tbl = must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 1, 2, 3, 4, 5, 6), 1024, nil))

		tx := tbl.NewTransaction()
		check(t, tx.UpdateSpec(true).AddField("id", iceberg.BucketTransform{NumBuckets: 4}, "shard").Commit())
		tbl = must[*table.Table](t)(tx.Commit(ctx))
		must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 7, 8, 9), 1024, nil))

		loaded := load(t, c, name)
		spec = loaded.Spec()
		if got, want := spec.NumFields(), 2; got != want {
			t.Errorf("the partition spec has %d fields, want %d: %v", got, want, spec)
		}
		wantIDs(t, loaded, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9})
		tasks := must[[]table.FileScanTask](t)(loaded.Scan(table.WithRowFilter(iceberg.LessThan(iceberg.Reference("born"), "1970-06-01"))).PlanFiles(ctx))
		if all := must[[]table.FileScanTask](t)(loaded.Scan().PlanFiles(ctx)); len(tasks) == 0 || len(tasks) >= len(all) {
			t.Errorf("a filter on the partition leaves %d of %d files", len(tasks), len(all))
		}
	})
}

func TestSchemaEvolves(t *testing.T) {
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "people")
		tbl := must[*table.Table](t)(c.CreateTable(ctx, name, people))
		tbl = must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 1, 2), 1024, nil))

		tx := tbl.NewTransaction()
		check(t, tx.UpdateSchema(true, false).
			AddColumn([]string{"email"}, iceberg.PrimitiveTypes.String, "where to write to", false, nil).
			RenameColumn([]string{"name"}, "full_name").
			DeleteColumn([]string{"born"}).
			Commit())
		must[*table.Table](t)(tx.Commit(ctx))

		loaded := load(t, c, name)
		var names []string
		for _, field := range loaded.Schema().Fields() {
			names = append(names, fmt.Sprint(field.ID, " ", field.Name))
		}
		if diff := cmp.Diff([]string{"1 id", "2 full_name", "4 email"}, names); diff != "" {
			t.Errorf("columns (-want +got):\n%s", diff)
		}
		wantIDs(t, loaded, []int64{1, 2})
	})
}

func TestBranches(t *testing.T) {
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "people")
		tbl := must[*table.Table](t)(c.CreateTable(ctx, name, people))
		tbl = must[*table.Table](t)(tbl.AppendTable(ctx, rows(t, 1), 1024, nil))
		first := tbl.CurrentSnapshot().SnapshotID

		_, _, err := c.CommitTable(ctx, name,
			[]table.Requirement{table.AssertTableUUID(tbl.Metadata().TableUUID()), table.AssertRefSnapshotID("side", nil)},
			[]table.Update{
				table.NewSetSnapshotRefUpdate("side", first, table.BranchRef, 0, 0, 0),
				table.NewSetSnapshotRefUpdate("v1", first, table.TagRef, 0, 0, 0),
			})
		check(t, err)

		tx := load(t, c, name).NewTransactionOnBranch("side")
		check(t, tx.AppendTable(ctx, rows(t, 2), 1024, nil))
		must[*table.Table](t)(tx.Commit(ctx))
		must[*table.Table](t)(load(t, c, name).AppendTable(ctx, rows(t, 3), 1024, nil))

		loaded := load(t, c, name)
		wantIDs(t, loaded, []int64{1, 3})
		wantIDs(t, loaded, []int64{1, 2}, table.WithSnapshotID(loaded.SnapshotByName("side").SnapshotID))
		wantIDs(t, loaded, []int64{1}, table.WithSnapshotID(loaded.SnapshotByName("v1").SnapshotID))

		// Who last saw the branch at its first snapshot is refused.
		_, _, err = c.CommitTable(ctx, name,
			[]table.Requirement{table.AssertRefSnapshotID("side", &first)},
			[]table.Update{table.NewRemoveSnapshotRefUpdate("side")})
		wantError(t, err, table.ErrCommitFailed)
	})
}

// TestConcurrentAppends has writers that know nothing of one another; each retries what conflicts.
func TestConcurrentAppends(t *testing.T) {
	const writers, appends = 4, 3
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "people")
		must[*table.Table](t)(c.CreateTable(ctx, name, people,
			catalog.WithProperties(iceberg.Properties{"commit.retry.num-retries": "20", "commit.retry.min-wait-ms": "5"})))

		var all sync.WaitGroup
		var want []int64
		for w := range writers {
			for a := range appends {
				want = append(want, int64(w*appends+a))
			}
			all.Go(func() {
				for a := range appends {
					tbl, err := c.LoadTable(ctx, name)
					if err == nil {
						_, err = tbl.AppendTable(ctx, rows(t, int64(w*appends+a)), 1024, nil)
					}
					if err != nil {
						t.Errorf("writer %d, append %d: %v", w, a, err)
					}
				}
			})
		}
		all.Wait()
		loaded := load(t, c, name)
		wantIDs(t, loaded, want)
		if got := len(loaded.Metadata().Snapshots()); got != writers*appends {
			t.Errorf("%d snapshots, want %d", got, writers*appends)
		}
	})
}
