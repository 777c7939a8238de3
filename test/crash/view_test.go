package crash

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// viewHistoryMax is how many versions a view keeps: all.
const viewHistoryMax = "100000"

// viewVersionOf is the version that leaves an operation's token in a view.
func viewVersionOf(o *operation) object {
	return object{
		"version-id": 1, "timestamp-ms": time.Now().UnixMilli(), "schema-id": 0, "summary": object{}, "default-namespace": []string{eastSpace},
		"representations": []object{{"type": "sql", "sql": o.token, "dialect": "spark"}},
	}
}

// makeView sends the creation of a view and returns it, whatever became of it.
func (w *writer) makeView(kind, name string, adapt func(*operation, object)) (*table, answer) {
	o := w.operation(kind)
	o.table = w.h.newTable(o.token)
	o.table.view = true
	o.naming = &naming{to: name}
	o.edit.set[createdProperty], o.edit.set["version.history.num-entries"] = o.token, viewHistoryMax
	_, last := split(name)
	body := object{"name": last, "schema": json.RawMessage(schema), "view-version": viewVersionOf(o), "properties": o.edit.set}
	if adapt != nil {
		adapt(o, body)
	}
	return o.table, w.sent(tableRequest("POST", viewsPath(name), body), o)
}

func (w *writer) createView() {
	if len(w.views) >= 5 {
		if len(w.h.sure(w.views)) > 0 {
			w.dropView()
		}
		return
	}
	if v, a := w.makeView("create view", w.ownName(), nil); a.outcome() == done {
		w.views = append(w.views, v)
	}
}

// pickView is one of the writer's own views, or nil.
func (w *writer) pickView() *table {
	views := w.h.sure(w.views)
	if len(views) == 0 {
		w.createView()
		return nil
	}
	return views[w.rng.IntN(len(views))]
}

// replace sends another version of a view.
func (w *writer) replace(kind string, v *table, requirements ...object) {
	o := w.operation(kind)
	o.table, o.addressed = v, w.h.nameOf(v)
	if len(requirements) > 0 {
		o.hopeless, o.refusable = true, []int{http.StatusConflict}
	}
	w.sent(tableRequest("POST", viewPath(o.addressed), object{
		"requirements": append([]object{}, requirements...),
		"updates": []object{
			{"action": "add-view-version", "view-version": viewVersionOf(o)},
			{"action": "set-current-view-version", "view-version-id": -1},
			{"action": "set-properties", "updates": o.edit.set},
		},
	}), o)
}

func (w *writer) replaceView() {
	v := w.pickView()
	switch {
	case v == nil:
	case w.rng.IntN(5) == 0:
		w.replace("hopeless replace", v, object{"type": "assert-view-uuid", "uuid": "00000000-0000-4000-8000-000000000000"})
	default:
		w.replace("replace view", v)
	}
}

// replaceSharedView replaces the view that everybody replaces, or loads it.
func (w *writer) replaceSharedView() {
	if w.rng.IntN(3) == 0 {
		w.load(w.view)
		return
	}
	w.replace("replace shared view", w.view)
}

func (w *writer) renameView() {
	v := w.pickView()
	if v == nil {
		return
	}
	o := w.operation("rename view")
	o.edit = nil
	o.table, o.addressed = v, w.h.nameOf(v)
	o.naming = &naming{from: o.addressed, to: w.ownName()}
	w.sent(requestOf("POST", prefix+"/views/rename", object{"source": identify(o.addressed), "destination": identify(o.naming.to)}), o)
}

func (w *writer) dropView() {
	v := w.pickView()
	if v == nil {
		return
	}
	o := w.operation("drop view")
	o.edit = nil
	o.table, o.addressed = v, w.h.nameOf(v)
	o.naming = &naming{from: o.addressed}
	if w.sent(requestOf("DELETE", viewPath(o.addressed), nil), o).outcome() == done {
		w.views = slices.DeleteFunc(w.views, func(other *table) bool { return other == v })
	}
}
