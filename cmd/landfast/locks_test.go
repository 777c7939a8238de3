package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	bloblocal "github.com/landfast/landfast/internal/blob/local"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/lock"
	locklocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/reclaim"
	"github.com/landfast/landfast/internal/rest"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
)

var update = flag.Bool("update", false, "write the outputs of docs/contention.md instead of comparing them")

const contentionPage = "../../docs/contention.md"

// TestContentionPage makes each pattern of docs/contention.md happen, and compares what
// `landfast locks` prints with what the page shows.
func TestContentionPage(t *testing.T) {
	data, err := os.ReadFile(contentionPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, c := range []struct {
		name   string
		happen func(*crowded)
	}{
		{"hot table", hotTable},
		{"a moment later", hotBefore},
		{"transactions", overlappingTransactions},
		{"one name", oneName},
		{"bulk creation", bulkCreation},
		{"locations of clients", clientLocations},
		{"namespace drop", namespaceDrop},
		{"structure", structure},
		{"slow storage", slowStorage},
		{"full queue", fullQueue},
		{"prepared transaction", preparedTransaction},
		{"slow batch", slowBatch},
		{"retry", retry},
		{"conflicts", conflicts},
		{"conflicts of instances", conflictsOfInstances},
		{"idle", func(*crowded) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newCrowded(t)
			c.happen(s)
			got := s.landfast("locks")
			shown := regexp.MustCompile("(?s)(<!-- " + c.name + " -->\n```text\n\\$ landfast locks\n)(.*?)(```\n)")
			block := shown.FindStringSubmatch(page)
			if block == nil {
				t.Fatalf("%s has no block after <!-- %s -->", contentionPage, c.name)
			}
			if *update {
				page = shown.ReplaceAllLiteralString(page, block[1]+got+block[3])
			} else if diff := cmp.Diff(block[2], got); diff != "" {
				t.Errorf("run with -update and look at the change:\n%s", diff)
			}
		})
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(contentionPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestContentionRows compares what is printed about rows of PostgreSQL with what docs/contention.md shows.
// TestRowsOfPostgres of internal/server asks a real one.
func TestContentionRows(t *testing.T) {
	r := contention.Report{AtMillis: 1_700_000_000_000, Held: 1, Keys: []contention.Key{{
		Key:     "table main/sales/orders",
		Holders: []contention.Request{{Operation: "commit-table", RequestID: "c-1", Client: "10.0.0.8:40001", Mode: "exclusive", SinceMillis: 1_699_999_997_600, ForMillis: 2400}},
	}}}
	r.AddRows("catalog-1", []contention.Session{
		{PID: 4711, User: "alice", Application: "psql", Address: "10.0.0.7", State: "idle in transaction", Transaction: 25100 * time.Millisecond},
		session(811, "catalog-1", "c-1", 120*time.Millisecond, 4711),
		session(902, "catalog-2", "c-9", 80*time.Millisecond, 4711, 811),
	}, nil)
	var got bytes.Buffer
	if err := printLocks(&got, r); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(contentionPage)
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)(<!-- rows -->\n```text\n\\$ landfast locks\n)(.*?)(```\n)")
	block := shown.FindStringSubmatch(string(data))
	if block == nil {
		t.Fatalf("%s has no block after <!-- rows -->", contentionPage)
	}
	if *update {
		page := shown.ReplaceAllLiteralString(string(data), block[1]+got.String()+block[3])
		if err := os.WriteFile(contentionPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(block[2], got.String()); diff != "" {
		t.Errorf("run with -update and look at the change:\n%s", diff)
	}

	// What could not be asked is said, and a name does not steer the terminal.
	got.Reset()
	r.AddRows("catalog-1", nil, errors.New("no answer\x1b[2J"))
	if err := printLocks(&got, r); err != nil || !strings.Contains(got.String(), "\nrows in PostgreSQL: unknown: no answer?[2J\n") {
		t.Errorf("%v\n%s", err, &got)
	}
	got.Reset()
	r.AddRows("catalog-1", []contention.Session{{PID: 1, Application: "evil\x1b[2J\nname"}}, nil)
	if err := printLocks(&got, r); err != nil || strings.Contains(got.String(), "\x1b") || strings.Contains(got.String(), "\nname") {
		t.Errorf("%v\n%q", err, &got)
	}
}

// TestContentionCommands runs the commands of docs/contention.md as they stand there, but for the address.
func TestContentionCommands(t *testing.T) {
	data, err := os.ReadFile(contentionPage)
	if err != nil {
		t.Fatal(err)
	}
	s, ran := newCrowded(t), 0
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		for line := range strings.Lines(block[1]) {
			words := strings.Fields(strings.ReplaceAll(line, defaultURL, s.server.URL))
			ran++
			if words[0] == "landfast" {
				s.landfast(words[1:]...)
				continue
			}
			out, err := exec.CommandContext(t.Context(), words[0], append(words[1:], "--fail")...).Output()
			if err != nil || !bytes.HasPrefix(out, []byte(`{"at-ms":`)) {
				t.Errorf("%s: %v, %s", line, err, out)
			}
		}
	}
	if ran < 3 {
		t.Errorf("only %d commands", ran)
	}
}

// Five commits come while one is being landed, and five more while those are.
func hotTable(s *crowded) {
	s.table("orders")
	s.commits(1, 1, "orders")
	s.held(1)
	s.commits(2, 6, "orders")
	s.letThrough()
	s.held(1)
	s.commits(7, 11, "orders")
}

func hotBefore(s *crowded) {
	s.table("orders")
	for i := 0; i < 140; i += 10 {
		s.commits(i+1, i+1, "orders")
		s.held(1)
		s.commits(i+2, i+10, "orders")
		s.letThrough()
		s.held(1)
		s.letThrough()
		s.idle()
	}
}

// A transaction over orders and items is being landed. One over items and returns waits
// behind it, a commit to returns and that of a staged table of this name behind that one, and a rename of
// orders behind the first.
func overlappingTransactions(s *crowded) {
	for _, name := range []string{"orders", "items", "returns"} {
		s.table(name)
	}
	s.begin("t-1", "POST", "/v1/main/transactions/commit", transaction("orders", "items"))
	s.held(1)
	s.begin("t-2", "POST", "/v1/main/transactions/commit", transaction("items", "returns"))
	s.begin("c-1", "POST", "/v1/main/namespaces/sales/tables/returns", commit)
	s.begin("s-1", "POST", "/v1/main/namespaces/sales/tables/returns", `{"requirements":[{"type":"assert-create"}],"updates":[]}`)
	s.begin("r-1", "POST", "/v1/main/tables/rename",
		`{"source":{"namespace":["sales"],"name":"orders"},"destination":{"namespace":["sales"],"name":"sold"}}`)
}

func oneName(s *crowded) {
	for i := range 3 {
		s.begin(fmt.Sprintf("n-%d", i+1), "POST", "/v1/main/namespaces/sales/tables", create("orders", ""))
		s.held(1)
	}
}

func bulkCreation(s *crowded) {
	for i := range 8 {
		s.begin(fmt.Sprintf("n-%d", i+1), "POST", "/v1/main/namespaces/sales/tables", create(fmt.Sprintf("day-%d", i+1), ""))
		s.held(i + 1)
	}
}

func clientLocations(s *crowded) {
	for i := range 3 {
		name := fmt.Sprintf("day-%d", i+1)
		s.begin(fmt.Sprintf("n-%d", i+1), "POST", "/v1/main/namespaces/sales/tables", create(name, s.root+"/main/mine/"+name))
		s.held(1)
	}
}

// A namespace is dropped, twice, while a table is being created in it.
func namespaceDrop(s *crowded) {
	s.begin("n-1", "POST", "/v1/main/namespaces/sales/tables", create("orders", ""))
	s.held(1)
	s.begin("d-1", "DELETE", "/v1/main/namespaces/sales", "")
	s.held(2)
	s.begin("d-2", "DELETE", "/v1/main/namespaces/sales", "")
}

func structure(s *crowded) {
	for i := range 3 {
		s.begin(fmt.Sprintf("p-%d", i+1), "POST", "/v1/main/namespaces/sales/properties", fmt.Sprintf(`{"updates":{"owner":"team-%d"}}`, i))
		s.held(1)
	}
}

func slowStorage(s *crowded) {
	s.table("orders")
	s.commits(1, 1, "orders")
	s.held(1)
	s.commits(2, 3, "orders")
	s.pass(12 * time.Second)
}

func fullQueue(s *crowded) {
	s.table("orders")
	s.commits(1, 1, "orders")
	s.held(1)
	s.commits(2, 1+crowdMax*3/4, "orders")
}

// Somebody has prepared a transaction with a lock of the row that a commit needs.
func preparedTransaction(s *crowded) {
	s.table("orders")
	s.commits(1, 1, "orders")
	s.held(1)
	s.pass(2390 * time.Millisecond)
	s.share(session(811, "catalog-1", "c-1", 120*time.Millisecond, 0))
}

// A commit has reached PostgreSQL, which waits at its COMMIT for a synchronous standby that does not answer. Who wants the
// same table waits in the queue of the instance, so for the row nobody does.
func slowBatch(s *crowded) {
	s.table("orders")
	s.commits(1, 1, "orders")
	s.held(1)
	s.commits(2, 3, "orders")
	s.pass(12 * time.Second)
	hangs := session(811, "catalog-1", "c-1", 12*time.Second)
	hangs.WaitEvent = "SyncRep"
	s.share(hangs)
}

// The client's timeout was shorter than it takes, and it has sent the commit again.
func retry(s *crowded) {
	s.table("orders")
	const key = "0198a000-0000-7000-8000-000000000001"
	s.begin("c-1", "POST", "/v1/main/namespaces/sales/tables/orders", commit, "Idempotency-Key", key)
	s.held(1)
	s.pass(10 * time.Second)
	s.begin("c-2", "POST", "/v1/main/namespaces/sales/tables/orders", commit, "Idempotency-Key", key)
}

// Many tables are on their way into a namespace when it is dropped, which is empty yet.
func conflicts(s *crowded) {
	const creates = 120
	for i := range creates {
		s.begin(fmt.Sprintf("n-%d", i+1), "POST", "/v1/main/namespaces/sales/tables", create(fmt.Sprintf("day-%d", i+1), ""))
		s.held(i + 1)
	}
	s.begin("d-1", "DELETE", "/v1/main/namespaces/sales", "")
	s.held(creates + 1)
	s.letThroughLast()
	s.until("the drop is done", func() bool { return !s.sees("d-1") })
	for range creates {
		s.letThrough()
	}
	s.idle()
}

// Another instance commits to the same table whenever this one is about to.
func conflictsOfInstances(s *crowded) {
	s.table("orders")
	s.share()
	there := s.instance(s.records.Atomic, locklocal.New(locklocal.Options{}), nil)
	for i := range 60 {
		s.commits(3*i+1, 3*i+1, "orders")
		s.held(1)
		s.commits(3*i+2, 3*i+3, "orders")
		for range 2 { // the first, and those who came meanwhile
			if w := s.send(there, "c-0", "POST", "/v1/main/namespaces/sales/tables/orders", commit); w.Code != 200 {
				s.Fatalf("the other instance: %d %s", w.Code, w.Body)
			}
			s.letThrough() // it is too late
			s.held(1)
			s.letThrough()
			if s.queue.Len() > 0 {
				s.until("they are landed, or on their way", func() bool { return s.queue.Len() == 0 || s.holds(1) })
			}
		}
		s.idle()
	}
	s.commits(181, 181, "orders")
	s.held(1)
	s.commits(182, 186, "orders")
}

const commit = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"day":"1"}}]}`

func transaction(tables ...string) string {
	var changes []string
	for _, name := range tables {
		changes = append(changes, `{"identifier":{"namespace":["sales"],"name":"`+name+`"},`+commit[1:])
	}
	return `{"table-changes":[` + strings.Join(changes, ",") + `]}`
}

func create(name, location string) string {
	if location != "" {
		location = `,"location":"file://` + location + `"`
	}
	return `{"name":"` + name + `"` + location + `,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":true}]}}`
}

// crowdMax is how many requests one key holds up in these tests.
const crowdMax = 64

// crowded is the whole server below its wiring, whose store holds each batch until it is
// let through, so that a crowd can gather. Its clock is moved by the test.
type crowded struct {
	*testing.T
	root    string
	records *kerneltest.Store
	queue   *locklocal.Table
	handler http.Handler
	server  *httptest.Server
	running sync.WaitGroup

	mu       sync.Mutex
	clock    time.Time
	holding  bool
	batches  []chan struct{} // those that are held, each until its channel is closed
	shared   bool            // the records are in PostgreSQL, as far as advice knows
	sessions []contention.Session
}

func newCrowded(t *testing.T) *crowded {
	s := &crowded{T: t, clock: time.UnixMilli(1_700_000_000_000)}
	var err error
	if s.root, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	s.records = kerneltest.NewStore(mem.New())
	s.records.Fault = s.hold
	hot := contention.NewHot(s.now)
	s.queue = locklocal.New(locklocal.Options{Now: s.now, MaxWaitersPerKey: crowdMax, Waited: func(w locklocal.Wait) {
		if w.Waited > 0 {
			hot.Wait(w.Key, w.Waited)
		}
	}})
	s.handler = s.instance(lossCounted{s.records, hot}, s.queue, func(context.Context) contention.Report {
		s.mu.Lock()
		shared, sessions := s.shared, s.sessions
		s.mu.Unlock()
		r := contention.Look(s.queue.Snapshot(), hot.Top(20), contention.Server{QueueMax: crowdMax, Shared: shared}, s.now())
		if shared {
			r.AddRows("catalog-1", sessions, nil)
		}
		return r
	})
	s.server = httptest.NewServer(s.handler)
	t.Cleanup(s.server.Close)
	t.Cleanup(s.open)
	s.do("setup", "POST", "/v1/main/namespaces", `{"namespace":["sales"]}`)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
	return s
}

// instance is one server on the records, which makes those of a catalog where there are none.
func (s *crowded) instance(records store.Atomic, queue *locklocal.Table, locks func(context.Context) contention.Report) http.Handler {
	s.Helper()
	files := blob.ByScheme{"file": bloblocal.New()}
	runner := kernel.New(kernel.Options{
		Store: records, Files: files, Queue: queue, ApplyLimit: time.Minute, Backoff: func(time.Duration) time.Duration { return 0 },
	})
	quiet := slog.New(slog.DiscardHandler)
	root, err := files.Resolve(s.Context(), "file://"+s.root+"/main", blob.S3Options{})
	if err != nil {
		s.Fatal(err)
	}
	if err := files.Mark(s.Context(), root, "main-id"); err != nil {
		s.Fatal(err)
	}
	boot := &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: "main-id", Root: root}}
	if err := runner.Do(s.Context(), boot); err != nil {
		s.Fatal(err)
	}
	return rest.New(rest.Options{
		Runner: runner, Reclaimer: reclaim.New(reclaim.Options{Runner: runner, Files: files, Grace: time.Minute, Log: quiet}), Roots: files, Log: quiet,
		WarehouseRoot: func(name string) string { return "file://" + s.root + "/" + name }, Locks: locks, IdempotencyLifetime: time.Hour,
	})
}

