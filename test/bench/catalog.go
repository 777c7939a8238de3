package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// catalog is what the bench sets up and looks up through the API, unmeasured.
type catalog struct {
	base      string // of the namespaces of the warehouse main
	path      string // the same without the host
	snapshots map[string]int
}

const (
	namespace = "bench"
	// keepOneVersion keeps the metadata log from growing from commit to commit.
	keepOneVersion = `"write.metadata.previous-versions-max":"1"`
)

func newCatalog(address string) *catalog {
	const p = "/v1/main/namespaces"
	return &catalog{base: "http://" + address, path: p, snapshots: map[string]int{}}
}

func (c *catalog) createNamespace(ctx context.Context) error {
	_, _, err := call(ctx, http.MethodPost, c.base+c.path, []byte(`{"namespace":["`+namespace+`"]}`))
	return err
}

// tablePath is the path of a table's endpoint.
func (c *catalog) tablePath(table string) string {
	return c.path + "/" + namespace + "/tables/" + table
}

// ensureTable creates a table with so many snapshots, unless there is one of this name.
func (c *catalog) ensureTable(ctx context.Context, table string, snapshots int) error {
	if _, ok := c.snapshots[table]; ok {
		return nil
	}
	create := fmt.Sprintf(`{"name":%q,"schema":%s,"properties":{"owner":"bench",%s}}`, table, benchSchema, keepOneVersion)
	if _, _, err := call(ctx, http.MethodPost, c.base+path.Dir(c.tablePath(table)), []byte(create)); err != nil {
		return err
	}
	if snapshots > 0 {
		body := appendSnapshots(snapshots, time.Now().UnixMilli())
		if _, _, err := call(ctx, http.MethodPost, c.base+c.tablePath(table), body); err != nil {
			return err
		}
	}
	c.snapshots[table] = snapshots
	return nil
}

// appendSnapshots is a commit that adds n snapshots, one after another.
func appendSnapshots(n int, millis int64) []byte {
	var b bytes.Buffer
	b.WriteString(`{"requirements":[],"updates":[`)
	for i := range n {
		fmt.Fprintf(&b, `{"action":"add-snapshot","snapshot":%s},`, snapshotJSON(i, millis))
	}
	fmt.Fprintf(&b, `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]}`, snapshotID(n-1))
	return b.Bytes()
}

// loaded is a table as the API answers.
type loaded struct {
	body             []byte
	etag             string
	MetadataLocation string          `json:"metadata-location"`
	Metadata         json.RawMessage `json:"metadata"`
}

func (c *catalog) load(ctx context.Context, table string) (loaded, error) {
	body, header, err := call(ctx, http.MethodGet, c.base+c.tablePath(table), nil)
	l := loaded{body: body, etag: header.Get("ETag")}
	if err == nil {
		err = json.Unmarshal(body, &l)
	}
	return l, err
}

// version is the number in the name of the metadata file: how many there were before.
func (l loaded) version() (int, error) {
	digits, _, ok := strings.Cut(path.Base(l.MetadataLocation), "-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("metadata location %q has no version", l.MetadataLocation)
	}
	return n, nil
}

func (l loaded) property(name string) (string, error) {
	var m struct {
		Properties map[string]string `json:"properties"`
	}
	err := json.Unmarshal(l.Metadata, &m)
	return m.Properties[name], err
}

// callClient bounds a call, which may be one that makes a large table.
var callClient = &http.Client{Timeout: time.Minute}

// call makes one request and returns the answer's body. A status from 400 on is an error.
func call(ctx context.Context, method, url string, body []byte, headers ...string) ([]byte, http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := callClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode >= 400 {
		return nil, nil, fmt.Errorf("%s %s: %s: %.500s", method, url, resp.Status, answer)
	}
	return answer, resp.Header, nil
}
