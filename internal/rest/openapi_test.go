package rest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operation is what the OpenAPI document of Iceberg says about an endpoint.
type operation struct {
	pattern string // method and path, as route.pattern has it
	id      string
	query   []string
	headers []string
	success []int // statuses
}

const operationsFile = "testdata/openapi/operations.txt"

// operations reads operationsFile, which scripts/openapi-operations writes. The
// second result names the document: its file and its commit.
func operations(t *testing.T) ([]operation, string) {
	t.Helper()
	var list []operation
	var document string
	for line := range strings.Lines(readText(t, operationsFile)) {
		if text, ok := strings.CutPrefix(line, "# from "); ok {
			document = strings.TrimSpace(text)
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			t.Fatalf("%s: %q is no operation", operationsFile, line)
		}
		op := operation{pattern: fields[0] + " " + fields[1], id: fields[2]}
		for _, field := range fields[3:] {
			name, value, _ := strings.Cut(field, "=")
			values := strings.Split(value, ",")
			switch name {
			case "query":
				op.query = values
			case "header":
				op.headers = values
			case "success":
				for _, v := range values {
					status, err := strconv.Atoi(v)
					if err != nil {
						t.Fatalf("%s: %s: %v", operationsFile, line, err)
					}
					op.success = append(op.success, status)
				}
			}
		}
		list = append(list, op)
	}
	if len(list) < 35 || document == "" {
		t.Fatalf("%s has %d operations of %q", operationsFile, len(list), document)
	}
	return list, document
}

// notAdvertised says of the operations that have no endpoint here why they have none.
var notAdvertised = map[string]string{
	"getToken":            "deprecated in the specification, to be removed; whoever gives out tokens is not the catalog",
	"planTableScan":       "planning on the server comes later; clients plan by themselves",
	"fetchPlanningResult": "as planTableScan",
	"cancelPlanning":      "as planTableScan",
	"fetchScanTasks":      "as planTableScan",
	"loadCredentials":     "no credentials are given out yet; clients use their own",
	"signRequest":         "as loadCredentials",
}

// TestOperations: every operation of the OpenAPI document is either routed and
// advertised, or named in notAdvertised; and nothing else is routed below /v1/.
func TestOperations(t *testing.T) {
	h := newHandler(nil, 0, &syncBuffer{})
	list, _ := operations(t)
	patterns, ids := map[string]bool{}, map[string]bool{}
	filled := strings.NewReplacer("{prefix}", "w", "{namespace}", "n", "{table}", "t", "{view}", "v", "{function}", "f", "{plan-id}", "p")
	for _, op := range list {
		patterns[op.pattern], ids[op.id] = true, true
		method, path, _ := strings.Cut(op.pattern, " ")
		r, _, _ := h.router.find(method, filled.Replace(path))
		advertised := slices.Contains(endpoints(routes), op.pattern) || op.id == "getConfig" // clients ask for it before they know any
		switch why, excused := notAdvertised[op.id]; {
		case r == nil && !excused:
			t.Errorf("%s (%s) has no route, and notAdvertised does not say why", op.id, op.pattern)
		case r == nil && advertised:
			t.Errorf("%s (%s) has no route and is advertised", op.id, op.pattern)
		case r != nil && excused:
			t.Errorf("%s has a route: take it off notAdvertised, where it is because %q", op.id, why)
		case r != nil && (!advertised || r.pattern() != op.pattern):
			t.Errorf("%s is %s here, and advertised: %v", op.id, r.pattern(), advertised)
		}
	}
	for _, e := range endpoints(routes) {
		if !patterns[e] {
			t.Errorf("%s is advertised, and the OpenAPI document has no such operation", e)
		}
	}
	for _, r := range routes {
		if strings.HasPrefix(r.template, "/v1/") && !patterns[r.pattern()] {
			t.Errorf("%s is routed, and the OpenAPI document has no such operation", r.pattern())
		}
	}
	for id := range notAdvertised {
		if !ids[id] {
			t.Errorf("notAdvertised names %s, which the OpenAPI document does not have", id)
		}
	}
}

