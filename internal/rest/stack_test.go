package rest

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/blob"
	blocal "github.com/landfast/landfast/internal/blob/local"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	llocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/reclaim"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/txn"
)

var update = flag.Bool("update", false, "rewrite testdata and docs/rest-coverage.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOnObjects runs every test again on a store that can only swap single objects. What
// they compare with is the same: the transcripts to the byte.
func TestOnObjects(t *testing.T) { kerneltest.RunOnObjects(t, "^TestOnObjects$") }

// newStore makes the store that this process is to run on.
func newStore() *kerneltest.Store {
	if kerneltest.OnObjects() {
		return kerneltest.NewStore(txn.New(txn.Options{Objects: mem.NewObjects(), Layout: txn.Packed{}}))
	}
	return kerneltest.NewStore(mem.New())
}

// stack is the whole server below the wiring: the handler behind a real
// connection, the kernel, the catalog, a store in memory, and files on disk. Ids
// count up and the clock moves a second with each decision, so that one run is
// like another.
type stack struct {
	*testing.T
	store   *kerneltest.Store
	files   *stackFiles
	root    string // directory of the warehouses
	handler *Handler
	server  *httptest.Server
	log     *syncBuffer
	// restart has the kernel forget what it remembers. No request may be running.
	restart func()

	mu    sync.Mutex
	ids   int
	clock time.Time
}

// stackFiles are files that cannot be written while refuse is set.
type stackFiles struct {
	*blocal.Store
	mu     sync.Mutex
	refuse error
}

func (f *stackFiles) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	f.mu.Lock()
	refuse := f.refuse
	f.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	return f.Store.Create(ctx, scope, location, data)
}

func (f *stackFiles) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = err
}

// syncBuffer is a log that may be written and read by several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newStack(t *testing.T, change ...func(*Options)) *stack {
	s := &stack{T: t, store: newStore(), files: &stackFiles{Store: blocal.New()}, log: &syncBuffer{},
		clock: time.UnixMilli(1_700_000_000_000)}
	var err error
	if s.root, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	newRunner := func() kernel.Runner {
		return kernel.New(kernel.Options{
			Store: s.store, Files: s.files, Queue: llocal.New(llocal.Options{}), CheckPurity: true,
			NewID:      s.newID,
			NewBatchID: func() string { return "batch-" + s.newID() },
			Now: func() time.Time {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.clock = s.clock.Add(time.Second)
				return s.clock
			},
		})
	}
	runner := newRunner()
	reclaimer := reclaim.New(reclaim.Options{Runner: runner, Files: s.files, Log: slog.New(slog.NewTextHandler(s.log, nil)), Grace: time.Minute})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { reclaimer.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	opt := Options{
		Runner: runner, IdempotencyLifetime: 30 * time.Minute, Reclaimer: reclaimer, Roots: s.files,
		WarehouseRoot: func(name string) string { return "file://" + s.root + "/" + name },
		MaxBodyBytes:  64 << 10,
		Log:           slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, f := range change {
		f(&opt)
	}
	s.handler = New(opt)
	s.handler.newID = s.newID
	s.restart = func() { s.handler.opt.Runner = newRunner() }

	main, err := s.files.Resolve(t.Context(), "file://"+s.root+"/main", blob.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.files.Mark(t.Context(), main, "main-id"); err != nil {
		t.Fatal(err)
	}
	boot := &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: main}}
	if err := runner.Do(t.Context(), boot); err != nil {
		t.Fatal(err)
	}
	s.server = httptest.NewServer(s.handler)
	t.Cleanup(s.server.Close)
	return s
}

// in makes a subtest the one that fails, until the returned function is called.
func (s *stack) in(t *testing.T) (back func()) {
	parent := s.T
	s.T = t
	return func() { s.T = parent }
}

func (s *stack) newID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.ids)
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body string
}

// send writes a request as it is given, byte for byte after the line of the
// method, and reads the answer. The first line is the method and the target, then
// come headers, an empty line, and the body.
func (s *stack) send(request string) reply {
	s.Helper()
	head, body, _ := strings.Cut(request, "\n\n")
	line, headers, _ := strings.Cut(head, "\n")
	method, target, _ := strings.Cut(line, " ")
	var raw strings.Builder
	fmt.Fprintf(&raw, "%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n", method, target)
	has := func(name string) bool { return strings.Contains(strings.ToLower("\n"+headers), "\n"+name+":") }
	if headers != "" {
		for _, h := range strings.Split(headers, "\n") {
			raw.WriteString(h + "\r\n")
		}
	}
	if body != "" && !has("content-type") {
		raw.WriteString("Content-Type: application/json\r\n")
	}
	if (body != "" || method == "POST") && !has("content-length") && !has("transfer-encoding") {
		fmt.Fprintf(&raw, "Content-Length: %d\r\n", len(body))
	}
	raw.WriteString("\r\n" + body)

	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.Fatal(err)
	}
	if _, err := io.WriteString(conn, raw.String()); err != nil {
		s.Fatal(err)
	}
	return s.read(conn, method)
}

func (s *stack) read(conn net.Conn, method string) reply {
	s.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply{res, string(data)}
}

// must sends a request and expects it to succeed.
func (s *stack) must(request string) reply {
	s.Helper()
	r := s.send(request)
	if r.StatusCode/100 != 2 {
		s.Fatalf("%s\n-> %s %s", request, r.Status, r.body)
	}
	return r
}

// state is everything that a request could have changed: the records and the files.
func (s *stack) state() string {
	s.Helper()
	var b strings.Builder
	b.WriteString(s.store.String())
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			fmt.Fprintln(&b, strings.TrimPrefix(path, s.root))
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return b.String()
}

// metadataFile is the path of the metadata file that a table has now.
func (s *stack) metadataFile(table string) string {
	s.Helper()
	_, rest, ok := strings.Cut(s.must("GET "+table).body, `"metadata-location":"file://`)
	path, _, ok2 := strings.Cut(rest, `"`)
	if !ok || !ok2 {
		s.Fatalf("%s has no metadata location", table)
	}
	return path
}

func (s *stack) write(path, data string) {
	s.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		s.Fatal(err)
	}
}

// breakStore makes every Apply fail from now on, and tells nothing more.
func breakStore(s *kerneltest.Store, err error) {
	s.Fault = func(store.Batch) kerneltest.Fault { return kerneltest.Fault{Err: err} }
}

// noReclaim deletes nothing.
type noReclaim struct{}

func (noReclaim) Start(string, string) <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (noReclaim) Sweep(context.Context, string, bool) (reclaim.SweepReport, error) {
	return reclaim.SweepReport{}, nil
}
