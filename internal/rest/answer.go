package rest

import (
	"net/http"
	"strconv"
	"sync"

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
	c.sendParts(status, encoded(body))
}

// sendParts answers with JSON that comes in parts, none of which is changed or kept.
func (c *call) sendParts(status int, parts ...[]byte) {
	c.answered = true
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	header := c.w.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = c.value(headerLength, strconv.Itoa(length))
	c.w.WriteHeader(status)
	if length <= joinedMax && len(parts) > 1 {
		b := borrow()
		defer b.giveBack()
		for _, p := range parts {
			b.data = append(b.data, p...)
		}
		_, _ = c.w.Write(b.data) // an error means that the client is gone
		return
	}
	for _, p := range parts {
		if _, err := c.w.Write(p); err != nil {
			return
		}
	}
}

// joinedMax is the size of answers, in bytes, to which copying their parts is quicker
// than sending each one.
const joinedMax = 16 << 10

// buffer is memory for the body of an answer, used by one after another: who writes an
// answer keeps nothing of it.
type buffer struct{ data []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// borrow gives an empty buffer.
func borrow() *buffer {
	b := buffers.Get().(*buffer)
	b.data = b.data[:0]
	return b
}

// giveBack ends the use of the buffer. One that is large is left to the collector.
func (b *buffer) giveBack() {
	if cap(b.data) <= keptBuffer {
		buffers.Put(b)
	}
}

// keptBuffer is the largest buffer, in bytes, that is used again: it holds a page of names.
const keptBuffer = 256 << 10

// okBuffer answers 200 with the body that is in the buffer.
func (c *call) okBuffer(b *buffer) error {
	c.sendParts(http.StatusOK, b.data)
	return nil
}

// loadedTable answers with a table that was made and how to reach its files.
func (c *call) loadedTable(t catalog.TableState) error {
	config := c.clientConfig(t)
	return c.sendTable(t, c.tag(t, config), endWith(config), false)
}

// endWith is the end of an answer that tells how to reach files.
func endWith(config map[string]string) []byte {
	if len(config) == 0 {
		return emptyConfig
	}
	return append(appendProperties([]byte(`,"config":`), config), '}')
}

// clientConfig tells how to reach the files of a table.
func (c *call) clientConfig(t catalog.TableState) map[string]string {
	return c.h.opt.ClientConfig(c.ctx, t.Root)
}

var (
	emptyConfig = []byte(`,"config":{}}`)
	closing     = []byte{'}'}
)

// encoded is a value of ours as JSON.
func encoded(v any) rawjson.Raw {
	data, err := rawjson.Marshal(v)
	if err != nil {
		panic("rest: a value that cannot be encoded: " + err.Error())
	}
	return data
}

// appendProperties appends an object of strings.
func appendProperties(dst []byte, properties map[string]string) []byte {
	if len(properties) == 0 {
		return append(dst, "{}"...)
	}
	return append(dst, encoded(properties)...)
}

// committedTable answers with a table alone.
func (c *call) committedTable(t catalog.TableState) error {
	return c.sendTable(t, c.tag(t, c.clientConfig(t)), closing, false)
}

// setTag sets the header as the specification spells it, ETag and not Etag: Java's
// client looks for it letter by letter.
func (c *call) setTag(quoted string) {
	c.w.Header()["ETag"] = c.value(headerTag, quoted)
}

// sendTable answers with a table's metadata as it is stored, between what the
// catalog adds to it; compressed, if that may be and pays.
func (c *call) sendTable(t catalog.TableState, tag string, end []byte, mayPack bool) error {
	b := borrow()
	defer b.giveBack()
	b.data = tableStart(b.data, t)
	if mayPack && len(t.Metadata) >= packedMin {
		if data := c.h.packed.get(tag, b.data, t.Metadata, end); data != nil {
			c.setTag(weakTag(quoteTag(tag)))
			c.w.Header()["Content-Encoding"] = gzipEncoding
			c.sendParts(http.StatusOK, data)
			return nil
		}
	}
	if t.ETag != "" {
		c.setTag(quoteTag(tag))
	}
	c.sendParts(http.StatusOK, b.data, t.Metadata, end)
	return nil
}

// tableStart is what stands before a table's metadata.
func tableStart(dst []byte, t catalog.TableState) []byte {
	dst = append(dst, '{')
	if t.MetadataLocation != "" {
		dst = rawjson.AppendString(rawjson.AppendName(dst, "metadata-location"), t.MetadataLocation)
	}
	return rawjson.AppendName(dst, "metadata")
}