// lossCounted is a store that counts what batches conflict on, as the server does.
type lossCounted struct {
	store.Atomic
	hot *contention.Hot
}

func (c lossCounted) Apply(ctx context.Context, b store.Batch) error {
	err := c.Atomic.Apply(ctx, b)
	if conflict, lost := errors.AsType[*store.ConflictError](err); lost {
		c.hot.Lost(b, conflict.Conds)
	}
	return err
}

// share has advice know that the records are in PostgreSQL, where there are these sessions.
func (s *crowded) share(sessions ...contention.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared, s.sessions = true, sessions
}

// session is one of ours in a batch, whose attempt has taken so long and waits for others.
func session(pid int, instance, request string, attempt time.Duration, by ...int) contention.Session {
	return contention.Session{
		PID: pid, Instance: instance, Operation: "commit-table", RequestID: request, User: "landfast", State: "active", Transaction: attempt, Attempt: attempt, BlockedBy: by,
	}
}

// open lets everything through, and waits until all requests have ended.
func (s *crowded) open() {
	s.mu.Lock()
	s.holding = false
	for _, b := range s.batches {
		close(b)
	}
	s.batches = nil
	s.mu.Unlock()
	s.running.Wait()
}

// hold is the store's hook.
func (s *crowded) hold(store.Batch) kerneltest.Fault {
	s.mu.Lock()
	b := make(chan struct{})
	if s.holding {
		s.batches = append(s.batches, b)
	} else {
		close(b)
	}
	s.mu.Unlock()
	<-b
	return kerneltest.Fault{}
}

