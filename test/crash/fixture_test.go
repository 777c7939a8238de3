package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
)

// fixture is a server of a few lines that does everything right, for the checker's
// own tests: they corrupt what it shows.
type fixture struct {
	h          *history
	files      memory
	tables     map[string]string            // name to metadata location
	namespaces map[string]map[string]string // by name
	twice      string                       // a table's name that is listed twice
	unlisted   string                       // a table's name that is left out of the list
	shown      map[string]*version          // what a load of a table answers, where it is not what its file says
	started    int64                        // observation's
	now        int64
	count      int
}

// memory is an archive of files that are never damaged unless they are nil.
type memory map[string]*version

func (m memory) version(location string) (*version, error) {
	v, ok := m[location]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if v == nil {
		return nil, errors.New("not JSON")
	}
	return v, nil
}

func (m memory) remembered(location string) *version { return m["gone:"+location] }

func (m memory) exists(location string) bool { _, ok := m[location]; return ok }

// observation is what the fixture shows.
func (f *fixture) observation() observation {
	obs := observation{
		listed: map[string]int{}, tables: map[string]loaded{}, namespaces: f.namespaces, files: f.files, started: f.started, now: f.now,
	}
	for name, location := range f.tables {
		obs.listed[name] = 1
		shown := f.files[location]
		if shown == nil { // a server that had it in memory
			shown = &version{Properties: map[string]string{createdProperty: f.createdAt(name)}}
		}
		if other := f.shown[name]; other != nil {
			shown = other
		}
		obs.tables[name] = loaded{location, shown}
	}
	if f.twice != "" {
		obs.listed[f.twice] = 2
	}
	delete(obs.listed, f.unlisted)
	return obs
}

func (f *fixture) createdAt(name string) string {
	for _, t := range f.h.tables {
		if t.at == name {
			return t.id
		}
	}
	return ""
}

// result is how an operation of the fixture ends.
type result int

const (
	works        result = iota // it is applied and acknowledged
	fails                      // it is refused with 409
	missing                    // it is refused with 404
	cutOff                     // the server dies before it is applied
	cutOffAnswer               // the server dies after it is applied
)

func (r result) applies() bool { return r == works || r == cutOffAnswer }

// run sends an operation, applies it or not, and records the answer.
func (f *fixture) run(o *operation, r result, apply func() string) *operation {
	f.failing(r)
	f.h.send(&sending{ops: []*operation{o}})
	location := ""
	if r.applies() {
		location = apply()
	}
	f.answer(o, r, location)
	return o
}

func refusal(status int, kind string) answer {
	return answer{status: status, body: fmt.Appendf(nil, `{"error":{"type":%q}}`, kind)}
}

// failing says whether the server is dying.
func (f *fixture) failing(r result) {
	f.h.calm()
	if r == cutOff || r == cutOffAnswer {
		f.h.excuse(silence)
	}
}

func (f *fixture) answer(o *operation, r result, location string) {
	a := answer{status: http.StatusOK}
	switch r {
	case fails:
		kind := "CommitFailedException"
		if o.naming != nil {
			kind = "AlreadyExistsException"
		}
		a = refusal(http.StatusConflict, kind)
		o.refusable = []int{http.StatusConflict}
	case missing:
		a = refusal(http.StatusNotFound, "NoSuchTableException")
		o.refusable = []int{http.StatusNotFound}
	case cutOff, cutOffAnswer:
		a = answer{err: errors.New("connection reset")}
	}
	if location != "" {
		a.table = tableAnswer{MetadataLocation: location, parsed: f.files[location]}
	}
	f.h.answer(o.sending, a)
}

func (f *fixture) operation(kind, writer string) *operation {
	f.count++
	token := fmt.Sprintf("%s-%d", writer, f.count)
	return &operation{kind: kind, token: token, writer: writer, edit: mark(writer, token)}
}

