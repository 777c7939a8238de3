package rest

import (
	"fmt"
	"strings"
	"testing"
)

// TestBadInput: each request is refused with the right status, type and message,
// and nothing is changed by it: no record, no file.
func TestBadInput(t *testing.T) {
	const (
		namespaces = "POST /v1/namespaces"
		tables     = "POST /v1/namespaces/sea/tables"
		table      = "POST /v1/namespaces/sea/tables/t"
		warehouses = "POST /management/v1/warehouses"
		rename     = "POST /v1/tables/rename"
		properties = "POST /v1/namespaces/sea/properties"
		metrics    = "POST /v1/namespaces/sea/tables/t/metrics"
		register   = "POST /v1/namespaces/sea/register"

		malformed = "BadRequestException"
		illegal   = "IllegalArgumentException"
	)
	long := strings.Repeat("n", 256)
	schema := func(fields string) string {
		return `{"type":"struct","schema-id":0,"fields":[` + fields + `]}`
	}
	id := `{"id":1,"name":"id","required":true,"type":"long"}`
	create := func(rest string) string { return `{"name":"n","schema":` + schema(id) + rest + `}` }
	commit := func(updates string) string { return `{"requirements":[],"updates":[` + updates + `]}` }
	require := func(requirement string) string { return `{"requirements":[` + requirement + `],"updates":[]}` }
	snapshot := func(id, rest string) string {
		return fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%s,"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":"file:///x","summary":{"operation":"append"}%s}}`, id, rest)
	}
	cases := []struct {
		request, body string
		status        int
		kind, message string
	}{
		// The form of a body: on every route that has one, and at once.
		{namespaces, ``, 400, malformed, "has no body"},
		{namespaces, `{`, 400, malformed, "invalid JSON"},
		{namespaces, `nonsense`, 400, malformed, "invalid JSON at byte 1"},
		{namespaces, `null`, 400, malformed, "expected an object, found null"},
		{namespaces, ` null `, 400, malformed, "expected an object, found null"},
		{namespaces, `[]`, 400, malformed, "expected an object, found an array"},
		{namespaces, `"namespace"`, 400, malformed, "expected an object, found a string"},
		{namespaces, `{"namespace":["n"]} {}`, 400, malformed, "invalid JSON"},
		{namespaces, `{"namespace":["n"],}`, 400, malformed, "invalid JSON"},
		{namespaces, `{"namespace":["n"],"namespace":["m"]}`, 400, malformed, `member "namespace" appears twice`},
		{namespaces, `{"namespace":["n"],"\u006eamespace":["m"]}`, 400, malformed, `member "namespace" appears twice`},
		{namespaces, `{"namespace":["n"],"later":{"a":1,"a":2}}`, 400, malformed, `/later/a`},
		{namespaces, "{\"namespace\":[\"\xff\"]}", 400, malformed, "UTF-8"},
		{namespaces, `{"namespace":["\ud800"]}`, 400, malformed, "/namespace/0"},
		{namespaces, strings.Repeat(`[`, 20_000), 400, malformed, "expected an object, found an array"},
		{namespaces, `{}`, 400, malformed, "required: namespace"},
		{namespaces, `{"namespace":null}`, 400, malformed, "required: namespace"},
		{namespaces, `{"Namespace":["n"]}`, 400, malformed, "required: namespace"},
		{namespaces, `{"namespace":"n"}`, 400, malformed, "/namespace"},
		{namespaces, `{"namespace":[1]}`, 400, malformed, "/namespace/0"},
		{namespaces, `{"namespace":["n",null]}`, 400, malformed, "/namespace/1"},
		{namespaces, `{"namespace":["n"],"properties":[]}`, 400, malformed, "/properties"},
		{namespaces, `{"namespace":["n"],"properties":{"a/b":null}}`, 400, malformed, "/properties/a~1b"},
		{namespaces, `{"namespace":["n"],"properties":{"a":1}}`, 400, malformed, "at /properties/a: expected a string, found a number"},
		{"POST /v1/nowhere/namespaces", `{`, 400, malformed, "invalid JSON"},
		{"POST /v1/nowhere/namespaces", `{"namespace":[""]}`, 404, "NoSuchWarehouseException", "Warehouse does not exist: nowhere"},
		{"POST /v1/BAD%20NAME/namespaces", `{"namespace":["n"]}`, 404, "NoSuchWarehouseException", "Warehouse does not exist: BAD NAME"},

		// Names.
		{namespaces, `{"namespace":[]}`, 400, illegal, "no levels"},
		{namespaces, `{"namespace":[""]}`, 400, illegal, "empty"},
		{namespaces, `{"namespace":["sea",""]}`, 400, illegal, "level 2: the name is empty"},
		{namespaces, `{"namespace":["."]}`, 400, illegal, "reserved"},
		{namespaces, `{"namespace":[".."]}`, 400, illegal, "reserved"},
		{namespaces, `{"namespace":["a\u0000b"]}`, 400, illegal, "control character U+0000"},
		{namespaces, `{"namespace":["a\u001fb"]}`, 400, illegal, "control character U+001F"},
		{namespaces, `{"namespace":["a\u0085b"]}`, 400, illegal, "control character U+0085"},
		{namespaces, `{"namespace":["` + long + `"]}`, 400, illegal, "256 bytes long; at most 255"},
		{namespaces, `{"namespace":["` + strings.Repeat(`n","`, 32) + `n"]}`, 400, illegal, "33 levels; at most 32"},
		{namespaces, `{"namespace":["sea"]}`, 409, "AlreadyExistsException", "Namespace already exists: sea"},
		{namespaces, `{"namespace":["land","n"]}`, 404, "NoSuchNamespaceException", "Namespace does not exist: land"},
		{"DELETE /v1/namespaces/" + long, ``, 400, illegal, "256 bytes long"},
		{"DELETE /v1/namespaces/sea/tables/%0A", ``, 400, illegal, "control character U+000A"},
		{"DELETE /v1/namespaces/sea/tables/%C0%AE", ``, 400, illegal, "not valid UTF-8"},
		{"DELETE /v1/namespaces/sea/tables/..", ``, 400, illegal, "reserved"},
		{"DELETE /v1/namespaces/sea%1F/tables/t", ``, 400, illegal, "level 2: the name is empty"},
		{"DELETE /v1/namespaces/SEA/tables/t", ``, 404, "NoSuchTableException", "Table does not exist: SEA.t"},
		{"DELETE /v1/namespaces/sea", ``, 409, "NamespaceNotEmptyException", "is not empty"},
		{"DELETE /v1/namespaces/sea?x=%zz", ``, 400, malformed, "Cannot read the query"},
		{"DELETE /v1/namespaces/sea/tables/t?purgeRequested=yes", ``, 400, illegal, "it must be true or false"},
		{"DELETE /v1/namespaces/sea/tables/t?purgeRequested=", ``, 400, illegal, "it must be true or false"},
		{"DELETE /v1/namespaces/sea/tables/t?purgeRequested=true&purgeRequested=false", ``, 400, illegal, "given 2 times"},

		// Properties of a namespace.
		{properties, `{"removals":["a"],"updates":{"a":"1"}}`, 422, "UnprocessableEntityException", "both removed and updated: a"},
		{properties, `{"removals":"a"}`, 400, malformed, "/removals"},
		{properties, `{"removals":[null]}`, 400, malformed, "/removals/0"},
		{properties, `{"updates":{"a":null}}`, 400, malformed, "/updates/a"},
		{properties, `{"updates":{"location":"../x"}}`, 400, illegal, "location"},
		{properties, `{"updates":{"location":"file:///etc"}}`, 400, illegal, "lies below none of the warehouse's roots"},
		{namespaces, `{"namespace":["n"],"properties":{"location":"relative"}}`, 400, illegal, "it has no scheme"},

		// Creating a table.
		{tables, `{}`, 400, malformed, "required: name, schema"},
		{tables, `{"name":"n"}`, 400, malformed, "required: schema"},
		{tables, `{"name":"n","schema":null}`, 400, malformed, "required: schema"},
		{tables, `{"name":1,"schema":{}}`, 400, malformed, "/name"},
		{tables, `{"name":"n","schema":[]}`, 400, illegal, ""},
		{tables, `{"name":"n","schema":{}}`, 400, illegal, ""},
		{tables, `{"name":"","schema":` + schema(id) + `}`, 400, illegal, "Invalid table name: the name is empty"},
		{tables, `{"name":"a\nb","schema":` + schema(id) + `}`, 400, illegal, "control character"},
		{tables, `{"name":"t","schema":` + schema(id) + `}`, 409, "AlreadyExistsException", "Table already exists: sea.t"},
		{tables, `{"name":"n","schema":` + schema(`{"id":1,"name":"id","required":true,"type":"longer"}`) + `}`, 400, illegal, "longer"},
		{tables, `{"name":"n","schema":` + schema(id+","+strings.Replace(id, `"id":1`, `"id":2`, 1)) + `}`, 400, illegal, "id"},
		{tables, `{"name":"n","schema":` + schema(`{"id":1,"name":"v","required":false,"type":"variant"}`) + `}`, 400, illegal, "variant is not supported until v3"},
		{tables, create(`,"stage-create":"yes"`), 400, malformed, "/stage-create"},
		{tables, create(`,"properties":{"format-version":"9"}`), 400, illegal, "format"},
		{tables, create(`,"properties":{"format-version":"two"}`), 400, illegal, "format-version"},
		{tables, create(`,"location":"file:///etc/n"`), 400, illegal, "lies below none of the warehouse's roots"},
		{tables, create(`,"location":"/etc/n"`), 400, illegal, "it has no scheme"},
		{tables, create(`,"location":"file:$ROOT/main/../../etc"`), 400, illegal, `the segment ".."`},
		{tables, create(`,"location":"file:$ROOT/main"`), 400, illegal, "lies below none of the warehouse's roots"},
		{tables, create(`,"location":"s3://bucket/n"`), 400, illegal, "lies below none of the warehouse's roots"},
		{tables, create(`,"location":"$TABLE"`), 400, illegal, "overlaps"},
		{tables, create(`,"location":"$TABLE/below"`), 400, illegal, "overlaps"},
		{tables, create(`,"partition-spec":{"spec-id":0,"fields":[{"source-id":7,"field-id":1000,"name":"p","transform":"identity"}]}`), 400, illegal, ""},
		{tables, create(`,"properties":{"write.metadata.path":"file:///etc"}`), 400, illegal, "lies below none of the warehouse's roots"},
		{"POST /v1/namespaces/land/tables", `{"name":"","schema":{}}`, 400, illegal, "the name is empty"},
		{"POST /v1/namespaces/land/tables", `{"name":"n","schema":{}}`, 404, "NoSuchNamespaceException", "Namespace does not exist: land"},

		// Loading a table.
		{"GET /v1/namespaces/sea/tables/t?snapshots=ALL", ``, 400, illegal, "it must be all or refs"},
		{"GET /v1/namespaces/sea/tables/t?snapshots=all&snapshots=refs", ``, 400, illegal, "given 2 times"},

		// Committing.
		{table, `{}`, 400, malformed, "required: requirements, updates"},
		{table, `{"requirements":[]}`, 400, malformed, "required: updates"},
		{table, `{"identifier":{"name":"t"},"requirements":[],"updates":[]}`, 400, malformed, "required: identifier.namespace"},
		{table, `{"identifier":"sea.t","requirements":[],"updates":[]}`, 400, malformed, "/identifier"},
		{table, `{"identifier":{"namespace":["sea"],"name":"T"},"requirements":[],"updates":[]}`, 400, illegal, "the path names the table sea.t"},
		{table, `{"requirements":{},"updates":[]}`, 400, illegal, "requirements"},
		{table, `{"requirements":[],"updates":{}}`, 400, illegal, "updates"},
		{table, `{"requirements":[],"updates":[null]}`, 400, illegal, "updates"},
		{table, commit(`{}`), 400, illegal, "action"},
		{table, commit(`{"action":"freeze"}`), 400, illegal, "freeze"},
		{table, commit(`{"action":"set-properties"}`), 400, illegal, ""},
		{table, commit(`{"action":"set-properties","updates":{"a":1}}`), 400, illegal, ""},
		{table, commit(`{"action":"set-properties","updates":{"a":"1","a":"2"}}`), 400, malformed, "appears twice"},
		{table, commit(`{"action":"set-location","location":"file:///etc"}`), 400, illegal, "lies below none of the warehouse's roots"},
		{table, commit(`{"action":"set-location","location":"relative"}`), 400, illegal, "it has no scheme"},
		{table, commit(`{"action":"assign-uuid","uuid":"00000000-0000-4000-8000-ffffffffffff"}`), 400, illegal, "uuid"},
		{table, commit(`{"action":"upgrade-format-version","format-version":1}`), 400, illegal, "downgrade"},
		{table, commit(`{"action":"upgrade-format-version","format-version":99}`), 400, illegal, "99"},
		{table, commit(`{"action":"set-current-schema","schema-id":7}`), 400, illegal, "7"},
		{table, commit(`{"action":"set-current-schema","schema-id":9007199254740993}`), 400, illegal, ""},
		{table, commit(`{"action":"set-current-schema","schema-id":0.5}`), 400, illegal, ""},
		{table, commit(snapshot("9223372036854775808", "")), 400, illegal, "snapshot-id"},
		{table, commit(snapshot("1e3", "")), 400, illegal, "snapshot-id"},
		{table, commit(snapshot("1", `,"timestamp-ms":1`)), 400, malformed, "appears twice"},
		{table, commit(strings.Replace(snapshot("9223372036854775807", ""), "1700000000000", "1800000000000", 1)), 400, illegal, ""},
		{table, commit(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":9223372036854775807}`), 400, illegal, "9223372036854775807"},
		{table, commit(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":-9223372036854775808}`), 400, illegal, "-9223372036854775808"},
		{table, require(`{"type":"assert-frozen"}`), 400, illegal, "assert-frozen"},
		{table, require(`{}`), 400, illegal, "type"},
		{table, require(`{"type":"assert-table-uuid","uuid":"x"}`), 409, "CommitFailedException", "Requirement failed: UUID does not match"},
		{table, require(`{"type":"assert-create"}`), 409, "CommitFailedException", "Requirement failed: table already exists"},
		{table, require(`{"type":"assert-create"},{"type":"assert-table-uuid","uuid":"x"}`), 400, illegal, "Invalid create requirements"},
		{table, require(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":9007199254740993}`), 409, "CommitFailedException", "9007199254740993"},
		{table, require(`{"type":"assert-last-assigned-field-id","last-assigned-field-id":99}`), 409, "CommitFailedException", "last assigned field id changed"},
		{"POST /v1/namespaces/sea/tables/u", `{"requirements":{},"updates":1}`, 404, "NoSuchTableException", "Table does not exist: sea.u"},
		{"POST /v1/namespaces/sea/tables/u", `{"requirements":[`, 400, malformed, "invalid JSON"},

		// Renaming and reporting.
		{rename, `{}`, 400, malformed, "required: source, destination"},
		{rename, `{"source":{},"destination":{"namespace":["sea"]}}`, 400, malformed, "required: source.namespace, source.name, destination.name"},
		{rename, `{"source":{"namespace":["sea"],"name":"t"},"destination":{"namespace":["sea"],"name":"a/../\u0007"}}`, 400, illegal, "control character"},
		{rename, `{"source":{"namespace":["sea"],"name":"t"},"destination":{"namespace":["land"],"name":"t"}}`, 404, "NoSuchNamespaceException", "Namespace does not exist: land"},
		{metrics, `{}`, 400, malformed, "required: report-type"},
		{metrics, `{"report-type":7}`, 400, malformed, "/report-type"},
		{metrics, `{"report-type":""}`, 400, illegal, "it must be scan-report or commit-report"},

		// Registering a file.
		{register, `{}`, 400, malformed, "required: name, metadata-location"},
		{register, `{"name":"n","metadata-location":7}`, 400, malformed, "/metadata-location"},
		{register, `{"name":"n","metadata-location":""}`, 400, illegal, "it is empty"},
		{register, `{"name":"n","metadata-location":"file:///etc/passwd"}`, 400, illegal, "lies below none of the warehouse's roots"},
		{register, `{"name":"n","metadata-location":"$TABLE/metadata/../../../../../etc/passwd"}`, 400, illegal, `the segment ".."`},
		{register, `{"name":"n","metadata-location":"file://$ROOT/main/none.metadata.json"}`, 404, "NotFoundException", "Failed to open input stream for file: "},
		{register, `{"name":"n","metadata-location":"file:$ROOT/main/.landfast-warehouse-main-id"}`, 400, illegal, ""},
		{register, `{"name":"n","metadata-location":"file:$ROOT/main/sea"}`, 400, illegal, ""},
		{register, `{"name":"n","metadata-location":"$TABLE/none.metadata.json"}`, 400, illegal, "overlaps the location of another table"},
		{register, `{"name":"t","metadata-location":"$TABLE/none.metadata.json"}`, 409, "AlreadyExistsException", "Table already exists: sea.t"},

		// Warehouses.
		{warehouses, `{}`, 400, malformed, "required: name"},
		{warehouses, `{"name":"n","nmae":"m"}`, 400, malformed, `unknown member "nmae"; did you mean "name"?`},
		{warehouses, `{"name":"n","Properties":{}}`, 400, malformed, `did you mean "properties"?`},
		{warehouses, `{"name":"n","name":"m"}`, 400, malformed, "appears twice"},
		{warehouses, `[1]`, 400, malformed, "expected an object"},
		{warehouses, `{"name":""}`, 400, illegal, "must match"},
		{warehouses, `{"name":"Upper"}`, 400, illegal, "must match"},
		{warehouses, `{"name":"-dash"}`, 400, illegal, "must match"},
		{warehouses, `{"name":"a/b"}`, 400, illegal, "must match"},
		{warehouses, `{"name":"` + long[:64] + `"}`, 400, illegal, "must match"},
		{warehouses, `{"name":"tables"}`, 400, illegal, "reserved"},
		{warehouses, `{"name":"oauth"}`, 400, illegal, "reserved"},
		{warehouses, `{"name":"main"}`, 409, "AlreadyExistsException", "Warehouse already exists: main"},
		{warehouses, `{"name":"n","location":"relative/path"}`, 400, illegal, "it has no scheme"},
		{warehouses, `{"name":"n","location":"file:relative"}`, 400, illegal, "its path is relative"},
		{warehouses, `{"name":"n","location":"file:///"}`, 400, illegal, "root of the file system"},
		{warehouses, `{"name":"n","location":"file:///a%20b"}`, 400, illegal, "escape"},
		{warehouses, `{"name":"n","location":"file://elsewhere/x"}`, 400, illegal, "not this one"},
		{warehouses, `{"name":"n","location":"ftp://x/y"}`, 400, illegal, "not supported"},
		{warehouses, `{"name":"n","allowed-locations":["x"]}`, 400, illegal, "it has no scheme"},
		{warehouses, `{"name":"n","allowed-locations":[null]}`, 400, malformed, "/allowed-locations/0"},
		{warehouses, `{"name":"n","properties":{"k":true}}`, 400, malformed, "/properties/k"},
		{"DELETE /management/v1/warehouses/main", ``, 409, "WarehouseNotEmptyException", "Warehouse main is not empty"},
		{"DELETE /management/v1/warehouses/n", ``, 404, "NoSuchWarehouseException", "Warehouse does not exist: n"},
		{"DELETE /management/v1/warehouses/..", ``, 404, "NoSuchWarehouseException", "Warehouse does not exist: .."},
		{"DELETE /management/v1/warehouses/tables", ``, 404, "NoSuchWarehouseException", "Warehouse does not exist: tables"},
	}
	s := newStack(t)
	s.seaWithTable()
	file := s.metadataFile("/v1/namespaces/sea/tables/t")
	location := "file://" + strings.SplitN(file, "/metadata/", 2)[0]
	before := s.state()
	for _, tc := range cases {
		body := strings.NewReplacer("$ROOT", s.root, "$TABLE", location).Replace(tc.body)
		request := tc.request
		if body != "" {
			request += "\n\n" + body
		}
		if !t.Run(fmt.Sprintf("%s %.60s", tc.request, tc.body), func(t *testing.T) {
			defer s.in(t)()
			checkRefusal(t, s.send(request), tc.status, tc.kind, tc.message)
		}) {
			continue
		}
		if after := s.state(); after != before {
			t.Fatalf("%s %s changed something:\n%s\n-- before:\n%s", tc.request, tc.body, after, before)
		}
	}
}
