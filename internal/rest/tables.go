package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/tablemeta"
)

type listTablesBody struct {
	Identifiers   []catalog.Ident `json:"identifiers"`
	NextPageToken *string         `json:"next-page-token"`
}

func (c *call) listTables() error {
	page, err := c.page()
	if err != nil {
		return c.afterExistence(err)
	}
	list := &catalog.ListTables{Request: catalog.ListTablesRequest{
		Warehouse: c.path.warehouse, Namespace: c.path.namespace, Page: page,
	}}
	if err := c.do(list); err != nil {
		return err
	}
	body := listTablesBody{NextPageToken: pageToken(list.Result.NextToken)}
	for _, name := range list.Result.Names {
		body.Identifiers = append(body.Identifiers, catalog.Ident{Namespace: c.path.namespace, Name: name})
	}
	return c.ok(body)
}

func (c *call) createTable() error {
	var body createTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	create := &catalog.CreateTable{Request: catalog.CreateTableRequest{
		Warehouse:     c.path.warehouse,
		Table:         catalog.Ident{Namespace: c.path.namespace, Name: *body.Name},
		Location:      body.Location,
		Schema:        body.Schema,
		PartitionSpec: orNil(body.PartitionSpec),
		WriteOrder:    orNil(body.WriteOrder),
		Properties:    body.Properties,
		Stage:         body.StageCreate,
	}}
	if err := c.do(create); err != nil {
		return err
	}
	return c.table(create.Result, endOfLoad)
}

func (c *call) loadTable() error {
	value, given, err := c.parameter("snapshots")
	if err != nil {
		return c.afterExistence(err)
	}
	snapshots := catalog.Snapshots(value)
	if !given {
		snapshots = catalog.SnapshotsAll
	}
	if snapshots != catalog.SnapshotsAll && snapshots != catalog.SnapshotsRefs {
		return c.afterExistence(refuse(catalog.ErrInvalid, "Invalid snapshots %q: it must be all or refs", value))
	}
	load := &catalog.LoadTable{Request: catalog.LoadTableRequest{
		Warehouse: c.path.warehouse, Table: c.path.ident(), Snapshots: snapshots,
		Known: parseTags(c.r.Header.Values("If-None-Match")),
	}}
	if err := c.do(load); err != nil {
		return err
	}
	if load.Result.NotModified {
		c.answered = true
		c.w.Header().Set("ETag", quoteTag(load.Result.ETag))
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.table(load.Result.TableState, endOfLoad)
}

func (c *call) tableExists() error {
	if err := c.mustExist(); err != nil {
		return err
	}
	return c.done()
}

func (c *call) commitTable() error {
	var body commitTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	creates := createsTable(body.Requirements)
	if creates {
		// The client takes 409 for a table that exists, as on every other create.
		c.class = writing
	}
	if body.Identifier != nil && !sameIdent(body.Identifier.ident(), c.path.ident()) {
		return c.afterExistence(refuse(catalog.ErrInvalid, "Invalid identifier %s: the path names the table %s",
			body.Identifier.ident(), c.path.ident()))
	}
	commit := &catalog.CommitTable{Request: catalog.CommitTableRequest{
		Warehouse: c.path.warehouse, Table: c.path.ident(), Requirements: body.Requirements, Updates: body.Updates, Creates: creates,
	}}
	if err := c.do(commit); err != nil {
		return err
	}
	return c.table(commit.Result, endOfCommit)
}

// createsTable tells a commit that creates a table, which is staged, from one
// that changes a table. The decision parses the requirements again, on purpose:
// what to queue for and how to refuse must be known before, and a request keeps the
// client's bytes, so that all that is wrong with them is said in one place.
func createsTable(requirements []byte) bool {
	var parsed []tablemeta.Requirement
	err := rawjson.Unmarshal(requirements, &parsed)
	return err == nil && tablemeta.IsCreate(parsed)
}

func sameIdent(a, b catalog.Ident) bool {
	return a.Name == b.Name && slices.Equal(a.Namespace, b.Namespace)
}

func (c *call) dropTable() error {
	value, given, err := c.parameter("purgeRequested")
	if err != nil {
		return c.afterExistence(err)
	}
	purge := strings.EqualFold(value, "true") // PyIceberg sends True and False
	if given && !purge && !strings.EqualFold(value, "false") {
		return c.afterExistence(refuse(catalog.ErrInvalid, "Invalid purgeRequested %q: it must be true or false", value))
	}
	drop := &catalog.DropTable{Request: catalog.DropTableRequest{
		Warehouse: c.path.warehouse, Table: c.path.ident(), Purge: purge,
	}}
	if err := c.do(drop); err != nil {
		return err
	}
	if drop.Result.DyingID != "" {
		c.reclaim(drop.Result.DyingID)
	}
	return c.done()
}

// reclaim deletes the files of a table that has been dropped. The drop is done
// whatever becomes of them: what is left is found again by the next attempt.
func (c *call) reclaim(id string) {
	// A client that does not wait for the answer must not keep its files alive.
	ctx := context.WithoutCancel(c.ctx)
	if deadline, ok := c.ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	err := catalog.Reclaim(c.owned(ctx, "reclaim"), c.h.opt.Runner, c.h.opt.Files, c.path.warehouse, id)
	if err != nil {
		c.h.opt.Log.WarnContext(c.ctx, "files of a dropped table are left for later", "error", err)
	}
}

func (c *call) registerTable() error {
	var body registerTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	register := &catalog.RegisterTable{Request: catalog.RegisterTableRequest{
		Warehouse:        c.path.warehouse,
		Table:            catalog.Ident{Namespace: c.path.namespace, Name: *body.Name},
		MetadataLocation: *body.MetadataLocation,
		Overwrite:        body.Overwrite,
	}}
	if err := c.do(register); err != nil {
		return err
	}
	return c.table(register.Result, endOfLoad)
}

func (c *call) renameTable() error {
	var body renameTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	rename := &catalog.RenameTable{Request: catalog.RenameTableRequest{
		Warehouse: c.path.warehouse, Source: body.Source.ident(), Destination: body.Destination.ident(),
	}}
	if err := c.do(rename); err != nil {
		return err
	}
	return c.done()
}

func (c *call) reportMetrics() error {
	var body reportMetricsBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := c.mustExist(); err != nil {
		return err
	}
	switch *body.ReportType {
	case "scan-report", "commit-report":
		return c.done()
	}
	return refuse(catalog.ErrInvalid, "Invalid report-type %q: it must be scan-report or commit-report", *body.ReportType)
}
