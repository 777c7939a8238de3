package rest

import (
	"net/http"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
)

func (c *call) viewRequest() catalog.ViewRequest {
	return catalog.ViewRequest{Warehouse: c.path.warehouse, View: c.path.ident()}
}

func (c *call) listViews() error {
	request, err := c.listRequest()
	if err != nil {
		return err
	}
	list := &catalog.ListViews{Request: request}
	if err := c.do(list); err != nil {
		return err
	}
	return c.names(list.Result)
}

func (c *call) createView() error {
	var body createViewBody
	if err := c.decode(&body); err != nil {
		return err
	}
	create := &catalog.CreateView{Request: catalog.CreateViewRequest{
		Warehouse:  c.path.warehouse,
		View:       catalog.Ident{Namespace: c.path.namespace, Name: *body.Name},
		Location:   body.Location,
		Schema:     body.Schema,
		Version:    body.Version,
		Properties: body.Properties,
	}}
	if err := c.mutate(create); err != nil {
		return err
	}
	return c.view(create.Result)
}

func (c *call) loadView() error {
	load := &catalog.LoadView{Request: c.viewRequest()}
	if err := c.do(load); err != nil {
		return err
	}
	return c.view(load.Result)
}

func (c *call) replaceView() error {
	var body replaceViewBody
	if err := c.decode(&body); err != nil {
		return err
	}
	if err := c.sameAsPath(body.Identifier, "view"); err != nil {
		return err
	}
	replace := &catalog.ReplaceView{Request: catalog.ReplaceViewRequest{
		Warehouse: c.path.warehouse, View: c.path.ident(), Requirements: orNil(body.Requirements), Updates: body.Updates,
	}}
	if err := c.mutate(replace); err != nil {
		return err
	}
	return c.view(replace.Result)
}

func (c *call) dropView() error {
	if err := c.mutate(&catalog.DropView{Request: c.viewRequest()}); err != nil {
		return err
	}
	return c.done()
}

func (c *call) registerView() error {
	var body registerViewBody
	if err := c.decode(&body); err != nil {
		return err
	}
	register := &catalog.RegisterView{Request: catalog.RegisterViewRequest{
		Warehouse:        c.path.warehouse,
		View:             catalog.Ident{Namespace: c.path.namespace, Name: *body.Name},
		MetadataLocation: *body.MetadataLocation,
	}}
	if err := c.mutate(register); err != nil {
		return err
	}
	return c.view(register.Result)
}

func (c *call) renameView() error {
	var body renameTableBody
	if err := c.decode(&body); err != nil {
		return err
	}
	rename := &catalog.RenameView{Request: catalog.RenameTableRequest{
		Warehouse: c.path.warehouse, Source: body.Source.ident(), Destination: body.Destination.ident(),
	}}
	if err := c.mutate(rename); err != nil {
		return err
	}
	return c.done()
}

// view answers with a view's metadata as it is stored.
func (c *call) view(v catalog.ViewState) error {
	start := rawjson.AppendString(rawjson.AppendName([]byte{'{'}, "metadata-location"), v.MetadataLocation)
	start = rawjson.AppendName(start, "metadata")
	c.sendParts(http.StatusOK, start, v.Metadata, []byte(`,"config":{}}`))
	return nil
}
