package crash

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// outcome is what the client of an operation knows of it.
type outcome uint8

const (
	unknown outcome = iota // never answered, or answered that nobody can tell
	done
	refused
)

func (o outcome) String() string { return [...]string{"unknown", "done", "refused"}[o] }

// never is the time of an answer that did not come.
const never = math.MaxInt64

// operation is one request that was to change something, or a load.
type operation struct {
	kind   string
	token  string // unlike every other's; it is left in whatever the operation changes
	writer string // "w07"; the last part of the properties that are this writer's own

	// The subject. A table that is created in a contested namespace, or a change
	// of a namespace itself, has a namespace.
	table     *table
	namespace *namespace

	addressed string  // the table's name that the request used; empty if it created one
	edit      *edit   // what it does to metadata or properties; nil: nothing
	naming    *naming // what it does to names; nil: nothing
	// An append says which snapshot main had to be at, nil for none, of which table.
	expectedMain *int64
	expectedUUID string
	// registered is the file that a registration names.
	registered string
	// contested is the client-chosen location that others want as well; empty if none do.
	contested string
	// hopeless operations can never succeed.
	hopeless bool
	// refusable are the statuses that may refuse it, beside those of a busy server.
	refusable []int

	sent, answered int64 // on the history's clock; answered is never until the answer came
	outcome        outcome
	status         int    // 0: no answer
	message        string // of a refusal or a transport error
	uuid           string // of the table, as answered or found
	location       string // of the metadata file, as answered, loaded or found
	updated        int64  // last-updated-ms, as answered, loaded or found
	shown          shown  // as answered or loaded
	onto           string // the metadata file before its own, as that says
	// latest and its file are what the answer showed where that was a later state of its batch, once
	// a check has found the operation's own version, of which the fields above tell then.
	latest         shown
	latestLocation string
	busy           bool // it was refused for a reason that says nothing about the catalog
	excused        bool // a fault may have caused that, or that the answer did not come
	sending        *sending
}

// shown is what an answer showed of a table or view: the token of its latest change, the
// head of main, zero if there is none, and its uuid.
type shown struct {
	token string
	main  int64
	uuid  string
}

func shownBy(v *version) shown {
	s := shown{token: v.Properties[lastProperty], uuid: v.UUID + v.ViewUUID} // it has one of them
	if main := v.main(); main != nil {
		s.main = *main
	}
	return s
}

// sending is a request and the operations that it carries: those of a transaction
// happen all together or not at all, and every other request carries one.
type sending struct {
	request
	ops    []*operation
	answer answer    // if it has a key
	at     time.Time // of the answer
	// repeated says that the answer came only when the request was sent again.
	repeated bool
}

// showsLatest tells whether the answer showed what those behind it in the same batch have made of the
// operation's change, and not the change itself.
func (o *operation) showsLatest() bool {
	return o.latest != (shown{}) || o.edit != nil && len(o.sending.ops) == 1 && o.shown.token != "" && o.shown.token != o.token
}

func (o *operation) String() string {
	if o.token == "" {
		return o.kind + " by " + o.writer
	}
	return o.kind + " " + o.token
}

// edit is a change of a table's metadata or of a namespace's properties.
type edit struct {
	set      map[string]string
	remove   []string
	snapshot *snapshot // added, and made the head of main
	files    []string  // that the snapshot holds: data files, their manifest and its list
}

// naming is a change of what a name is bound to: creation has no from, a drop no to.
type naming struct {
	from, to string
	purge    bool
	unbinds  bool // it has no to and is no drop: the table may be registered again
}

// drops tells whether it is the end of the table.
func (n *naming) drops() bool { return n.to == "" && !n.unbinds }

// Properties that operations set. The first two end in the name of the writer, so
// that no writer replaces what another did; everybody replaces the third.
const (
	createdProperty = "created" // the token of what created the table or namespace
	writerProperty  = "writer." // the token of the writer's latest change
	pairProperty    = "pair."   // the same: the two never differ
	lastProperty    = "last"    // the token of the latest change
)

// mark is the edit that leaves a token.
func mark(writer, token string) *edit {
	return &edit{set: map[string]string{writerProperty + writer: token, pairProperty + writer: token, lastProperty: token}}
}

