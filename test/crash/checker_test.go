package crash

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scene is a short history with everything in it that the checker looks at.
type scene struct {
	*fixture
	plain, hot, moved, dropped, purged, left, right, back, short, data *table
	view, oldView                                                      *table
	space                                                              *namespace
	commits, appends, replaces                                         []*operation
}

func newScene() *scene {
	s := &scene{fixture: &fixture{
		h: newHistory(), files: memory{}, tables: map[string]string{}, namespaces: map[string]map[string]string{},
	}}
	s.space = s.createNamespace("a", "n", works)
	s.setProperties(s.space, "a", works)
	s.setProperties(s.space, "b", works)
	s.setProperties(s.space, "b", fails)
	s.plain = s.create("a", "n.plain", works)
	s.create("b", "n.plain", fails)
	for _, writer := range []string{"a", "b", "a"} {
		s.commits = append(s.commits, s.commit(s.plain, writer, works))
	}
	s.hot = s.create("a", "n.hot", works)
	for _, writer := range []string{"a", "b", "c"} {
		s.load(s.hot)
		s.appends = append(s.appends, s.append(s.hot, writer, works))
	}
	s.moved = s.create("a", "n.moved", works)
	s.rename(s.moved, "n.there", works)
	s.dropped = s.create("a", "n.dropped", works)
	s.commit(s.dropped, "b", works)
	s.drop(s.dropped, false, works)
	s.purged = s.create("a", "n.purged", works)
	s.commit(s.purged, "b", works)
	s.drop(s.purged, true, works)
	s.left, s.right = s.create("a", "n.left", works), s.create("a", "n.right", works)
	s.transact("b", works, s.left, s.right)
	s.back = s.create("a", "n.back", works)
	s.commit(s.back, "b", works)
	s.register(s.back, "n.back", s.unregister(s.back, works).location, works)
	s.commit(s.back, "a", works)
	s.short = s.create("a", "n.short", works)
	s.short.keepsLog, s.short.forgets = 1, true
	for range 3 {
		s.commit(s.short, "a", works)
	}
	s.data = s.create("a", "n.data", works)
	o := s.append(s.data, "a", works)
	o.edit.files = []string{"file:///w/data.parquet"}
	s.files["file:///w/data.parquet"] = &version{}
	s.view = s.createView("a", "n.view", works)
	for _, writer := range []string{"a", "b"} {
		s.replaces = append(s.replaces, s.replaceView(s.view, writer, works))
	}
	s.load(s.view)
	s.oldView = s.createView("a", "n.old", works)
	s.replaceView(s.oldView, "a", works)
	s.drop(s.oldView, false, works)
	s.now = 1 << 40 // when the time of grace has passed
	return s
}

func (s *scene) check() *report { return check(s.h, s.observation()) }

