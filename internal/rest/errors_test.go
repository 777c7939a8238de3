package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

// exportedErrors are the errors of the floors below, by name. TestErrorsHaveRows
// finds those that are missing here.
var exportedErrors = map[string]error{
	"store.ErrInvalidBatch":   store.ErrInvalidBatch,
	"store.ErrOutcomeUnknown": store.ErrOutcomeUnknown,
	"store.ErrFull":           store.ErrFull,
	"store.ErrUnavailable":    store.ErrUnavailable,
	"store.ErrUnstorable":     store.ErrUnstorable,
	"store.ErrClosed":         store.ErrClosed,
	"store.ErrMismatch":       store.ErrMismatch,

	"lock.ErrBusy":      lock.ErrBusy,
	"lock.ErrTimeout":   lock.ErrTimeout,
	"lock.ErrQueueFull": lock.ErrQueueFull,
	"lock.ErrClosed":    lock.ErrClosed,
	"lock.ErrLost":      lock.ErrLost,
	"lock.ErrReleased":  lock.ErrReleased,

	"kernel.ErrAgain":      kernel.ErrAgain,
	"kernel.ErrContended":  kernel.ErrContended,
	"kernel.ErrBlocked":    kernel.ErrBlocked,
	"kernel.ErrOverloaded": kernel.ErrOverloaded,
	"kernel.ErrUpload":     kernel.ErrUpload,

	"blob.ErrNotFound":    blob.ErrNotFound,
	"blob.ErrExists":      blob.ErrExists,
	"blob.ErrTooLarge":    blob.ErrTooLarge,
	"blob.ErrNotRegular":  blob.ErrNotRegular,
	"blob.ErrFull":        blob.ErrFull,
	"blob.ErrBelowFile":   blob.ErrBelowFile,
	"blob.ErrUncertain":   blob.ErrUncertain,
	"blob.ErrOutside":     blob.ErrOutside,
	"blob.ErrMarkMissing": blob.ErrMarkMissing,

	"catalog.ErrNoSuchWarehouse":      catalog.ErrNoSuchWarehouse,
	"catalog.ErrNoSuchNamespace":      catalog.ErrNoSuchNamespace,
	"catalog.ErrNoSuchTable":          catalog.ErrNoSuchTable,
	"catalog.ErrNoSuchView":           catalog.ErrNoSuchView,
	"catalog.ErrMissingFile":          catalog.ErrMissingFile,
	"catalog.ErrAlreadyExists":        catalog.ErrAlreadyExists,
	"catalog.ErrNotEmpty":             catalog.ErrNotEmpty,
	"catalog.ErrInvalid":              catalog.ErrInvalid,
	"catalog.ErrUnprocessable":        catalog.ErrUnprocessable,
	"catalog.ErrRequirement":          catalog.ErrRequirement,
	"catalog.ErrStale":                catalog.ErrStale,
	"catalog.ErrDamaged":              catalog.ErrDamaged,
	"catalog.ErrWarehouseUnavailable": catalog.ErrWarehouseUnavailable,
}

// internalErrors need no row: whoever meets one turns it into another, and what
// gets through is a fault of the server, which the last row says.
var internalErrors = map[string]string{
	"kernel.ErrAgain":       "the kernel decides again; it never leaves Do",
	"store.ErrInvalidBatch": "a bug in an operation; the kernel panics before",
	"store.ErrMismatch":     "of a bucket; package txn turns it into a conflict, or tries again",
	"blob.ErrNotFound":      "catalog says ErrMissingFile",
	"blob.ErrExists":        "file names are fresh: a fault",
	"blob.ErrTooLarge":      "catalog says ErrDamaged",
	"blob.ErrNotRegular":    "catalog says ErrDamaged",
	"blob.ErrUncertain":     "the kernel says ErrUpload",
	"blob.ErrMarkMissing":   "catalog says ErrWarehouseUnavailable",
}

// TestErrorsHaveRows: every exported error of the floors below has a row of its
// own in the error table, or is listed with the reason why it needs none.
func TestErrorsHaveRows(t *testing.T) {
	found := map[string]bool{}
	for _, pkg := range []string{"store", "lock", "kernel", "blob", "catalog"} {
		for _, name := range exportedErrorNames(t, filepath.Join("..", pkg)) {
			found[pkg+"."+name] = true
		}
	}
	if len(found) < 20 {
		t.Fatalf("found only %d errors", len(found))
	}
	last := &errorTable[len(errorTable)-1]
	for name := range found {
		err, known := exportedErrors[name]
		if !known {
			t.Errorf("%s is new: give it a row in errorTable, or a reason in internalErrors, and add it to this test", name)
			continue
		}
		_, isInternal := internalErrors[name]
		if hasRow := rowFor(err) != last; hasRow == isInternal {
			t.Errorf("%s: has a row: %v, is listed as internal: %v", name, hasRow, isInternal)
		}
	}
	for name := range exportedErrors {
		if !found[name] {
			t.Errorf("%s is gone", name)
		}
	}
}

