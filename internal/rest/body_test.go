package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/catalog"
)

func gzipped(t *testing.T, data string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBodies: what may wrap a body, and how long it may be. Each body would
// make a namespace, and does so only where the status is 200.
func TestBodies(t *testing.T) {
	s := newStack(t)
	body := func(name string) string { return fmt.Sprintf(`{"namespace":[%q]}`, name) }
	padded := func(name string, size int) string {
		b := body(name)
		return b + strings.Repeat(" ", size-len(b))
	}
	limit := int(s.handler.opt.MaxBodyBytes)
	chunked := func(data string) string {
		return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(data), data)
	}
	packed := gzipped(t, body("g"))
	for _, tc := range []struct {
		name, headers, body string
		status              int
		kind, message       string
	}{
		{"json", "Content-Type: application/json", body("a"), 200, "", ""},
		{"json with a charset", "Content-Type: application/json; charset=utf-8", body("b"), 200, "", ""},
		{"json in capitals", "Content-Type: Application/JSON", body("c"), 200, "", ""},
		{"odd parameter", "Content-Type: application/json; =", body("d"), 200, "", ""},
		{"no type", "Content-Type:", body("n"), 415, "UnsupportedMediaTypeException", "has no Content-Type: send application/json"},
		{"form", "Content-Type: application/x-www-form-urlencoded", body("n"), 415, "UnsupportedMediaTypeException", `"application/x-www-form-urlencoded" is not supported`},
		{"text", "Content-Type: text/plain; x=application/json", body("n"), 415, "UnsupportedMediaTypeException", "send application/json"},
		{"json of another kind", "Content-Type: application/json-seq", body("n"), 415, "UnsupportedMediaTypeException", "send application/json"},
		{"nonsense type", "Content-Type: ;;", body("n"), 415, "UnsupportedMediaTypeException", "send application/json"},

		{"identity", "Content-Encoding: identity", body("e"), 200, "", ""},
		{"gzip", "Content-Encoding: gzip", packed, 200, "", ""},
		{"x-gzip", "Content-Encoding: X-GZIP", gzipped(t, body("h")), 200, "", ""},
		{"two gzip members", "Content-Encoding: gzip", gzipped(t, body("i")) + gzipped(t, " "), 200, "", ""},
		{"brotli", "Content-Encoding: br", body("n"), 415, "UnsupportedMediaTypeException", `Content-Encoding "br" is not supported`},
		{"gzip twice", "Content-Encoding: gzip, gzip", packed, 415, "UnsupportedMediaTypeException", "send gzip or none"},
		{"not gzip", "Content-Encoding: gzip", body("n"), 400, "BadRequestException", "Cannot decompress"},
		{"truncated gzip", "Content-Encoding: gzip", packed[:len(packed)-6], 400, "BadRequestException", "Cannot decompress"},
		{"broken gzip", "Content-Encoding: gzip", packed[:12] + "\xff\xff" + packed[14:], 400, "BadRequestException", "Cannot decompress"},
		{"gzip with more behind", "Content-Encoding: gzip", packed + "more", 400, "BadRequestException", "Cannot decompress"},
		{"gzip of nothing", "Content-Encoding: gzip", gzipped(t, ""), 400, "BadRequestException", "has no body"},
		{"gzip at the limit", "Content-Encoding: gzip", gzipped(t, padded("j", limit)), 200, "", ""},
		{"gzip beyond the limit", "Content-Encoding: gzip", gzipped(t, padded("n", limit+1)), 413, "RequestTooLargeException", "more than 65536 bytes"},
		{"gzip bomb", "Content-Encoding: gzip", gzipped(t, padded("n", 100*limit)), 413, "RequestTooLargeException", "more than 65536 bytes"},

		{"at the limit", "", padded("k", limit), 200, "", ""},
		{"beyond the limit", "", padded("n", limit+1), 413, "RequestTooLargeException", "(max_body_bytes)"},
		{"chunked", "Transfer-Encoding: chunked", chunked(body("l")), 200, "", ""},
		{"chunked at the limit", "Transfer-Encoding: chunked", chunked(padded("m", limit)), 200, "", ""},
		{"chunked beyond the limit", "Transfer-Encoding: chunked", chunked(padded("n", limit+1)), 413, "RequestTooLargeException", "more than 65536 bytes"},
		{"chunked and empty", "Transfer-Encoding: chunked", "0\r\n\r\n", 400, "BadRequestException", "has no body"},
		{"broken chunks", "Transfer-Encoding: chunked", "zz\r\n", 400, "BadRequestException", "ended early"},
		{"empty", "", "", 400, "BadRequestException", "has no body: send a JSON object"},
		{"empty, with a type", "Content-Type: application/json", "", 400, "BadRequestException", "has no body"},
		{"a byte order mark", "", "\ufeff" + body("n"), 400, "BadRequestException", "invalid JSON at byte 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer s.in(t)()
			before := s.state()
			request := "POST /v1/namespaces"
			if tc.headers != "" {
				request += "\n" + tc.headers
			}
			got := s.send(request + "\n\n" + tc.body)
			checkRefusal(t, got, tc.status, tc.kind, tc.message)
			if changed := s.state() != before; changed != (tc.status == 200) {
				t.Errorf("%s, and something changed: %v", got.Status, changed)
			}
		})
	}
}