// The checker finds nothing wrong where nothing is, and takes every unknown
// operation for what it was.
func TestCheckerAccepts(t *testing.T) {
	tests := []struct {
		name   string
		happen func(*scene) *operation // its outcome is unknown
		want   outcome
	}{
		{"nothing", func(*scene) *operation { return nil }, unknown},
		{"a commit that came through", func(s *scene) *operation { return s.commit(s.plain, "a", cutOffAnswer) }, done},
		{"a commit that did not", func(s *scene) *operation { return s.commit(s.plain, "a", cutOff) }, refused},
		{"an append that came through", func(s *scene) *operation { return s.append(s.hot, "a", cutOffAnswer) }, done},
		{"an append that did not", func(s *scene) *operation { return s.append(s.hot, "a", cutOff) }, refused},
		{"a creation that came through", func(s *scene) *operation { return s.create("a", "n.new", cutOffAnswer).ops[0] }, done},
		{"a creation that did not", func(s *scene) *operation { return s.create("a", "n.new", cutOff).ops[0] }, refused},
		{"a rename that came through", func(s *scene) *operation { return s.rename(s.plain, "n.new", cutOffAnswer) }, done},
		{"a rename that did not", func(s *scene) *operation { return s.rename(s.plain, "n.new", cutOff) }, refused},
		{"a drop that came through", func(s *scene) *operation { return s.drop(s.plain, false, cutOffAnswer) }, done},
		{"a drop that did not", func(s *scene) *operation { return s.drop(s.plain, false, cutOff) }, refused},
		{"a purge that came through", func(s *scene) *operation { return s.drop(s.plain, true, cutOffAnswer) }, done},
		{"a purge that did not", func(s *scene) *operation { return s.drop(s.plain, true, cutOff) }, refused},
		{"namespace properties that came through", func(s *scene) *operation { return s.setProperties(s.space, "a", cutOffAnswer) }, done},
		{"namespace properties that did not", func(s *scene) *operation { return s.setProperties(s.space, "a", cutOff) }, refused},
		{"a namespace's creation that came through", func(s *scene) *operation { return s.createNamespace("a", "new", cutOffAnswer).ops[0] }, done},
		{"a namespace's creation that did not", func(s *scene) *operation { return s.createNamespace("a", "new", cutOff).ops[0] }, refused},
		{"a namespace's drop that came through", func(s *scene) *operation {
			return s.dropNamespace(s.createNamespace("a", "new", works), cutOffAnswer)
		}, done},
		{"a replaced view that came through", func(s *scene) *operation { return s.replaceView(s.view, "a", cutOffAnswer) }, done},
		{"a replaced view that did not", func(s *scene) *operation { return s.replaceView(s.view, "a", cutOff) }, refused},
		{"a replaced view that came through, and was dropped after the next check", func(s *scene) *operation {
			s.replaceView(s.view, "a", cutOffAnswer)
			s.h.settle(s.check())
			return s.drop(s.view, false, cutOffAnswer)
		}, done},
		{"a view's creation that came through", func(s *scene) *operation { return s.createView("a", "n.new", cutOffAnswer).ops[0] }, done},
		{"a view's drop that did not", func(s *scene) *operation { return s.drop(s.view, false, cutOff) }, refused},
		{"an unregister that came through", func(s *scene) *operation { return s.unregister(s.plain, cutOffAnswer) }, done},
		{"an unregister that did not", func(s *scene) *operation { return s.unregister(s.plain, cutOff) }, refused},
		{"a register that came through", func(s *scene) *operation {
			return s.register(s.plain, "n.new", s.unregister(s.plain, works).location, cutOffAnswer)
		}, done},
		{"a register that did not", func(s *scene) *operation {
			return s.register(s.plain, "n.new", s.unregister(s.plain, works).location, cutOff)
		}, refused},
		{"a transaction that came through", func(s *scene) *operation { return s.transact("a", cutOffAnswer, s.plain, s.hot)[0] }, done},
		{"a transaction that did not", func(s *scene) *operation { return s.transact("a", cutOff, s.plain, s.hot)[0] }, refused},
		{"a transaction that came through, and one of its tables was dropped", func(s *scene) *operation {
			o := s.transact("a", cutOffAnswer, s.plain, s.right)[0]
			s.drop(o.sending.ops[1].table, true, works)
			return o
		}, done},
		{"files that fell off a log are deleted", func(s *scene) *operation { s.deleteFallen(s.short); return nil }, done},
		{"a transaction before a drop", func(s *scene) *operation {
			s.transact("a", works, s.plain, s.hot)
			s.drop(s.plain, false, works)
			return nil
		}, done},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			o := test.happen(s)
			r := s.check()
			if len(r.problems) > 0 {
				t.Errorf("problems:\n%s", strings.Join(r.problems, "\n"))
			}
			if o == nil {
				return
			}
			want := map[string]string{}
			for _, part := range o.sending.ops {
				want[part.token] = test.want.String()
			}
			if diff := cmp.Diff(want, outcomes(r)); diff != "" {
				t.Errorf("resolved (-want +got):\n%s", diff)
			}
			// What was found out binds the rounds that follow.
			s.h.settle(r)
			if r := s.check(); len(r.problems) > 0 || len(r.resolved) > 0 {
				t.Errorf("once more: %d resolved, problems:\n%s", len(r.resolved), strings.Join(r.problems, "\n"))
			}
		})
	}
}

func outcomes(r *report) map[string]string {
	found := map[string]string{}
	for o, is := range r.resolved {
		found[o.token] = is.String()
	}
	return found
}