// table is one incarnation of a table, from the operation that was to create it on.
type table struct {
	id  string // the token of that operation
	ops []*operation
	// at is its name as far as is known: empty before it was created and after it
	// was dropped.
	at string
	// keepsLog is how many entries its metadata log may have.
	keepsLog int
	// forgets says that files which fall off the log are deleted.
	forgets bool
	view    bool // it is one
	// doubtful says that a change of its name has no outcome yet: whoever owns it leaves
	// it alone until it is known.
	doubtful bool
}

// deleteAfterCommit has the table that the operation creates keep a short log.
func (o *operation) deleteAfterCommit(keep int) {
	o.edit.set["write.metadata.previous-versions-max"] = strconv.Itoa(keep)
	o.edit.set["write.metadata.delete-after-commit.enabled"] = "true"
	o.table.keepsLog, o.table.forgets = keep, true
}

// namespace is one incarnation of a namespace.
type namespace struct {
	id     string
	levels []string
	ops    []*operation
	exists bool // as far as is known
	// doubtful says that it is not known.
	doubtful bool
}

// history is every operation that was sent, in order. Its methods may be called
// by all writers at once; the fields may be read while nobody writes.
type history struct {
	mu         sync.Mutex
	clock      int64
	ops        []*operation
	keyed      []*sending // that bear an Idempotency-Key
	byToken    map[string]*operation
	tables     []*table
	namespaces []*namespace
	watched    []watched // between the rounds
	ends       []int64   // of the rounds, on the clock

	acknowledged int          // writes of the round
	ended        int          // operations of the round that were answered or given up
	excuses      map[int]bool // statuses that a fault may cause
}

func newHistory() *history {
	return &history{byToken: map[string]*operation{}, excuses: map[int]bool{}}
}

// begin starts a round.
func (h *history) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acknowledged, h.ended = 0, 0
}

// progress is how many writes of the round are acknowledged, and how many operations have ended.
func (h *history) progress() (acknowledged, ended int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acknowledged, h.ended
}

// excuse says that a fault may cause these statuses from now on.
func (h *history) excuse(statuses ...int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range statuses {
		h.excuses[s] = true
	}
}

// calm says that what is sent from here on must be answered.
func (h *history) calm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.excuses)
}

// newTable makes the subject of operations that create a table.
func (h *history) newTable(id string) *table {
	t := &table{id: id, keepsLog: metadataLogDefault}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tables = append(h.tables, t)
	return t
}

func (h *history) newNamespace(id string, levels ...string) *namespace {
	n := &namespace{id: id, levels: levels}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.namespaces = append(h.namespaces, n)
	return n
}

// nameOf is the name of a table as far as is known.
func (h *history) nameOf(t *table) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.at
}

// send records a request just before it goes out.
func (h *history) send(s *sending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range s.ops {
		h.clock++
		o.sent, o.answered, o.sending = h.clock, never, s
		h.ops = append(h.ops, o)
		if o.token != "" {
			h.byToken[o.token] = o
		}
		if o.table != nil {
			o.table.ops = append(o.table.ops, o)
		}
		if o.namespace != nil {
			o.namespace.ops = append(o.namespace.ops, o)
		}
	}
	if s.key != "" {
		h.keyed = append(h.keyed, s)
	}
}

// answer records what became of a request.
func (h *history) answer(s *sending, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.key != "" {
		s.answer, s.at = a, time.Now()
	}
	for _, o := range s.ops {
		h.clock++
		h.answerOne(o, a)
	}
}

func (h *history) answerOne(o *operation, a answer) {
	o.outcome, o.status, o.message, o.busy = a.outcome(), a.status, a.message(), a.busy()
	o.excused = h.excuses[a.status] || a.err != nil && h.excuses[silence] || a.inDoubt() && h.excuses[doubt]
	h.ended++
	if o.outcome != unknown {
		o.answered = h.clock
	}
	if o.naming != nil {
		o.doubt(o.outcome == unknown)
	}
	if o.outcome != done {
		return
	}
	if v := a.table.parsed; v != nil {
		o.uuid, o.location, o.updated = v.UUID, a.table.MetadataLocation, v.LastUpdated
		o.shown = shownBy(v)
		if !o.showsLatest() {
			o.onto = v.previous()
		}
	}
	if o.naming != nil && o.table != nil {
		o.table.at = o.naming.to
	}
	if o.naming != nil && o.table == nil {
		o.namespace.exists = o.naming.to != ""
	}
	if o.token != "" {
		h.acknowledged++
	}
}