// write makes the version of a table that follows another; nil is none.
func (f *fixture) write(previous *version, location, uuid string, o *operation) string {
	f.count++
	v := &version{UUID: uuid, Location: location, LastUpdated: int64(1000 + f.count)}
	if previous != nil {
		*v = *previous
		v.number, v.LastUpdated = previous.number+1, int64(1000+f.count)
		v.MetadataLog = append(slices.Clone(previous.MetadataLog), logEntry{previous.location, previous.LastUpdated})
		if o.table != nil {
			v.MetadataLog = v.MetadataLog[max(0, len(v.MetadataLog)-o.table.keepsLog):]
		}
		v.Snapshots, v.SnapshotLog, v.Refs = slices.Clone(previous.Snapshots), slices.Clone(previous.SnapshotLog), maps.Clone(previous.Refs)
	}
	v.Properties = o.edit.apply(v.Properties)
	if s := o.edit.snapshot; s != nil {
		v.Snapshots = append(v.Snapshots, *s)
		v.LastSequence, v.Current = s.Sequence, &s.ID
		v.Refs = map[string]reference{"main": {s.ID}}
		v.SnapshotLog = append(v.SnapshotLog, snapshotLogEntry{s.ID, v.LastUpdated})
	}
	v.location = fmt.Sprintf("%s/metadata/%05d-%d.metadata.json", v.Location, v.number, f.count)
	f.files[v.location] = v
	return v.location
}

func (f *fixture) create(writer, name string, r result) *table {
	o := f.operation("create", writer)
	o.table, o.naming = f.h.newTable(o.token), &naming{to: name}
	o.edit.set[createdProperty] = o.token
	f.run(o, r, func() string {
		location := f.write(nil, "file:///w/"+o.token, "uuid of "+o.token, o)
		f.tables[name] = location
		return location
	})
	return o.table
}

// head is the newest version of a table that is there.
func (f *fixture) head(t *table) *version { return f.files[f.tables[t.at]] }

func (f *fixture) commit(t *table, writer string, r result) *operation {
	return f.commitEdit(t, f.operation("commit", writer), r)
}

func (f *fixture) commitEdit(t *table, o *operation, r result) *operation {
	o.table, o.addressed = t, t.at
	return f.run(o, r, func() string {
		previous := f.head(t)
		f.tables[t.at] = f.write(previous, previous.Location, previous.UUID, o)
		return f.tables[t.at]
	})
}

func (f *fixture) append(t *table, writer string, r result) *operation {
	o, base := f.operation("append", writer), f.head(t)
	o.expectedMain = base.main()
	o.edit.snapshot = &snapshot{ID: int64(f.count), Parent: base.main(), Sequence: base.LastSequence + 1, Summary: map[string]string{"token": o.token}}
	return f.commitEdit(t, o, r)
}

func (f *fixture) load(t *table) *operation {
	o := &operation{kind: "load", writer: "r", table: t, addressed: t.at}
	return f.run(o, works, func() string { return f.tables[t.at] })
}

func (f *fixture) rename(t *table, to string, r result) *operation {
	o := f.operation("rename", "a")
	o.table, o.addressed, o.edit, o.naming = t, t.at, nil, &naming{from: t.at, to: to}
	return f.run(o, r, func() string {
		f.tables[to] = f.tables[o.naming.from]
		delete(f.tables, o.naming.from)
		return ""
	})
}

func (f *fixture) drop(t *table, purge bool, r result) *operation {
	o := f.operation("drop", "a")
	o.table, o.addressed, o.edit, o.naming = t, t.at, nil, &naming{from: t.at, purge: purge}
	return f.run(o, r, func() string {
		if head := f.head(t); purge && head != nil {
			delete(f.files, head.location)
			for _, e := range head.MetadataLog {
				delete(f.files, e.File)
			}
		}
		delete(f.tables, o.naming.from)
		return ""
	})
}

func (f *fixture) createNamespace(writer, name string, r result) *namespace {
	o := f.operation("create namespace", writer)
	o.namespace, o.naming = f.h.newNamespace(o.token, name), &naming{to: name}
	o.edit.set[createdProperty] = o.token
	f.run(o, r, func() string { f.namespaces[name] = maps.Clone(o.edit.set); return "" })
	return o.namespace
}