// The checker reports every sort of corruption that it is there for.
func TestCheckerSees(t *testing.T) {
	tests := []struct {
		name    string
		corrupt func(*scene)
		want    string // in one of the problems
	}{
		// Commits.
		{"the newest commit is lost", func(s *scene) { s.rollBack(s.plain) }, "was acknowledged and is lost"},
		{"a commit in the middle is lost", func(s *scene) {
			s.cutOut(s.plain, 2)
			for _, k := range []string{writerProperty + "b", pairProperty + "b"} {
				delete(s.head(s.plain).Properties, k)
			}
		}, "was acknowledged and is lost"},
		{"a version in the middle is lost", func(s *scene) { s.cutOut(s.plain, 2) }, "which is not in the table's history"},
		{"a commit's file is replaced by an older one", func(s *scene) {
			s.files[s.commits[2].location].Properties = s.files[s.commits[1].location].Properties
		}, "nothing explains the version"},
		{"a commit that nobody sent", func(s *scene) {
			o := s.operation("phantom", "z")
			s.tables["n.plain"] = s.write(s.head(s.plain), s.head(s.plain).Location, s.head(s.plain).UUID, o)
		}, "phantom change z-"},
		{"a refused commit is visible", func(s *scene) { s.commit(s.plain, "b", cutOffAnswer).outcome = refused }, "was refused (0) and is visible"},
		{"a commit that must fail is acknowledged", func(s *scene) { s.commits[1].hopeless = true }, "had to be refused and was acknowledged"},
		{"a commit that must fail and was cut off is visible", func(s *scene) { s.commit(s.plain, "b", cutOffAnswer).hopeless = true }, "could never succeed and is visible"},
		{"half a commit: a property is missing", func(s *scene) { delete(s.head(s.plain).Properties, pairProperty+"a") }, "half a change"},
		{"half a commit: the snapshot is missing", func(s *scene) {
			v := s.head(s.hot)
			v.Snapshots = v.Snapshots[:2]
		}, "half a change"},
		{"half a commit that was cut off", func(s *scene) {
			s.commit(s.plain, "b", cutOffAnswer)
			delete(s.head(s.plain).Properties, pairProperty+"b")
		}, "half a change"},
		{"half a creation", func(s *scene) { delete(s.head(s.moved).Properties, pairProperty+"a") }, "half of create"},
		{"a commit is applied twice", func(s *scene) {
			s.commit(s.plain, "b", works)
			s.tables["n.plain"] = s.write(s.head(s.plain), s.head(s.plain).Location, s.head(s.plain).UUID, s.commits[1])
		}, "was applied twice"},
		{"a property appears from nowhere", func(s *scene) { s.head(s.plain).Properties["color"] = "red" }, "phantom property color"},
		{"commits in the wrong order", func(s *scene) { s.commits[1].sent, s.commits[1].answered = 1, 2 }, "was answered before that was sent"},
		{"a commit is answered without its being there yet", func(s *scene) { s.commits[2].reads(s.commits[0]) }, "is in version 3"},
		{"a commit to a table that was dropped", func(s *scene) { s.dropped.ops[1].sent = s.h.clock + 1 }, "was answered after the table was dropped"},

		// Reads and reasons.
		{"what was loaded is lost", func(s *scene) {
			s.commit(s.plain, "b", cutOffAnswer)
			s.load(s.plain)
			s.rollBack(s.plain)
		}, "which is not in the table's history"},
		{"a load of something older", func(s *scene) { s.load(s.plain).reads(s.commits[0]) }, "did not see"},
		{"a load of something newer", func(s *scene) { s.hot.ops[1].reads(s.appends[0]) }, "which was sent after it"},
		{"a commit answers an older version than its own", func(s *scene) { s.commits[1].showsThatOf(s.commits[0]) }, "was answered with version"},
		{"a commit answers a version that came after its answer", func(s *scene) {
			answered := s.commits[0].answered
			s.commits[0].showsThatOf(s.commits[1])
			s.commits[0].answered = answered
		}, "which was sent after it"},
		{"a replacement of a view answers an older version than its own", func(s *scene) { s.replaces[1].showsThatOf(s.replaces[0]) }, "was answered with version"},
		{"a commit answers other metadata than the file", func(s *scene) { s.commits[1].updated++ }, "was answered with other metadata"},
		{"a load answers other metadata than the file", func(s *scene) {
			other := *s.head(s.plain)
			other.LastUpdated++
			s.shown = map[string]*version{"n.plain": &other}
		}, "a load answers other metadata"},
		{"refused for a name that was never taken", func(s *scene) { s.create("b", "n.free", fails) }, "was taken, which it never was"},
		{"refused for a table that is there", func(s *scene) { s.commit(s.plain, "b", missing) }, "which nobody took away"},
		{"refused for a main that did not move", func(s *scene) { s.append(s.hot, "b", fails) }, "because main had moved, which it has not"},
		{"refused for a location that nobody has", func(s *scene) {
			o := s.create("b", "n.new", fails).ops[0]
			o.contested, o.status, o.refusable = "file:///w/x", http.StatusBadRequest, []int{http.StatusBadRequest}
		}, "the location file:///w/x was taken"},
		{"refused without a reason", func(s *scene) { s.commit(s.plain, "b", fails).refusable = nil }, "was refused without a reason"},
		{"refused by a busy server although nothing failed", func(s *scene) {
			o := s.commit(s.plain, "b", fails)
			o.busy, o.status = true, http.StatusInsufficientStorage
		}, "was refused although nothing had failed"},
		{"repeated, and refused for a table that is there", func(s *scene) {
			s.commit(s.plain, "b", missing).sending.repeated = true
		}, "which nobody took away"},
		{"no outcome although nothing failed", func(s *scene) { s.commit(s.plain, "b", cutOff).excused = false }, "has no outcome although nothing had failed"},

		// Times.
		{"a version is long before the last of its metadata log", func(s *scene) {
			v := s.head(s.plain)
			v.LastUpdated = v.MetadataLog[2].Time - 60_001
		}, "in its metadata log and last-updated-ms"},
		{"the metadata log runs far back", func(s *scene) {
			s.head(s.plain).MetadataLog[0].Time += 120_000
		}, "in its metadata log and last-updated-ms"},
		{"a version is long before the last of its snapshot log", func(s *scene) {
			log := s.head(s.hot).SnapshotLog
			log[len(log)-1].Time = s.head(s.hot).LastUpdated + 60_001
		}, "in its snapshot log and last-updated-ms"},
		{"the snapshot log of an old version runs far back", func(s *scene) {
			s.files[s.appends[1].location].SnapshotLog[0].Time += 120_000
		}, "in its snapshot log and last-updated-ms"},
		{"last-updated-ms runs back", func(s *scene) { s.head(s.plain).LastUpdated -= 10 }, "runs back"},

		// Files.
		{"the pointer's file is missing", func(s *scene) { delete(s.files, s.tables["n.plain"]) }, "is missing"},
		{"a file of the metadata log is missing", func(s *scene) { delete(s.files, s.commits[0].location) }, "is missing"},
		{"a file of a dropped table is missing", func(s *scene) { delete(s.files, s.dropped.ops[0].location) }, "is missing"},
		{"the pointer's file is garbage", func(s *scene) { s.files[s.tables["n.plain"]] = nil }, "is damaged"},
		{"a file has another uuid", func(s *scene) { s.files[s.commits[0].location].UUID = "another" }, "has uuid another"},
		{"the metadata log lacks an entry", func(s *scene) {
			v := s.head(s.plain)
			v.MetadataLog = v.MetadataLog[1:]
		}, "has 2 entries instead of 3"},
		{"the metadata log names another file", func(s *scene) { s.head(s.plain).MetadataLog[0].File = s.tables["n.hot"] }, "instead of"},
		{"the metadata log runs back", func(s *scene) { s.head(s.plain).MetadataLog[0].Time = 1 << 50 }, "runs back"},
		{"last-updated-ms runs back", func(s *scene) { s.head(s.plain).LastUpdated = 7 }, "last-updated-ms of"},
		{"versions are misnumbered", func(s *scene) { s.head(s.plain).number = 9 }, "is numbered 9"},

		// Snapshots.
		{"a snapshot is lost", func(s *scene) {
			v := s.head(s.hot)
			v.Snapshots = v.Snapshots[1:]
		}, "is lost in"},
		{"a snapshot that nobody sent", func(s *scene) {
			v := s.head(s.hot)
			v.Snapshots = append(v.Snapshots, snapshot{ID: 99})
		}, "phantom snapshot 99"},
		{"a snapshot is not an ancestor of main", func(s *scene) { s.head(s.hot).Snapshots[2].Parent = nil }, "main leads through 1 of 3"},
		{"main is not at the newest snapshot", func(s *scene) {
			s.head(s.hot).Refs = map[string]reference{"main": {s.appends[1].edit.snapshot.ID}}
		}, "main leads through 2 of 3"},
		{"sequence numbers fall", func(s *scene) { s.head(s.hot).Snapshots[0].Sequence = 2 }, "do not rise"},
		{"the snapshot log lacks the newest", func(s *scene) { s.head(s.hot).SnapshotLog = nil }, "does not end with the current snapshot"},
		{"the snapshot log runs back", func(s *scene) { s.head(s.hot).SnapshotLog[0].Time = 1 << 50 }, "runs back"},

		// Names.
		{"a table is lost", func(s *scene) { delete(s.tables, "n.plain") }, "is lost: it should be n.plain"},
		{"a table that nobody made", func(s *scene) {
			s.tables["n.phantom"] = s.write(nil, "file:///w/phantom", "uuid", s.operation("phantom", "z"))
		}, "phantom table n.phantom"},
		{"a refused creation is visible", func(s *scene) { s.create("b", "n.new", cutOffAnswer).ops[0].outcome = refused }, "where it cannot be"},
		{"a rename is undone", func(s *scene) { s.move("n.there", "n.moved") }, "where it cannot be: it should be n.there"},
		{"a torn rename: both names", func(s *scene) { s.tables["n.moved"] = s.tables["n.there"] }, "has 2 names"},
		{"a torn rename: no name", func(s *scene) {
			s.rename(s.plain, "n.new", cutOff)
			delete(s.tables, "n.plain")
		}, "is lost: it should be n.new or n.plain"},
		{"a refused rename happened", func(s *scene) { s.rename(s.plain, "n.new", cutOffAnswer).outcome = refused }, "where it cannot be"},
		{"a dropped table is back", func(s *scene) { s.tables["n.dropped"] = s.dropped.ops[1].location }, "where it cannot be: it should be nowhere"},
		{"two drops are acknowledged", func(s *scene) {
			s.dropped.at = "n.dropped"
			s.drop(s.dropped, false, works)
		}, "was acknowledged when it was nowhere"},
		{"a drop finds nothing although nobody dropped", func(s *scene) { s.drop(s.plain, false, missing) }, "found nothing to drop"},
		{"two creations of a name are acknowledged", func(s *scene) { s.create("b", "n.plain", works) }, "is lost: it should be n.plain"},
		{"two tables have one location", func(s *scene) { s.head(s.moved).Location = s.head(s.plain).Location }, "have one location"},
		{"a table lies within another's location", func(s *scene) { s.head(s.moved).Location = s.head(s.plain).Location + "/x" }, "lies within the location"},

		// Transactions.
		{"half a transaction is lost", func(s *scene) { s.rollBack(s.right) }, "was acknowledged and is lost"},
		{"half a transaction that was cut off", func(s *scene) {
			s.transact("c", cutOffAnswer, s.plain, s.hot)
			s.rollBack(s.hot)
		}, "half of a transaction: "},
		{"half a refused transaction is visible", func(s *scene) {
			parts := s.transact("c", cutOffAnswer, s.plain, s.hot)
			s.rollBack(s.hot)
			parts[0].outcome, parts[1].outcome = refused, refused
		}, "was refused (0) and is visible"},
		{"half a transaction was visible for a while", func(s *scene) {
			before := s.load(s.hot)
			parts := s.transact("c", works, s.plain, s.hot)
			s.load(s.plain)
			missed := s.load(s.hot)
			missed.reads(before)
			for _, p := range parts { // they ran while the transaction did: alone, each may see it or not
				p.answered = missed.answered + 1
			}
		}, "half of a transaction was visible"},

		// Unregister and register.
		{"a commit before unregister is lost", func(s *scene) {
			s.commit(s.plain, "a", works)
			s.unregister(s.plain, works).reads(s.commits[2])
			s.register(s.plain, "n.plain", s.commits[2].location, works)
		}, "was acknowledged and is lost"},
		{"unregister answers an older version", func(s *scene) { s.unregister(s.plain, works).reads(s.commits[1]) }, "did not see"},
		{"an unregistered table is there", func(s *scene) {
			location := s.unregister(s.plain, works).location
			s.tables["n.plain"] = location
		}, "where it cannot be: it should be nowhere"},
		{"a registered table is lost", func(s *scene) { delete(s.tables, "n.back") }, "is lost: it should be n.back"},
		{"a file of an unregistered table is missing", func(s *scene) {
			s.unregister(s.plain, works)
			delete(s.files, s.commits[0].location)
		}, "is missing"},

		// Files that are deleted.
		{"a file that fell off a log is deleted too early", func(s *scene) {
			s.deleteFallen(s.short)
			s.now = 0
		}, "before its time"},
		{"a file in a short log is deleted", func(s *scene) { delete(s.files, s.head(s.short).MetadataLog[0].File) }, "is missing"},
		{"a data file is deleted", func(s *scene) { delete(s.files, "file:///w/data.parquet") }, "file file:///w/data.parquet is missing"},
		{"a data file of a dropped table is deleted", func(s *scene) {
			s.drop(s.data, false, works)
			delete(s.files, "file:///w/data.parquet")
		}, "file file:///w/data.parquet is missing"},

		// Views.
		{"a view's version is lost", func(s *scene) { s.tables["n.view"] = s.replaces[0].location }, "was acknowledged and is lost"},
		{"a view's version that nobody sent", func(s *scene) {
			s.tables["n.view"] = s.writeView(s.head(s.view), s.operation("phantom", "z"))
		}, "phantom version \"z-"},
		{"a refused view is visible", func(s *scene) { s.replaceView(s.view, "b", cutOffAnswer).outcome = refused }, "was refused (0) and is visible"},
		{"a view's replacement that must fail is visible", func(s *scene) { s.replaceView(s.view, "b", cutOffAnswer).hopeless = true }, "could never succeed"},
		{"a view is replaced twice", func(s *scene) { s.tables["n.view"] = s.writeView(s.head(s.view), s.replaces[1]) }, "was applied twice"},
		{"half a change of a view", func(s *scene) { delete(s.head(s.view).Properties, pairProperty+"b") }, "half a change"},
		{"the current version of a view is not its last", func(s *scene) { s.head(s.view).CurrentVersion = 1 }, "and the current version 1"},
		{"a view's versions in the wrong order", func(s *scene) { s.replaces[1].sent, s.replaces[1].answered = 1, 2 }, "was answered before that was sent"},
		{"a load of an older version of a view", func(s *scene) {
			o := s.load(s.view)
			o.location = s.replaces[0].location
		}, "did not see"},
		{"a load of a view answers other metadata than the file", func(s *scene) {
			other := *s.head(s.view)
			other.CurrentVersion = 1
			s.shown = map[string]*version{"n.view": &other}
		}, "a load answers other metadata"},
		{"an older file of a view is missing", func(s *scene) { delete(s.files, s.replaces[0].location) }, "which is missing"},
		{"the file of a view is missing", func(s *scene) { delete(s.files, s.tables["n.view"]) }, "view a-"},
		{"a file of a dropped view is missing", func(s *scene) { delete(s.files, s.oldView.ops[1].location) }, "file does not exist"},
		{"a view is lost", func(s *scene) { delete(s.tables, "n.view") }, "is lost: it should be n.view"},
		{"a dropped view is back", func(s *scene) { s.tables["n.old"] = s.oldView.ops[1].location }, "where it cannot be"},

		// Lists.
		{"a table is listed twice", func(s *scene) { s.twice = "n.plain" }, "is listed 2 times"},
		{"a table is not listed", func(s *scene) { s.unlisted = "n.plain" }, "can be loaded but is not listed"},
		{"a table is listed but not there", func(s *scene) { s.twice = "n.dropped" }, "is listed but cannot be loaded"},

		// Namespaces.
		{"a namespace is lost", func(s *scene) { delete(s.namespaces, "n") }, "(n) is lost"},
		{"a namespace that nobody made", func(s *scene) { s.namespaces["x"] = map[string]string{} }, "phantom namespace x"},
		{"a dropped namespace is back", func(s *scene) {
			n := s.createNamespace("a", "x", works)
			properties := s.namespaces["x"]
			s.dropNamespace(n, works)
			s.namespaces["x"] = properties
		}, "is there but should not be"},
		{"a namespace's property is lost", func(s *scene) {
			delete(s.namespaces["n"], writerProperty+"b")
			delete(s.namespaces["n"], pairProperty+"b")
		}, "is lost: writer.b"},
		{"half a change of a namespace", func(s *scene) {
			s.setProperties(s.space, "c", cutOffAnswer)
			delete(s.namespaces["n"], writerProperty+"c")
		}, "half a change"},
		{"a namespace's property that nobody set", func(s *scene) { s.namespaces["n"][writerProperty+"z"] = "z-1" }, "phantom property writer.z"},
		{"refused properties are visible", func(s *scene) { s.setProperties(s.space, "c", cutOffAnswer).outcome = refused }, "was refused and is visible"},
		{"an older property replaced a later one", func(s *scene) {
			s.namespaces["n"][lastProperty] = s.space.ops[0].token
		}, "replaced the later"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			test.corrupt(s)
			problems := s.check().problems
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, test.want) }) {
				t.Errorf("no problem tells of %q; there are %d:\n%s", test.want, len(problems), strings.Join(problems, "\n"))
			}
		})
	}
}

