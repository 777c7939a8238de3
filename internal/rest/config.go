package rest

import "github.com/landfast/landfast/internal/catalog"

type configBody struct {
	Defaults  map[string]string `json:"defaults"`
	Overrides map[string]string `json:"overrides"`
	Endpoints []string          `json:"endpoints"`
}

// getConfig tells a client what it needs before anything else.
func (c *call) getConfig() error {
	name, _, err := c.parameter("warehouse")
	if err != nil {
		return err
	}
	if name == "" {
		name = catalog.MainWarehouse
	}
	get := &catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: name}}
	if err := c.do(get); err != nil {
		return err
	}
	return c.ok(configBody{
		Defaults:  get.Result.Properties,
		Overrides: map[string]string{"prefix": get.Result.Name},
		Endpoints: c.h.endpoints,
	})
}
