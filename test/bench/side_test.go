package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestForeignFaults: what another catalog does not do ends its figures and nobody
// else's, and what Landfast does not do ends the bench.
func TestForeignFaults(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	ours := &side{workers: []worker{step(func() error { return nil })}}
	other := &side{foreign: true, workers: []worker{step(func() error {
		if calls++; calls > 5 {
			return broken
		}
		return nil
	})}}
	if err := takeTurns(t.Context(), []*side{ours, other}, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(other.fault, broken) || calls != 6 || len(ours.sample.took) == 0 {
		t.Errorf("fault %v after %d calls; %d of ours", other.fault, calls, len(ours.sample.took))
	}
	calls, other.foreign, other.fault = 0, false, nil
	if err := takeTurns(t.Context(), []*side{ours, other}, 20*time.Millisecond); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// TestBeside: those beside are driven at the same time, and are not the row's figures.
func TestBeside(t *testing.T) {
	x := &side{
		workers: []worker{func(s map[int]int) (bool, error) { time.Sleep(time.Millisecond); s[200]++; return true, nil }},
		beside:  []worker{func(s map[int]int) (bool, error) { s[409]++; return false, nil }},
	}
	if err := x.turn(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if x.sample.statuses[200] != len(x.sample.took) || x.sample.statuses[409] != 0 || x.sample.elapsed < 10*time.Millisecond {
		t.Errorf("the row's: %d, statuses %v, %s", len(x.sample.took), x.sample.statuses, x.sample.elapsed)
	}
	if x.besideSample.statuses[409] == 0 || len(x.besideSample.took) != 0 {
		t.Errorf("beside: %d, statuses %v", len(x.besideSample.took), x.besideSample.statuses)
	}
}

// TestFloorSide: the floor answers what it was told, to clients that read it as they read a catalog.
func TestFloorSide(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewServer(newFloor(dir))
	defer server.Close()
	defer callClient.CloseIdleConnections()
	// This process stands for the floor's.
	s := &site{floor: &process{address: strings.TrimPrefix(server.URL, "http://"), cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}, metrics: true}}
	var mu sync.Mutex
	var read []string
	body := `{"metadata":{}}`
	ours := &side{bytes: 5, least: &least{clients: 2, steps: []exchange{
		{answer: answer{body: []byte("first")}},
		{write: true, body: []byte("{}"), answer: answer{body: []byte(body), files: sizes(2, 7)}, read: func(b []byte) error {
			mu.Lock()
			defer mu.Unlock()
			read = append(read, string(b))
			return nil
		}},
	}}}
	refreshed := 0
	ours.least.refresh = func(context.Context) (answer, error) {
		refreshed++
		return answer{body: []byte(body), files: sizes(1, 3)}, nil
	}
	x, err := s.floorSide(t.Context(), "some/row", ours)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	statuses := map[int]int{}
	for _, work := range x.workers {
		if ok, err := work(statuses); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if diff := cmp.Diff(map[int]int{http.StatusOK: 4}, statuses); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{body, body}, read); diff != "" {
		t.Errorf("read (-want +got)\n%s", diff)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 4 {
		t.Errorf("%d files, want 4: %q", len(files), files)
	}
	if err := x.turn(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if refreshed != 1 || x.bytes != 3 || !x.usage.allocKnown || x.usage.allocated <= 0 {
		t.Errorf("refreshed %d times, %d bytes, usage %+v", refreshed, x.bytes, x.usage)
	}
}

func TestCPUSeconds(t *testing.T) {
	const stat = "4242 (a ) b) S 1 4242 4242 0 -1 4194560 2100 0 0 0 150 50 7 7 20 0 12 0 1000 1 2\n"
	if got, err := cpuSeconds([]byte(stat)); got != 2 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := cpuSeconds([]byte("4242 (x) S 1")); err == nil {
		t.Error("no error for a part")
	}
}

func TestMetric(t *testing.T) {
	text := []byte("# HELP go_x y\ngo_xy 1\ngo_x 1.5e+06\n")
	if got, err := metric(text, "go_x"); got != 1.5e6 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := metric(text, "go_z"); err == nil {
		t.Error("no error for a metric that is missing")
	}
}

// TestNewCatalog: the prefix comes from the configuration, and an override counts more than a default.
func TestNewCatalog(t *testing.T) {
	for name, c := range map[string]struct{ suffix, config, wantConfig, wantPath string }{
		"none":     {"", `{"defaults":{},"overrides":{}}`, "/v1/config", "/v1"},
		"default":  {"/iceberg/", `{"defaults":{"prefix":"main|w"}}`, "/iceberg/v1/config", "/iceberg/v1/main%7Cw"},
		"override": {"/c?warehouse=w", `{"defaults":{"prefix":"no"},"overrides":{"prefix":"yes"}}`, "/c/v1/config?warehouse=w", "/c/v1/yes"},
	} {
		var asked string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.RequestURI()
			_, _ = w.Write([]byte(c.config))
		}))
		got, err := newCatalog(t.Context(), "x", server.URL+c.suffix, "bench")
		callClient.CloseIdleConnections()
		server.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if asked != c.wantConfig || got.config != c.wantConfig || got.path != c.wantPath {
			t.Errorf("%s: asked for %s, config %s, path %s", name, asked, got.config, got.path)
		}
	}
	for _, base := range []string{"https://127.0.0.1:1/x", "127.0.0.1:1", "http://127.0.0.1/x", "%"} {
		if _, err := newCatalog(t.Context(), "x", base, "bench"); err == nil {
			t.Errorf("%q is taken", base)
		}
	}
}