func exportedErrorNames(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.VAR {
				continue
			}
			for _, s := range decl.Specs {
				for _, name := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

// scripted is a Runner that answers every operation with one error.
type scripted struct{ err error }

func (s scripted) Do(context.Context, kernel.Operation) error { return s.err }

// probes are one request of each class, and what the class is called.
var probes = []struct {
	class, method, path, body string
}{
	{"read", "GET", "/v1/namespaces/a/tables/t", ""},
	{"write", "DELETE", "/v1/namespaces/a/tables/t", ""},
	{"commit", "POST", "/v1/namespaces/a/tables/t", `{"requirements":[],"updates":[]}`},
	{"create commit", "POST", "/v1/namespaces/a/tables/t", `{"requirements":[{"type":"assert-create"}],"updates":[]}`},
}

// TestErrorTable shows what each error looks like to each class of client, also
// when it is wrapped as the floors below wrap it.
func TestErrorTable(t *testing.T) {
	const (
		slow       = "503 SlowDownException Retry-After"
		many       = "429 TooManyRequestsException Retry-After"
		conflict   = "409 CommitFailedException"
		unknowable = "500 CommitStateUnknownException"
		broken     = "500 InternalServerError"
		full       = "507 InsufficientStorageException"
	)
	same := func(s string) [4]string { return [4]string{s, s, s, s} }
	kind := func(err error) error { return &catalog.Error{Kind: err, Message: "shown"} }
	for _, tc := range []struct {
		name string
		err  error
		want [4]string // in the order of probes
	}{
		{"warehouse", kind(catalog.ErrNoSuchWarehouse), same("404 NoSuchWarehouseException")},
		{"namespace", kind(catalog.ErrNoSuchNamespace), same("404 NoSuchNamespaceException")},
		{"table", kind(catalog.ErrNoSuchTable), same("404 NoSuchTableException")},
		{"file", kind(catalog.ErrMissingFile), same("404 NotFoundException")},
		{"exists", kind(catalog.ErrAlreadyExists), same("409 AlreadyExistsException")},
		{"not empty", kind(catalog.ErrNotEmpty), same("409 NamespaceNotEmptyException")},
		{"invalid", kind(catalog.ErrInvalid), same("400 IllegalArgumentException")},
		{"unprocessable", kind(catalog.ErrUnprocessable), same("422 UnprocessableEntityException")},
		{"requirement", kind(catalog.ErrRequirement), same(conflict)},
		{"stale", kind(catalog.ErrStale), same(conflict)},
		{"damaged", kind(catalog.ErrDamaged), same("422 DamagedMetadataException")},
		{"unmounted", kind(catalog.ErrWarehouseUnavailable), [4]string{
			"503 WarehouseUnavailableException Retry-After", "422 WarehouseUnavailableException", "422 WarehouseUnavailableException", "422 WarehouseUnavailableException"}},
		{"wrapped refusal", fmt.Errorf("somewhere: %w", kind(catalog.ErrNoSuchTable)), same("404 NoSuchTableException")},

		{"unknown", store.ErrOutcomeUnknown, [4]string{broken, unknowable, unknowable, unknowable}},
		{"unknown after a timeout", fmt.Errorf("batch 1: %w (asked again: %w)", store.ErrOutcomeUnknown, context.DeadlineExceeded),
			[4]string{broken, unknowable, unknowable, unknowable}},
		{"unknown after the client went", fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, context.Canceled),
			[4]string{broken, unknowable, unknowable, unknowable}},
		{"contended", kernel.ErrContended, [4]string{slow, many, conflict, many}},
		{"contended in a queue", fmt.Errorf("%w: %w", kernel.ErrContended, lock.ErrTimeout), [4]string{slow, many, conflict, many}},
		{"time spent", fmt.Errorf("%w: %w", kernel.ErrContended, context.DeadlineExceeded), [4]string{slow, many, conflict, many}},
		{"bare deadline", context.DeadlineExceeded, [4]string{slow, many, conflict, many}},
		{"blocked", fmt.Errorf("%w by another, 3 times in 30s", kernel.ErrBlocked), [4]string{slow, many, conflict, many}},
		{"store away", fmt.Errorf("%w: file:///x: input", store.ErrUnavailable), [4]string{slow, many, many, many}},
		{"store away, and nobody knows", fmt.Errorf("%w (asked again: %w)", store.ErrOutcomeUnknown, store.ErrUnavailable),
			[4]string{broken, unknowable, unknowable, unknowable}},
		{"unstorable", fmt.Errorf("%w: the key has 3000 bytes (at most 2600)", store.ErrUnstorable), same("400 IllegalArgumentException")},
		{"overloaded", fmt.Errorf("%w: %w", kernel.ErrOverloaded, lock.ErrQueueFull), same(many)},
		{"crowded", errCrowded, same(many)},
		{"stopping", store.ErrClosed, [4]string{slow, many, many, many}},
		{"full disk", fmt.Errorf("%w: file:///x: %w", kernel.ErrUpload, blob.ErrFull), same(full)},
		{"full store", fmt.Errorf("apply: %w", store.ErrFull), same(full)},
		{"upload", fmt.Errorf("%w: file:///x: input/output error", kernel.ErrUpload), [4]string{broken, broken, conflict, broken}},
		{"link out of the warehouse", fmt.Errorf("%w: f: %w", kernel.ErrUpload, &blob.LocationError{
			Location: "file:///x", Problem: "a link leads out", Remedy: "remove it", Err: blob.ErrOutside}), same("400 IllegalArgumentException")},
		{"anything else", errors.New("secret"), [4]string{broken, broken, conflict, broken}},
		{"client gone", fmt.Errorf("read: %w", context.Canceled), same("499 ClientClosedRequestException")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := &syncBuffer{}
			h := New(Options{Runner: scripted{tc.err}, Reclaimer: noReclaim{}, Roots: noFiles{},
				WarehouseRoot: func(string) string { return "" }, Log: slog.New(slog.NewTextHandler(log, nil))})
			var got [4]string
			for i, p := range probes {
				rec := httptest.NewRecorder()
				r := httptest.NewRequest(p.method, p.path, strings.NewReader(p.body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set(RequestIDHeader, "the-request")
				h.ServeHTTP(rec, r)
				var body errorBody
				if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
					t.Fatal(err)
				}
				got[i] = fmt.Sprintf("%d %s", rec.Code, body.Error.Type)
				if rec.Header().Get("Retry-After") != "" {
					got[i] += " Retry-After"
				}
				if body.Error.Code != rec.Code {
					t.Errorf("the body says %d, the status %d", body.Error.Code, rec.Code)
				}
				if strings.Contains(body.Error.Message, "secret") || strings.Contains(body.Error.Message, "file:///x: input") {
					t.Errorf("the client sees the cause: %s", body.Error.Message)
				}
				if row := rowFor(tc.err); row.message != "" && !strings.Contains(body.Error.Message, "the-request") {
					t.Errorf("a message that hides the cause does not name the request: %s", body.Error.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("read, write, commit, create commit: -want +got\n%s", diff)
			}
			if row := rowFor(tc.err); (row.message != "") != strings.Contains(log.String(), "request failed") {
				t.Errorf("what is hidden from the client, and only that, belongs into the log:\n%s", log)
			}
		})
	}
}

// TestWritesNeverAnswer503: Java takes 503 for an unknown outcome.
func TestWritesNeverAnswer503(t *testing.T) {
	for _, row := range errorTable {
		for _, a := range []answer{row.write, row.commit} {
			if a.status == http.StatusServiceUnavailable {
				t.Errorf("%v: a write answers 503", row.err)
			}
			if a.again && a.status != http.StatusTooManyRequests {
				t.Errorf("%v: a write asks for a retry with %d", row.err, a.status)
			}
		}
		for _, a := range []answer{row.read, row.write, row.commit} {
			if a.status == 0 || a.kind == "" {
				t.Errorf("%v has no answer for some class", row.err)
			}
		}
	}
}

// noFiles are files and roots that no test of refusals touches.
type noFiles struct{}

func (noFiles) Delete(context.Context, blob.Scope, string) error { panic("deleted") }
func (noFiles) Resolve(context.Context, string, blob.S3Options) (blob.Root, error) {
	panic("resolved")
}
func (noFiles) Mark(context.Context, blob.Root, string) error { panic("marked") }
func (noFiles) CheckMark(context.Context, blob.Root, string) error {
	panic("checked")
}
