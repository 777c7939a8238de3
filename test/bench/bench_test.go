package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		took []time.Duration
		q    float64
		want time.Duration
	}{
		{nil, 0.99, 0},
		{[]time.Duration{7}, 0.5, 7},
		{[]time.Duration{7}, 0.99, 7},
		{hundred, 0.5, 51},
		{hundred, 0.99, 100},
	} {
		s := sample{took: slices.Clone(c.took)}
		if got := s.quantile(c.q); got != c.want {
			t.Errorf("quantile %v of %d: got %d, want %d", c.q, len(c.took), got, c.want)
		}
	}
}

// TestCompareCountsSuccesses: what was refused has a status and no duration, and
// the unmeasured first run is not counted.
func TestCompareCountsSuccesses(t *testing.T) {
	calls := 0
	ours := func() (int, error) {
		calls++
		if calls%2 == 0 {
			return http.StatusConflict, nil
		}
		return http.StatusOK, nil
	}
	c, err := compare(t.Context(), []worker{ours}, []worker{func() (int, error) { return 0, nil }}, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	counted := c.ours.statuses[http.StatusOK] + c.ours.statuses[http.StatusConflict]
	if counted != calls-1 {
		t.Errorf("%d answers counted of %d", counted, calls-1)
	}
	if len(c.ours.took) != c.ours.statuses[http.StatusOK] {
		t.Errorf("%d durations of %d successes", len(c.ours.took), c.ours.statuses[http.StatusOK])
	}
	if len(c.floor.took) == 0 || len(c.floor.statuses) != 0 {
		t.Errorf("floor: %d durations, statuses %v", len(c.floor.took), c.floor.statuses)
	}
}

func TestCompareEndsWithTheFirstError(t *testing.T) {
	calls, broken := 0, errors.New("broken")
	failing := func() (int, error) {
		if calls++; calls > 3 {
			return 0, broken
		}
		return 0, nil
	}
	_, err := compare(t.Context(), []worker{failing}, nil, time.Minute)
	if !errors.Is(err, broken) || calls != 4 {
		t.Errorf("error %v after %d calls", err, calls)
	}
}

func TestFloorMakesFilesDurable(t *testing.T) {
	dir := t.TempDir()
	floor := newFloor(dir)
	serve := func(method, path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("metadata and more"))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		floor.ServeHTTP(w, r)
		return w
	}
	var got []int
	got = append(got, serve("POST", "/write/t").Code)
	got = append(got, serve("PUT", "/answer/t", fileBytesHeader, "8").Code)
	got = append(got, serve("GET", "/answer/t").Code)
	got = append(got, serve("GET", "/answer/t", "If-None-Match", `"x"`).Code)
	answer := serve("POST", "/write/t")
	got = append(got, answer.Code)
	if diff := cmp.Diff([]int{404, 204, 200, 304, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if answer.Body.String() != "metadata and more" {
		t.Errorf("answer %q", answer.Body)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	if data, err := os.ReadFile(files[0]); err != nil || string(data) != "metadata" {
		t.Errorf("%s holds %q, %v", files[0], data, err)
	}
}

// TestWriterPatchesTheValue: a request that another commit overwrote would make
// the check at the end of a row worthless.
func TestWriterPatchesTheValue(t *testing.T) {
	ours, theirs := newPipe(t)
	w := newWriter("/v1/main/namespaces/bench/tables/t", "t", "value")
	for _, c := range []struct {
		status       string
		acknowledged int64
		inDoubt      bool
	}{
		{"200 OK", 1, false}, {"409 Conflict", 1, false}, {"500 Oops", 1, true}, {"200 OK", 4, false},
	} {
		sent := make(chan string)
		go func() {
			buf := make([]byte, 4096)
			n, _ := theirs.Read(buf)
			_, _ = theirs.Write([]byte("HTTP/1.1 " + c.status + "\r\nContent-Length: 0\r\n\r\n"))
			sent <- string(buf[:n])
		}()
		if _, err := w.commit(ours); err != nil {
			t.Fatal(err)
		}
		body := <-sent
		if value := `"value":"` + strings.Repeat("0", valueDigits-1) + string('0'+rune(w.attempt)) + `"`; !strings.Contains(body, value) {
			t.Errorf("attempt %d sent %q", w.attempt, body)
		}
		if w.acknowledged != c.acknowledged || w.inDoubt != c.inDoubt {
			t.Errorf("after %s: acknowledged %d, in doubt %v", c.status, w.acknowledged, w.inDoubt)
		}
	}
	if w.acks != 2 || w.unknowns != 1 {
		t.Errorf("%d acknowledged, %d unknown", w.acks, w.unknowns)
	}
}
