package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProfiles: they are there for who asked for them, without the command line.
func TestProfiles(t *testing.T) {
	off := run(t, testConfig(t.TempDir()))
	off.want(t, http.MethodGet, "/debug/pprof/", "", http.StatusNotFound, "NoSuchEndpointException")

	c := testConfig(t.TempDir())
	c.Pprof = true
	on := run(t, c)
	on.want(t, http.MethodGet, "/debug/pprof/", "", http.StatusOK, "goroutine")
	on.want(t, http.MethodGet, "/debug/pprof/goroutine?debug=1", "", http.StatusOK, "goroutine profile:")
	on.want(t, http.MethodGet, "/debug/pprof/heap?debug=1", "", http.StatusOK, "heap profile:")
	on.want(t, http.MethodGet, "/debug/pprof/cmdline", "", http.StatusNotFound, "NoSuchEndpointException")
	on.want(t, http.MethodPost, "/debug/pprof/symbol", "", http.StatusMethodNotAllowed, "only GET and HEAD")
	on.want(t, http.MethodGet, "/metrics", "", http.StatusOK, `route="/debug/pprof/heap"`)
}

func TestOnlyFromHere(t *testing.T) {
	for _, c := range []struct {
		from, host, header string
		want               int
	}{
		{"127.0.0.1:1234", "127.0.0.1:8181", "", http.StatusOK},
		{"[::1]:1234", "localhost:8181", "", http.StatusOK},
		{"192.0.2.7:1234", "127.0.0.1:8181", "", http.StatusForbidden},
		{"127.0.0.1:1234", "catalog.example.com", "", http.StatusForbidden},
		{"127.0.0.1:1234", "127.0.0.1:8181", "X-Forwarded-For: 192.0.2.7", http.StatusForbidden},
		{"127.0.0.1:1234", "127.0.0.1:8181", "Forwarded: for=192.0.2.7", http.StatusForbidden},
		{"", "127.0.0.1:8181", "", http.StatusForbidden},
		{":1234", "127.0.0.1:8181", "", http.StatusForbidden},
		{"@", "127.0.0.1:8181", "", http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/heap", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		onlyFromHere(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v: %d", c, w.Code)
		}
	}
}
