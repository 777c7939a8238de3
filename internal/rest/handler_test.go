package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
)

// runnerFunc is a Runner made of a function.
type runnerFunc func(context.Context, kernel.Operation) error

func (f runnerFunc) Do(ctx context.Context, op kernel.Operation) error { return f(ctx, op) }

func newHandler(run runnerFunc, timeout time.Duration, log *syncBuffer) *Handler {
	return New(Options{Runner: run, Reclaimer: noReclaim{}, Roots: noFiles{}, WarehouseRoot: func(string) string { return "" },
		RequestTimeout: timeout, Log: slog.New(slog.NewTextHandler(log, nil))})
}

func serve(h http.Handler, method, target, body string, headers ...string) (*httptest.ResponseRecorder, *http.Request) {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, r
}

// TestPattern: a wrapper reads the route from the request it passed on, without
// any name that a client chose, and nothing where no route matches.
func TestPattern(t *testing.T) {
	h := newHandler(func(context.Context, kernel.Operation) error { return nil }, time.Minute, &syncBuffer{})
	for request, want := range map[string]string{
		"HEAD /v1/namespaces/secret/tables/secret":         "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
		"DELETE /v1/secret/namespaces/secret":              "DELETE /v1/{prefix}/namespaces/{namespace}",
		"GET /v1/secret/namespaces/x?pageSize=0":           "GET /v1/{prefix}/namespaces/{namespace}",
		"DELETE /management/v1/warehouses/secret":          "DELETE /management/v1/warehouses/{warehouse}",
		"GET /v1/secret":                                   "",
		"PUT /v1/namespaces/secret":                        "",
		"POST /v1/namespaces/secret/tables/secret/metrics": "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
	} {
		method, target, _ := strings.Cut(request, " ")
		if _, r := serve(h, method, target, ""); r.Pattern != want {
			t.Errorf("%s: pattern %q, want %q", request, r.Pattern, want)
		}
	}
}

