package main

import (
	"errors"
	"fmt"
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
	ours := func(statuses map[int]int) (bool, error) {
		calls++
		status := http.StatusOK
		if calls%2 == 0 {
			status = http.StatusConflict
		}
		statuses[status]++
		return succeeded(status), nil
	}
	c, err := compare(t.Context(), []worker{ours}, []worker{step(func() error { return nil })}, 20*time.Millisecond)
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
	failing := step(func() error {
		if calls++; calls > 3 {
			return broken
		}
		return nil
	})
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
	got = append(got, serve("PUT", "/answer/t", filesHeader, "8,3,20").Code)
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
	if err != nil {
		t.Fatal(err)
	}
	var contents []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(data))
	}
	if diff := cmp.Diff([]string{"metadata", "met", strings.Repeat("\x00", 20)}, contents); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

// TestWriterPatchesTheValue: a request that another commit overwrote would make
// the check at the end of a row worthless.
func TestWriterPatchesTheValue(t *testing.T) {
	for _, tables := range [][]string{{"t"}, {"t", "u"}} {
		ours, theirs := newPipe(t)
		w := newWriter(&catalog{path: "/v1/main", namespace: "bench"}, "value", tables...)
		for _, c := range []struct {
			status       string
			acknowledged int64
			inDoubt      bool
		}{
			{"200 OK", 1, false}, {"409 Conflict", 1, false}, {"500 Oops", 1, true}, {"200 OK", 4, false},
		} {
			sent := make(chan string)
			value := fmt.Sprintf(`"value":"%0*d"`, valueDigits, w.attempt+1)
			go func() {
				buf := make([]byte, 4096)
				n, _ := theirs.Read(buf)
				body := fmt.Sprintf(`{"metadata-location":"x","metadata":{"properties":{%s}}}`, value)
				_, _ = fmt.Fprintf(theirs, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", c.status, len(body), body)
				sent <- string(buf[:n])
			}()
			if _, err := w.commit(ours); err != nil {
				t.Fatal(err)
			}
			if body := <-sent; strings.Count(body, value) != len(tables) {
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
}

// TestWriterReadsTheAnswer: an answer that does not show what was committed ends the row.
func TestWriterReadsTheAnswer(t *testing.T) {
	w := newWriter(&catalog{path: "/v1/main", namespace: "bench"}, "value", "t")
	for body, want := range map[string]string{
		`{"metadata":{"properties":{"value":"7"}}}`: "",
		`{"metadata":{"properties":{"value":"6"}}}`: "was answered with 6",
		`{"metadata":{}}`: "was answered with <nil>",
		`{"metadata":`:    "unexpected end",
	} {
		err := w.examine([]byte(body), "7")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want one with %q", body, err, want)
		}
	}
}

func TestFairness(t *testing.T) {
	for _, c := range []struct {
		each []int
		want float64
	}{
		{nil, 1}, {[]int{5}, 1}, {[]int{10, 10}, 1}, {[]int{0, 0, 0}, 0}, {[]int{100, 20, 40}, 0.5}, {[]int{0, 7, 9}, 0},
	} {
		s := sample{each: c.each}
		if got := s.fairness(); got != c.want {
			t.Errorf("fairness of %v: got %v, want %v", c.each, got, c.want)
		}
	}
}

// TestSampleAdd: the turns of a row add up, worker by worker.
func TestSampleAdd(t *testing.T) {
	var got sample
	got.add(sample{took: []time.Duration{1, 2}, statuses: map[int]int{200: 2}, each: []int{2, 0}, elapsed: time.Second})
	got.add(sample{took: []time.Duration{3}, statuses: map[int]int{200: 1, 409: 4}, each: []int{0, 1}, elapsed: time.Second})
	want := sample{took: []time.Duration{1, 2, 3}, statuses: map[int]int{200: 3, 409: 4}, each: []int{2, 1}, elapsed: 2 * time.Second}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got.rate() != 1.5 || got.answers() != "200 ×3, 409 ×4" {
		t.Errorf("rate %v, answers %q", got.rate(), got.answers())
	}
}
