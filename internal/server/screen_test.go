package server

import (
	"net"
	"strings"
	"testing"
)

// TestScreen shows the start screen as a person sees it, and that it fits one.
func TestScreen(t *testing.T) {
	for _, c := range []struct {
		file string
		screen
	}{
		{"screen.golden", screen{
			Version: "v0.1.0", URL: "http://127.0.0.1:8181", Listen: "127.0.0.1:8181",
			State: "/srv/landfast-data  (catalog.db, warehouses/)", Main: "file:///srv/landfast-data/warehouses/main",
		}},
		{"screen_open.golden", screen{
			Version: "v0.1.0", URL: "http://localhost:9000", Listen: "[::]:9000", Open: true, State: "PostgreSQL: database landfast at 127.0.0.1:5432",
		}},
	} {
		got := c.screen.String()
		golden(t, c.file, got)
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if len(lines) > 40 {
			t.Errorf("%s: %d lines do not fit a screen", c.file, len(lines))
		}
		for _, l := range lines {
			if len(l) > 84 {
				t.Errorf("%s: %d columns: %s", c.file, len(l), l)
			}
		}
	}
}

func TestURL(t *testing.T) {
	for _, c := range []struct{ listen, bound, want string }{
		{"127.0.0.1:0", "127.0.0.1:4711", "http://127.0.0.1:4711"},
		{"localhost:8181", "127.0.0.1:8181", "http://localhost:8181"},
		{"[::1]:0", "[::1]:4711", "http://[::1]:4711"},
		{":0", "[::]:4711", "http://localhost:4711"},
		{"0.0.0.0:0", "0.0.0.0:4711", "http://localhost:4711"},
		{"[::]:0", "[::]:4711", "http://localhost:4711"},
	} {
		bound, err := net.ResolveTCPAddr("tcp", c.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := urlOf(c.listen, bound); got != c.want {
			t.Errorf("urlOf(%q, %v) = %q, want %q", c.listen, bound, got, c.want)
		}
	}
}