// checkRefusal compares an answer; kind and message count only for refusals.
func checkRefusal(t *testing.T, got reply, status int, kind, message string) {
	t.Helper()
	if got.StatusCode != status {
		t.Errorf("got %d %s, want %d", got.StatusCode, got.body, status)
		return
	}
	if status < 400 {
		return
	}
	var body errorBody
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Errorf("%q: %v", got.body, err)
		return
	}
	if body.Error.Type != kind || body.Error.Code != status || !strings.Contains(body.Error.Message, message) || body.Error.Message == "" {
		t.Errorf("got %s\nwant %d %s with %q", got.body, status, kind, message)
	}
	if got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("Content-Type is %q", got.Header.Get("Content-Type"))
	}
}

// dial opens a connection and sends a text on it.
func (s *stack) dial(text string) net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.Fatal(err)
	}
	return conn
}

const createHead = "POST /v1/namespaces HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"

// TestSlowBody: a body that does not arrive ends with the request's deadline, and
// the connection with it.
func TestSlowBody(t *testing.T) {
	s := newStack(t, func(o *Options) { o.RequestTimeout = 50 * time.Millisecond })
	for name, text := range map[string]string{
		"no byte":      createHead + "Content-Length: 20\r\n\r\n",
		"some bytes":   createHead + "Content-Length: 20\r\n\r\n{\"names",
		"chunks":       createHead + "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"na\r\n",
		"gzip":         createHead + "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n\x1f\x8b\x08",
		"most of gzip": createHead + "Content-Encoding: gzip\r\nContent-Length: 500\r\n\r\n" + gzipped(t, `{"namespace":["n"]}`)[:20],
	} {
		t.Run(name, func(t *testing.T) {
			defer s.in(t)()
			before := s.state()
			conn := s.dial(text)
			got := s.read(conn, "POST")
			checkRefusal(t, got, 408, "RequestTimeoutException", "did not arrive within 50ms")
			s.mustEnd(conn)
			if s.state() != before {
				t.Error("something changed")
			}
		})
	}
}

// mustEnd waits until the server closes a connection that the client leaves open.
func (s *stack) mustEnd(conn net.Conn) {
	s.Helper()
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		s.Errorf("the connection stays open in the middle of a body: %v", err)
	}
}

