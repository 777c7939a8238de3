package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindState(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want tableState
		err  string
	}{
		"compact": {
			`{"metadata":{"last-sequence-number":7,"current-snapshot-id":12,"snapshots":[{"parent-snapshot-id":5,"snapshot-id":9,"manifest-list":"x"},` +
				`{"snapshot-id":12,"manifest-list":"y"}]}}`,
			tableState{current: 12, oldest: 9, sequence: 7, snapshots: 2}, "",
		},
		"spaced": {
			"{\n \"last-sequence-number\" : 7,\n \"current-snapshot-id\" : 12,\n \"snapshots\" : [ {\n \"snapshot-id\" : 12, \"manifest-list\" : \"y\"}]}",
			tableState{current: 12, oldest: 12, sequence: 7, snapshots: 1}, "",
		},
		"empty": {`{"last-sequence-number":0,"current-snapshot-id":null,"snapshots":[]}`, tableState{}, "current-snapshot-id"},
	} {
		got, err := findState([]byte(c.body))
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.err)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(tableState{})); c.err == "" && diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestAppender: it retries after a conflict with what it loads then, and remembers
// what got through.
func TestAppender(t *testing.T) {
	var posts []string
	loads := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			loads++
		} else {
			buf := make([]byte, r.ContentLength)
			_, _ = r.Body.Read(buf)
			posts = append(posts, string(buf))
			if len(posts) < 3 {
				w.WriteHeader(http.StatusConflict)
			}
		}
		fmt.Fprintf(w, `{"last-sequence-number":%d,"current-snapshot-id":%d,"snapshots":[{"snapshot-id":1,"manifest-list":"x"}]}`, loads, 100+loads)
	}))
	defer server.Close()
	c := &catalog{address: strings.TrimPrefix(server.URL, "http://"), path: "/v1/main", namespace: "bench"}
	a := newAppender(c, "t", 0)
	conn := newClient(c.address)
	defer conn.hangUp()
	statuses := map[int]int{}
	if ok, err := a.work(t.Context(), conn)(statuses); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if diff := cmp.Diff(map[int]int{200: 1, 409: 2}, statuses); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]int64{idsOfOne + 2}, a.acked); diff != "" {
		t.Errorf("acknowledged (-want +got)\n%s", diff)
	}
	for i, post := range posts {
		if want := fmt.Sprintf(`"ref":"main","snapshot-id":%d}`, 101+i); !strings.Contains(post, want) {
			t.Errorf("append %d lacks %s: %s", i, want, post)
		}
	}
}

// TestVerifyAppends: a table that lacks an append, has one from nowhere or keeps too
// many fails the bench.
func TestVerifyAppends(t *testing.T) {
	chain := func(ids ...int) string {
		var list []string
		for i, id := range ids {
			parent := 0
			if i > 0 {
				parent = ids[i-1]
			}
			list = append(list, fmt.Sprintf(`{"snapshot-id":%d,"parent-snapshot-id":%d,"sequence-number":%d}`, id, parent, i+1))
		}
		return strings.Join(list, ",")
	}
	many := make([]int, snapshotsKept+1)
	for i := range many {
		many[i] = i + 1
	}
	for name, c := range map[string]struct {
		sequence, current int
		snapshots         string
		want              string
	}{
		"all there":       {3, 30, chain(10, 20, 30), ""},
		"one lost":        {2, 20, chain(10, 20), "1 new sequence numbers"},
		"from nowhere":    {3, 40, chain(10, 20, 40), "which nobody was told of"},
		"main elsewhere":  {3, 20, chain(10, 20, 30), "main of table t is at 20"},
		"two of a parent": {3, 30, chain(10, 20) + `,{"snapshot-id":30,"parent-snapshot-id":10,"sequence-number":3}`, "has the parent 10, want 20"},
		"too many":        {3, 101, chain(many...), "has 101 snapshots"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"metadata":{"last-sequence-number":%d,"current-snapshot-id":%d,"snapshots":[%s]}}`, c.sequence, c.current, c.snapshots)
		}))
		k := &catalog{address: strings.TrimPrefix(server.URL, "http://"), path: "/v1/main", namespace: "bench"}
		err := verifyAppends(t.Context(), k, "t", 1, []*appender{{acked: []int64{20}}, {acked: []int64{30}}})
		callClient.CloseIdleConnections()
		server.Close()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestVerifyGrowth(t *testing.T) {
	metadata := []byte(`{"snapshots":[{"snapshot-id":1},{"snapshot-id":2}]}`)
	for _, c := range []struct {
		acked, unknown map[int64]bool
		want           string
	}{
		{map[int64]bool{1: true, 2: true}, nil, ""},
		{map[int64]bool{1: true}, map[int64]bool{2: true, 3: true}, ""},
		{map[int64]bool{1: true, 2: true, 3: true}, nil, "2 of 3"},
		{map[int64]bool{1: true}, nil, "the snapshot 2, which nobody"},
	} {
		err := verifyGrowth(metadata, c.acked, c.unknown)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, %v: error %v, want one with %q", c.acked, c.unknown, err, c.want)
		}
	}
}
