package rest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
)

// warehouseBody is a warehouse as the management API shows it.
type warehouseBody struct {
	ID               string            `json:"id"`
	Name             string            `json:"name"`
	Location         string            `json:"location"`
	AllowedLocations []string          `json:"allowed-locations"`
	Properties       map[string]string `json:"properties"`
	S3               *blob.S3Options   `json:"s3,omitempty"` // without the secret; absent: as the server is configured
	CreatedAtMillis  int64             `json:"created-at-ms"`
}

func showWarehouse(w catalog.Warehouse) warehouseBody {
	body := warehouseBody{
		ID: w.ID, Name: w.Name, Location: w.Root.URI, Properties: w.Properties, CreatedAtMillis: w.CreatedAtMillis,
	}
	if root := w.Root.Public(); root.S3 != (blob.S3Options{}) {
		body.S3 = &root.S3
	}
	for _, root := range w.Allowed {
		body.AllowedLocations = append(body.AllowedLocations, root.URI)
	}
	return body
}

type listWarehousesBody struct {
	Warehouses    []warehouseBody `json:"warehouses"`
	NextPageToken *string         `json:"next-page-token"`
}

func (c *call) listWarehouses() error {
	page, err := c.page()
	if err != nil {
		return err
	}
	list := &catalog.ListWarehouses{Request: catalog.ListWarehousesRequest{Page: page}}
	if err := c.do(list); err != nil {
		return err
	}
	body := listWarehousesBody{NextPageToken: pageToken(list.Result.NextToken)}
	for _, w := range list.Result.Warehouses {
		body.Warehouses = append(body.Warehouses, showWarehouse(w))
	}
	return c.ok(body)
}

func (c *call) loadWarehouse() error {
	get := &catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: c.path.warehouse}}
	if err := c.do(get); err != nil {
		return err
	}
	return c.ok(showWarehouse(get.Result))
}

// allowedLocationsMax bounds the further places of a warehouse: every request that opens
// a file looks through them.
const allowedLocationsMax = 100

// createWarehouse prepares the roots and then makes the warehouse, so that no
// warehouse is ever seen whose root does not bear its mark. A mark for a name that
// another request took meanwhile does no harm.
func (c *call) createWarehouse() error {
	var body createWarehouseBody
	if err := c.decodeClosed(&body, createWarehouseMembers...); err != nil {
		return err
	}
	if err := catalog.CheckWarehouseName(*body.Name); err != nil {
		return err
	}
	if k, err := c.idempotencyKey(); err != nil {
		return err
	} else if k == "" {
		get := &catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: *body.Name}}
		switch err := c.do(get); {
		case err == nil:
			return refuse(catalog.ErrAlreadyExists, "Warehouse already exists: %s", *body.Name)
		case !errors.Is(err, catalog.ErrNoSuchWarehouse):
			return err
		}
	}
	location := body.Location
	if location == "" {
		location = c.h.opt.WarehouseRoot(*body.Name)
	}
	if location == "" {
		return refuse(catalog.ErrInvalid, "Invalid location: there is none, and the server has no directory of its own for it; "+
			"name a bucket (s3://bucket/prefix), or a directory that all instances share (file:///srv/lake)")
	}
	if body.S3.options() != (blob.S3Options{}) && !slices.ContainsFunc(append([]string{location}, body.AllowedLocations...), onS3) {
		return refuse(catalog.ErrInvalid, "Invalid s3: no location of the warehouse begins with s3://; leave the member out, or choose a location in a bucket")
	}
	if n := len(body.AllowedLocations); n > allowedLocationsMax {
		return refuse(catalog.ErrInvalid, "Invalid allowed-locations: there are %d; at most %d are allowed: name a place above several", n, allowedLocationsMax)
	}
	id := c.h.newID()
	var allowed []blob.Root
	for _, location := range body.AllowedLocations {
		r, err := c.resolve(location, body.S3)
		if err != nil {
			return err
		}
		allowed = append(allowed, r)
	}
	root, err := c.resolve(location, body.S3)
	if err != nil {
		return err
	}
	if err := c.h.opt.Roots.Mark(c.ctx, root, id); err != nil {
		return unusable(location, err)
	}
	create := &catalog.CreateWarehouse{Request: catalog.CreateWarehouseRequest{
		ID: id, Name: *body.Name, Root: root, Allowed: allowed, Properties: body.Properties,
	}}
	if err := c.mutate(create); err != nil {
		return err
	}
	return c.ok(showWarehouse(create.Result))
}

// setWarehouseS3 looks first whether the warehouse's root can be reached in the new way.
func (c *call) setWarehouseS3() error {
	var body setS3Body
	if err := c.decode(&body); err != nil {
		return err
	}
	get := &catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: c.path.warehouse}}
	if err := c.do(get); err != nil {
		return err
	}
	options := s3Body(body).options()
	if wrong := options.Check(); len(wrong) > 0 {
		return refuse(catalog.ErrInvalid, "Invalid %v", wrong[0])
	}
	next, ok := get.Result.WithS3(options)
	if ok && onS3(next.Root.URI) {
		if err := c.h.opt.Roots.CheckMark(c.ctx, next.Root, next.ID); err != nil {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return refuse(catalog.ErrUnprocessable, "Warehouse %s cannot be reached so: %v", next.Name, err)
		}
	}
	set := &catalog.SetWarehouseS3{Request: catalog.SetWarehouseS3Request{Name: c.path.warehouse, S3: options}}
	if err := c.mutate(set); err != nil {
		return err
	}
	return c.ok(showWarehouse(set.Result))
}

// resolve makes a root of a location. Only those on S3 have the options.
func (c *call) resolve(location string, s3 s3Body) (blob.Root, error) {
	options := s3.options()
	if !onS3(location) {
		options = blob.S3Options{}
	}
	root, err := c.h.opt.Roots.Resolve(c.ctx, location, options)
	if err != nil {
		return blob.Root{}, unusable(location, err)
	}
	return root, nil
}

func onS3(location string) bool {
	normal, err := blob.Normalize(location)
	return err == nil && strings.HasPrefix(normal, "s3:")
}

// unusable turns what is wrong with a root into a refusal. It is shown in full:
// who makes warehouses chooses directories of the server, and must see what is
// wrong with them.
func unusable(location string, err error) error {
	var (
		bad    *blob.LocationError
		option *blob.OptionError
	)
	switch {
	case errors.Is(err, blob.ErrFull), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &bad):
		return refuse(catalog.ErrInvalid, "Invalid %v", err)
	case errors.As(err, &option):
		return refuse(catalog.ErrInvalid, "Invalid s3: %v", err)
	}
	remedy := "; choose a directory that the server's user may write"
	if onS3(location) {
		remedy = "" // the cause says what to do
	}
	return refuse(catalog.ErrUnprocessable, "Location %q cannot be the root of a warehouse: %v%s", location, err, remedy)
}

func (c *call) deleteWarehouse() error {
	drop := &catalog.DeleteWarehouse{Request: catalog.DeleteWarehouseRequest{Name: c.path.warehouse}}
	err := c.mutate(drop)
	if errors.Is(err, catalog.ErrNotEmpty) {
		return refuse(errWarehouseNotEmpty, "%v", err)
	}
	if err != nil {
		return err
	}
	return c.done()
}
