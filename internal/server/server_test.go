package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/config"
)

// logged is a log that a test can wait for.
type logged struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed and replaced at each write
}

func newLogged() *logged { return &logged{grown: make(chan struct{})} }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.grown)
	l.grown = make(chan struct{})
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await blocks until the log contains s.
func (l *logged) await(t *testing.T, s string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		found, grown := strings.Contains(l.text.String(), s), l.grown
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			t.Fatalf("the log never said %q:\n%s", s, l)
		}
	}
}

// instance is a server that runs in this process.
type instance struct {
	url    string
	log    *logged
	screen *bytes.Buffer
	stop   context.CancelFunc
	ended  chan error
}

func testConfig(data string) config.Config {
	c := config.Default()
	c.Data, c.Listen, c.Log.Level = data, "127.0.0.1:0", slog.LevelDebug
	return c
}

// run starts a server and stops it with the test, which fails if that is not clean.
func run(t *testing.T, c config.Config) *instance {
	t.Helper()
	i, err := tryRun(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func tryRun(t *testing.T, c config.Config) (*instance, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	i := &instance{log: newLogged(), screen: &bytes.Buffer{}, stop: cancel, ended: make(chan error, 1)}
	ready := make(chan string, 1)
	go func() {
		i.ended <- Run(ctx, Options{
			Config: c, Version: "v0.0.0-test", Screen: i.screen, Log: i.log, Warn: []string{"a warning"},
			Ready: func(url string) { ready <- url },
		})
		close(i.ended)
	}()
	select {
	case i.url = <-ready:
	case err := <-i.ended:
		cancel()
		return nil, err
	}
	t.Cleanup(func() {
		if err := i.end(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return i, nil
}

// end stops the server, if it still runs, and returns what Run returned.
func (i *instance) end() error {
	i.stop()
	return <-i.ended
}

// client makes a connection for each request, so that none is left open.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}

func (i *instance) do(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, i.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	return answerOf(t, r)
}

func answerOf(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(data)
}

// want fails unless the answer has the status and contains the text.
func (i *instance) want(t *testing.T, method, path, body string, status int, text string) {
	t.Helper()
	if r, got := i.do(t, method, path, body); r.StatusCode != status || !strings.Contains(got, text) {
		t.Errorf("%s %s: %d %s\nwant %d %s", method, path, r.StatusCode, got, status, text)
	}
}

// TestLifeOfAServer: it starts, answers, stops, and knows everything when it starts again.
func TestLifeOfAServer(t *testing.T) {
	c := testConfig(filepath.Join(plainTempDir(t), "data"))
	first := run(t, c)
	first.want(t, "GET", "/healthz", "", 200, "ok\n")
	first.want(t, "GET", "/readyz", "", 200, "ready\n")
	first.want(t, "POST", "/readyz", "", 405, "only GET and HEAD")
	first.want(t, "HEAD", "/readyz", "", 200, "")
	first.want(t, "GET", "/v1/config", "", 200, `"prefix":"main"`)
	first.want(t, "GET", "//v1/config", "", 404, "There is no endpoint")
	first.want(t, "POST", "/v1/namespaces", `{"namespace":["n"]}`, 200, `"n"`)
	first.want(t, "GET", "/management/v1/warehouses/main", "", 200, `"location":"file://`+c.Data+`/warehouses/main"`)
	for _, s := range []string{first.url, c.Data, "file://" + c.Data + "/warehouses/main"} {
		if !strings.Contains(first.screen.String(), s) {
			t.Errorf("the start screen lacks %s:\n%s", s, first.screen)
		}
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`level=WARN msg="a warning"`, "msg=ready", `msg="stopping: no new requests`, "msg=stopped"} {
		if !strings.Contains(first.log.String(), s) {
			t.Errorf("the log lacks %s:\n%s", s, first.log)
		}
	}

	second := run(t, c)
	second.want(t, "GET", "/v1/namespaces/n", "", 200, `"n"`)
	second.want(t, "DELETE", "/v1/namespaces/n", "", 204, "")
	second.want(t, "DELETE", "/management/v1/warehouses/main", "", 204, "")
	if err := second.end(); err != nil {
		t.Fatal(err)
	}

	third := run(t, c)
	third.want(t, "GET", "/management/v1/warehouses/main", "", 404, "NoSuchWarehouseException")
	if strings.Contains(third.screen.String(), "warehouse  main") {
		t.Errorf("the start screen shows a warehouse that was deleted:\n%s", third.screen)
	}
}

// TestDrain: after the signal new requests are refused in a way that each client
// understands, and what was running is finished.
func TestDrain(t *testing.T) {
	i := run(t, testConfig(filepath.Join(plainTempDir(t), "data")))
	body, sent := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", i.url+"/v1/namespaces", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	type answered struct {
		status int
		err    error
	}
	slow := make(chan answered, 1)
	go func() {
		response, err := client.Do(r)
		if err != nil {
			slow <- answered{0, err}
			return
		}
		slow <- answered{response.StatusCode, response.Body.Close()}
	}()
	if _, err := io.WriteString(sent, `{"namespace":`); err != nil { // returns when it was read, so the request is under way
		t.Fatal(err)
	}
	awaitRunning(t, i, 2) // this one and the slow one
	i.stop()
	i.log.await(t, "stopping: no new requests")
	for _, want := range []struct {
		method, path string
		status       int
		text, again  string
	}{
		{"GET", "/readyz", 503, "stopping", ""},
		{"GET", "/healthz", 200, "ok", ""},
		{"GET", "/v1/config", 503, "SlowDownException", "1"},
		{"HEAD", "/v1/namespaces/n", 503, "", "1"},
		{"POST", "/v1/namespaces", 429, `"type":"TooManyRequestsException","code":429`, "1"},
		{"DELETE", "/v1/namespaces/n", 429, "The server is stopping and has changed nothing: try again (request ", "1"},
	} {
		r, got := i.do(t, want.method, want.path, "")
		if r.StatusCode != want.status || !strings.Contains(got, want.text) || r.Header.Get("Retry-After") != want.again || !r.Close {
			t.Errorf("while stopping: %s %s: %d %v %s", want.method, want.path, r.StatusCode, r.Header, got)
		}
	}
	if _, err := io.WriteString(sent, `["late"]}`); err != nil {
		t.Fatal(err)
	}
	if err := sent.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-slow; got.err != nil || got.status != 200 {
		t.Errorf("the running request: status %d, %v", got.status, got.err)
	}
	if err := i.end(); err != nil {
		t.Error(err)
	}
	if conn, err := net.DialTimeout("tcp", strings.TrimPrefix(i.url, "http://"), time.Second); err == nil {
		conn.Close()
		t.Error("the address is still bound")
	}
}

// awaitRunning blocks until /metrics shows so many requests that are not answered.
func awaitRunning(t *testing.T, i *instance, n int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		if _, text := i.do(t, "GET", "/metrics", ""); strings.Contains(text, fmt.Sprintf("\nlandfast_http_requests_running %d\n", n)) {
			return
		}
	}
	t.Fatalf("there were never %d requests", n)
}

// TestCutOff: a request that does not end does not keep the server from ending.
func TestCutOff(t *testing.T) {
	c := testConfig(filepath.Join(plainTempDir(t), "data"))
	c.ShutdownTimeout = 20 * time.Millisecond
	i := run(t, c)
	body, sent := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), "POST", i.url+"/v1/namespaces", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	slow := make(chan error, 1)
	go func() {
		response, err := client.Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		slow <- err
	}()
	if _, err := io.WriteString(sent, `{`); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, i, 2)
	if err := i.end(); !errors.Is(err, ErrCutOff) {
		t.Errorf("the server ended with %v", err)
	}
	sent.Close()
	if err := <-slow; err == nil {
		t.Error("the request that was cut off was answered")
	}
}

// TestReadyz: 503 while the server is stopping, and when the store does not answer.
// A request that fails then is told by its id, in the answer and in the log.
func TestReadyz(t *testing.T) {
	log := newLogged()
	s, err := start(t.Context(), Options{Config: testConfig(filepath.Join(plainTempDir(t), "data")), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		w := &recorded{header: http.Header{}, status: 200}
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.readyz(w, r)
		return fmt.Sprint(w.status, " ", w.body.String())
	}
	if got := ask(); got != "200 ready\n" {
		t.Errorf("at first: %s", got)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != "503 the store does not answer\n" {
		t.Errorf("without a store: %s", got)
	}
	w := &recorded{header: http.Header{}, status: 200}
	r, err := http.NewRequestWithContext(t.Context(), "GET", "/v1/namespaces", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.http.Handler.ServeHTTP(w, r)
	id := w.header.Get("X-Request-ID")
	if w.status != 503 || id == "" || !strings.Contains(w.body.String(), "(request "+id+")") {
		t.Errorf("%d %v %s", w.status, w.header, &w.body)
	}
	told := 0
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, id) {
			told++
			if strings.Count(line, "request=") != 1 {
				t.Errorf("a line does not name its request once: %s", line)
			}
		}
	}
	if told != 2 {
		t.Errorf("%d lines are about the request that failed, want its own and that of the cause:\n%s", told, log)
	}
	s.requests.close()
	if got := ask(); got != "503 stopping\n" {
		t.Errorf("while stopping: %s", got)
	}
}

type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header         { return r.header }
func (r *recorded) WriteHeader(status int)      { r.status = status }
func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }

// TestMetrics: what an operator is promised is there, and no label holds what a client chose.
func TestMetrics(t *testing.T) {
	i := run(t, testConfig(filepath.Join(plainTempDir(t), "data")))
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["secret-name"]}`, 200, "")
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["secret-name"]}`, 409, "")
	i.want(t, "GET", "/v1/namespaces/secret-name", "", 200, "")
	i.want(t, "BREW", "/secret-path", "", 404, "")
	_, got := i.do(t, "GET", "/metrics", "")
	for _, want := range []string{
		`landfast_http_requests_total{method="POST",route="/v1/{prefix}/namespaces",status="200"} 1`,
		`landfast_http_requests_total{method="POST",route="/v1/{prefix}/namespaces",status="409"} 1`,
		`landfast_http_requests_total{method="GET",route="/v1/{prefix}/namespaces/{namespace}",status="200"} 1`,
		`landfast_http_requests_total{method="other",route="none",status="404"} 1`,
		`landfast_http_request_seconds_count{method="POST",route="/v1/{prefix}/namespaces"} 2`,
		`landfast_http_requests_running 1`,
		`landfast_operations_total{op="bootstrap",outcome="done"} 1`,
		`landfast_operations_total{op="create-namespace",outcome="done"} 1`,
		`landfast_operations_total{op="create-namespace",outcome="refused"} 1`,
		`landfast_decisions_total{op="create-namespace"} 2`,
		`landfast_retries_total{op="create-namespace"} 0`,
		`landfast_refusals_total{kind="already-exists",op="create-namespace"} 1`,
		`landfast_batch_operations_count{op="create-namespace"} `,
		`landfast_queue_wait_seconds_count{level="namespace",mode="exclusive",op="create-namespace"} 2`,
		`landfast_queue_wait_seconds_bucket{level="namespace",mode="exclusive",op="create-namespace",le="0"} 2`,
		`landfast_queue_length_bucket{level="namespace",mode="exclusive",op="create-namespace",le="0"} 2`,
		`landfast_queue_timeout_seconds{class="tables"} 30`,
		`landfast_queue_timeout_seconds{class="whole-namespace"} 45`,
		`landfast_lock_hold_seconds_count{level="namespace",mode="exclusive",op="create-namespace"} 2`,
		`landfast_store_group_batches_count 2`,
		`landfast_store_commit_seconds_count 2`,
		`landfast_uploaded_bytes_total 0`,
		`landfast_build_info{go="go1.`,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	for _, secret := range []string{"secret-name", "secret-path", "BREW"} {
		if strings.Contains(got, secret) {
			t.Errorf("/metrics shows %s", secret)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestRequestIDs: a client's id is kept if it fits a line, and repeated in answer and log; otherwise there is a new one.
func TestRequestIDs(t *testing.T) {
	i := run(t, testConfig(filepath.Join(plainTempDir(t), "data")))
	for _, c := range []struct {
		path, sent string
		kept       bool
	}{
		{"/healthz", "trace-1/a:b=c", true},
		{"/v1/config", "trace-2", true},
		{"/v1/nowhere", "trace-3", true},
		{"/healthz", strings.Repeat("x", 128), true},
		{"/healthz", strings.Repeat("x", 129), false},
		{"/healthz", `quoted"id`, false},
		{"/healthz", "two words", false},
		{"/healthz", "\u00e9", false},
		{"/healthz", "", false},
	} {
		r, _ := i.do(t, "GET", c.path, "", "X-Request-ID", c.sent)
		got := r.Header.Get("X-Request-ID")
		if (got == c.sent) != c.kept || got == "" {
			t.Errorf("%s with %q: answered %q", c.path, c.sent, got)
		}
		i.log.await(t, "request="+quoteIfNeeded(got))
	}
}

func quoteIfNeeded(id string) string {
	if strings.ContainsAny(id, "= ") {
		return `"` + id + `"`
	}
	return id
}

// TestMissingMarker: the warehouse is refused, request by request, and the others are served.
func TestMissingMarker(t *testing.T) {
	c := testConfig(filepath.Join(plainTempDir(t), "data"))
	first := run(t, c)
	first.want(t, "POST", "/management/v1/warehouses", `{"name":"other"}`, 200, "")
	for _, prefix := range []string{"main", "other"} {
		first.want(t, "POST", "/v1/"+prefix+"/namespaces", `{"namespace":["n"]}`, 200, "")
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	marks, err := filepath.Glob(filepath.Join(c.Data, "warehouses", "main", blob.MarkPrefix+"*"))
	if err != nil || len(marks) != 1 {
		t.Fatal(marks, err)
	}
	mark := marks[0]
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	second := run(t, c)
	if log := second.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "warehouse=main") || !strings.Contains(log, "mount the volume") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	table := `{"name":"t","schema":{"type":"struct","fields":[{"id":1,"name":"a","type":"int","required":false}]}}`
	second.want(t, "POST", "/v1/other/namespaces/n/tables", table, 200, `"metadata-location"`)
	if r, got := second.do(t, "POST", "/v1/main/namespaces/n/tables", table); r.StatusCode < 400 {
		t.Errorf("a table was created in a warehouse without its marker: %d %s", r.StatusCode, got)
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("the marker was written again")
	}
}

// TestStartFails: what is wrong is said with its remedy, and nothing is left behind: not the lock either.
func TestStartFails(t *testing.T) {
	t.Run("address in use", func(t *testing.T) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		c := testConfig(filepath.Join(plainTempDir(t), "data"))
		c.Listen = taken.Addr().String()
		if _, err := tryRun(t, c); err == nil || !strings.Contains(err.Error(), "address already in use; stop what uses the address, or choose another with --listen") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Lstat(c.Data); err == nil {
			t.Error("the data directory was made all the same")
		}
		c.Listen = "127.0.0.1:0"
		run(t, c)
	})
	t.Run("corrupt catalog", func(t *testing.T) {
		c := testConfig(filepath.Join(plainTempDir(t), "data"))
		mkdirWith(t, c.Data, catalogFile, strings.Repeat("this is not a catalog ", 1000))
		if _, err := tryRun(t, c); err == nil || !strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("got %v", err)
		}
		if err := os.Remove(filepath.Join(c.Data, catalogFile)); err != nil {
			t.Fatal(err)
		}
		run(t, c)
	})
}

// TestBackup: a copy that is made while the server writes can be restored, and holds what was acknowledged before.
func TestBackup(t *testing.T) {
	tmp := plainTempDir(t)
	c := testConfig(filepath.Join(tmp, "data"))
	i := run(t, c)
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["before"]}`, 200, "")

	running, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; running.Err() == nil; n++ {
			i.want(t, "POST", "/v1/namespaces", fmt.Sprintf(`{"namespace":["n%d"]}`, n), 200, "")
		}
	})
	copied := filepath.Join(tmp, "copy.db")
	if err := Backup(t.Context(), c.Data, copied); err != nil {
		t.Fatal(err)
	}
	stop()
	writer.Wait()
	if err := Backup(t.Context(), c.Data, copied); err == nil || !strings.Contains(err.Error(), "exists; nothing was written: choose a new file") {
		t.Errorf("over an existing file: %v", err)
	}
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["after"]}`, 200, "")
	if err := i.end(); err != nil {
		t.Fatal(err)
	}
	if err := Backup(t.Context(), c.Data, filepath.Join(tmp, "stopped.db")); err != nil {
		t.Errorf("of a stopped catalog: %v", err)
	}
	if err := Backup(t.Context(), tmp, filepath.Join(tmp, "none.db")); err == nil || !strings.Contains(err.Error(), "there is no catalog in") {
		t.Errorf("of no catalog: %v", err)
	}

	// As docs/operations.md says: the server is stopped, the old catalog moved away, the copy put in its place.
	for _, name := range []string{"catalog.db", "catalog.db-wal", "catalog.db-shm"} {
		if err := os.Remove(filepath.Join(c.Data, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(copied, filepath.Join(c.Data, "catalog.db")); err != nil {
		t.Fatal(err)
	}
	restored := run(t, c)
	restored.want(t, "GET", "/v1/namespaces/before", "", 200, "")
	restored.want(t, "GET", "/v1/namespaces/after", "", 404, "")
	restored.want(t, "POST", "/v1/namespaces", `{"namespace":["next"]}`, 200, "")
}

// TestHeaderLimit: a header beyond 64 KiB is refused before anything looks at it.
func TestHeaderLimit(t *testing.T) {
	i := run(t, testConfig(filepath.Join(plainTempDir(t), "data")))
	conn, err := net.Dial("tcp", strings.TrimPrefix(i.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Go allows 4 KiB beyond the limit for the request line. What is sent here ends
	// where the server stops reading, so that its answer is not lost in a reset.
	line := "X: " + strings.Repeat("x", 1021) + "\r\n"
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n"+strings.Repeat(line, 68)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 12)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "HTTP/1.1 431" {
		t.Errorf("answered %q, %v", got, err)
	}
}

// TestHost: a server for this machine alone answers nobody who takes it for
// another host, on any of its paths; one that was asked to be insecure does.
func TestHost(t *testing.T) {
	i := run(t, testConfig(filepath.Join(plainTempDir(t), "data")))
	ask := func(i *instance, method, path, host string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, i.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		return answerOf(t, r)
	}
	for _, host := range []string{"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.1.2.3:8181", "[::1]", "[::1]:8181", "[::ffff:127.0.0.1]:1"} {
		if r, got := ask(i, "GET", "/v1/config", host); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", host, r.StatusCode, got)
		}
	}
	for _, host := range []string{"rebound.example", "rebound.example:8181", "localhost.example", "127.0.0.1.example", "10.0.0.1", "[::2]:8181", "0.0.0.0", "localhost:1:2"} {
		for _, path := range []string{"/v1/config", "/metrics", "/readyz", "/nowhere"} {
			r, got := ask(i, "GET", path, host)
			if r.StatusCode != 421 || !strings.Contains(got, `"type":"MisdirectedRequestException","code":421`) || !strings.Contains(got, "--insecure") || !r.Close {
				t.Errorf("%s for %s: %d %s", path, host, r.StatusCode, got)
			}
		}
	}
	if r, got := ask(i, "DELETE", "/management/v1/warehouses/main", "rebound.example"); r.StatusCode != 421 {
		t.Errorf("%d %s", r.StatusCode, got)
	}
	i.want(t, "GET", "/management/v1/warehouses/main", "", 200, "")

	c := testConfig(filepath.Join(plainTempDir(t), "data"))
	c.Insecure = true
	if r, got := ask(run(t, c), "GET", "/v1/config", "catalog.example"); r.StatusCode != 200 {
		t.Errorf("insecure: %d %s", r.StatusCode, got)
	}
}
