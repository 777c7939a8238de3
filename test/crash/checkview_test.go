package crash

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
)

// view checks a view: its current metadata file holds all of its history. What is
// left of one that was dropped is the newest file that anybody was told of.
func (c *checker) view(t *table, now string) {
	c.views++
	location := t.newest()
	if now != "" {
		location = c.obs.tables[now].location
	}
	if location == "" {
		return // it never was
	}
	head, err := c.obs.files.version(location)
	if err != nil {
		c.problem("view %s: metadata file %s: %v", t.id, location, err)
		return
	}
	c.versions += len(head.ViewVersions)
	c.reached[location] = true
	if now != "" {
		shown := *c.obs.tables[now].metadata
		shown.location, shown.number = head.location, head.number
		if !reflect.DeepEqual(&shown, head) {
			c.problem("view %s: a load answers other metadata than is in %s", t.id, location)
		}
	}
	at, ok := c.explainView(t, head)
	if !ok {
		return
	}
	c.completeView(t, head, at, now != "")
}

// explainView finds the operation that made each version of a view.
func (c *checker) explainView(t *table, head *version) (map[*operation]int, bool) {
	versions := head.ViewVersions
	if len(versions) == 0 || len(versions) != head.number+1 || len(head.VersionLog) != len(versions) || head.CurrentVersion != versions[len(versions)-1].ID {
		c.problem("view %s: %s has %d versions, a log of %d and the current version %d", t.id, head.location, len(versions), len(head.VersionLog), head.CurrentVersion)
		return nil, false
	}
	at := map[*operation]int{}
	var properties map[string]string
	for i, v := range versions {
		token := ""
		if len(v.Queries) == 1 {
			token = v.Queries[0].SQL
		}
		o := c.h.byToken[token]
		if o == nil || o.table != t {
			c.problem("view %s: phantom version %q in %s", t.id, token, head.location)
			return nil, false
		}
		first, twice := at[o]
		at[o] = i
		properties = o.edit.apply(properties)
		switch {
		case twice:
			c.problem("view %s: %s was applied twice, in versions %d and %d", t.id, o, first, i)
		case v.ID != i+1 || head.VersionLog[i].ID != v.ID:
			c.problem("view %s: version %d of %s is numbered %d, and %d in the log", t.id, i+1, head.location, v.ID, head.VersionLog[i].ID)
		case o.outcome == refused:
			c.problem("view %s: %s was refused (%d) and is visible in %s", t.id, o, o.status, head.location)
		case o.hopeless:
			c.problem("view %s: %s could never succeed and is visible in %s", t.id, o, head.location)
		case o.outcome == unknown:
			c.resolved[o] = done
			if i == len(versions)-1 {
				c.versionsOf[o] = head
			}
		}
	}
	if !maps.Equal(properties, head.Properties) {
		c.problem("view %s: half a change in %s: its properties are %v instead of %v", t.id, head.location, head.Properties, properties)
	}
	return at, true
}

// completeView wants everything that was acknowledged or read to be in the history.
func (c *checker) completeView(t *table, head *version, at map[*operation]int, live bool) {
	read := map[*operation]int{}
	for _, o := range t.ops {
		i, there := at[o]
		told := -1
		if o.location != "" {
			told = c.toldOfView(t, o, head)
		}
		switch {
		case o.outcome == done && o.edit != nil && !there:
			c.problem("view %s: %s was acknowledged and is lost", t.id, o)
		case o.outcome == unknown && o.edit != nil && !there && live:
			c.resolved[o] = refused
		case told < 0:
		case there && told != i && !(o.showsLatest() && told > i):
			c.problem("view %s: %s was answered with version %d and is version %d", t.id, o, told, i)
		case o.edit == nil, o.showsLatest():
			read[o] = told
		}
	}
	c.reads += len(read)
	c.order(t, len(head.ViewVersions), at, read)
}

// toldOfView is the version of a view that an answer named; -1 if there is none.
func (c *checker) toldOfView(t *table, o *operation, head *version) int {
	v, err := c.obs.files.version(o.location)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.problem("view %s: %s was answered with %s, which is missing", t.id, o, o.location)
		return -1
	case err != nil:
		c.problem("view %s: %s was answered with %s, which is damaged: %v", t.id, o, o.location, err)
		return -1
	}
	c.reached[o.location] = true
	n := len(v.ViewVersions)
	if n == 0 || n > len(head.ViewVersions) || !reflect.DeepEqual(v.ViewVersions, head.ViewVersions[:n]) || v.ViewUUID != head.ViewUUID {
		c.problem("view %s: %s was answered with %s, which is not in the view's history", t.id, o, o.location)
		return -1
	}
	return n - 1
}
