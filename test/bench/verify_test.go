package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestVerify: a table that lacks an acknowledged commit, or has one too many,
// fails the bench.
func TestVerify(t *testing.T) {
	const before = 5
	for name, c := range map[string]struct {
		version int
		value   int64
		writer  writer
		want    string // a part of the error; empty for none
	}{
		"all there":           {8, 3, writer{acknowledged: 3, acks: 3}, ""},
		"value lost":          {8, 2, writer{acknowledged: 3, acks: 3}, "is what was last acknowledged"},
		"value from nowhere":  {8, 4, writer{acknowledged: 3, acks: 3}, "is what was last acknowledged"},
		"version lost":        {7, 3, writer{acknowledged: 3, acks: 3}, "2 new versions, but 3"},
		"version too many":    {9, 3, writer{acknowledged: 3, acks: 3}, "4 new versions, but 3"},
		"unknown, not there":  {8, 3, writer{acknowledged: 3, acks: 3, unknowns: 1, inDoubt: true}, ""},
		"unknown, there":      {9, 4, writer{acknowledged: 3, acks: 3, unknowns: 1, inDoubt: true}, ""},
		"unknown, twice made": {10, 4, writer{acknowledged: 3, acks: 3, unknowns: 1, inDoubt: true}, "5 new versions, but 3"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintf(w, `{"metadata-location":"file:///w/t/metadata/%05d-x.metadata.json","metadata":{"properties":{"value":"%0*d"}}}`,
					c.version, valueDigits, c.value)
			}))
			defer server.Close()
			defer callClient.CloseIdleConnections()
			c.writer.tables, c.writer.property = []string{"t"}, "value"
			ws := &writers{
				catalog: &catalog{address: strings.TrimPrefix(server.URL, "http://"), path: "/v1/main", namespace: "bench"},
				list:    []*writer{&c.writer}, tables: []string{"t"}, before: map[string]int{"t": before}, counted: true,
			}
			err := ws.verify(t.Context())
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
