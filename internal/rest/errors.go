package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// Kinds of refusal that this package adds to those of package catalog. They are
// carried by a *catalog.Error, too, and never leave the package.
var (
	// errMalformed: the request cannot be read.
	errMalformed = errors.New("malformed request")
	// errNoEndpoint: no route has this path.
	errNoEndpoint = errors.New("no such endpoint")
	// errMethod: the path has no route for this method.
	errMethod = errors.New("method not allowed")
	// errTooLarge: the body is longer than Options.MaxBodyBytes.
	errTooLarge = errors.New("body too large")
	// errMediaType: the body is not JSON, or is encoded in a way that is not supported.
	errMediaType = errors.New("unsupported media type")
	// errTooSlow: the body did not arrive before the request's deadline.
	errTooSlow = errors.New("body too slow")
	// errNoSuchFunction: there is no function at all.
	errNoSuchFunction = errors.New("no such function")
	// errWarehouseNotEmpty is catalog.ErrNotEmpty of a warehouse.
	errWarehouseNotEmpty = errors.New("warehouse not empty")
	// errStopping: the server takes no new requests.
	errStopping = errors.New("server is stopping")
	// errMisdirected: the request is for a host that this server is not.
	errMisdirected = errors.New("misdirected request")
	// errCrossOrigin: a browser sends the request on behalf of another site.
	errCrossOrigin = errors.New("cross-origin request")
	// errCrowded: the bodies of other requests take the memory that this one needs.
	errCrowded = fmt.Errorf("%w: the bodies in memory are as large as all together may be", kernel.ErrOverloaded)
	// errPanic: a handler panicked.
	errPanic = errors.New("panic in a handler")
)

