package rest

import "strings"

// route is one endpoint.
type route struct {
	method   string
	template string
	class    class
	handle   func(*call) error
	// note is what docs/rest-coverage.md says about it.
	note string
}

// pattern names the route in metrics and logs.
func (r *route) pattern() string { return r.method + " " + r.template }

// class says how the error table treats a route, by what its clients conclude
// from a status.
type class uint8

const (
	reading    class = iota // changes nothing
	writing                 // changes something, once
	committing              // changes something on conditions that the client can renew
)

// routes is every endpoint there is. The templates are written as the Iceberg
// specification writes them, because clients compare them as strings.
var routes = []route{
	{"GET", "/v1/config", reading, (*call).getConfig,
		"`warehouse` names a warehouse; absent or empty, it is `main`."},

	{"GET", "/v1/{prefix}/namespaces", reading, (*call).listNamespaces,
		"One level. `parent`, `pageToken`, `pageSize`."},
	{"POST", "/v1/{prefix}/namespaces", writing, (*call).createNamespace,
		"The parent must exist."},
	{"GET", "/v1/{prefix}/namespaces/{namespace}", reading, (*call).loadNamespace, ""},
	{"HEAD", "/v1/{prefix}/namespaces/{namespace}", reading, (*call).namespaceExists, ""},
	{"DELETE", "/v1/{prefix}/namespaces/{namespace}", writing, (*call).dropNamespace,
		"409 while it holds tables, views or namespaces."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/properties", writing, (*call).updateNamespaceProperties,
		"422 when a key is both updated and removed."},

	{"GET", "/v1/{prefix}/namespaces/{namespace}/tables", reading, (*call).listTables,
		"`pageToken`, `pageSize`."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables", writing, (*call).createTable,
		"Field ids are assigned afresh. `stage-create` writes and remembers nothing."},
	{"GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", reading, (*call).loadTable,
		"`If-None-Match`, `snapshots=all` or `refs`."},
	{"HEAD", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", reading, (*call).tableExists, ""},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", committing, (*call).commitTable,
		"Conflicts are retried by the server while the requirements hold."},
	{"DELETE", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", writing, (*call).dropTable,
		"`purgeRequested=true` deletes the table's metadata files that lie below its location; none in a warehouse whose locations may overlap. **Data files, manifests and statistics stay**: deleting them comes with a later version."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/register", writing, (*call).registerTable,
		"The metadata file must lie in the warehouse. `overwrite` points a table that exists to it."},
	{"POST", "/v1/{prefix}/tables/rename", writing, (*call).renameTable,
		"Also into another namespace of the warehouse."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", reading, (*call).reportMetrics,
		"The report is checked for its type and then dropped."},

	{"GET", "/management/v1/warehouses", reading, (*call).listWarehouses,
		"`pageToken`, `pageSize`."},
	{"POST", "/management/v1/warehouses", writing, (*call).createWarehouse,
		"`name`, and optionally `location`, `allowed-locations`, `properties`; unknown members are refused."},
	{"GET", "/management/v1/warehouses/{warehouse}", reading, (*call).loadWarehouse, ""},
	{"DELETE", "/management/v1/warehouses/{warehouse}", writing, (*call).deleteWarehouse,
		"409 while it holds namespaces. Its files stay."},
}

// catalogPath is how the templates begin that /v1/config advertises.
const catalogPath = "/v1/{prefix}/"

// endpoints are the routes that clients ask for by name before they use them.
func endpoints(routes []route) []string {
	var list []string
	for _, r := range routes {
		if strings.HasPrefix(r.template, catalogPath) {
			list = append(list, r.pattern())
		}
	}
	return list
}