func (f *fixture) setProperties(n *namespace, writer string, r result) *operation {
	o := f.operation("set namespace properties", writer)
	o.namespace = n
	name := dotted(n.levels)
	return f.run(o, r, func() string { f.namespaces[name] = o.edit.apply(f.namespaces[name]); return "" })
}

func (f *fixture) dropNamespace(n *namespace, r result) *operation {
	o := f.operation("drop namespace", "a")
	o.namespace, o.edit, o.naming = n, nil, &naming{from: dotted(n.levels)}
	return f.run(o, r, func() string { delete(f.namespaces, dotted(n.levels)); return "" })
}

// transact commits to several tables at once, without an answer that names a file.
func (f *fixture) transact(writer string, r result, tables ...*table) []*operation {
	s := &sending{}
	for _, t := range tables {
		o := f.operation("transaction", writer)
		o.table, o.addressed = t, t.at
		s.ops = append(s.ops, o)
	}
	f.failing(r)
	f.h.send(s)
	for _, o := range s.ops {
		if r.applies() {
			previous := f.head(o.table)
			f.tables[o.table.at] = f.write(previous, previous.Location, previous.UUID, o)
		}
	}
	f.answer(s.ops[0], r, "")
	return s.ops
}

// unregister takes a table's name away and leaves its files.
func (f *fixture) unregister(t *table, r result) *operation {
	o := f.operation("unregister", "a")
	o.table, o.addressed, o.edit, o.naming = t, t.at, nil, &naming{from: t.at, unbinds: true}
	return f.run(o, r, func() string {
		location := f.tables[o.addressed]
		delete(f.tables, o.addressed)
		return location
	})
}

func (f *fixture) register(t *table, name, location string, r result) *operation {
	o := f.operation("register", "a")
	o.table, o.edit, o.naming, o.registered = t, nil, &naming{to: name}, location
	return f.run(o, r, func() string { f.tables[name] = location; return location })
}

// writeView makes the file of a view that follows another; nil is none.
func (f *fixture) writeView(previous *version, o *operation) string {
	f.count++
	v := &version{ViewUUID: "uuid of " + o.token, Location: "file:///w/" + o.token}
	if previous != nil {
		*v = *previous
		v.number++
		v.ViewVersions, v.VersionLog = slices.Clone(previous.ViewVersions), slices.Clone(previous.VersionLog)
	}
	v.CurrentVersion = v.number + 1
	v.ViewVersions = append(v.ViewVersions, viewVersion{v.CurrentVersion, []viewQuery{{o.token}}})
	v.VersionLog = append(v.VersionLog, viewLogEntry{v.CurrentVersion})
	v.Properties = o.edit.apply(v.Properties)
	v.location = fmt.Sprintf("%s/metadata/%05d-%d.gz.metadata.json", v.Location, v.number, f.count)
	f.files[v.location] = v
	return v.location
}

func (f *fixture) createView(writer, name string, r result) *table {
	o := f.operation("create view", writer)
	o.table, o.naming = f.h.newTable(o.token), &naming{to: name}
	o.table.view, o.edit.set[createdProperty] = true, o.token
	f.run(o, r, func() string {
		f.tables[name] = f.writeView(nil, o)
		return f.tables[name]
	})
	return o.table
}

func (f *fixture) replaceView(v *table, writer string, r result) *operation {
	o := f.operation("replace view", writer)
	o.table, o.addressed = v, v.at
	return f.run(o, r, func() string {
		f.tables[v.at] = f.writeView(f.head(v), o)
		return f.tables[v.at]
	})
}

// deleteFallen deletes the files that have fallen off the log of a table, and
// remembers them as a disk does.
func (f *fixture) deleteFallen(t *table) {
	kept := map[string]bool{f.tables[t.at]: true}
	for _, e := range f.head(t).MetadataLog {
		kept[e.File] = true
	}
	for location, v := range maps.Clone(f.files) {
		if v.UUID == f.head(t).UUID && !kept[location] {
			f.files["gone:"+location] = v
			delete(f.files, location)
		}
	}
}
