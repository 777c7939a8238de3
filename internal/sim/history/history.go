package history

import (
	"fmt"
	"math"
	"strings"
)

// Kind says what an operation does.
type Kind string

// The kinds of operation.
const (
	CreateWarehouse Kind = "create-warehouse"
	DropWarehouse   Kind = "drop-warehouse"
	CreateNamespace Kind = "create-namespace"
	SetNamespace    Kind = "set-namespace-properties" // writes Token into the property `token`
	LoadNamespace   Kind = "load-namespace"
	DropNamespace   Kind = "drop-namespace"
	CreateTable     Kind = "create-table" // a staged creation is a Commit whose part Creates
	RegisterTable   Kind = "register-table"
	Commit          Kind = "commit" // of one table: one part
	Transaction     Kind = "transaction"
	LoadTable       Kind = "load-table"
	TableExists     Kind = "table-exists"
	RenameTable     Kind = "rename-table"
	DropTable       Kind = "drop-table"
	Unregister      Kind = "unregister-table"
	CreateView      Kind = "create-view"
	ReplaceView     Kind = "replace-view"
	LoadView        Kind = "load-view"
	RenameView      Kind = "rename-view"
	DropView        Kind = "drop-view"
	ListTables      Kind = "list-tables"
	ListNamespaces  Kind = "list-namespaces"
)

// Outcome is what a client was told.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // nothing was changed, and nothing will be
	Unknown Outcome = "unknown" // it was carried out, once and whole, or not at all; perhaps later
)

// Refusal says why an operation was refused.
type Refusal string

// The refusals that tell something about the state; every other (contention, a failed
// upload, a full disk) is Busy, and tells nothing.
const (
	Busy            Refusal = "busy"
	NoSuchWarehouse Refusal = "no-such-warehouse"
	NoSuchNamespace Refusal = "no-such-namespace"
	NoSuchTable     Refusal = "no-such-table" // or view
	AlreadyExists   Refusal = "already-exists"
	NotEmpty        Refusal = "not-empty"          // of a warehouse: it has namespaces; that files are still being deleted is Busy
	Requirement     Refusal = "requirement-failed" // one of its Part; what is stale for other reasons is Busy
	Location        Refusal = "location-taken"     // by whom is not modelled
)

// Name is a table's or view's place: Namespace is dotted. With Name empty it is a
// namespace, with Namespace empty too, a warehouse.
type Name struct {
	Warehouse string `json:"warehouse"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

func (n Name) String() string {
	return strings.TrimRight(strings.Join([]string{n.Warehouse, n.Namespace, n.Name}, "/"), "/")
}

// Part is what an operation does to one table or view.
type Part struct {
	Name Name `json:"name"`
	// Creates: by assert-create. Otherwise the table must be there.
	Creates bool `json:"creates,omitempty"`
	// Snapshot is added and becomes `main`; zero: none is.
	Snapshot int64 `json:"snapshot,omitempty"`
	// Expect is what `main` must be, by assert-ref-snapshot-id; nil: no such requirement;
	// zero: there must be no `main`.
	Expect *int64 `json:"expect,omitempty"`
	// UUID is what the table's must be, by assert-table-uuid; empty: no such requirement.
	UUID string `json:"uuid,omitempty"`
	// Onto is the metadata file that it was made on, as the one that it made says; empty: that is not known.
	Onto string `json:"onto,omitempty"`
}

// State is what an answer showed of one table, view or namespace.
type State struct {
	// Token was written by the last operation that changed it (a rename writes none;
	// a registration shows what its file says).
	Token    string `json:"token,omitempty"`
	Snapshot int64  `json:"snapshot,omitempty"` // `main`; zero: there is none
	UUID     string `json:"uuid,omitempty"`
	Location string `json:"location,omitempty"` // of the metadata file
}

// Forever is when an unknown operation returns.
const Forever = math.MaxInt64

// Operation is one call of one client, and what came of it.
type Operation struct {
	ID     int  `json:"id"` // its index in the history
	Client int  `json:"client"`
	Kind   Kind `json:"kind"`
	// Call and Return are moments on one clock that all clients share. Nothing of the
	// operation happens before Call; it is over at Return, which is Forever while unknown.
	Call   int64 `json:"call"`
	Return int64 `json:"return"`

	Outcome Outcome `json:"outcome"`
	Refusal Refusal `json:"refusal,omitempty"` // of one that was refused
	Message string  `json:"message,omitempty"` // for people

	// Name is what it is about; of a Transaction, empty. To is where a rename leads.
	Name Name `json:"name,omitzero"`
	To   Name `json:"to,omitzero"`
	// Token is unique to the operation. It is in the property `token` of what it changes
	// or creates.
	Token string `json:"token,omitempty"`
	Parts []Part `json:"parts,omitempty"` // of Commit (one), Transaction, CreateTable, CreateView, ReplaceView
	Purge bool   `json:"purge,omitempty"` // of DropTable
	// Overwrite, and From: the file that RegisterTable names.
	Overwrite bool   `json:"overwrite,omitempty"`
	From      string `json:"from,omitempty"`
	// Key is the idempotency key. Replays is the ID of the operation that this one repeats
	// under its key; -1: none. An operation and its replays take place once among them.
	Key     string `json:"key,omitempty"`
	Replays int    `json:"replays"`

	// Seen is what the answer showed: of a load, a commit, a creation or a registration.
	Seen State `json:"seen,omitzero"`
	// Latest is what the answer to a commit showed instead, where it was not the operation's own
	// change, but what those behind it in the same batch have made of it.
	Latest State `json:"latest,omitzero"`
	// Listed are the names that a list showed, sorted: of ListTables the last parts, of
	// ListNamespaces dotted with all levels.
	Listed []string `json:"listed,omitempty"`
}

// Show notes what the answer to an operation that was done showed.
func (o *Operation) Show(s State) {
	o.Seen, o.Latest = s, State{}
	if (o.Kind == Commit || o.Kind == ReplaceView) && o.Token != "" && s.Token != "" && s.Token != o.Token {
		o.Seen, o.Latest = State{}, s
	}
}

func (o Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d client %d %s %v", o.ID, o.Client, o.Kind, o.Name)
	if o.To != (Name{}) {
		fmt.Fprintf(&b, " -> %v", o.To)
	}
	for _, p := range o.Parts {
		fmt.Fprintf(&b, " [%v creates=%v snapshot=%d", p.Name, p.Creates, p.Snapshot)
		if p.Expect != nil {
			fmt.Fprintf(&b, " expect=%d", *p.Expect)
		}
		b.WriteString("]")
	}
	fmt.Fprintf(&b, " token=%s: %s", o.Token, o.Outcome)
	if o.Refusal != "" {
		fmt.Fprintf(&b, " (%s: %s)", o.Refusal, o.Message)
	}
	if o.Seen != (State{}) {
		fmt.Fprintf(&b, " saw %+v", o.Seen)
	}
	if o.Latest != (State{}) {
		fmt.Fprintf(&b, " saw a later %+v", o.Latest)
	}
	return b.String()
}
