package rest

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/catalog"
)

// idempotencyHeader names one request, so that a client which got no answer can
// send it again without doing it again.
const idempotencyHeader = "Idempotency-Key"

// mutate runs a mutation on behalf of the request, once for each idempotency key.
func (c *call) mutate(op catalog.Mutation) error {
	k, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	if k == "" {
		return c.do(op)
	}
	return c.do(&catalog.Once{
		Request: catalog.OnceRequest{Warehouse: c.scope(), Key: k, Hash: c.hash(), Lifetime: c.h.opt.IdempotencyLifetime},
		Inner:   op,
	})
}

// scope is the warehouse within which an idempotency key means something; that of
// the management API is its own.
func (c *call) scope() string {
	if _, template, _ := strings.Cut(c.r.Pattern, " "); strings.HasPrefix(template, managementPath) {
		return ""
	}
	return c.path.warehouse
}

// idempotencyKey is the request's key; empty if it has none, or keys are not heeded.
func (c *call) idempotencyKey() (string, error) {
	values := c.r.Header.Values(idempotencyHeader)
	if len(values) == 0 || c.h.opt.IdempotencyLifetime <= 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", refuse(errMalformed, "%s is given %d times: send one", idempotencyHeader, len(values))
	}
	if id, err := uuid.Parse(values[0]); err != nil || len(values[0]) != len(id.String()) {
		return "", refuse(errMalformed, "Invalid %s %.*q: it must be a UUID, as in 0197e2b8-6c1a-7cc3-9a5e-3d1b5f0f8a11", idempotencyHeader, headerShownMax, values[0])
	}
	return strings.ToLower(values[0]), nil
}

// headerShownMax bounds what a message repeats of a header, in characters.
const headerShownMax = 100

// hash is of everything in the request that says what to do. Fields are set apart
// by their lengths, so that no two requests run together.
func (c *call) hash() []byte {
	h := sha256.New()
	field := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write(strconv.AppendInt(nil, int64(len(p)), 10)) // a hash takes all
			_, _ = h.Write([]byte{':'})
			_, _ = h.Write([]byte(p))
		}
	}
	field(c.r.Pattern, c.path.warehouse, c.path.table, c.query.Encode())
	field(c.path.namespace...)
	field("")
	_, _ = h.Write(c.body)
	return h.Sum(nil)
}

// isoDuration is a duration as ISO 8601 writes it, in whole seconds.
func isoDuration(d time.Duration) string {
	var b strings.Builder
	b.WriteString("PT")
	for _, unit := range []struct {
		of   time.Duration
		name byte
	}{{time.Hour, 'H'}, {time.Minute, 'M'}, {time.Second, 'S'}} {
		if n := d / unit.of; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteByte(unit.name)
			d %= unit.of
		}
	}
	if b.Len() == len("PT") {
		return "PT0S"
	}
	return b.String()
}
