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
	{"HEAD", "/v1/{prefix}/namespaces/{namespace}", reading, (*call).exists, ""},
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
	{"HEAD", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", reading, (*call).exists, ""},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", committing, (*call).commitTable,
		"Conflicts are retried by the server while the requirements hold."},
	{"DELETE", "/v1/{prefix}/namespaces/{namespace}/tables/{table}", writing, (*call).dropTable,
		"`purgeRequested=true` deletes what is reachable from the table and lies in its places; see [deletion of files](operations.md#deletion-of-files)."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister", writing, (*call).unregisterTable,
		"Returns the table as the last commit left it. Its files stay."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/register", writing, (*call).registerTable,
		"The metadata file must lie in the warehouse. `overwrite` points a table that exists to it."},
	{"POST", "/v1/{prefix}/tables/rename", writing, (*call).renameTable,
		"Also into another namespace of the warehouse."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", reading, (*call).reportMetrics,
		"The report is checked for its type and then dropped."},

	{"POST", "/v1/{prefix}/transactions/commit", committing, (*call).commitTransaction,
		"Several tables of a warehouse, all or nothing. A table that is named twice is changed by both changes, in order; staged tables may be created."},

	{"GET", "/v1/{prefix}/namespaces/{namespace}/views", reading, (*call).listViews,
		"`pageToken`, `pageSize`."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/views", writing, (*call).createView,
		"Ids of the version and the schema are assigned afresh. `properties` may be absent."},
	{"GET", "/v1/{prefix}/namespaces/{namespace}/views/{view}", reading, (*call).loadView, ""},
	{"HEAD", "/v1/{prefix}/namespaces/{namespace}/views/{view}", reading, (*call).exists, ""},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/views/{view}", committing, (*call).replaceView,
		"Conflicts are retried by the server while the requirements hold."},
	{"DELETE", "/v1/{prefix}/namespaces/{namespace}/views/{view}", writing, (*call).dropView,
		"Its metadata files stay."},
	{"POST", "/v1/{prefix}/namespaces/{namespace}/register-view", writing, (*call).registerView,
		"The metadata file must lie in the warehouse."},
	{"POST", "/v1/{prefix}/views/rename", writing, (*call).renameView,
		"Also into another namespace of the warehouse."},

	{"GET", "/v1/{prefix}/namespaces/{namespace}/functions", reading, (*call).listFunctions,
		"There are no functions, because there is no operation yet that makes one: the list is empty."},
	{"GET", "/v1/{prefix}/namespaces/{namespace}/functions/{function}", reading, (*call).loadFunction,
		"404 NoSuchFunctionException."},

	{"GET", "/management/v1/warehouses", reading, (*call).listWarehouses,
		"`pageToken`, `pageSize`."},
	{"POST", "/management/v1/warehouses", writing, (*call).createWarehouse,
		"`name`, and optionally `location`, `allowed-locations`, `properties`, `s3`; unknown members are refused."},
	{"GET", "/management/v1/warehouses/{warehouse}", reading, (*call).loadWarehouse, ""},
	{"POST", "/management/v1/warehouses/{warehouse}/s3", writing, (*call).setWarehouseS3,
		"Changes how its buckets are reached: the members of `s3` in the creation, all of them. The secret is never shown again."},
	{"DELETE", "/management/v1/warehouses/{warehouse}", writing, (*call).deleteWarehouse,
		"409 while it holds namespaces. Its files stay."},
	{"POST", "/management/v1/warehouses/{warehouse}/sweep", writing, (*call).sweepWarehouse,
		"Gives up metadata files that no table reaches; `dryRun=true` only lists them. 429 while another sweep is under way."},
	{"GET", "/management/v1/locks", reading, (*call).showLocks,
		"Who waits for whom, and the hot keys of the last minute: [contention](contention.md)."},
}

// catalogPath is how the templates begin that /v1/config advertises.
const catalogPath = "/v1/{prefix}/"

// managementPath is how the templates begin that manage warehouses.
const managementPath = "/management/v1/"

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