// TestOwnerAndDeadline: every operation runs under the request's deadline and in
// the request's name.
func TestOwnerAndDeadline(t *testing.T) {
	var owner lock.Owner
	var left time.Duration
	h := newHandler(func(ctx context.Context, op kernel.Operation) error {
		owner = lock.OwnerFrom(ctx)
		if d, ok := ctx.Deadline(); ok {
			left = time.Until(d)
		}
		return nil
	}, time.Minute, &syncBuffer{})
	w, r := serve(h, "DELETE", "/v1/namespaces/a/tables/t", "", RequestIDHeader, "id-1")
	if diff := cmp.Diff(lock.Owner{Op: "drop-table", RequestID: "id-1", Client: r.RemoteAddr}, owner); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if left <= 0 || left > time.Minute {
		t.Errorf("%v are left of the request's time", left)
	}
	if w.Code != 204 || w.Header().Get(RequestIDHeader) != "id-1" || w.Header().Get("Content-Type") != "" || w.Body.Len() > 0 {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestRequestID(t *testing.T) {
	h := newHandler(func(context.Context, kernel.Operation) error { return nil }, time.Minute, &syncBuffer{})
	h.newID = func() string { return "fresh" }
	for sent, want := range map[string]string{
		"": "fresh", "abc-1": "abc-1", "with space": "fresh", "tab\t": "fresh", "é": "fresh", `quoted"`: "fresh", `back\slash`: "fresh",
		strings.Repeat("x", 128): strings.Repeat("x", 128), strings.Repeat("x", 129): "fresh",
	} {
		if w, _ := serve(h, "HEAD", "/v1/namespaces/a", "", RequestIDHeader, sent); w.Header().Get(RequestIDHeader) != want {
			t.Errorf("sent %q: got %q, want %q", sent, w.Header().Get(RequestIDHeader), want)
		}
	}
}

// TestDeadlineEnds: an operation that does not end by itself ends with the
// request's time, and each client hears what it can use.
func TestDeadlineEnds(t *testing.T) {
	h := newHandler(func(ctx context.Context, op kernel.Operation) error {
		<-ctx.Done()
		return ctx.Err()
	}, time.Millisecond, &syncBuffer{})
	var got []int
	for _, p := range probes {
		// The body is there at once, and the deadline passes afterwards.
		w, _ := serve(h, p.method, p.path, p.body)
		got = append(got, w.Code)
	}
	if diff := cmp.Diff([]int{503, 429, 409, 429}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestClientGone: the operation of a client that went away is cancelled.
func TestClientGone(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	h := newHandler(func(ctx context.Context, op kernel.Operation) error {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}, time.Minute, &syncBuffer{})
	server := httptest.NewServer(h)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	body := `{"requirements":[],"updates":[]}`
	r, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/namespaces/a/tables/t", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err == nil {
		res.Body.Close()
		t.Error("the client got an answer")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the operation ended with %v", err)
	}
}

// TestPanic: a handler that panics answers, once, with what its client may
// conclude; the log has the stack, and the client has not.
func TestPanic(t *testing.T) {
	log := &syncBuffer{}
	h := newHandler(func(context.Context, kernel.Operation) error { panic("secret") }, time.Minute, log)
	var got []string
	for _, p := range probes {
		w, _ := serve(h, p.method, p.path, p.body, RequestIDHeader, "the-request")
		var body errorBody
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 500 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		if strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), "the-request") {
			t.Errorf("%s", w.Body)
		}
		got = append(got, body.Error.Type)
	}
	want := []string{"InternalServerError", "CommitStateUnknownException", "CommitStateUnknownException", "CommitStateUnknownException"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "TestPanic") {
		t.Errorf("the log has no stack:\n%s", log)
	}
	aborting := newHandler(func(context.Context, kernel.Operation) error { panic(http.ErrAbortHandler) }, time.Minute, log)
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("ErrAbortHandler came back as %v", v)
		}
	}()
	serve(aborting, "GET", "/v1/config", "")
}

const tableSchema = `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}`

// seaWithTable makes the namespace sea and the table sea.t.
func (s *stack) seaWithTable() {
	s.Helper()
	s.must("POST /v1/namespaces\n\n" + `{"namespace":["sea"]}`)
	s.must("POST /v1/namespaces/sea/tables\n\n" + `{"name":"t","schema":` + tableSchema + `}`)
}

