package rest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/reclaim"
)

// RequestIDHeader carries the id of a request. One that a client or a wrapper set
// is kept; every answer repeats it.
const RequestIDHeader = "X-Request-Id"

// Options are what a Handler is made of. Runner, Reclaimer, Roots and WarehouseRoot are required.
type Options struct {
	// Runner runs every operation.
	Runner kernel.Runner
	// Reclaimer deletes files.
	Reclaimer Reclaimer
	// ClientConfig tells clients how to reach the files of a warehouse with this
	// root. It has no secrets. Default: nothing.
	ClientConfig func(ctx context.Context, root blob.Root) map[string]string
	// IdempotencyLifetime is how long an Idempotency-Key is remembered. Zero: such
	// keys are neither advertised nor heeded.
	IdempotencyLifetime time.Duration
	// Roots resolves and marks the roots of new warehouses.
	Roots blob.Roots
	// WarehouseRoot is the location of a new warehouse that names none: a URI, or empty where it must name one.
	WarehouseRoot func(name string) string
	// Locks is who waits for whom. Default: nobody.
	Locks func(context.Context) contention.Report
	// RequestTimeout bounds a request from its first byte to its answer. Default 60 s.
	RequestTimeout time.Duration
	// MaxBodyBytes bounds a request body as it was sent, and what a gzip body
	// decompresses to. Default 64 MiB. All bodies that are in memory at one time
	// have four times as many; beyond that a request is answered with 429.
	MaxBodyBytes int64
	// Log gets the causes that clients are not shown. Which request a line is about its
	// handler asks RequestID: the lines themselves do not say it. Default slog.Default().
	Log *slog.Logger
}

// Reclaimer deletes files: package reclaim has one.
type Reclaimer interface {
	// Start begins to delete what a drop has given up; the channel is closed when that
	// is done, or left for later.
	Start(warehouse, dyingID string) <-chan struct{}
	// Sweep finds the metadata files of a warehouse that no table reaches and, unless it is a
	// dry run, gives them up: they are deleted some time later. With an error the
	// report tells how far it came.
	Sweep(ctx context.Context, warehouse string, dryRun bool) (reclaim.SweepReport, error)
}

// Handler serves /v1/... and /management/v1/.... It is safe for concurrent use
// and starts no goroutines.
//
// It sets the Pattern of the very request it is given to the route's method and
// template, and leaves it empty where no route matches: a wrapper reads there
// what to count the request as, without the names that clients chose.
type Handler struct {
	opt       Options
	router    *router
	endpoints rawjson.Raw // what /v1/config advertises
	bodies    budget
	packed    *packed
	newID     func() string // of requests and warehouses
}

var _ http.Handler = (*Handler)(nil)

// New makes a handler. It panics when a required option is missing.
func New(opt Options) *Handler {
	if opt.Runner == nil || opt.Reclaimer == nil || opt.Roots == nil || opt.WarehouseRoot == nil {
		panic("rest: Runner, Reclaimer, Roots and WarehouseRoot are required")
	}
	if opt.RequestTimeout <= 0 {
		opt.RequestTimeout = time.Minute
	}
	if opt.MaxBodyBytes <= 0 {
		opt.MaxBodyBytes = 64 << 20
	}
	if opt.ClientConfig == nil {
		opt.ClientConfig = func(context.Context, blob.Root) map[string]string { return nil }
	}
	if opt.Locks == nil {
		opt.Locks = func(context.Context) contention.Report { return contention.Report{} }
	}
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	h := &Handler{
		opt:       opt,
		router:    newRouter(routes),
		endpoints: encoded(endpoints(routes)),
		packed:    newPacked(packedBytes),
		newID:     NewRequestID,
	}
	h.bodies.give(budgetBodies * opt.MaxBodyBytes)
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := h.newCall(w, r)
	defer c.end()
	defer c.recover()
	if r.ContentLength != 0 {
		c.boundReads(c.request.deadline)
	}
	if err := c.serve(); err != nil {
		c.refuse(err)
	}
}

// Stopping refuses a request that came when the server takes no new ones: it has
// changed nothing and may be sent again, to whoever serves next.
func (h *Handler) Stopping(w http.ResponseWriter, r *http.Request) {
	h.newCall(w, r).turnAway(errStopping)
}

// Misdirected refuses a request that names a host which this server is not.
func (h *Handler) Misdirected(w http.ResponseWriter, r *http.Request) {
	h.newCall(w, r).turnAway(refuse(errMisdirected,
		"Host %q is not this server, which is for this machine alone: use localhost or 127.0.0.1, in a proxy too, or start the server with --insecure", r.Host))
}

func (h *Handler) newCall(w http.ResponseWriter, r *http.Request) *call {
	c := &call{h: h, w: w, r: r}
	if ids := r.Header[RequestIDHeader]; len(ids) > 0 && IsRequestID(ids[0]) {
		c.id = ids[0]
	} else {
		c.id = h.newID()
	}
	c.request = requestContext{Context: r.Context(), id: c.id, deadline: time.Now().Add(h.opt.RequestTimeout)}
	if d, ok := c.request.Context.Deadline(); ok && d.Before(c.request.deadline) {
		c.request.deadline = d
	}
	c.ctx = &c.request
	header := w.Header()
	if ids := header[RequestIDHeader]; len(ids) != 1 || ids[0] != c.id {
		header[RequestIDHeader] = c.value(headerID, c.id)
	}
	header["Cache-Control"] = noStore
	return c
}

