//go:build unix

package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/config"
)

// reads are the requests of the hot read path. Each is made again and again of a server that has
// answered it before.
var reads = []struct {
	name, method, path string
	known              bool // the client names the entity tag it has
	gzip               bool
}{
	{name: "config", path: "/v1/config"},
	{name: "namespace", path: "/v1/main/namespaces/bench"},
	{name: "exists", method: http.MethodHead, path: "/v1/main/namespaces/bench/tables/small"},
	{name: "load", path: "/v1/main/namespaces/bench/tables/small"},
	{name: "304", path: "/v1/main/namespaces/bench/tables/small", known: true},
	{name: "load-1000", path: "/v1/main/namespaces/bench/tables/large"},
	{name: "load-1000-gzip", path: "/v1/main/namespaces/bench/tables/large", gzip: true},
	{name: "refs-1000", path: "/v1/main/namespaces/bench/tables/large?snapshots=refs"},
	{name: "page", path: "/v1/main/namespaces/pages/tables?pageToken=&pageSize=1000"},
}

// benchServer is a server with what reads ask for. It serves until the benchmark ends.
func benchServer(b *testing.B) *server {
	b.Helper()
	c := config.Default()
	c.Data, c.Listen = b.TempDir(), "127.0.0.1:0"
	ctx, cancel := context.WithCancel(b.Context())
	s, err := start(ctx, Options{Config: c, Version: "v0.0.0-bench", Log: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	const namespaces = "/v1/main/namespaces"
	s.ask(b, http.MethodPost, namespaces, `{"namespace":["bench"]}`)
	s.ask(b, http.MethodPost, namespaces, `{"namespace":["pages"]}`)
	for _, t := range []string{"small", "large"} {
		s.ask(b, http.MethodPost, namespaces+"/bench/tables", benchTable(t))
	}
	var updates strings.Builder
	const snapshots = 1000
	for i := range snapshots {
		fmt.Fprintf(&updates, `{"action":"add-snapshot","snapshot":{"sequence-number":%d,"snapshot-id":%d,"timestamp-ms":%d,`+
			`"summary":{"operation":"append","spark.app.id":"application_1700000000000_0042","added-data-files":"12","added-records":"480000",`+
			`"added-files-size":"31457280","changed-partition-count":"3","total-records":"96000000","total-files-size":"6291456000",`+
			`"total-data-files":"2400","total-delete-files":"0","engine-name":"spark","engine-version":"3.5.6"},`+
			`"manifest-list":"file:///lake/sales/orders/metadata/snap-%d-1-0f7d5c1e-6b1c-4d0a-9d58-3f2f7d2a1b10.avro","schema-id":0}},`,
			i+1, i+1, 1_700_000_000_000+i, i+1)
	}
	s.ask(b, http.MethodPost, namespaces+"/bench/tables/large", `{"requirements":[],"updates":[`+updates.String()+
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":`+strconv.Itoa(snapshots)+`}]}`)
	for i := range 1200 {
		s.ask(b, http.MethodPost, namespaces+"/pages/tables", benchTable(fmt.Sprintf("table_%04d", i)))
	}
	return s
}

func benchTable(name string) string {
	return `{"name":"` + name + `","properties":{"owner":"bench"},"schema":{"type":"struct","schema-id":0,"fields":[` +
		`{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"at","required":false,"type":"timestamp"},` +
		`{"id":3,"name":"payload","required":false,"type":"string"}]}}`
}

// recorder is an answer that is counted and thrown away. It is reset for each request.
type recorder struct {
	header http.Header
	status int
	bytes  int
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(code int) {
	if r.status == 0 {
		r.status = code
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.bytes += len(p)
	return len(p), nil
}

func (r *recorder) reset() {
	clear(r.header)
	r.status, r.bytes = 0, 0
}

// ask makes one request without a connection.
func (s *server) ask(b *testing.B, method, path, body string) *recorder {
	b.Helper()
	w := &recorder{header: http.Header{}}
	s.http.Handler.ServeHTTP(w, benchRequest(b, method, path, body))
	if w.status >= http.StatusBadRequest {
		b.Fatalf("%s %s: %d", method, path, w.status)
	}
	return w
}

func benchRequest(b *testing.B, method, path, body string) *http.Request {
	b.Helper()
	u, err := url.ParseRequestURI(path)
	if err != nil {
		b.Fatal(err)
	}
	r := &http.Request{
		Method: method, URL: u, RequestURI: path, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Host: "127.0.0.1", RemoteAddr: "127.0.0.1:1", Body: http.NoBody,
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	return r.WithContext(b.Context())
}

// headers are those that the requests bring.
func (s *server) headers(b *testing.B, known, gzip bool, path string) (h []string) {
	b.Helper()
	if known {
		for name, values := range s.ask(b, http.MethodGet, path, "").header {
			if strings.EqualFold(name, "ETag") {
				h = append(h, "If-None-Match", values[0])
			}
		}
	}
	if gzip {
		h = append(h, "Accept-Encoding", "gzip")
	}
	return h
}

// BenchmarkHandler measures what is ours of a request: everything but net/http and the network.
func BenchmarkHandler(b *testing.B) {
	s := benchServer(b)
	for _, read := range reads {
		b.Run(read.name, func(b *testing.B) {
			method := read.method
			if method == "" {
				method = http.MethodGet
			}
			template := benchRequest(b, method, read.path, "")
			extra := s.headers(b, read.known, read.gzip, read.path)
			w := &recorder{header: http.Header{}}
			header := http.Header{}
			ctx := b.Context()
			var r http.Request
			b.ReportAllocs()
			for b.Loop() {
				w.reset()
				clear(header)
				for i := 0; i < len(extra); i += 2 {
					header[extra[i]] = extra[i+1 : i+2]
				}
				r = *template
				r.Header = header
				s.http.Handler.ServeHTTP(w, r.WithContext(ctx))
			}
			if w.status == 0 || w.status >= 400 {
				b.Fatalf("status %d", w.status)
			}
			b.ReportMetric(float64(w.bytes), "bytes")
		})
	}
}

// benchClients is how many connections ask at once.
const benchClients = 16

// BenchmarkServed asks over connections, by clients that decode nothing, and has a bare
// handler of net/http that writes the same bytes asked in the same way.
func BenchmarkServed(b *testing.B) {
	s := benchServer(b)
	for _, read := range reads {
		method := read.method
		if method == "" {
			method = http.MethodGet
		}
		var request bytes.Buffer
		fmt.Fprintf(&request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, read.path)
		extra := s.headers(b, read.known, read.gzip, read.path)
		for i := 0; i < len(extra); i += 2 {
			fmt.Fprintf(&request, "%s: %s\r\n", extra[i], extra[i+1])
		}
		request.WriteString("\r\n")
		listening := s.listener.Addr().String()
		conn := dialBench(b, listening)
		for range 3 { // what is kept is made by now
			conn.exchange(b, request.Bytes())
		}
		status, body := conn.exchange(b, request.Bytes())
		b.Run(read.name+"/ours", func(b *testing.B) { served(b, listening, request.Bytes()) })
		b.Run(read.name+"/bare", func(b *testing.B) {
			served(b, serveBare(b, status, body), request.Bytes())
		})
	}
}

// serveBare serves one answer until the benchmark ends.
func serveBare(b *testing.B, status int, body []byte) (address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	bare := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(body) == 0 {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})}
	ended := make(chan error, 1)
	go func() { ended <- bare.Serve(listener) }()
	b.Cleanup(func() {
		_ = bare.Close()
		<-ended
	})
	return listener.Addr().String()
}

// served has benchClients ask until b.N answers have come.
func served(b *testing.B, address string, request []byte) {
	conns := make([]*benchConn, benchClients)
	for i := range conns {
		conns[i] = dialBench(b, address)
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	ended := make(chan struct{}, len(conns))
	used := cpuTime(b)
	b.ResetTimer()
	for _, c := range conns {
		go func() {
			defer func() { ended <- struct{}{} }()
			for left.Add(-1) >= 0 && !b.Failed() {
				c.skip(b, request)
			}
		}()
	}
	for range conns {
		<-ended
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	b.ReportMetric(float64(cpuTime(b)-used)/float64(b.N), "cpu-ns/op") // of clients and server
}

// cpuTime is how long this process has had a processor: unlike rates, it hardly
// depends on what else runs.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// benchConn is a connection whose answers are read no closer than needed.
type benchConn struct {
	net.Conn
	r *bufio.Reader
}

func dialBench(b *testing.B, address string) *benchConn {
	b.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return &benchConn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}
}

// send makes a request and reads the head of its answer.
func (c *benchConn) send(b *testing.B, request []byte) (status, length int) {
	if _, err := c.Write(request); err != nil {
		b.Error(err)
		return 0, 0
	}
	for first := true; ; first = false {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			b.Error(err)
			return 0, 0
		}
		switch {
		case first && len(line) > 12:
			status, _ = strconv.Atoi(string(line[9:12]))
		case len(line) <= 2:
			if bytes.HasPrefix(request, []byte("HEAD")) {
				length = 0
			}
			return status, length
		case len(line) > 16 && bytes.EqualFold(line[:16], []byte("Content-Length: ")):
			length, _ = strconv.Atoi(string(bytes.TrimSpace(line[16:])))
		}
	}
}

func (c *benchConn) exchange(b *testing.B, request []byte) (status int, body []byte) {
	status, length := c.send(b, request)
	body = make([]byte, length)
	if _, err := io.ReadFull(c.r, body); err != nil {
		b.Fatal(err)
	}
	return status, body
}

func (c *benchConn) skip(b *testing.B, request []byte) {
	status, length := c.send(b, request)
	if _, err := c.r.Discard(length); err != nil || status >= 400 {
		b.Errorf("status %d: %v", status, err)
	}
}
