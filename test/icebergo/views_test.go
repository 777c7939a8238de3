package icebergo

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
	"github.com/google/go-cmp/cmp"
)

// createView creates a view with one query, for Trino.
func createView(t *testing.T, c *rest.Catalog, name table.Identifier, options ...catalog.CreateViewOpt) *view.View {
	t.Helper()
	version := must[*view.Version](t)(view.NewVersion(1, 0,
		[]view.Representation{view.NewRepresentation("SELECT id FROM people", "trino")}, catalog.NamespaceFromIdent(name)))
	return must[*view.View](t)(c.CreateView(testContext(t), name, version, people, options...))
}

// queries are the SQL texts of a view's current version by dialect.
func queries(v *view.View) map[string]string {
	found := map[string]string{}
	for _, r := range v.CurrentVersion().Representations {
		found[r.Dialect] = r.Sql
	}
	return found
}

func wantQueries(t *testing.T, v *view.View, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, queries(v)); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

// addQuery replaces a view's current version by one with another query besides.
func addQuery(t *testing.T, c *rest.Catalog, v *view.View, sql, dialect string) (*view.View, error) {
	t.Helper()
	version := v.CurrentVersion().Clone()
	version.Representations = append(version.Representations, view.NewRepresentation(sql, dialect))
	builder := must[*view.MetadataBuilder](t)(view.MetadataBuilderFromBase(v.Metadata()))
	built := must[*view.MetadataBuildResult](t)(builder.AddVersion(version).SetCurrentVersionID(view.LastAddedID).Build())
	return c.UpdateView(testContext(t), v.Identifier(),
		view.Requirements{view.AssertViewUUID(v.Metadata().ViewUUID())}, built.Changes)
}

func TestViews(t *testing.T) {
	inEveryLake(t, func(t *testing.T, c *rest.Catalog, ns table.Identifier) {
		ctx, name := testContext(t), named(ns, "ids")
		created := createView(t, c, name, catalog.WithViewProperties(iceberg.Properties{"comment": "all ids"}))
		if got := created.Properties()["comment"]; got != "all ids" {
			t.Errorf("comment = %q", got)
		}
		loaded := must[*view.View](t)(c.LoadView(ctx, name))
		if !created.Equals(*loaded) {
			t.Errorf("loaded another view than was created: %v, %v", loaded.Metadata(), created.Metadata())
		}
		wantQueries(t, loaded, map[string]string{"trino": "SELECT id FROM people"})

		updated := must[*view.View](t)(addQuery(t, c, loaded, "select id from people", "spark"))
		both := map[string]string{"trino": "SELECT id FROM people", "spark": "select id from people"}
		wantQueries(t, updated, both)
		wantQueries(t, must[*view.View](t)(c.LoadView(ctx, name)), both)
		if got := len(updated.Versions()); got != 2 {
			t.Errorf("%d versions, want 2", got)
		}

		renamed := must[*view.View](t)(c.RenameView(ctx, name, named(ns, "renamed")))
		if got, want := renamed.MetadataLocation(), updated.MetadataLocation(); got != want {
			t.Errorf("a rename moved the metadata from %s to %s", want, got)
		}
		if must[bool](t)(c.CheckViewExists(ctx, name)) {
			t.Error("the view still has its old name, too")
		}

		check(t, c.DropView(ctx, named(ns, "renamed")))
		wantError(t, c.DropView(ctx, named(ns, "renamed")), catalog.ErrNoSuchView)
		back := must[*view.View](t)(c.RegisterView(ctx, named(ns, "back"), renamed.MetadataLocation()))
		if back.Metadata().ViewUUID() != created.Metadata().ViewUUID() {
			t.Error("a view that was registered is another")
		}
		var listed []table.Identifier
		for name, err := range c.ListViews(ctx, ns) {
			check(t, err)
			listed = append(listed, name)
		}
		if diff := cmp.Diff([]table.Identifier{named(ns, "back")}, listed); diff != "" {
			t.Errorf("views (-want +got):\n%s", diff)
		}
	})
}

func TestViewsAreRefused(t *testing.T) {
	c := connect(t, *warehouse)
	ctx, ns := testContext(t), namespace(t, c)
	must[*table.Table](t)(c.CreateTable(ctx, named(ns, "table"), people))
	v := createView(t, c, named(ns, "view"))
	version := v.CurrentVersion()

	for _, taken := range []string{"table", "view"} {
		_, err := c.CreateView(ctx, named(ns, taken), version, people)
		wantError(t, err, catalog.ErrViewAlreadyExists)
		_, err = c.CreateTable(ctx, named(ns, taken), people)
		wantError(t, err, catalog.ErrTableAlreadyExists)
	}
	_, err := c.CreateView(ctx, table.Identifier{"no_such_namespace", "v"}, version, people)
	wantError(t, err, catalog.ErrNoSuchNamespace)
	_, err = c.LoadView(ctx, named(ns, "table"))
	wantError(t, err, catalog.ErrNoSuchView)
	_, err = c.LoadTable(ctx, named(ns, "view"))
	wantError(t, err, catalog.ErrNoSuchTable)

	// Who still holds a view that was dropped and created again cannot replace it.
	check(t, c.DropView(ctx, named(ns, "view")))
	createView(t, c, named(ns, "view"))
	_, err = addQuery(t, c, v, "select 1", "spark")
	wantError(t, err, rest.ErrCommitFailed)

	check(t, c.DropView(ctx, named(ns, "view")))
	_, err = addQuery(t, c, v, "select 1", "spark")
	wantError(t, err, catalog.ErrNoSuchView)
}
