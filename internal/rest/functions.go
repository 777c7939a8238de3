package rest

import "github.com/landfast/landfast/internal/catalog"

type listFunctionsBody struct {
	Identifiers   [][]string `json:"identifiers"`
	NextPageToken *string    `json:"next-page-token"`
}

// listFunctions answers that there are none: no operation makes one.
func (c *call) listFunctions() error {
	page, err := c.page()
	if err == nil && page.Token != "" {
		err = refuse(catalog.ErrInvalid, "Invalid page token %q: it was not given for this list; start again without one", page.Token)
	}
	if err != nil {
		return c.afterExistence(err)
	}
	if err := c.mustExist(); err != nil {
		return err
	}
	return c.ok(listFunctionsBody{})
}

func (c *call) loadFunction() error {
	get := &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: c.path.warehouse, Levels: c.path.namespace}}
	if err := c.do(get); err != nil {
		return err
	}
	return refuse(errNoSuchFunction, "Function does not exist: %s", c.path.ident())
}