func refuse(kind error, format string, args ...any) *catalog.Error {
	return &catalog.Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// answer is the status and the type that an error has for one class of routes.
type answer struct {
	status int
	// kind is the `type` of the error body. Java's client tells some of them apart
	// by name, and the others by status.
	kind string
	// again sends Retry-After: nothing was changed, and the same request may do better.
	again bool
}

// errorRow says what an error looks like to a client.
type errorRow struct {
	err    error // what errors.Is must find
	read   answer
	write  answer
	commit answer
	// message is shown in place of the error's own, which is logged instead, at
	// level. Empty: the error's own is a sentence for the client. %s is the request's id.
	message string
	level   slog.Level
}

// everywhere is a row with one answer for all classes.
func everywhere(err error, status int, kind string) errorRow {
	a := answer{status: status, kind: kind}
	return errorRow{err: err, read: a, write: a, commit: a}
}

// statusClientGone is what nginx logs for a client that did not wait. Nobody reads it.
const statusClientGone = 499

var (
	slowDown = answer{http.StatusServiceUnavailable, "SlowDownException", true}
	tooMany  = answer{http.StatusTooManyRequests, "TooManyRequestsException", true}
	failed   = answer{http.StatusConflict, "CommitFailedException", false}
	unknown  = answer{http.StatusInternalServerError, "CommitStateUnknownException", false}
	internal = answer{http.StatusInternalServerError, "InternalServerError", false}
	fullDisk = answer{http.StatusInsufficientStorage, "InsufficientStorageException", false}
)

const (
	messageBusy     = "The server is busy and has changed nothing: try again (request %s)"
	messageAway     = "The catalog's store cannot be reached, and nothing was changed: try again (request %s)"
	messageStopping = "The server is stopping and has changed nothing: try again (request %s)"
)

// errorTable is tried from top to bottom: an error that wraps several belongs to
// the first row that finds one. The last row fits every error.
//
// What Iceberg's clients conclude shapes it. On a commit they take 409 for "not
// applied, refresh and try again", and every 5xx, 503 included, for "unknown": so
// no write answers 5xx for what certainly did not happen, where another status is
// understood. On a create they take 409 for "exists already" and on a drop for "not
// empty": so contention there is 429, which they repeat as it is.
var errorTable = []errorRow{
	{err: store.ErrOutcomeUnknown, read: internal, write: unknown, commit: unknown, level: slog.LevelError,
		message: "It is not known whether the change was made: look before you try again (request %s)"},
	{err: errPanic, read: internal, write: unknown, commit: unknown, level: slog.LevelError,
		message: "The server failed, and whether a change was made is not known: look before you try again; its log tells more under request %s"},
	everywhere(context.Canceled, statusClientGone, "ClientClosedRequestException"),

	everywhere(errNoEndpoint, http.StatusNotFound, "NoSuchEndpointException"),
	everywhere(errMethod, http.StatusMethodNotAllowed, "MethodNotAllowedException"),
	everywhere(errMalformed, http.StatusBadRequest, "BadRequestException"),
	everywhere(errMediaType, http.StatusUnsupportedMediaType, "UnsupportedMediaTypeException"),
	everywhere(errTooLarge, http.StatusRequestEntityTooLarge, "RequestTooLargeException"),
	everywhere(errTooSlow, http.StatusRequestTimeout, "RequestTimeoutException"),
	everywhere(errMisdirected, http.StatusMisdirectedRequest, "MisdirectedRequestException"),
	everywhere(errCrossOrigin, http.StatusForbidden, "ForbiddenException"),
	everywhere(errWarehouseNotEmpty, http.StatusConflict, "WarehouseNotEmptyException"),

	everywhere(catalog.ErrNoSuchWarehouse, http.StatusNotFound, "NoSuchWarehouseException"),
	everywhere(catalog.ErrNoSuchNamespace, http.StatusNotFound, "NoSuchNamespaceException"),
	everywhere(catalog.ErrNoSuchTable, http.StatusNotFound, "NoSuchTableException"),
	everywhere(catalog.ErrNoSuchView, http.StatusNotFound, "NoSuchViewException"),
	everywhere(errNoSuchFunction, http.StatusNotFound, "NoSuchFunctionException"),
	everywhere(catalog.ErrMissingFile, http.StatusNotFound, "NotFoundException"),
	everywhere(catalog.ErrAlreadyExists, http.StatusConflict, "AlreadyExistsException"),
	everywhere(catalog.ErrNotEmpty, http.StatusConflict, "NamespaceNotEmptyException"),
	everywhere(catalog.ErrInvalid, http.StatusBadRequest, "IllegalArgumentException"),
	everywhere(store.ErrUnstorable, http.StatusBadRequest, "IllegalArgumentException"),
	everywhere(catalog.ErrUnprocessable, http.StatusUnprocessableEntity, "UnprocessableEntityException"),
	everywhere(catalog.ErrRequirement, http.StatusConflict, "CommitFailedException"),
	everywhere(catalog.ErrStale, http.StatusConflict, "CommitFailedException"),
	everywhere(catalog.ErrDamaged, http.StatusUnprocessableEntity, "DamagedMetadataException"),
	{err: catalog.ErrWarehouseUnavailable,
		read:   answer{http.StatusServiceUnavailable, "WarehouseUnavailableException", true},
		write:  answer{http.StatusUnprocessableEntity, "WarehouseUnavailableException", false},
		commit: answer{http.StatusUnprocessableEntity, "WarehouseUnavailableException", false}},

	// A file that a client placed where a symbolic link leads out of the warehouse, or below another file.
	everywhere(blob.ErrOutside, http.StatusBadRequest, "IllegalArgumentException"),
	everywhere(blob.ErrBelowFile, http.StatusBadRequest, "IllegalArgumentException"),

	{err: blob.ErrFull, read: fullDisk, write: fullDisk, commit: fullDisk, level: slog.LevelError,
		message: "There is no space left for files; nothing was changed (request %s)"},
	{err: store.ErrFull, read: fullDisk, write: fullDisk, commit: fullDisk, level: slog.LevelError,
		message: "There is no space left in the catalog's store; nothing was changed (request %s)"},

	{err: kernel.ErrOverloaded, read: tooMany, write: tooMany, commit: tooMany, level: slog.LevelWarn, message: messageBusy},
	{err: lock.ErrQueueFull, read: tooMany, write: tooMany, commit: tooMany, level: slog.LevelWarn, message: messageBusy},
	{err: store.ErrUnavailable, read: slowDown, write: tooMany, commit: tooMany, level: slog.LevelWarn, message: messageAway},
	{err: errStopping, read: slowDown, write: tooMany, commit: tooMany, level: slog.LevelDebug, message: messageStopping},
	{err: lock.ErrClosed, read: slowDown, write: tooMany, commit: tooMany, level: slog.LevelInfo, message: messageBusy},
	{err: store.ErrClosed, read: slowDown, write: tooMany, commit: tooMany, level: slog.LevelWarn, message: messageBusy},

	contended(kernel.ErrContended),
	contended(lock.ErrBusy),
	contended(lock.ErrTimeout),
	contended(lock.ErrLost),
	contended(lock.ErrReleased),
	contended(context.DeadlineExceeded),

	definite(kernel.ErrUpload),
	definite(nil),
}

// contended: the request's time or tries were spent with nothing changed.
func contended(err error) errorRow {
	return errorRow{err: err, read: slowDown, write: tooMany, commit: failed, level: slog.LevelInfo,
		message: "The request met too many others and has changed nothing: try again (request %s)"}
}

// definite: something broke, and nothing was changed.
func definite(err error) errorRow {
	return errorRow{err: err, read: internal, write: internal, commit: failed, level: slog.LevelError,
		message: "The server failed and has changed nothing; its log tells more under request %s"}
}

// rowFor finds the row of an error.
func rowFor(err error) *errorRow {
	last := len(errorTable) - 1
	for i := range errorTable[:last] {
		if errors.Is(err, errorTable[i].err) {
			return &errorTable[i]
		}
	}
	return &errorTable[last]
}

// answer is the answer for a class of routes.
func (row *errorRow) answer(c class) answer {
	switch c {
	case committing:
		return row.commit
	case writing:
		return row.write
	}
	return row.read
}

// retryAfter is how long a client is asked to wait, in seconds, the shortest
// that the header can say: what was in the way is rarely there for longer.
const retryAfter = 1

// refuse answers with an error.
func (c *call) refuse(err error) {
	row := rowFor(err)
	a := row.answer(c.class)
	message := ownMessage(err)
	if row.message != "" {
		message = fmt.Sprintf(row.message, c.id)
		c.h.opt.Log.Log(c.ctx, row.level, "request failed", "route", c.r.Pattern, "status", a.status, "error", err)
	}
	if a.again {
		c.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if errors.Is(err, errTooLarge) || errors.Is(err, errTooSlow) {
		c.w.Header().Set("Connection", "close") // the rest of the body is still to come
	}
	// A message may quote a path that is not UTF-8, which JSON cannot hold.
	message = strings.ToValidUTF8(excerpt(message), "\uFFFD")
	c.send(a.status, errorBody{errorModel{Message: message, Type: a.kind, Code: a.status}})
}

// messageMax bounds a message, in bytes: it may quote what the client sent.
const messageMax = 2000

// excerpt leaves out the middle of a message that is too long: what is wrong stands at
// its beginning, and what to do at its end.
func excerpt(message string) string {
	if len(message) <= messageMax {
		return message
	}
	return message[:messageMax/2] + " [...] " + message[len(message)-messageMax/2:]
}

// ownMessage is the sentence of a refusal, without what wrapped it on its way.
func ownMessage(err error) string {
	var (
		refusal  *catalog.Error
		location *blob.LocationError
	)
	switch {
	case errors.As(err, &refusal):
		return refusal.Message
	case errors.As(err, &location):
		return location.Error()
	}
	return err.Error()
}

type errorBody struct {
	Error errorModel `json:"error"`
}

type errorModel struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    int    `json:"code"`
}
