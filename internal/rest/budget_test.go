package rest

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// awaitBudget blocks until the free bytes of the budget satisfy the condition.
func (s *stack) awaitBudget(what string, holds func(free int64) bool) {
	s.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds(s.handler.bodies.free.Load()) {
		if time.Now().After(deadline) {
			s.Fatalf("%s: %d bytes are free", what, s.handler.bodies.free.Load())
		}
		runtime.Gosched()
	}
}

// TestBodiesShareMemory: large bodies that are under way leave no room for another
// one, which is told to come again at once; small ones are served meanwhile, and
// what a request held is free at its end, whether it succeeds or its client leaves.
func TestBodiesShareMemory(t *testing.T) {
	const limit = 1 << 20
	const all = budgetBodies * limit
	s := newStack(t, func(o *Options) { o.MaxBodyBytes = limit })
	body := func(name string, size int) string {
		b := fmt.Sprintf(`{"namespace":[%q]}`, name)
		return b + strings.Repeat(" ", size-len(b))
	}
	var parked []net.Conn
	for n := range budgetBodies - 1 {
		conn := s.dial(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", createHead, limit))
		if _, err := io.WriteString(conn, body(fmt.Sprint("parked", n), limit)[:limit-1]); err != nil {
			t.Fatal(err)
		}
		parked = append(parked, conn)
	}
	s.awaitBudget("all but one of the largest are held", func(free int64) bool { return free <= limit })

	for name, request := range map[string]string{
		"plain":   "POST /v1/namespaces\n\n" + body("n", limit),
		"gzip":    "POST /v1/namespaces\nContent-Encoding: gzip\n\n" + gzipped(t, body("n", limit)),
		"chunked": fmt.Sprintf("POST /v1/namespaces\nTransfer-Encoding: chunked\n\n%x\r\n%s\r\n0\r\n\r\n", limit, body("n", limit)),
	} {
		t.Run(name, func(t *testing.T) {
			defer s.in(t)()
			before := s.state()
			got := s.send(request)
			checkRefusal(t, got, 429, "TooManyRequestsException", "busy and has changed nothing: try again")
			if got.Header.Get("Retry-After") != "1" {
				t.Errorf("%v", got.Header)
			}
			if s.state() != before {
				t.Error("something changed")
			}
		})
	}
	// The body is read to its end, and the connection serves the next request.
	conn := s.dial(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", createHead, limit, body("n", limit)))
	if got := s.read(conn, "POST"); got.StatusCode != 429 || got.Close {
		t.Errorf("%s, close %v", got.Status, got.Close)
	}
	if _, err := io.WriteString(conn, "GET /v1/config HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := s.read(conn, "GET"); got.StatusCode != 200 {
		t.Errorf("the next request: %s", got.Status)
	}
	s.must("POST /v1/namespaces\n\n" + body("small", uncountedBody-1))
	s.must("POST /v1/namespaces\nContent-Encoding: gzip\n\n" + gzipped(t, body("packed", uncountedBody-1)))

	if err := parked[0].Close(); err != nil {
		t.Fatal(err)
	}
	for _, conn := range parked[1:] {
		if _, err := io.WriteString(conn, " "); err != nil {
			t.Fatal(err)
		}
		if got := s.read(conn, "POST"); got.StatusCode != 200 {
			t.Errorf("a request that had room: %s %s", got.Status, got.body)
		}
	}
	s.awaitBudget("everything is given back", func(free int64) bool { return free == all })
	s.must("POST /v1/namespaces\n\n" + body("later", limit))
	s.awaitBudget("everything is given back", func(free int64) bool { return free == all })
}

// TestBodyBombs: however many small bodies become large ones at once, each is
// answered, and the budget comes back whole.
func TestBodyBombs(t *testing.T) {
	const limit = 1 << 20
	s := newStack(t, func(o *Options) { o.MaxBodyBytes = limit })
	bomb := gzipped(t, strings.Repeat(" ", limit+1))
	var running sync.WaitGroup
	answers := make(chan int, 24)
	for range cap(answers) {
		running.Go(func() {
			w, _ := serve(s.handler, "POST", "/v1/namespaces", bomb, "Content-Encoding", "gzip")
			answers <- w.Code
		})
	}
	running.Wait()
	close(answers)
	for status := range answers {
		if status != 413 && status != 429 {
			t.Errorf("answered %d", status)
		}
	}
	if free := s.handler.bodies.free.Load(); free != budgetBodies*limit {
		t.Errorf("%d bytes are free, want %d", free, budgetBodies*limit)
	}
}
