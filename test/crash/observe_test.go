package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// Page sizes of the listings that are compared with those in one piece.
const (
	tablePage     = 7
	namespacePage = 3
	observersMax  = 4 // requests at once
)

// observe asks the server for everything that it shows.
func observe(c *client, h *history, files archive) (observation, error) {
	obs := observation{
		listed: map[string]int{}, tables: map[string]loaded{}, unloadable: map[string]string{}, namespaces: map[string]map[string]string{}, files: files,
	}
	if err := obs.namespacesBelow(c, nil); err != nil {
		return obs, err
	}
	isView := map[string]bool{}
	for name := range obs.namespaces {
		for _, kind := range []string{"tables", "views"} {
			names, err := obs.list(c, name, kind)
			if err != nil {
				return obs, err
			}
			for _, n := range names {
				isView[n] = kind == "views"
			}
		}
	}
	// Names that are not listed must not be there, whatever was ever done to them.
	names := maps.Clone(obs.listed)
	for _, o := range h.ops {
		if o.naming != nil && o.table != nil {
			for _, name := range []string{o.naming.from, o.naming.to} {
				if _, listed := names[name]; name != "" && !listed {
					names[name], isView[name] = 0, o.table.view
				}
			}
		}
	}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(observersMax)
	for name, listed := range names {
		g.Go(func() error {
			path := tablePath(name)
			if isView[name] {
				path = viewPath(name)
			}
			if listed == 0 {
				a := c.call("HEAD", path, nil)
				if a.status == http.StatusNotFound {
					return nil
				}
				if a.outcome() != done {
					return fmt.Errorf("look for %s: %d %s", path, a.status, a.message())
				}
			}
			a := c.callTable("GET", path, nil)
			mu.Lock()
			defer mu.Unlock()
			if a.outcome() != done {
				obs.unloadable[name] = fmt.Sprintf("%d %s", a.status, a.message())
				return nil
			}
			obs.tables[name] = loaded{a.table.MetadataLocation, a.table.parsed}
			return nil
		})
	}
	err := g.Wait()
	obs.now = time.Now().UnixMilli()
	return obs, err
}

// shows tells whether two observations are of the same names, files and properties.
func (obs observation) shows(other observation) bool {
	sameFile := func(a, b loaded) bool { return a.location == b.location }
	return maps.Equal(obs.listed, other.listed) && maps.EqualFunc(obs.tables, other.tables, sameFile) &&
		maps.EqualFunc(obs.namespaces, other.namespaces, maps.Equal[map[string]string, map[string]string])
}

// namespacesBelow lists the namespaces below a parent and reads their properties.
func (obs *observation) namespacesBelow(c *client, parent []string) error {
	path := prefix + "/namespaces"
	if len(parent) > 0 {
		path += "?parent=" + url.QueryEscape(strings.Join(parent, "\x1f"))
	}
	found, err := listed(c, path, namespacePage, func(body []byte) ([]string, error) {
		var page struct{ Namespaces [][]string }
		err := json.Unmarshal(body, &page)
		var names []string
		for _, levels := range page.Namespaces {
			names = append(names, dotted(levels))
		}
		return names, err
	})
	if err != nil {
		return err
	}
	for _, name := range found {
		levels := strings.Split(name, ".")
		a := c.call("GET", namespacePath(levels...), nil)
		if a.outcome() != done {
			return fmt.Errorf("load the listed namespace %s: %d %s", name, a.status, a.message())
		}
		var n struct{ Properties map[string]string }
		if err := json.Unmarshal(a.body, &n); err != nil {
			return err
		}
		obs.namespaces[name] = n.Properties
		if err := obs.namespacesBelow(c, levels); err != nil {
			return err
		}
	}
	return nil
}

// list lists the tables or the views of a namespace.
func (obs *observation) list(c *client, namespace, kind string) ([]string, error) {
	levels := strings.Split(namespace, ".")
	names, err := listed(c, namespacePath(levels...)+"/"+kind, tablePage, func(body []byte) ([]string, error) {
		var page struct{ Identifiers []identifier }
		err := json.Unmarshal(body, &page)
		var names []string
		for _, i := range page.Identifiers {
			names = append(names, dotted(append(slices.Clone(i.Namespace), i.Name)))
		}
		return names, err
	})
	for _, name := range names {
		obs.listed[name]++
	}
	return names, err
}

// listed reads a listing whole and in pages, and wants both to be the same.
func listed(c *client, path string, page int, names func([]byte) ([]string, error)) ([]string, error) {
	read := func(size int) (all []string, err error) {
		err = c.pages(path, size, func(body []byte) error {
			some, err := names(body)
			all = append(all, some...)
			return err
		})
		return all, err
	}
	whole, err := read(0)
	if err != nil {
		return nil, err
	}
	paged, err := read(page)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(whole, paged) {
		return nil, fmt.Errorf("list %s: %d names in one piece and %d in pages, or in another order", path, len(whole), len(paged))
	}
	return whole, nil
}

// Two servers that show anything differently are told apart.
func TestShows(t *testing.T) {
	seen := func() observation {
		return observation{
			listed:     map[string]int{"n.t": 1},
			tables:     map[string]loaded{"n.t": {location: "file:///w/t/metadata/00001-1.metadata.json"}},
			namespaces: map[string]map[string]string{"n": {"last": "a-1"}},
		}
	}
	tests := []struct {
		name    string
		corrupt func(*observation)
		want    bool
	}{
		{"nothing", func(*observation) {}, true},
		{"an older version", func(o *observation) {
			o.tables["n.t"] = loaded{location: "file:///w/t/metadata/00000-1.metadata.json"}
		}, false},
		{"a table that is not there", func(o *observation) { delete(o.tables, "n.t") }, false},
		{"a name that is not listed", func(o *observation) { delete(o.listed, "n.t") }, false},
		{"an older property", func(o *observation) { o.namespaces["n"]["last"] = "a-0" }, false},
		{"a namespace that is not there", func(o *observation) { delete(o.namespaces, "n") }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			other := seen()
			test.corrupt(&other)
			if got := other.shows(seen()); got != test.want {
				t.Errorf("the same: %v, want %v", got, test.want)
			}
		})
	}
}