// held blocks until so many batches are held.
func (s *crowded) held(n int) {
	s.Helper()
	s.until(fmt.Sprintf("%d batches are held", n), func() bool { return s.holds(n) })
}

func (s *crowded) holds(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches) == n
}

// letThrough lets the batch pass that is held longest.
func (s *crowded) letThrough() { s.letPass(0) }

// letThroughLast lets the batch pass that came last.
func (s *crowded) letThroughLast() {
	s.mu.Lock()
	last := len(s.batches) - 1
	s.mu.Unlock()
	s.letPass(last)
}

func (s *crowded) letPass(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.batches[i])
	s.batches = slices.Delete(s.batches, i, i+1)
}

// idle blocks until nobody holds or awaits anything.
func (s *crowded) idle() { s.until("nothing is held", func() bool { return s.queue.Len() == 0 }) }

// until blocks until the condition, of which nobody tells, is true.
func (s *crowded) until(what string, is func() bool) {
	s.Helper()
	for began := time.Now(); !is(); runtime.Gosched() {
		if time.Since(began) > 20*time.Second {
			s.Fatalf("never: %s; there are %+v", what, s.queue.Snapshot())
		}
	}
}

func (s *crowded) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

// pass moves the clock.
func (s *crowded) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(d)
}

// do runs one request to its end. Further arguments are its headers: name, value and so on.
func (s *crowded) do(id, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	return s.send(s.handler, id, method, path, body, headers...)
}