const setProperty = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}`

// unmount leaves of the warehouse main the empty directory that its volume was mounted on.
func unmount(s *stack) {
	s.Helper()
	if err := os.Rename(filepath.Join(s.root, "main"), filepath.Join(s.root, "elsewhere")); err != nil {
		s.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.root, "main"), 0o700); err != nil {
		s.Fatal(err)
	}
}

// TestBrokenWorld: a disk, a store or a volume that fails gives each client the
// answer that lets it do the right thing, and changes nothing.
func TestBrokenWorld(t *testing.T) {
	const (
		load      = "GET /v1/namespaces/sea/tables/t"
		commit    = "POST /v1/namespaces/sea/tables/t\n\n" + setProperty
		create    = "POST /v1/namespaces/sea/tables\n\n" + `{"name":"u","schema":` + tableSchema + `}`
		rename    = "POST /v1/tables/rename\n\n" + `{"source":{"namespace":["sea"],"name":"t"},"destination":{"namespace":["sea"],"name":"v"}}`
		namespace = "POST /v1/namespaces\n\n" + `{"namespace":["land"]}`
		warehouse = "POST /management/v1/warehouses\n\n" + `{"name":"ice"}`
	)
	type want struct {
		request string
		status  int
		kind    string
		message string
	}
	for _, tc := range []struct {
		name   string
		breaks func(*stack)
		want   []want
	}{
		{"disk full", func(s *stack) { s.files.fail(blob.ErrFull) }, []want{
			{load, 200, "", ""},
			{commit, 507, "InsufficientStorageException", "no space left for files; nothing was changed"},
			{create, 507, "InsufficientStorageException", "nothing was changed"},
			{rename, 204, "", ""},
		}},
		{"disk broken", func(s *stack) { s.files.fail(errors.New("input/output error")) }, []want{
			{load, 200, "", ""},
			{commit, 409, "CommitFailedException", "has changed nothing"},
			{create, 500, "InternalServerError", "has changed nothing"},
		}},
		{"store full", func(s *stack) { breakStore(s.store, store.ErrFull) }, []want{
			{load, 200, "", ""},
			{commit, 507, "InsufficientStorageException", "store; nothing was changed"},
			{namespace, 507, "InsufficientStorageException", "nothing was changed"},
		}},
		{"store closed", func(s *stack) { breakStore(s.store, store.ErrClosed) }, []want{
			{commit, 429, "TooManyRequestsException", "changed nothing"},
			{namespace, 429, "TooManyRequestsException", "changed nothing"},
		}},
		{"outcome unknown", func(s *stack) {
			breakStore(s.store, store.ErrOutcomeUnknown)
			s.store.OutcomeFault = func(string) error { return store.ErrOutcomeUnknown }
		}, []want{
			{load, 200, "", ""},
			{commit, 500, "CommitStateUnknownException", "look before you try again"},
			{create, 500, "CommitStateUnknownException", "look before you try again"},
			{rename, 500, "CommitStateUnknownException", "look before you try again"},
			{namespace, 500, "CommitStateUnknownException", "look before you try again"},
		}},
		{"metadata file gone, and remembered", func(s *stack) {
			if err := os.Remove(s.metadataFile("/v1/namespaces/sea/tables/t")); err != nil {
				s.Fatal(err)
			}
		}, []want{
			{load, 404, "NotFoundException", "Failed to open input stream for file: "},
			{commit, 200, "", ""},
			{load, 200, "", ""},
		}},
		{"metadata file gone", func(s *stack) {
			if err := os.Remove(s.metadataFile("/v1/namespaces/sea/tables/t")); err != nil {
				s.Fatal(err)
			}
			s.restart()
		}, []want{
			{load, 404, "NotFoundException", "Failed to open input stream for file: file:///"},
			{commit, 404, "NotFoundException", "Failed to open input stream for file: file:///"},
			{rename, 204, "", ""},
		}},
		{"metadata file garbage", func(s *stack) {
			s.write(s.metadataFile("/v1/namespaces/sea/tables/t"), "garbage")
			s.restart()
		}, []want{
			{load, 422, "DamagedMetadataException", "cannot be used"},
			{commit, 422, "DamagedMetadataException", "restore this file"},
			{"DELETE /v1/namespaces/sea/tables/t?purgeRequested=true", 204, "", ""},
		}},
		{"metadata file truncated", func(s *stack) {
			s.write(s.metadataFile("/v1/namespaces/sea/tables/t"), `{"format-version":2,`)
			s.restart()
		}, []want{
			{load, 422, "DamagedMetadataException", "cannot be used"},
		}},
		{"volume not mounted, and remembered", unmount, []want{
			{load, 503, "WarehouseUnavailableException", "Warehouse main is not available"},
			{commit, 422, "WarehouseUnavailableException", "Warehouse main is not available"},
			{create, 422, "WarehouseUnavailableException", "Warehouse main is not available"},
		}},
		{"volume not mounted", func(s *stack) {
			unmount(s)
			s.restart()
		}, []want{
			{load, 503, "WarehouseUnavailableException", "Warehouse main is not available"},
			{commit, 422, "WarehouseUnavailableException", "Warehouse main is not available"},
			{create, 422, "WarehouseUnavailableException", "Warehouse main is not available"},
		}},
		{"root taken by a file", func(s *stack) { s.write(filepath.Join(s.root, "ice"), "") }, []want{
			{warehouse, 400, "IllegalArgumentException", "it is not a directory"},
		}},
		{"root that cannot be made", func(s *stack) { s.write(filepath.Join(s.root, "file"), "") }, []want{
			{"POST /management/v1/warehouses\n\n" + `{"name":"ice","location":"file://$ROOT/file/below"}`, 422, "UnprocessableEntityException", "cannot be the root of a warehouse: root file://"},
			{"POST /management/v1/warehouses\n\n" + `{"name":"ice","location":"file://$ROOT/file/below"}`, 422, "UnprocessableEntityException", "; choose a directory that the server's user may write"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStack(t)
			s.seaWithTable()
			tc.breaks(s)
			for _, w := range tc.want {
				before := s.state()
				got := s.send(strings.ReplaceAll(w.request, "$ROOT", s.root))
				checkRefusal(t, got, w.status, w.kind, w.message)
				if w.status >= 400 && s.store.String() != before[:len(s.store.String())] {
					t.Errorf("%s: %d, and a record changed", w.request, got.StatusCode)
				}
			}
		})
	}
}

// TestPurge: the metadata files of a table go with it, and the drop stands when
// they cannot be deleted.
func TestPurge(t *testing.T) {
	t.Run("files go", func(t *testing.T) {
		s := newStack(t)
		s.seaWithTable()
		s.must("POST /v1/namespaces/sea/tables/t\n\n" + setProperty)
		dir := filepath.Dir(s.metadataFile("/v1/namespaces/sea/tables/t"))
		if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
			t.Fatalf("%v %v", files, err)
		}
		s.must("DELETE /v1/namespaces/sea/tables/t?purgeRequested=true")
		if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
			t.Errorf("left: %v %v", files, err)
		}
		s.must("DELETE /v1/namespaces/sea")
		s.must("DELETE /management/v1/warehouses/main") // nothing is left to delete there
	})
	t.Run("files stay", func(t *testing.T) {
		s := newStack(t, func(o *Options) { o.Reclaimer = stuckReclaim{} })
		s.seaWithTable()
		file := s.metadataFile("/v1/namespaces/sea/tables/t")
		s.must("DELETE /v1/namespaces/sea/tables/t?purgeRequested=true") // it does not wait for ever
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
		if got := s.send("HEAD /v1/namespaces/sea/tables/t"); got.StatusCode != 404 {
			t.Errorf("the table is still there: %s", got.Status)
		}
	})
	t.Run("kept without purge", func(t *testing.T) {
		s := newStack(t)
		s.seaWithTable()
		file := s.metadataFile("/v1/namespaces/sea/tables/t")
		s.must("DELETE /v1/namespaces/sea/tables/t")
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	})
}

// stuckReclaim never comes to an end.
type stuckReclaim struct{ noReclaim }

func (stuckReclaim) Start(string, string) <-chan struct{} { return make(chan struct{}) }

// TestServerRetries: two commits that do not contradict each other both land,
// though the second was decided from what the first replaced.
func TestServerRetries(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	interfered := false
	s.store.Fault = func(b store.Batch) kerneltest.Fault {
		if !interfered && b.Ops[0].Name == "commit-table" {
			interfered = true
			// This runs without the queue's lock of the first, as another instance would.
			other := kernel.New(kernel.Options{Store: s.store, Files: s.files, Queue: locktest.Yes{}})
			h := New(Options{Runner: other, Reclaimer: noReclaim{}, Roots: s.files, WarehouseRoot: func(string) string { return "" }})
			if w, _ := serve(h, "POST", "/v1/namespaces/sea/tables/t", strings.ReplaceAll(setProperty, `"a"`, `"b"`)); w.Code != 200 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		return kerneltest.Fault{}
	}
	got := s.must("POST /v1/namespaces/sea/tables/t\n\n" + setProperty)
	if !strings.Contains(got.body, `"a":"1"`) || !strings.Contains(got.body, `"b":"1"`) {
		t.Errorf("%s", got.body)
	}
}
