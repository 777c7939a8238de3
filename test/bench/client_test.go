package main

import (
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExchange feeds the client answers as they travel, all of them followed by
// the start of a next one, which must stay unread.
func TestExchange(t *testing.T) {
	type result struct {
		Status, Length int
		Err            string // a part of it
	}
	for name, c := range map[string]struct {
		answer string
		want   result
	}{
		"body":            {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", result{200, 5, ""}},
		"lower case":      {"HTTP/1.1 409 Conflict\r\ncontent-length:2\r\n\r\n{}", result{409, 2, ""}},
		"no content":      {"HTTP/1.1 204 No Content\r\n\r\n", result{204, 0, ""}},
		"not modified":    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", result{304, 0, ""}},
		"no reason":       {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", result{200, 0, ""}},
		"chunks":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n", result{200, 15, ""}},
		"broken chunk":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n", result{Err: "after a chunk"}},
		"no chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n", result{Err: "size of a chunk"}},
		"no length":       {"HTTP/1.1 200 OK\r\n\r\n", result{Err: "no Content-Length"}},
		"end":             {"HTTP/1.1 500 Oops\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", result{Err: "status 500, and the server ends"}},
		"not HTTP":        {"hello\r\n\r\n", result{Err: "status line"}},
		"broken length":   {"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", result{Err: `header "Content-Length: x"`}},
		"header too long": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 128<<10) + "\r\n\r\n", result{Err: "buffer full"}},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				buf := make([]byte, 1024)
				if _, err := theirs.Read(buf); err != nil {
					return
				}
				_, _ = theirs.Write([]byte(c.answer + "NEXT"))
			}()
			client := pipeClient(ours)
			var got result
			var err error
			got.Status, got.Length, err = client.exchange(request("GET", "/", nil))
			if err != nil {
				if c.want.Err == "" || !strings.Contains(err.Error(), c.want.Err) {
					t.Errorf("error %q, want one with %q", err, c.want.Err)
				}
				got.Err = c.want.Err
			} else if next, err := client.r.Peek(4); err != nil || string(next) != "NEXT" {
				t.Errorf("what follows is %q, %v", next, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			client.hangUp()
			_ = theirs.Close()
			<-served
		})
	}
}

// TestFetch: the body of an answer is whole, however it travels, and replaces the last one's.
func TestFetch(t *testing.T) {
	ours, theirs := newPipe(t)
	for _, c := range []struct{ answer, want string }{
		{"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world", "hello, world"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello"},
		{"HTTP/1.1 204 No Content\r\n\r\n", ""},
	} {
		go func() {
			_, _ = theirs.Read(make([]byte, 1024))
			_, _ = theirs.Write([]byte(c.answer))
		}()
		if _, body, err := ours.fetch(request("GET", "/", nil)); err != nil || string(body) != c.want {
			t.Errorf("%q: body %q, %v", c.answer, body, err)
		}
	}
}

// newPipe is a client and the other end of its connection.
func newPipe(t *testing.T) (*client, net.Conn) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
	})
	return pipeClient(ours), theirs
}

func pipeClient(conn net.Conn) *client {
	c := newClient("")
	c.use(conn)
	return c
}