func (s *crowded) send(to http.Handler, id, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(context.WithoutCancel(s.Context()))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", id)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	_, number, _ := strings.Cut(id, "-")
	r.RemoteAddr = "10.0.0.8:40" + fmt.Sprintf("%03s", number)
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return w
}

// begin starts a request, and returns when it is seen in the lock table; then a moment passes.
func (s *crowded) begin(id, method, path, body string, headers ...string) {
	s.Helper()
	s.running.Go(func() { s.do(id, method, path, body, headers...) })
	s.until(id+" is there", func() bool { return s.sees(id) })
	s.pass(10 * time.Millisecond)
}

// sees tells whether a request is in the lock table.
func (s *crowded) sees(id string) bool {
	return slices.ContainsFunc(s.queue.Snapshot(), func(k lock.KeyState) bool {
		return slices.ContainsFunc(slices.Concat(k.Holders, k.Waiters), func(e lock.Entry) bool { return e.Owner.RequestID == id })
	})
}

// commits starts the commits first to last.
func (s *crowded) commits(first, last int, table string) {
	s.Helper()
	for i := first; i <= last; i++ {
		s.begin(fmt.Sprintf("c-%d", i), "POST", "/v1/main/namespaces/sales/tables/"+table, commit)
	}
}

// table makes a table, before anything is held.
func (s *crowded) table(name string) {
	s.Helper()
	s.mu.Lock()
	s.holding = false
	s.mu.Unlock()
	if w := s.do("setup", "POST", "/v1/main/namespaces/sales/tables", create(name, "")); w.Code != 200 {
		s.Fatalf("%s: %d %s", name, w.Code, w.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = true
}

// landfast runs a command against the server.
func (s *crowded) landfast(args ...string) string {
	s.Helper()
	var out, errs bytes.Buffer
	if status := run(append(args, "--url", s.server.URL), surroundings{stdout: &out, stderr: &errs}); status != 0 || errs.Len() > 0 {
		s.Fatalf("%v: status %d: %s", args, status, &errs)
	}
	return out.String()
}

// TestLocksLeavesOut: what is not shown is counted.
func TestLocksLeavesOut(t *testing.T) {
	entry := contention.Request{Operation: "commit-table", RequestID: "r", ForMillis: 90_000, WaitsFor: &contention.Blocker{Key: "table x"}}
	var r contention.Report
	for range 25 {
		r.Keys = append(r.Keys, contention.Key{Key: "table x", Waiters: slices.Repeat([]contention.Request{entry}, 12), WaitersLeftOut: 5})
	}
	r.KeysLeftOut = 7
	var b bytes.Buffer
	if err := printLocks(&b, r); err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{
		"7 more wait\n": 20, "12 more keys are held or awaited": 1, "waits for the server itself (-)": 200, " 1m30s ": 200, "\ntable x ": 20,
	} {
		if got := strings.Count(b.String(), want); got != times {
			t.Errorf("%d times %q, want %d", got, want, times)
		}
	}
}

// TestLocksCannotSteerTheTerminal: names are printed without what a terminal would obey.
func TestLocksCannotSteerTheTerminal(t *testing.T) {
	bad := "a\x1b[2J\u202e\u0085b\n"
	r := contention.Report{
		Keys:   []contention.Key{{Key: bad, Holders: []contention.Request{{Operation: bad, RequestID: bad, Client: bad, Batch: bad + "1"}}}},
		Hot:    []contention.Hottest{{Key: bad}},
		Advice: []contention.Advice{{Key: bad, Text: bad}},
	}
	var b bytes.Buffer
	if err := printLocks(&b, r); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e\u0085") || strings.Count(b.String(), "a?[2J??b?") != 8 {
		t.Errorf("%q", b.String())
	}
}

// TestWatch: a look each time, until it is ended; a server that is away for a while is waited for.
func TestWatch(t *testing.T) {
	looks := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		looks++
		if looks == 2 {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"advice":[{"key":"look","pattern":"`+fmt.Sprint(looks)+`"}]}`)
	}))
	defer server.Close()
	c := locksCommand{remote: remote{URL: server.URL}, Interval: time.Millisecond}
	first, err := c.look(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	enough := writerFunc(func(p []byte) (int, error) {
		shown.Write(p)
		if bytes.Contains(p, []byte("look: 4: ")) {
			cancel()
		}
		return len(p), nil
	})
	if err := c.watch(ctx, enough, first); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?s)^..:..:..\n\n.*look: 1: \n\n..:..:..\n\n.* does not answer like a Landfast server .*look: 3: .*look: 4: \n\n$`).MatchString(shown.String()) {
		t.Errorf("shown: %s", &shown)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
