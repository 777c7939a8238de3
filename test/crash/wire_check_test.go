package crash

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The wire does to a request and its answer what its mischief says, and nothing to the next.
func TestWire(t *testing.T) {
	type result struct {
		Database, Server string // what each got
		Ended            bool   // the connection, as the server saw
		Late             bool
	}
	const late = 20 * time.Millisecond
	tests := []struct {
		name     string
		mischief mischief
		want     result
	}{
		{"nothing", mischief{}, result{Database: "request", Server: "answer"}},
		{"cut the request", mischief{cutRequest: 0.5}, result{Database: "req", Ended: true}},
		{"hold the request", mischief{holdRequest: late}, result{Database: "request", Server: "answer", Late: true}},
		{"drop the answer", mischief{dropAnswer: true}, result{Database: "request", Ended: true}},
		{"cut the answer", mischief{cutAnswer: 0.5}, result{Database: "request", Server: "ans", Ended: true}},
		{"delay the answer", mischief{delayAnswer: late}, result{Database: "request", Server: "answer", Late: true}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got result
			database, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var serving sync.WaitGroup
			serving.Go(func() {
				c, err := database.Accept()
				if err != nil {
					return // the test has failed
				}
				defer c.Close()
				request := make([]byte, len("request"))
				n, err := io.ReadFull(c, request)
				got.Database = string(request[:n])
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, "answer") // what came of it, the server's end tells
				_, _ = io.Copy(io.Discard, c)
			})
			w, err := newWire(database.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			w.misbehave(func() mischief { return test.mischief })
			c, err := net.Dial("tcp", w.address())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(c, "request"); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, len("answer"))
			n, err := io.ReadFull(c, answer)
			got.Server, got.Ended, got.Late = string(answer[:n]), err != nil, time.Since(began) >= late
			c.Close()
			if err := w.close(); err != nil {
				t.Error(err)
			}
			if err := database.Close(); err != nil {
				t.Error(err)
			}
			serving.Wait()
			if n := w.holds(); n != 0 {
				t.Errorf("it still holds %d requests", n)
			}
			got.Late = got.Late && test.want.Late // a machine may be slow
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Of a connection that is silent neither end hears anything any more; a new one is as good as ever.
func TestSilentWire(t *testing.T) {
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	w, err := newWire(database.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	join := func() (server, backend net.Conn) {
		server, err := net.Dial("tcp", w.address())
		if err != nil {
			t.Fatal(err)
		}
		backend, err = database.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return server, backend
	}
	const soon, late = 100 * time.Millisecond, 20 * time.Second // where nothing is to be heard, and where something is
	hears := func(to, from net.Conn, within time.Duration) bool {
		if _, err := io.WriteString(from, "word"); err != nil {
			t.Fatal(err)
		}
		if err := to.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadFull(to, make([]byte, len("word")))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection has ended: %v", err)
		}
		return err == nil
	}
	server, backend := join()
	if !hears(backend, server, late) || !hears(server, backend, late) {
		t.Error("it is silent before its time")
	}
	if n := w.silence(); n != 1 {
		t.Errorf("%d connections were open, want 1", n)
	}
	if hears(backend, server, soon) || hears(server, backend, soon) {
		t.Error("it is not silent")
	}
	another, its := join()
	if !hears(its, another, late) || !hears(another, its, late) {
		t.Error("another is silent, too")
	}
	for _, c := range []net.Conn{server, backend, another, its} {
		c.Close()
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}
