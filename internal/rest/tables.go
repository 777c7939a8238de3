package rest

import (
	"net/http"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
)

func (c *call) listTables() error {
	request, err := c.listRequest()
	if err != nil {
		return err
	}
	list := &catalog.ListTables{Request: request}
	if err := c.do(list); err != nil {
		return err
	}
	return c.names(list.Result)
}

// listRequest is the request for a page of the tables or views of a namespace.
func (c *call) listRequest() (catalog.ListTablesRequest, error) {
	page, err := c.page()
	if err != nil {
		return catalog.ListTablesRequest{}, c.afterExistence(err)
	}
	return catalog.ListTablesRequest{Warehouse: c.path.warehouse, Namespace: c.path.namespace, Page: page}, nil
}

// names answers with a page of tables or views.
func (c *call) names(list catalog.ListTablesResult) error {
	b := borrow()
	defer b.giveBack()
	start := append(appendNames([]byte(`{"namespace":`), c.path.namespace), `,"name":`...)
	b.data = append(b.data, `{"identifiers":[`...)
	for i, name := range list.Names {
		if i > 0 {
			b.data = append(b.data, ',')
		}
		b.data = append(rawjson.AppendString(append(b.data, start...), name), '}')
	}
	b.data = appendNextPage(append(b.data, ']'), list.NextToken)
	return c.okBuffer(b)
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
	run := c.mutate
	if body.StageCreate {
		run = func(op catalog.Mutation) error { return c.do(op) } // changes nothing
	}
	if err := run(create); err != nil {
		return err
	}
	return c.loadedTable(create.Result)
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
	held := c.r.Header["If-None-Match"]
	tags := parseTags(held)
	load := &catalog.LoadTable{Request: catalog.LoadTableRequest{
		Warehouse: c.path.warehouse, Table: c.path.ident(), Snapshots: snapshots, Known: stateTags(tags),
	}}
	if err := c.do(load); err != nil {
		return err
	}
	state := &load.Result.TableState
	config := c.clientConfig(*state)
	tag := c.tag(*state, config)
	if load.Result.NotModified && !slices.Contains(tags, tag) && !slices.Contains(tags, anyTag) {
		load.Request.Known = nil // the table is as the client knows it, but not how it is reached
		if err := c.do(load); err != nil {
			return err
		}
		config = c.clientConfig(*state)
		tag = c.tag(*state, config)
	}
	c.w.Header()["Vary"] = byAcceptEncoding
	if load.Result.NotModified {
		c.answered = true
		if quoted := quoteTag(tag); holdsWeak(held, quoted) {
			c.setTag(weakTag(quoted))
		} else {
			c.setTag(quoted)
		}
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.sendTable(*state, tag, endWith(config), acceptsGzip(c.r.Header["Accept-Encoding"]))
}

func (c *call) commitTable() error {
	var body commitTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	creates := catalog.CreatesTable(body.Requirements)
	if creates {
		// The client takes 409 for a table that exists, as on every other create.
		c.class = writing
	}
	if err := c.sameAsPath(body.Identifier, "table"); err != nil {
		return err
	}
	commit := &catalog.CommitTable{Request: catalog.CommitTableRequest{
		Warehouse: c.path.warehouse, Table: c.path.ident(), Requirements: body.Requirements, Updates: body.Updates, Creates: creates,
	}}
	if err := c.mutate(commit); err != nil {
		return err
	}
	return c.committedTable(commit.Result)
}

// sameAsPath refuses a body that names something else than the path does.
func (c *call) sameAsPath(body *identBody, what string) error {
	if body == nil || sameIdent(body.ident(), c.path.ident()) {
		return nil
	}
	return c.afterExistence(refuse(catalog.ErrInvalid, "Invalid identifier %s: the path names the %s %s", body.ident(), what, c.path.ident()))
}

func sameIdent(a, b catalog.Ident) bool {
	return a.Name == b.Name && slices.Equal(a.Namespace, b.Namespace)
}

func (c *call) dropTable() error {
	purge, err := c.flag("purgeRequested")
	if err != nil {
		return c.afterExistence(err)
	}
	drop := &catalog.DropTable{Request: catalog.DropTableRequest{
		Warehouse: c.path.warehouse, Table: c.path.ident(), Purge: purge,
	}}
	if err := c.mutate(drop); err != nil {
		return err
	}
	if drop.Result.DyingID != "" {
		c.awaitPurge(drop.Result.DyingID)
	}
	return c.done()
}

// purgeWait is how long a drop waits for the end of its purge, which goes on
// without it.
const purgeWait = 2 * time.Second

// awaitPurge has the files of a table that has been dropped deleted. The drop is done
// whatever becomes of them: what is left is found again.
func (c *call) awaitPurge(id string) {
	timer := time.NewTimer(purgeWait)
	defer timer.Stop()
	select {
	case <-c.h.opt.Reclaimer.Start(c.path.warehouse, id):
	case <-timer.C:
	case <-c.ctx.Done():
	}
}

func (c *call) unregisterTable() error {
	unregister := &catalog.UnregisterTable{Request: catalog.UnregisterTableRequest{Warehouse: c.path.warehouse, Table: c.path.ident()}}
	if err := c.mutate(unregister); err != nil {
		return err
	}
	return c.committedTable(unregister.Result)
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
	if err := c.mutate(register); err != nil {
		return err
	}
	return c.loadedTable(register.Result)
}

func (c *call) renameTable() error {
	var body renameTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	rename := &catalog.RenameTable{Request: catalog.RenameTableRequest{
		Warehouse: c.path.warehouse, Source: body.Source.ident(), Destination: body.Destination.ident(),
	}}
	if err := c.mutate(rename); err != nil {
		return err
	}
	return c.done()
}

func (c *call) commitTransaction() error {
	var body commitTransactionBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if len(body.Changes) == 0 {
		return refuse(catalog.ErrInvalid, "Invalid table changes: empty")
	}
	commit := &catalog.CommitTransaction{Request: catalog.CommitTransactionRequest{Warehouse: c.path.warehouse}}
	for _, change := range body.Changes {
		commit.Request.Changes = append(commit.Request.Changes, catalog.TableCommit{
			Table: change.Identifier.ident(), Requirements: change.Requirements, Updates: change.Updates,
		})
		commit.Request.Creates = commit.Request.Creates || catalog.CreatesTable(change.Requirements)
	}
	if err := c.mutate(commit); err != nil {
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
