package crash

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The proxy does to a request what its mischief says, to nothing else, and nothing twice.
func TestProxy(t *testing.T) {
	const body = "0123456789"
	type result struct {
		Server []string // what it got in each request, in order
		Client string   // what the client was answered; empty: nothing that is whole
		Gone   bool     // the server saw that the client had gone
	}
	tests := []struct {
		name     string
		mischief mischief
		patience time.Duration // of the client
		want     result
	}{
		{"nothing", mischief{}, requestTimeout, result{[]string{body}, "answer", false}},
		{"drop the request", mischief{dropRequest: true}, requestTimeout, result{}},
		{"cut the request within its body", mischief{cutRequest: 1}, requestTimeout, result{Server: []string{"012345678, unexpected EOF"}}},
		{"cut the request within its header", mischief{cutRequest: 0.1}, requestTimeout, result{}},
		{"drop the answer", mischief{dropAnswer: true}, requestTimeout, result{Server: []string{body}}},
		{"cut the answer", mischief{cutAnswer: 0.98}, requestTimeout, result{Server: []string{body}}},
		{"lose the answer at once", mischief{loseAnswer: true}, requestTimeout, result{[]string{body}, "", true}},
		{"lose the answer at once, unnoticed", mischief{loseAnswer: true, outlive: true}, requestTimeout, result{Server: []string{body}}},
		{"delay the answer", mischief{delayAnswer: 5 * time.Millisecond}, requestTimeout, result{[]string{body}, "answer", false}},
		{"hold the request", mischief{holdRequest: 5 * time.Millisecond}, requestTimeout, result{[]string{body}, "answer", false}},
		// The client's time begins before that of the hold, and the request must come within it.
		{"hold the request until the client has gone", mischief{holdRequest: 2 * time.Second, outlive: true}, time.Second, result{Server: []string{body}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var got result
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, err := io.ReadAll(r.Body)
				seen := string(data)
				if err != nil {
					seen += fmt.Sprintf(", %v", err)
				}
				gone := false
				if test.want.Gone {
					select {
					case <-r.Context().Done():
						gone = true
					case <-time.After(quietTimeout):
					}
				}
				mu.Lock()
				defer mu.Unlock()
				got.Server, got.Gone = append(got.Server, seen), gone
				_, _ = io.WriteString(w, "answer") // the client may have gone
			}))
			defer server.Close()
			p, err := newProxy()
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			p.lead(server.URL)
			p.misbehave(func() mischief { return test.mischief })
			c := newClient(p.url())
			c.patience.Store(int64(test.patience))
			if a := c.send(request{method: "POST", path: "/x", body: []byte(body)}); a.err == nil {
				got.Client = string(a.body)
			}
			ctx, cancel := context.WithTimeout(t.Context(), quietTimeout)
			defer cancel()
			err = p.idle(ctx, func() int { c.close(); return int(c.dials.Load()) })
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Requests of one connection pass one after another, byte for byte, whatever their size,
// and the proxy leads to a new server once it is told to.
func TestProxyPasses(t *testing.T) {
	echo := func(name string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			data, _ := io.ReadAll(r.Body) // what is missing is missed below
			_, _ = io.WriteString(w, name+" "+string(data))
		}))
	}
	one, other := echo("one"), echo("other")
	defer one.Close()
	defer other.Close()
	p, err := newProxy()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	c := newClient(p.url())
	defer c.close()
	if a := c.call("GET", "/", nil); a.outcome() != unknown {
		t.Errorf("without a server: %d %s", a.status, a.body)
	}
	for _, server := range []struct{ name, url string }{{"one", one.URL}, {"other", other.URL}} {
		p.lead(server.url)
		c.close() // what is open leads where it did
		for _, size := range []int{0, 1, 5000, 1 << 20} {
			want := strings.Repeat("x", size)
			a := c.send(request{method: "POST", path: "/", body: []byte(want)})
			if got := string(a.body); a.err != nil || got != server.name+" "+want {
				t.Errorf("%d bytes to %s: %d, %v, %.20q", size, server.name, len(got), a.err, got)
			}
		}
	}
}
