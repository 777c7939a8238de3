package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// requestTimeout bounds one request, unless a fault makes clients less patient. The
// server's own limit is lower: what this cuts off is a server that hangs.
const requestTimeout = 45 * time.Second

// client speaks the Iceberg REST protocol, and knows nothing of this project's code.
type client struct {
	base     string // http://127.0.0.1:port
	http     *http.Client
	patience atomic.Int64 // a time.Duration: how long it waits for an answer
	dials    atomic.Int64 // connections that it made
}

func newClient(base string) *client {
	c := &client{base: base}
	c.patience.Store(int64(requestTimeout))
	var dialer net.Dialer
	c.http = &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: writers,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err == nil {
				c.dials.Add(1)
			}
			return conn, err
		},
	}}
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// answer is what came back.
type answer struct {
	status int // 0: nothing came back
	body   []byte
	err    error
	table  tableAnswer // of operations that answer a table
}

// tableAnswer is the body of a load, a creation or a commit.
type tableAnswer struct {
	MetadataLocation string          `json:"metadata-location"`
	Metadata         json.RawMessage `json:"metadata"`
	parsed           *version
}

// outcome is what a client may conclude: 2xx is done, an error that the server names is
// refused unless it says that nobody knows, everything else, an answer that was cut off
// included, is unknown.
func (a answer) outcome() outcome {
	switch {
	case a.err != nil:
		return unknown
	case a.status/100 == 2:
		return done
	case a.refusal() == "", a.inDoubt():
		return unknown
	}
	return refused
}

// refusal is the type of an error that the server names; empty if this is none.
func (a answer) refusal() string {
	var body struct {
		Error struct{ Type string }
	}
	if a.err != nil || a.status < 400 || json.Unmarshal(a.body, &body) != nil {
		return ""
	}
	return body.Error.Type
}

// inDoubt tells whether the server says that it does not know the outcome.
func (a answer) inDoubt() bool { return a.refusal() == "CommitStateUnknownException" }

// busy tells whether a refusal says nothing about the catalog: the server could not do
// what was asked, and has changed nothing.
func (a answer) busy() bool {
	switch a.refusal() {
	case "TooManyRequestsException", "SlowDownException", "InsufficientStorageException", "InternalServerError",
		"RequestTimeoutException", "ClientClosedRequestException":
		return true
	case "CommitFailedException":
		return strings.Contains(a.message(), "has changed nothing")
	case "IllegalArgumentException":
		return strings.Contains(a.message(), "ahead of the server's clock")
	}
	return false
}

func (a answer) message() string {
	if a.err != nil {
		return a.err.Error()
	}
	if a.status/100 == 2 {
		return ""
	}
	return string(bytes.TrimSpace(a.body))
}

// text is all that it says.
func (a answer) text() string {
	if a.err != nil {
		return a.err.Error()
	}
	return string(a.body)
}

// request is what is sent.
type request struct {
	method, path string
	body         []byte // nil: none
	key          string // the Idempotency-Key; empty: none
	answersTable bool   // or a view
}

// requestOf makes a request; body nil sends none.
func requestOf(method, path string, body any) request {
	r := request{method: method, path: path}
	if body != nil {
		var err error
		if r.body, err = json.Marshal(body); err != nil {
			panic(err)
		}
	}
	return r
}

// tableRequest is requestOf for requests that answer a table or a view.
func tableRequest(method, path string, body any) request {
	r := requestOf(method, path, body)
	r.answersTable = true
	return r
}

func (c *client) call(method, path string, body any) answer {
	return c.send(requestOf(method, path, body))
}

func (c *client) callTable(method, path string, body any) answer {
	return c.send(tableRequest(method, path, body))
}

// send sends one request.
func (c *client) send(r request) answer {
	var in io.Reader
	if r.body != nil {
		in = bytes.NewReader(r.body)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.patience.Load()))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, in)
	if err != nil {
		panic(err)
	}
	req.GetBody = nil // what has a key is not sent again unasked
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, body: data, err: err}
	if r.answersTable {
		return withTable(a)
	}
	return a
}

// withTable reads the table or the view in an answer.
func withTable(a answer) answer {
	if a.outcome() != done {
		return a
	}
	if a.err = json.Unmarshal(a.body, &a.table); a.err != nil {
		return a
	}
	if a.table.MetadataLocation == "" { // staged
		a.table.parsed = &version{}
		a.err = json.Unmarshal(a.table.Metadata, a.table.parsed)
		return a
	}
	a.table.parsed, a.err = parseVersion(strings.Replace(a.table.MetadataLocation, ".gz.", ".", 1), a.table.Metadata)
	return a
}

// prefix is the warehouse that the writers work in.
const prefix = "/v1/main"

func namespacePath(levels ...string) string {
	escaped := make([]string, len(levels))
	for i, l := range levels {
		escaped[i] = url.PathEscape(l)
	}
	return prefix + "/namespaces/" + strings.Join(escaped, "%1F")
}

// split takes a dotted table name apart. No level and no table here has a dot.
func split(name string) (levels []string, table string) {
	parts := strings.Split(name, ".")
	return parts[:len(parts)-1], parts[len(parts)-1]
}

func tablesPath(name string) string {
	levels, _ := split(name)
	return namespacePath(levels...) + "/tables"
}

func tablePath(name string) string {
	_, table := split(name)
	return tablesPath(name) + "/" + url.PathEscape(table)
}

func viewsPath(name string) string {
	levels, _ := split(name)
	return namespacePath(levels...) + "/views"
}

func viewPath(name string) string {
	_, view := split(name)
	return viewsPath(name) + "/" + url.PathEscape(view)
}

type identifier struct {
	Namespace []string `json:"namespace"`
	Name      string   `json:"name"`
}

func identify(name string) identifier {
	levels, table := split(name)
	return identifier{levels, table}
}

// pages reads a whole listing in pages of some size, or in one if that is 0.
func (c *client) pages(path string, size int, each func(body []byte) error) error {
	const pagesMax = 100_000
	token := ""
	for range pagesMax {
		query := url.Values{}
		if size > 0 {
			query.Set("pageSize", strconv.Itoa(size))
			query.Set("pageToken", token)
		}
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		a := c.call("GET", path+separator+query.Encode(), nil)
		if a.outcome() != done {
			return fmt.Errorf("list %s: %d %s", path, a.status, a.message())
		}
		if err := each(a.body); err != nil {
			return err
		}
		var page struct {
			Next *string `json:"next-page-token"`
		}
		if err := json.Unmarshal(a.body, &page); err != nil {
			return err
		}
		if page.Next == nil {
			return nil
		}
		if size == 0 {
			return fmt.Errorf("list %s: a page token that nobody asked for", path)
		}
		token = *page.Next
	}
	return fmt.Errorf("list %s: more than %d pages", path, pagesMax)
}
