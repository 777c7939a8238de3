package rest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const coverageFile = "../../docs/rest-coverage.md"

// TestCoverageDocument: docs/rest-coverage.md is what the table of routes says; -update writes it.
func TestCoverageDocument(t *testing.T) {
	got := coverageDocument(t)
	if *update {
		if err := os.WriteFile(coverageFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(coverageFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run the test with -update: -want +got\n%s", diff)
	}
}

func coverageDocument(t *testing.T) string {
	t.Helper()
	list, document := operations(t)
	ids := map[string]string{}
	for _, op := range list {
		ids[op.pattern] = op.id
	}
	var b strings.Builder
	b.WriteString(`# What Landfast speaks

<!-- Written by internal/rest/coverage_test.go from the table of routes: go test ./internal/rest -run Coverage -update -->

## The Iceberg REST catalog

` + "`GET /v1/config`" + ` advertises exactly the endpoints of this table that have a prefix. The prefix is the
name of a warehouse; a path without it means the warehouse ` + "`main`" + `.

| endpoint | operation | |
|---|---|---|
`)
	for _, r := range routes {
		if strings.HasPrefix(r.template, "/v1/") {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.pattern(), ids[r.pattern()], r.note)
		}
	}
	b.WriteString(`
Not advertised, and answered with 404 or 405:

| endpoint | operation | why |
|---|---|---|
`)
	for _, op := range list {
		if why := notAdvertised[op.id]; why != "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", op.pattern, op.id, why)
		}
	}
	b.WriteString("\nThese are all operations of the specification: tests compare paths, parameters and statuses with\n")
	b.WriteString(document + ".\n")
	b.WriteString(`
## Management

These endpoints are ours. Clients do not need them.

| endpoint | |
|---|---|
`)
	for _, r := range routes {
		if strings.HasPrefix(r.template, "/management/") {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r.pattern(), r.note)
		}
	}
	fmt.Fprintf(&b, `
## Where the specification leaves room

**Paths.** Split at "/" before anything is decoded, then each segment by the rules of forms: "+" and "%%20" are a space,
"%%2B" is a plus, "%%2F" a slash within a name. The levels of a namespace stand between "%%1F". Nothing is redirected; a path
with a slash at its end, or two in a row, is 404. A path that exists for other methods is 405 with "Allow".

**The parameter "parent"** holds the levels of a namespace with "%%1F" between them. It is decoded once, as Java's client
expects. PyIceberg escapes it twice: where no namespace has the name that was decoded once, it is decoded again.

**Lists.** Without "pageToken" a list is complete, whatever "pageSize" says, because clients that do not know about pages
would lose entries. With an empty one it comes in pages of "pageSize", or of %d. The last page has the token null.

**Bodies** need "Content-Type: application/json" and may be compressed with gzip; anything else is 415. A body above
"max_body_bytes", compressed or not, is 413, one that does not arrive within "request_timeout" 408. JSON is read strictly:
a member given twice, a value of the wrong type, text that is not UTF-8 or that follows the end are 400, and the message
says where. Members that are not known are ignored, except by the management API.

**Order of refusals.** A body that cannot be read comes first, then a warehouse, namespace or table that does not exist, then
everything else.

**ETags** differ between "snapshots=all" and "snapshots=refs"; creates and commits answer with that of a full load. A
tag is the same on every instance and after a restart, and outlives a rename; registering a table gives it another one, even with the same file.
"If-None-Match" may be quoted, weak, a list, without quotes, or "*".

**Compression.** Metadata of 8 KiB and more is sent with gzip to a client that accepts it, from the second load of a version on. Its
tag is then weak ("W/"), because the bytes are others; a client that sends it back, or the strong one, gets 304 all the same.

**Metrics reports** are checked and dropped.

**Tables and views** of a namespace share their names: whatever makes a name is 409 "AlreadyExistsException" when either has it,
and each is 404 under the route of the other.

**"transactions/commit"** is one commit: every reader sees all of it or nothing. Its changes are made in the order in which they
stand, so a table may be named twice, or be created and then changed. A message names the table whose change was refused.

**"Idempotency-Key"** is heeded by every request that changes something, those of the management API too, and may be any UUID.
Only successes are remembered, for the time that "/v1/config" tells: a refusal has changed nothing and is decided again. The same
key with another request is 422. Staging a table changes nothing and remembers no key.

**"referenced-by"** and **"X-Iceberg-Access-Delegation"** are ignored: no right depends on views, and no credentials are given out.

## What a status tells

| error | read | commit | create, drop, rename |
|---|---|---|---|
`, pageSizeDefault)
	for _, row := range errorTable {
		name := "anything else"
		if row.err != nil {
			name = row.err.Error()
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, shownAnswer(row.read), shownAnswer(row.commit), shownAnswer(row.write))
	}
	b.WriteString(`
The first row that fits counts. A commit that creates a staged table is a create. ↻ stands for the header "Retry-After". Only
"CommitStateUnknownException" leaves open whether something was changed; after every other error nothing was.
`)
	return b.String()
}

func shownAnswer(a answer) string {
	s := fmt.Sprintf("%d %s", a.status, a.kind)
	if a.again {
		s += " ↻"
	}
	return s
}
