package rest

import (
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
)

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
	b := borrow()
	defer b.giveBack()
	b.data = append(b.data, '{')
	b.data = appendProperties(rawjson.AppendName(b.data, "defaults"), get.Result.Properties)
	b.data = append(rawjson.AppendName(b.data, "overrides"), '{')
	b.data = append(rawjson.AppendString(rawjson.AppendName(b.data, "prefix"), get.Result.Name), '}')
	b.data = append(rawjson.AppendName(b.data, "endpoints"), c.h.endpoints...)
	if c.h.opt.IdempotencyLifetime > 0 { // has clients send keys
		b.data = rawjson.AppendString(rawjson.AppendName(b.data, "idempotency-key-lifetime"), isoDuration(c.h.opt.IdempotencyLifetime))
	}
	b.data = append(b.data, '}')
	return c.okBuffer(b)
}