// TestUnreadBody: a refusal that has not read the body does not wait for it
// longer than the request may take, and a client that never sends it keeps nothing.
func TestUnreadBody(t *testing.T) {
	s := newStack(t, func(o *Options) { o.RequestTimeout = 500 * time.Millisecond }) // in which some must succeed
	for head, status := range map[string]int{
		"GET /v1/nowhere HTTP/1.1\r\nHost: test\r\n":                                                               404,
		"GET /v1/config HTTP/1.1\r\nHost: test\r\n":                                                                200,
		"POST /v1/namespaces HTTP/1.1\r\nHost: test\r\n":                                                           415,
		"POST /v1/namespaces HTTP/1.1\r\nHost: test\r\nContent-Encoding: br\r\nContent-Type: application/json\r\n": 415,
		createHead + "Content-Encoding: gzip\r\n":                                                                  400,
	} {
		conn := s.dial(head + "Content-Length: 100\r\n\r\nthis is not gzip")
		if got := s.read(conn, "POST"); got.StatusCode != status {
			t.Errorf("%q: %s %s", head, got.Status, got.body)
		}
		s.mustEnd(conn)
	}
}

// TestLongBodyIsRefusedUnread: a body that says it is too long is not waited for.
func TestLongBodyIsRefusedUnread(t *testing.T) {
	s := newStack(t)
	conn := s.dial(createHead + "Content-Length: 1000000000000\r\n\r\n")
	checkRefusal(t, s.read(conn, "POST"), 413, "RequestTooLargeException", "more than 65536 bytes")
}

// TestConnectionSurvivesBody: reading a body leaves no deadline behind, so that the
// connection serves the next request.
func TestConnectionSurvivesBody(t *testing.T) {
	s := newStack(t)
	conn := s.dial("")
	for i := range 3 {
		body := fmt.Sprintf(`{"namespace":["n%d"]}`, i)
		if _, err := fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", createHead, len(body), body); err != nil {
			t.Fatal(err)
		}
		if got := s.read(conn, "POST"); got.StatusCode != 200 || got.Close {
			t.Fatalf("%s %s, close %v", got.Status, got.body, got.Close)
		}
	}
}

// FuzzDecodeBody: whatever a body is, it is decoded or refused with what and where,
// and nothing panics; what was decoded has all that is required.
func FuzzDecodeBody(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `"x"`, `{"namespace":["a"],"properties":{"a":null}}`, `{"namespace":[null]}`,
		`{"name":"t","schema":{"type":"struct","fields":[]},"stage-create":true}`,
		`{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[{"action":"x"}]}`,
		`{"source":{"namespace":[],"name":""},"destination":{}}`, `{"a":1,"\u0061":2}`, "{\"name\":\"\xff\"}", `{"report-type":9007199254740993}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []requestBody{
			new(createNamespaceBody), new(updatePropertiesBody), new(createTableBody), new(commitTableBody),
			new(registerTableBody), new(renameTableBody), new(reportMetricsBody), new(createWarehouseBody),
		} {
			err := decodeBody(data, into)
			var refusal *catalog.Error
			switch {
			case err == nil && len(into.missing()) > 0:
				t.Errorf("%T lacks %q", into, into.missing())
			case err != nil && (!errors.As(err, &refusal) || refusal.Kind != errMalformed || refusal.Message == ""):
				t.Errorf("%T: %#v", into, err)
			}
			if body, ok := into.(*renameTableBody); ok && err == nil {
				_, _ = body.Source.ident(), body.Destination.ident()
			}
		}
	})
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{
		"Name":                         `did you mean "name"?`,
		"nmae":                         `did you mean "name"?`,
		"locations":                    `did you mean "location"?`,
		"allowed_locations":            `did you mean "allowed-locations"?`,
		"property":                     `did you mean "properties"?`,
		"colour":                       `known are ["name" "location" "allowed-locations" "properties" "s3"]`,
		"":                             `known are`,
		strings.Repeat("name", 10_000): `known are`,
	} {
		err := checkKnown(name, createWarehouseMembers)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: got %.200v, want %s", name, err, want)
		}
	}
	for _, name := range createWarehouseMembers {
		if err := checkKnown(name, createWarehouseMembers); err != nil {
			t.Error(err)
		}
	}
}
