package crash

import (
	"fmt"
	"maps"
	"math"
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
	// expectedMain is the snapshot that main had to be at, if the request said so.
	expectedMain *int64
	// contested is the client-chosen location that others want as well; empty if none do.
	contested string
	// hopeless operations can never succeed.
	hopeless bool
	// refusable are the statuses that may refuse it. 429 always may.
	refusable []int

	sent, answered int64 // on the history's clock; answered is never until the answer came
	outcome        outcome
	status         int    // 0: no answer
	message        string // of a refusal or a transport error
	uuid           string // of the table, as answered or found
	location       string // of the metadata file, as answered, loaded or found
	updated        int64  // last-updated-ms, as answered, loaded or found
	afterKill      bool   // it ended when the server was being killed
	sending        *sending
}

// sending is a request and the operations that it carries: those of a transaction
// happen all together or not at all, and every other request carries one.
type sending struct {
	request
	ops    []*operation
	answer answer    // if it has a key
	at     time.Time // of the answer
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

	acknowledged int // writes of the round
	sentSince    int // requests sent since the trigger's number of writes was acknowledged
	trigger      trigger
	killing      bool
}

// trigger is when to choose the moment of the kill: the nth acknowledged write of
// the round, and then the nth request that is sent.
type trigger struct {
	acknowledged int
	thenSent     int
	fire         func() // called once, with the history locked: it must not block or use it
}

func newHistory() *history { return &history{byToken: map[string]*operation{}} }

// begin starts a round.
func (h *history) begin(t trigger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acknowledged, h.sentSince, h.killing, h.trigger = 0, 0, false, t
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
	if h.acknowledged >= h.trigger.acknowledged {
		h.sentSince++
		h.pull()
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
	o.outcome, o.status, o.message = a.outcome(), a.status, a.message()
	o.afterKill = h.killing
	if o.outcome != unknown {
		o.answered = h.clock
	}
	if o.outcome != done {
		return
	}
	if v := a.table.parsed; v != nil {
		o.uuid, o.location, o.updated = v.UUID, a.table.MetadataLocation, v.LastUpdated
	}
	if o.naming != nil && o.table != nil {
		o.table.at = o.naming.to
	}
	if o.naming != nil && o.table == nil {
		o.namespace.exists = o.naming.to != ""
	}
	if o.token != "" {
		h.acknowledged++
		h.pull()
	}
}

// pull fires the trigger when its moment has come.
func (h *history) pull() {
	if h.trigger.fire == nil || h.acknowledged < h.trigger.acknowledged || h.sentSince < h.trigger.thenSent {
		return
	}
	h.trigger.fire()
	h.trigger.fire = nil
}

// kill runs the function that kills the server. What ends without an outcome from
// then on does so for that reason.
func (h *history) kill(kill func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killing = true
	kill()
}

// restarted says that what is sent from here on must be answered.
func (h *history) restarted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killing = false
}

func (h *history) isKilling() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.killing
}

// settle takes over what a check found out, so that later rounds hold the server
// to it: an unknown operation that was found applied counts as done from now on,
// one that was found absent as refused.
func (h *history) settle(r *report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	for o, found := range r.resolved {
		o.outcome, o.answered = found, h.clock
		if v := r.versionsOf[o]; v != nil {
			o.uuid, o.location, o.updated = v.UUID, v.location, v.LastUpdated
		}
	}
	for t, name := range r.names {
		t.at = name
	}
	for n, exists := range r.exists {
		n.exists = exists
	}
}

// counts are the operations of one round by outcome.
func (h *history) counts(from int) map[outcome]int {
	n := map[outcome]int{}
	for _, o := range h.ops[from:] {
		if o.token != "" {
			n[o.outcome]++
		}
	}
	return n
}

// byKind is what was sent and what became of it, one line for each kind.
func (h *history) byKind() string {
	kinds := map[string]*[3]int{}
	for _, o := range h.ops {
		if kinds[o.kind] == nil {
			kinds[o.kind] = &[3]int{}
		}
		kinds[o.kind][o.outcome]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %8s %8s %8s", "", done, refused, unknown)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		n := kinds[kind]
		fmt.Fprintf(&b, "\n%-26s %8d %8d %8d", kind, n[done], n[refused], n[unknown])
	}
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