// ignored are query parameters that endpoints do not read, and why that is right.
var ignored = map[string]string{
	"referenced-by": "says through which views a table is read, for rights that depend on it; there are none yet",
}

// TestQueryParameters: every endpoint reads the query parameters that the OpenAPI
// document gives it. One that is read may be given once.
func TestQueryParameters(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	filled := strings.NewReplacer("{prefix}", "main", "{namespace}", "sea", "{table}", "t")
	list, _ := operations(t)
	for _, op := range list {
		if notAdvertised[op.id] != "" {
			continue
		}
		for _, name := range op.query {
			if ignored[name] != "" {
				continue
			}
			got := s.send(fmt.Sprintf("%s?%s=x&%[2]s=x", filled.Replace(op.pattern), name))
			checkRefusal(t, got, 400, "IllegalArgumentException", name+" is given 2 times")
		}
	}
}

// viewVersion is one of a view with one query.
const viewVersion = `{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"summary":{},"default-namespace":["sea"],"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}]}`

// neverSucceeds are endpoints that have nothing to answer with yet.
var neverSucceeds = map[string]string{
	"loadFunction": "there is no way to make a function",
}

// TestSuccessStatuses: every endpoint succeeds with the statuses that the OpenAPI
// document names, and with all of them.
func TestSuccessStatuses(t *testing.T) {
	s := newStack(t)
	got := map[string][]int{}
	try := func(request string) reply {
		t.Helper()
		head, _, _ := strings.Cut(request, "\n")
		method, target, _ := strings.Cut(head, " ")
		path, _, _ := strings.Cut(target, "?")
		route, _, err := s.handler.router.find(method, path)
		if route == nil || err != nil {
			t.Fatalf("%s: %v", head, err)
		}
		r := s.send(request)
		if r.StatusCode >= 400 {
			t.Fatalf("%s: %s %s", request, r.Status, r.body)
		}
		if r.StatusCode == 204 && r.body != "" {
			t.Errorf("%s: 204 with the body %q", head, r.body)
		}
		if !slices.Contains(got[route.pattern()], r.StatusCode) {
			got[route.pattern()] = append(got[route.pattern()], r.StatusCode)
		}
		return r
	}
	const namespace = "/v1/main/namespaces/sea"
	try("GET /v1/config")
	try("POST /v1/main/namespaces\n\n" + `{"namespace":["sea"]}`)
	try("GET /v1/main/namespaces")
	try("GET " + namespace)
	try("HEAD " + namespace)
	try("POST " + namespace + "/properties\n\n" + `{"updates":{"a":"1"}}`)
	try("POST " + namespace + "/tables\n\n" + `{"name":"t","schema":` + tableSchema + `}`)
	try("GET " + namespace + "/tables")
	try("HEAD " + namespace + "/tables/t")
	try("GET " + namespace + "/tables/t")
	try("GET " + namespace + "/tables/t\nIf-None-Match: *")
	try("POST " + namespace + "/tables/t\n\n" + setProperty)
	try("POST " + namespace + "/tables/t/metrics\n\n" + `{"report-type":"scan-report"}`)
	try("POST /v1/main/tables/rename\n\n" + `{"source":{"namespace":["sea"],"name":"t"},"destination":{"namespace":["sea"],"name":"u"}}`)
	file := s.metadataFile(namespace + "/tables/u")
	try("DELETE " + namespace + "/tables/u")
	try("POST " + namespace + "/register\n\n" + `{"name":"u","metadata-location":"file://` + file + `"}`)
	try("POST /v1/main/transactions/commit\n\n" + `{"table-changes":[{"identifier":{"namespace":["sea"],"name":"u"},"requirements":[],"updates":[{"action":"set-properties","updates":{"b":"2"}}]}]}`)
	file = s.metadataFile(namespace + "/tables/u")
	try("POST " + namespace + "/tables/u/unregister")
	try("POST " + namespace + "/register\n\n" + `{"name":"u","metadata-location":"file://` + file + `"}`)
	try("DELETE " + namespace + "/tables/u?purgeRequested=true")

	try("POST " + namespace + "/views\n\n" + `{"name":"v","schema":` + tableSchema + `,"view-version":` + viewVersion + `}`)
	try("GET " + namespace + "/views")
	try("GET " + namespace + "/views/v")
	try("HEAD " + namespace + "/views/v")
	try("POST " + namespace + "/views/v\n\n" + `{"updates":[{"action":"set-properties","updates":{"a":"1"}}]}`)
	try("POST /v1/main/views/rename\n\n" + `{"source":{"namespace":["sea"],"name":"v"},"destination":{"namespace":["sea"],"name":"w"}}`)
	file = s.metadataFile(namespace + "/views/w")
	try("DELETE " + namespace + "/views/w")
	try("POST " + namespace + "/register-view\n\n" + `{"name":"w","metadata-location":"file://` + file + `"}`)
	try("DELETE " + namespace + "/views/w")
	try("GET " + namespace + "/functions")
	try("DELETE " + namespace)

	want := map[string][]int{}
	list, _ := operations(t)
	for _, op := range list {
		if notAdvertised[op.id] == "" && neverSucceeds[op.id] == "" {
			want[op.pattern] = op.success
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-document +server\n%s", diff)
	}
	for _, id := range slices.Sorted(maps.Keys(neverSucceeds)) {
		if !slices.ContainsFunc(list, func(op operation) bool { return op.id == id }) {
			t.Errorf("neverSucceeds names %s, which the OpenAPI document does not have", id)
		}
	}
}

// beyondDocument are the operations that accept an idempotency key though the
// document has none for them, and why.
var beyondDocument = map[string]string{
	"createView": "Java's client sends one, and nothing is created twice",
}

// TestIdempotencyKeys: every operation that the OpenAPI document gives the header
// heeds it, and no other does. A key that is none is refused where it is heeded.
func TestIdempotencyKeys(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	s.must("POST /v1/namespaces/sea/views\n\n" + `{"name":"v","schema":` + tableSchema + `,"view-version":` + viewVersion + `}`)
	ident := `{"namespace":["sea"],"name":"x"}`
	bodies := map[string]string{
		"createNamespace":   `{"namespace":["n"]}`,
		"updateProperties":  `{"updates":{"a":"1"}}`,
		"createTable":       `{"name":"n","schema":` + tableSchema + `}`,
		"registerTable":     `{"name":"n","metadata-location":"file:///x"}`,
		"updateTable":       setProperty,
		"renameTable":       `{"source":` + ident + `,"destination":` + ident + `}`,
		"reportMetrics":     `{"report-type":"scan-report"}`,
		"commitTransaction": `{"table-changes":[{"identifier":{"namespace":["sea"],"name":"t"},"requirements":[],"updates":[]}]}`,
		"createView":        `{"name":"n","schema":` + tableSchema + `,"view-version":` + viewVersion + `}`,
		"replaceView":       `{"updates":[]}`,
		"renameView":        `{"source":` + ident + `,"destination":` + ident + `}`,
		"registerView":      `{"name":"n","metadata-location":"file:///x"}`,
	}
	filled := strings.NewReplacer("{prefix}", "main", "{namespace}", "sea", "{table}", "t", "{view}", "v", "{function}", "f")
	list, _ := operations(t)
	before := s.state()
	for _, op := range list {
		if notAdvertised[op.id] != "" {
			continue
		}
		got := s.send(filled.Replace(op.pattern) + "\n" + idempotencyHeader + ": no key\n\n" + bodies[op.id])
		heeded := got.StatusCode == 400 && strings.Contains(got.body, idempotencyHeader)
		if want := slices.Contains(op.headers, idempotencyHeader) || beyondDocument[op.id] != ""; heeded != want {
			t.Errorf("%s heeds a key: %v, want %v: %s %s", op.id, heeded, want, got.Status, got.body)
		}
	}
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("something was changed:\n%s", diff)
	}
}
