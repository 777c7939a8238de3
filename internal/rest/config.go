package rest

import "github.com/landfast/landfast/internal/catalog"

type configBody struct {
	Defaults  map[string]string `json:"defaults"`
	Overrides map[string]string `json:"overrides"`
	Endpoints []string          `json:"endpoints"`
	// IdempotencyKeyLifetime has clients send keys.
	IdempotencyKeyLifetime string `json:"idempotency-key-lifetime,omitempty"`
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
	body := configBody{
		Defaults:  get.Result.Properties,
		Overrides: map[string]string{"prefix": get.Result.Name},
		Endpoints: c.h.endpoints,
	}
	if c.h.opt.IdempotencyLifetime > 0 {
		body.IdempotencyKeyLifetime = isoDuration(c.h.opt.IdempotencyLifetime)
	}
	return c.ok(body)
}