// end gives back what the request has taken.
func (c *call) end() {
	c.request.end()
	c.h.bodies.give(c.counted)
}

// Values of headers that are the same in every answer. Nobody changes them.
var (
	noStore          = []string{"no-store"}
	jsonType         = []string{"application/json"}
	byAcceptEncoding = []string{"Accept-Encoding"}
	gzipEncoding     = []string{"gzip"}
)

// Places in call.values.
const (
	headerID = iota
	headerLength
	headerTag
	headerCount
)

// value is a header's value, in memory that the call has anyway.
func (c *call) value(place int, v string) []string {
	c.values[place] = v
	return c.values[place : place+1 : place+1]
}

// turnAway answers a request that is not routed. Its class is that of its method:
// what may write is told what a writer must know.
func (c *call) turnAway(err error) {
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		c.class = writing
	}
	c.w.Header().Set("Connection", "close")
	c.refuse(err)
}

// NewRequestID gives an id to a request that has none: a UUIDv4 that tells requests apart, and that
// is no secret.
func NewRequestID() string {
	var id uuid.UUID
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, variant of RFC 9562
	return id.String()
}

// IsRequestID tells whether an id that a client chose is fit for logs and headers:
// 1 to 128 visible ASCII characters, none of which a log would escape.
func IsRequestID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// call is one request on its way through its handler. One goroutine uses it.
type call struct {
	h   *Handler
	ctx context.Context // request
	w   http.ResponseWriter
	r   *http.Request
	id  string

	request requestContext
	values  [headerCount]string // of headers of the answer

	class    class // what the error table goes by; of the route, unless the body says more
	path     pathValues
	query    url.Values
	answered bool
	body     []byte // decompressed, once it was read
	counted  int64  // bytes of the body that were taken from the budget
}

// sameOrigin lets everything pass that no browser sends, and what changes nothing.
var sameOrigin = http.NewCrossOriginProtection()

// serve routes the request and runs its handler.
func (c *call) serve() error {
	route, values, err := c.h.router.find(c.r.Method, rawPath(c.r.URL))
	if route == nil {
		if allowed, ok := allowedMethods(err); ok {
			c.w.Header().Set("Allow", allowed)
		}
		return err
	}
	c.r.Pattern = route.name
	c.class = route.class
	if err != nil {
		return err
	}
	// Some changes have no body, and so no type of body that a browser would ask about before.
	if err := sameOrigin.Check(c.r); err != nil {
		return refuse(errCrossOrigin, "A browser sends this request on behalf of another site: %v; no site but the server's own may change anything here", err)
	}
	c.path = values
	if c.r.URL.RawQuery != "" {
		if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
			return refuse(errMalformed, "Cannot read the query of the URL: %v", err)
		}
	}
	return route.handle(c)
}

// do runs an operation on behalf of the request.
func (c *call) do(op kernel.Operation) error {
	ctx := c.ctx
	if c.class != reading { // what reads holds nothing, and queues for nothing
		ctx = c.owned(ctx, op.Plan().Op)
	}
	return c.h.opt.Runner.Do(ctx, op)
}

// owned is ctx with the request as the owner of the locks acquired under it.
func (c *call) owned(ctx context.Context, op string) context.Context {
	return lock.WithOwner(ctx, lock.Owner{Op: op, RequestID: c.id, Client: c.r.RemoteAddr})
}

// recover answers for a handler that panicked. Nothing is known about a change
// that it was making, and the client is told so.
func (c *call) recover() {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	c.h.opt.Log.ErrorContext(c.ctx, "panic in a handler", "route", c.r.Pattern,
		"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if !c.answered {
		c.refuse(errPanic)
	}
}

// mustExist refuses unless the warehouse, the namespace and the table or view that
// the path names exist.
func (c *call) mustExist() error {
	switch {
	case c.path.view:
		return c.do(&catalog.ViewExists{Request: c.viewRequest()})
	case c.path.table != "":
		return c.do(&catalog.TableExists{Request: catalog.TableExistsRequest{Warehouse: c.path.warehouse, Table: c.path.ident()}})
	case len(c.path.namespace) > 0:
		return c.do(&catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: c.path.warehouse, Levels: c.path.namespace}})
	}
	return c.do(&catalog.GetWarehouse{Request: catalog.GetWarehouseRequest{Name: c.path.warehouse}})
}

// exists answers whether what the path names exists.
func (c *call) exists() error {
	if err := c.mustExist(); err != nil {
		return err
	}
	return c.done()
}

// afterExistence is the refusal of a well-formed request for a fault that this
// package found, unless what the path names does not exist: that comes first.
func (c *call) afterExistence(fault error) error {
	if err := c.mustExist(); err != nil {
		return err
	}
	return fault
}

// parameter is a query parameter that may be given once.
func (c *call) parameter(name string) (value string, given bool, err error) {
	values := c.query[name]
	if len(values) > 1 {
		return "", true, refuse(catalog.ErrInvalid, "Invalid query: %s is given %d times", name, len(values))
	}
	if len(values) == 0 {
		return "", false, nil
	}
	return values[0], true, nil
}

// flag is a query parameter that is true or false; absent, it is false.
func (c *call) flag(name string) (bool, error) {
	value, given, err := c.parameter(name)
	if err != nil || !given {
		return false, err
	}
	switch { // PyIceberg sends True and False
	case strings.EqualFold(value, "true"):
		return true, nil
	case strings.EqualFold(value, "false"):
		return false, nil
	}
	return false, refuse(catalog.ErrInvalid, "Invalid %s %q: it must be true or false", name, value)
}
