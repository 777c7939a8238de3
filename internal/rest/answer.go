package rest

import (
	"net/http"
	"strconv"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
)

// ok answers 200 with a body. Creating answers 200, too: Java's client takes 201 for an error.
func (c *call) ok(body any) error {
	c.send(http.StatusOK, body)
	return nil
}

// done answers 204.
func (c *call) done() error {
	c.answered = true
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// send answers with a value as JSON, and to HEAD without it. An error of writing
// means that the client is gone.
func (c *call) send(status int, body any) {
	c.answered = true
	if c.r.Method == http.MethodHead {
		c.w.WriteHeader(status)
		return
	}
	data, err := rawjson.Marshal(body)
	if err != nil {
		panic("rest: an answer that cannot be encoded: " + err.Error())
	}
	c.sendParts(status, data)
}

// sendParts answers with JSON that comes in parts, none of which is copied.
func (c *call) sendParts(status int, parts ...[]byte) {
	c.answered = true
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(length))
	c.w.WriteHeader(status)
	for _, p := range parts {
		if _, err := c.w.Write(p); err != nil {
			return
		}
	}
}

// loadedTable answers with a table and how to reach its files.
func (c *call) loadedTable(t catalog.TableState) error {
	config, err := rawjson.Marshal(c.h.opt.ClientConfig(c.ctx, t.Root))
	if err != nil {
		panic("rest: a configuration that cannot be encoded: " + err.Error())
	}
	return c.table(t, append(append([]byte(`,"config":`), config...), '}'))
}

// committedTable answers with a table alone.
func (c *call) committedTable(t catalog.TableState) error {
	return c.table(t, []byte{'}'})
}

// setTag sets the header as the specification spells it, ETag and not Etag: Java's
// client looks for it letter by letter.
func (c *call) setTag(t catalog.TableState) {
	c.w.Header()["ETag"] = []string{quoteTag(c.tag(t))}
}

// table answers with a table's metadata as it is stored, between what the
// catalog adds to it.
func (c *call) table(t catalog.TableState, end []byte) error {
	if t.ETag != "" {
		c.setTag(t)
	}
	start := []byte{'{'}
	if t.MetadataLocation != "" {
		start = rawjson.AppendString(rawjson.AppendName(start, "metadata-location"), t.MetadataLocation)
	}
	start = rawjson.AppendName(start, "metadata")
	c.sendParts(http.StatusOK, start, t.Metadata, end)
	return nil
}