// doubt notes whether it is known where the subject of a naming is.
func (o *operation) doubt(doubtful bool) {
	if o.table != nil {
		o.table.doubtful = doubtful
	} else {
		o.namespace.doubtful = doubtful
	}
}

// sure leaves out the tables of which it is not known what they are called.
func (h *history) sure(tables []*table) []*table {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tables), func(t *table) bool { return t.doubtful })
}

// sureSpaces leaves out the namespaces of which it is not known whether they are there.
func (h *history) sureSpaces(spaces []*namespace) []*namespace {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(spaces), func(n *namespace) bool { return n.doubtful })
}

// since is the operations from the ith on.
func (h *history) since(i int) []*operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ops[i:])
}

// filesOf are the data files, manifests and their lists that acknowledged appends gave a table.
func (h *history) filesOf(t *table) (files []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range t.ops {
		if o.edit != nil && o.outcome == done {
			files = append(files, o.edit.files...)
		}
	}
	return files
}

// settle takes over what a check found out, so that later rounds hold the server
// to it: an unknown operation that was found applied counts as done from now on,
// one that was found absent as refused. It is the end of a round.
func (h *history) settle(r *report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	for o, found := range r.resolved {
		o.outcome, o.answered, o.status = found, h.clock, 0 // what came of an answer that was cut off says nothing more
	}
	for o, v := range r.versionsOf {
		if o.showsLatest() && o.latest == (shown{}) {
			o.latest, o.latestLocation = o.shown, o.location
		}
		o.uuid, o.location, o.updated, o.shown, o.onto = v.UUID, v.location, v.LastUpdated, shownBy(v), v.previous()
	}
	for t, name := range r.names {
		t.at, t.doubtful = name, false
	}
	for n, exists := range r.exists {
		n.exists, n.doubtful = exists, false
	}
	h.ends = append(h.ends, h.clock)
}

// counted is what became of the operations of a round that were to change something.
type counted struct {
	outcomes     map[outcome]int
	transactions int // that were acknowledged
	busy         int // refused for reasons that say nothing about the catalog
	storeFull    int // of these, because there was no room in the catalog's store
}

func (h *history) counts(from int) counted {
	n := counted{outcomes: map[outcome]int{}}
	for _, o := range h.since(from) {
		if o.token == "" {
			continue
		}
		n.outcomes[o.outcome]++
		if o.outcome == done && len(o.sending.ops) > 1 && o.sending.ops[0] == o {
			n.transactions++
		}
		if o.busy && o.outcome == refused {
			n.busy++
		}
		if o.status == http.StatusInsufficientStorage && strings.Contains(o.message, "in the catalog's store") {
			n.storeFull++
		}
	}
	return n
}

// addKinds adds up the operations by kind and outcome.
func (h *history) addKinds(kinds map[string]*[3]int) {
	for _, o := range h.since(0) {
		if kinds[o.kind] == nil {
			kinds[o.kind] = &[3]int{}
		}
		kinds[o.kind][o.outcome]++
	}
}

// record is all that is known of an operation, for whoever looks into a failure.
func (o *operation) record() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d-%d %s by %s at %q", o.sent, o.answered, o, o.writer, o.addressed)
	if o.answered == never {
		b.Reset()
		fmt.Fprintf(&b, "%d- %s by %s at %q", o.sent, o, o.writer, o.addressed)
	}
	if o.table != nil {
		fmt.Fprintf(&b, " of table %s", o.table.id)
	}
	if o.namespace != nil {
		fmt.Fprintf(&b, " of namespace %s", o.namespace.id)
	}
	if o.naming != nil {
		fmt.Fprintf(&b, " %q -> %q", o.naming.from, o.naming.to)
	}
	if s := o.sending; s != nil {
		fmt.Fprintf(&b, " key=%s parts=%d repeated=%v", s.key, len(s.ops), s.repeated)
	}
	fmt.Fprintf(&b, ": %s %d %s %s", o.outcome, o.status, o.location, o.message)
	return b.String()
}

// apply is the properties after an edit.
func (e *edit) apply(properties map[string]string) map[string]string {
	next := maps.Clone(properties)
	if next == nil {
		next = map[string]string{}
	}
	for _, k := range e.remove {
		delete(next, k)
	}
	maps.Copy(next, e.set)
	return next
}