// What a check found out binds the checks after it: an operation that was absent
// does not appear later, one that was there does not vanish.
func TestCheckerRemembers(t *testing.T) {
	t.Run("appears", func(t *testing.T) {
		s := newScene()
		o := s.commit(s.plain, "b", cutOff)
		s.h.settle(s.check())
		s.tables["n.plain"] = s.write(s.head(s.plain), s.head(s.plain).Location, s.head(s.plain).UUID, o)
		want(t, s.check(), "was refused (0) and is visible")
	})
	t.Run("is dropped", func(t *testing.T) {
		s := newScene()
		s.commit(s.plain, "b", cutOffAnswer)
		s.h.settle(s.check())
		s.drop(s.plain, false, works)
		if r := s.check(); len(r.problems) > 0 {
			t.Errorf("problems:\n%s", strings.Join(r.problems, "\n"))
		}
	})
	t.Run("vanishes", func(t *testing.T) {
		s := newScene()
		before := s.tables["n.plain"]
		s.commit(s.plain, "b", cutOffAnswer)
		s.h.settle(s.check())
		s.tables["n.plain"] = before
		want(t, s.check(), "was acknowledged and is lost")
	})
}

// The files of a purged table are named, so that the drill can wait for them to go.
func TestCheckerNamesDoomedFiles(t *testing.T) {
	s := newScene()
	wanted := []string{s.purged.ops[0].location, s.purged.ops[1].location}
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, s.check().doomed); diff != "" {
		t.Errorf("doomed files (-want +got):\n%s", diff)
	}
}

