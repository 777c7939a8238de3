package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// catalog is one that is measured. The bench sets things up in it and looks them
// up through the API, unmeasured.
type catalog struct {
	name    string
	address string   // host:port
	others  []string // of the same catalog: further instances, over which clients are spread
	config  string   // the path of its configuration
	path    string   // of what is in its warehouse, such as /v1/main
	process *process // nil for one that the bench did not start
	foreign bool     // it is not ours

	namespace string // in which everything is made
	tables    map[string]bool
	listed    bool // the namespace that is listed is there
}

// keepOneVersion keeps the metadata log from growing from commit to commit.
const keepOneVersion = `"write.metadata.previous-versions-max":"1"`

// newCatalog asks the catalog at a base URL, which may end in ?warehouse=NAME, for
// the prefix of its paths. namespace is to be one that nobody else uses.
func newCatalog(ctx context.Context, name, base, namespace string) (*catalog, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" || u.Port() == "" {
		return nil, fmt.Errorf("%q is not http://HOST:PORT/PATH", base)
	}
	root := strings.TrimSuffix(u.EscapedPath(), "/")
	c := &catalog{name: name, address: u.Host, config: root + "/v1/config", namespace: namespace, tables: map[string]bool{}}
	if u.RawQuery != "" {
		c.config += "?" + u.RawQuery
	}
	body, _, err := c.call(ctx, http.MethodGet, c.config, nil)
	if err != nil {
		return nil, err
	}
	var config struct{ Overrides, Defaults map[string]string }
	if err := json.Unmarshal(body, &config); err != nil {
		return nil, fmt.Errorf("GET %s: %w", c.config, err)
	}
	prefix := config.Overrides["prefix"]
	if prefix == "" {
		prefix = config.Defaults["prefix"]
	}
	c.path = root + "/v1"
	if prefix != "" {
		c.path += "/" + url.PathEscape(prefix)
	}
	return c, nil
}

// connect gives a side n clients of the catalog.
func (c *catalog) connect(x *side, n int) []*client {
	instances := append([]string{c.address}, c.others...)
	var list []*client
	for i := range n {
		list = append(list, x.connect(instances[i%len(instances)], 1)...)
	}
	return list
}

// call makes one request to the catalog.
func (c *catalog) call(ctx context.Context, method, path string, body []byte) ([]byte, http.Header, error) {
	return call(ctx, method, "http://"+c.address+path, body)
}

// createNamespace makes the namespace that everything else lies in.
func (c *catalog) createNamespace(ctx context.Context) error {
	_, _, err := c.call(ctx, http.MethodPost, c.path+"/namespaces", fmt.Appendf(nil, `{"namespace":[%q],"properties":{}}`, c.namespace))
	return err
}

// tablesPath is the path of the tables of the namespace.
func (c *catalog) tablesPath() string { return c.path + "/namespaces/" + c.namespace + "/tables" }

// tablePath is the path of a table's endpoint.
func (c *catalog) tablePath(table string) string { return c.tablesPath() + "/" + table }

// creation is the body that creates a table.
func creation(table string) []byte {
	return fmt.Appendf(nil, `{"name":%q,"schema":%s,"stage-create":false,"properties":{"owner":"bench",%s}}`, table, benchSchema, keepOneVersion)
}

// ensureTable creates a table with so many snapshots, unless there is one of this name.
func (c *catalog) ensureTable(ctx context.Context, table string, snapshots int) error {
	if c.tables[table] {
		return nil
	}
	if _, _, err := c.call(ctx, http.MethodPost, c.tablesPath(), creation(table)); err != nil {
		return err
	}
	// Not all at once: the body of a request is bounded.
	const atOnce = 1000
	for first := 0; first < snapshots; first += atOnce {
		body := appendSnapshots(first, min(atOnce, snapshots-first), time.Now().UnixMilli())
		if _, _, err := c.call(ctx, http.MethodPost, c.tablePath(table), body); err != nil {
			return err
		}
	}
	c.tables[table] = true
	return nil
}

// appendSnapshots is a commit that adds n snapshots, one after another.
func appendSnapshots(first, n int, millis int64) []byte {
	var b bytes.Buffer
	b.WriteString(`{"requirements":[],"updates":[`)
	for i := range n {
		fmt.Fprintf(&b, `{"action":"add-snapshot","snapshot":%s},`, snapshotJSON(first+i, millis))
	}
	fmt.Fprintf(&b, `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]}`, snapshotID(first+n-1))
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
	body, header, err := c.call(ctx, http.MethodGet, c.tablePath(table), nil)
	if err != nil {
		return loaded{}, err
	}
	l, err := decodeLoaded(body)
	l.etag = header.Get("ETag")
	return l, err
}

func decodeLoaded(body []byte) (loaded, error) {
	l := loaded{body: body}
	err := json.Unmarshal(body, &l)
	return l, err
}

// errNoVersion says that the name of a metadata file does not count its versions.
var errNoVersion = errors.New("the metadata location has no version")

// version is the number in the name of the metadata file: how many there were before.
func (l loaded) version() (int, error) {
	digits, _, ok := strings.Cut(path.Base(l.MetadataLocation), "-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("%w: %q", errNoVersion, l.MetadataLocation)
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

// directory is where the table's metadata files lie on this machine, if they do.
func (l loaded) directory() (string, bool) {
	location := l.MetadataLocation
	if rest, ok := strings.CutPrefix(location, "file:"); ok {
		location = "/" + strings.TrimLeft(rest, "/")
	}
	if !strings.HasPrefix(location, "/") {
		return "", false
	}
	if p, err := url.PathUnescape(location); err == nil {
		location = p
	}
	dir := filepath.Dir(filepath.FromSlash(location))
	_, err := os.Stat(dir)
	return dir, err == nil
}

// metadataSuffix is how the names of metadata files end.
const metadataSuffix = ".metadata.json"

// countMetadataFiles counts the metadata files in directories.
func countMetadataFiles(dirs []string) (n int, err error) {
	for _, dir := range dirs {
		d, err := os.Open(dir)
		if err != nil {
			return 0, err
		}
		names, err := d.Readdirnames(-1)
		if err = errors.Join(err, d.Close()); err != nil {
			return 0, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, metadataSuffix) && !strings.HasPrefix(name, ".") {
				n++
			}
		}
	}
	return n, nil
}

// names are the names in a list, of which every page is asked for: tables, or
// namespaces by the last of their levels.
func (c *catalog) names(ctx context.Context, list string) (map[string]bool, error) {
	names := map[string]bool{}
	separator := "?"
	if strings.Contains(list, separator) {
		separator = "&"
	}
	for token := ""; ; {
		body, _, err := c.call(ctx, http.MethodGet, list+separator+"pageSize=1000&pageToken="+url.QueryEscape(token), nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Identifiers []struct{ Name string }
			Namespaces  [][]string
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, err
		}
		for _, id := range page.Identifiers {
			names[id.Name] = true
		}
		for _, levels := range page.Namespaces {
			names[levels[len(levels)-1]] = true
		}
		if token, err = nextPage(body); err != nil || token == "" {
			return names, err
		}
	}
}

// nextPage is the token of the page that follows one.
func nextPage(page []byte) (string, error) {
	var token struct {
		Next string `json:"next-page-token"`
	}
	err := json.Unmarshal(page, &token)
	return token.Next, err
}

// callClient bounds a call, which may be one that makes a large table.
var callClient = &http.Client{Timeout: 5 * time.Minute}

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
		return nil, nil, fmt.Errorf("%s %s: %s: %.300s", method, url, resp.Status, answer)
	}
	return answer, resp.Header, nil
}
