package reclaim_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	disk "github.com/landfast/landfast/internal/blob/local"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/reclaim"
)

// TestOnDisk sweeps and purges a table of a real directory, which clients reach by a link.
func TestOnDisk(t *testing.T) {
	base := t.TempDir()
	link := filepath.Join(base, "link")
	if err := os.Mkdir(filepath.Join(base, "real"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	store := disk.New()
	root, err := store.Resolve(t.Context(), blob.DirURI(link), blob.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(kernel.Options{Store: newStore(), Files: store, Queue: local.New(local.Options{})})
	do := func(op kernel.Operation) {
		t.Helper()
		if err := k.Do(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Mark(t.Context(), root, "main-id"); err != nil {
		t.Fatal(err)
	}
	do(&catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: root}})
	do(&catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{Warehouse: "main", Levels: []string{"ns"}}})
	create := &catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse: "main", Table: ident("t"), Location: blob.DirURI(link) + "/t",
		Schema: []byte(`{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`),
	}}
	do(create)

	scope := blob.Scope{root}
	table := blob.DirURI(link) + "/t"
	write := func(location string, data []byte) {
		t.Helper()
		if err := store.Create(t.Context(), scope, location, data); err != nil {
			t.Fatal(err)
		}
	}
	write(table+"/data/a.parquet", nil)
	write(table+"/data/nobody-names-this.parquet", nil)
	write(table+"/metadata/m.avro", manifestOf(t, table+"/data/a.parquet", table+"/data", table+"/data/gone.parquet"))
	write(table+"/metadata/snap.avro", manifestList(t, table+"/metadata/m.avro"))
	commit := &catalog.CommitTable{Request: catalog.CommitTableRequest{
		Warehouse: "main", Table: ident("t"), Requirements: []byte("[]"), Updates: []byte("[" + addSnapshot(1, table+"/metadata/snap.avro") + "]"),
	}}
	do(commit)
	orphan := table + "/metadata/00001" + orphanEnd
	write(orphan, commit.Result.Metadata)

	later := time.Now().Add(grace + time.Minute)
	r := reclaim.New(reclaim.Options{
		Runner: k, Files: store, Grace: grace, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return later },
	})
	report, err := r.Sweep(t.Context(), "main", true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reclaim.SweepReport{Tables: 1, Orphans: 1, Files: []string{orphan}}, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	drop := &catalog.DropTable{Request: catalog.DropTableRequest{Warehouse: "main", Table: ident("t"), Purge: true}}
	do(drop)
	s := &stack{T: t}
	stop := s.begin(r)
	<-r.Start("main", drop.Result.DyingID)
	stop()

	var left []string
	if err := filepath.WalkDir(filepath.Join(base, "real"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Base(path) != blob.MarkPrefix+"main-id" {
			left = append(left, filepath.Base(path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	if diff := cmp.Diff([]string{"nobody-names-this.parquet"}, left); diff != "" {
		t.Errorf("files (-want +left):\n%s", diff)
	}
}