func want(t *testing.T, r *report, problem string) {
	t.Helper()
	if !slices.ContainsFunc(r.problems, func(p string) bool { return strings.Contains(p, problem) }) {
		t.Errorf("no problem tells of %q; there are %d:\n%s", problem, len(r.problems), strings.Join(r.problems, "\n"))
	}
}

// reads makes a load have seen what another operation had made.
// showsThatOf has the answer to a commit show the version of another that was in the same batch.
func (o *operation) showsThatOf(other *operation) {
	o.location, o.updated, o.shown, o.answered = other.location, other.updated, other.shown, max(o.answered, other.answered)
}

func (o *operation) reads(other *operation) { o.location, o.updated = other.location, other.updated }

// rollBack makes a table's pointer name the file before its newest.
func (s *scene) rollBack(t *table) {
	log := s.head(t).MetadataLog
	s.tables[t.at] = log[len(log)-1].File
}

// cutOut takes the ith version out of a table's history, without a trace.
func (s *scene) cutOut(t *table, i int) {
	head := s.head(t)
	gone := s.files[head.MetadataLog[i].File]
	for _, v := range s.files {
		if v.UUID != head.UUID || v.number <= gone.number {
			continue
		}
		v.number--
		v.MetadataLog = slices.DeleteFunc(v.MetadataLog, func(e logEntry) bool { return e.File == gone.location })
	}
}

func (s *scene) move(from, to string) {
	s.tables[to] = s.tables[from]
	delete(s.tables, from)
}
