package s3

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/s3/s3test"
)

// impatient is a policy for tests: it gives up soon.
var impatient = policy{attempts: 4, answer: 5 * time.Second, bytesPerSec: 1 << 20, firstPause: time.Millisecond, lastPause: 4 * time.Millisecond}

// act is what a proxy does with one request.
type act string

const (
	pass        act = "pass"
	dropRequest act = "drop request"     // the server never sees it
	dropReply   act = "drop reply"       // the server does it, and nobody hears of it
	cutReply    act = "cut reply"        // half of the answer's body arrives
	fail500     act = "500"              // in place of the server
	done500     act = "done, then 500"   // the server does it
	slowDown    act = "503 SlowDown"     //
	conflict409 act = "409"              // ConditionalRequestConflict
	denied      act = "403"              //
	hold        act = "hold"             // no answer, until the client gives up
	doneHold    act = "done, then hold"  // the server does it
	twice       act = "twice"            // something on the way sends it again
	gone        act = "404 NoSuchBucket" //
)

// proxy stands in front of a server, and loses and breaks what goes through it.
type proxy struct {
	url    string
	behind *httputil.ReverseProxy
	next   func(method string) act

	mu   sync.Mutex
	seen []string // methods of the requests
}

// newProxy starts a proxy; next says what it does with each request, and may be called by several goroutines.
func newProxy(t *testing.T, server *s3test.Server, next func(method string) act) (*proxy, blob.S3Options) {
	target, err := url.Parse(server.Options.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	p := &proxy{next: next, behind: &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // which is signed
	}}}
	front := httptest.NewServer(p)
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	p.url = front.URL
	options := server.Options
	options.Endpoint = front.URL
	return p, options
}

// script is a next that does one thing after the other, and at the end the last again and again.
func script(acts ...act) func(string) act {
	var mu sync.Mutex
	n := 0
	return func(string) act {
		mu.Lock()
		defer mu.Unlock()
		a := acts[min(n, len(acts)-1)]
		n++
		return a
	}
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method)
	p.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	forward := func(to http.ResponseWriter) {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		p.behind.ServeHTTP(to, again)
	}
	refuse := func(status int, code string) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			io.WriteString(w, "<?xml version=\"1.0\"?><Error><Code>"+code+"</Code><Message>so it goes</Message></Error>")
		}
	}
	switch a := p.next(r.Method); a {
	case pass:
		forward(w)
	case dropRequest:
		panic(http.ErrAbortHandler)
	case dropReply:
		forward(httptest.NewRecorder())
		panic(http.ErrAbortHandler)
	case cutReply:
		answer := httptest.NewRecorder()
		forward(answer)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case fail500:
		refuse(http.StatusInternalServerError, "InternalError")
	case done500:
		forward(httptest.NewRecorder())
		refuse(http.StatusInternalServerError, "InternalError")
	case slowDown:
		refuse(http.StatusServiceUnavailable, "SlowDown")
	case conflict409:
		refuse(http.StatusConflict, "ConditionalRequestConflict")
	case denied:
		refuse(http.StatusForbidden, "AccessDenied")
	case gone:
		refuse(http.StatusNotFound, "NoSuchBucket")
	case hold:
		<-r.Context().Done()
	case doneHold:
		forward(httptest.NewRecorder())
		<-r.Context().Done()
	case twice:
		forward(httptest.NewRecorder())
		forward(w)
	default:
		panic(a)
	}
}
