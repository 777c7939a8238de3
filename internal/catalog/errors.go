package catalog

import (
	"errors"
	"fmt"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/tablemeta"
)

// Kinds of refusal. An operation that refuses returns a *Error of one of them;
// nothing was applied.
var (
	ErrNoSuchWarehouse = errors.New("no such warehouse")
	ErrNoSuchNamespace = errors.New("no such namespace")
	ErrNoSuchTable     = errors.New("no such table")
	ErrNoSuchView      = errors.New("no such view")
	// ErrMissingFile: a metadata file that a pointer or a request names is not there, or is going.
	ErrMissingFile   = errors.New("missing file")
	ErrAlreadyExists = errors.New("already exists")
	ErrNotEmpty      = errors.New("not empty")
	// ErrInvalid: the request can never succeed as it is.
	ErrInvalid = errors.New("invalid argument")
	// ErrUnprocessable: the parts of the request contradict each other, or what is there.
	ErrUnprocessable = errors.New("unprocessable")
	// ErrRequirement: a requirement of a commit does not hold.
	ErrRequirement = errors.New("requirement failed")
	// ErrStale: the commit was made against an older state than the current one.
	ErrStale = errors.New("stale commit")
	// ErrDamaged: a metadata file is there, and cannot be used as that of a table or view.
	ErrDamaged = errors.New("damaged metadata")
	// ErrWarehouseUnavailable: the files of a warehouse are not where they should be.
	ErrWarehouseUnavailable = errors.New("warehouse unavailable")
)

var (
	// errTableExists is ErrAlreadyExists of a table, not a view.
	errTableExists = fmt.Errorf("table %w", ErrAlreadyExists)
	// errOverlap is ErrInvalid of a location that belongs to another.
	errOverlap = fmt.Errorf("overlapping location: %w", ErrInvalid)
)

// Error is a refusal: a kind and the sentence that the client sees.
type Error struct {
	Kind    error
	Message string
}

func (e *Error) Error() string { return e.Message }

// Unwrap makes errors.Is find the kind.
func (e *Error) Unwrap() error { return e.Kind }

func refuse(kind error, format string, args ...any) *Error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

func noSuchWarehouse(name string) *Error {
	return refuse(ErrNoSuchWarehouse, "Warehouse does not exist: %s", name)
}

func noSuchNamespace(levels []string) *Error {
	return refuse(ErrNoSuchNamespace, "Namespace does not exist: %s", dotted(levels))
}

func noSuch(kind Kind, t Ident) *Error {
	if kind == KindView {
		return refuse(ErrNoSuchView, "View does not exist: %s", t)
	}
	return refuse(ErrNoSuchTable, "Table does not exist: %s", t)
}

// fromMetadata turns what tablemeta refuses with into a refusal; other errors pass.
func fromMetadata(err error) error {
	var (
		invalid     *tablemeta.InvalidError
		stale       *tablemeta.StaleError
		requirement *tablemeta.RequirementError
	)
	switch {
	case errors.As(err, &requirement):
		return refuse(ErrRequirement, "%s", requirement.Error())
	case errors.As(err, &stale):
		return refuse(ErrStale, "%s", stale.Error())
	case errors.As(err, &invalid):
		return refuse(ErrInvalid, "%s", invalid.Error())
	}
	return err
}

// fromLocation turns what blob refuses a location with into a refusal that says
// what the location was for; other errors pass.
func fromLocation(what string, err error) error {
	var bad *blob.LocationError
	if errors.As(err, &bad) {
		return refuse(ErrInvalid, "Invalid %s %q: %s; %s", what, bad.Location, bad.Problem, bad.Remedy)
	}
	return err
}
