package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/lock"
	"github.com/landfast/landfast/internal/store"
)

var errStale = errors.New("the log has gone on")

// note adds a word to a log, as a commit changes a table: the record names a file, which
// holds the whole log, and each note writes a file of its own.
type note struct {
	Log  string `json:"log"`
	Word string `json:"word"`
	// After refuses it unless that is the last word.
	After string `json:"after,omitempty"`
	// Key is that of a request that may be made again: who finds it taken gives the result that
	// is kept there, and changes nothing.
	Key string `json:"key,omitempty"`
	// Also is a counter to add to, which the plan does not name.
	Also string `json:"also,omitempty"`
	// Looks makes it list something, and Erases delete the log instead.
	Looks  bool `json:"looks,omitempty"`
	Erases bool `json:"erases,omitempty"`
	Panics bool `json:"panics,omitempty"`
	// Padding is how many bytes its file has besides.
	Padding int `json:"padding,omitempty"`

	Result string `json:"result"` // the log as it is now
	Latest bool   `json:"latest"` // Result is what a later one has made of it

	// Nothing makes it change nothing.
	Nothing bool `json:"nothing,omitempty"`

	began    func() `json:"-"` // called by each run of Decide, before it reads
	replayed bool   // Result is that of the first time
}

var _ kernel.Latest = (*note)(nil)

func (op *note) Plan() kernel.Plan {
	plan := kernel.Plan{Op: "note", Locks: lock.NewSet(lock.W(counter(op.Log))), Combine: counter(op.Log)}
	if op.Key != "" {
		plan.Locks = plan.Locks.With(lock.W(counter(op.Key)))
	}
	return plan
}

func (op *note) ShowLatest(last kernel.Operation) {
	if !op.replayed {
		op.Result, op.Latest = last.(*note).Result, true
	}
}

func (op *note) Decide(ctx context.Context, tx *kernel.Tx) error {
	op.Result, op.Latest, op.replayed = "", false, false
	if op.began != nil {
		op.began()
	}
	r, words, err := readLog(ctx, tx, op.Log)
	if err != nil {
		return err
	}
	if op.Panics {
		panic("boom")
	}
	if op.Key != "" {
		kept, err := tx.Get(ctx, counter(op.Key))
		if err != nil {
			return err
		}
		if kept.Exists() {
			op.Result, op.replayed = string(kept.Value), true
			return nil
		}
		defer func() { tx.Create(kept.Key, tx.NewID(), []byte(op.Result)) }()
	}
	if op.After != "" && !strings.HasSuffix(words, op.After) {
		return errStale
	}
	if op.Also != "" {
		also, err := tx.Get(ctx, counter(op.Also))
		if err != nil {
			return err
		}
		put(tx, also, number(also)+1)
	}
	if op.Looks {
		if _, err := tx.Look(ctx, key.TableNamesIn("w", []string{"n"}), "", 1); err != nil {
			return err
		}
	}
	if op.Erases {
		tx.Delete(r.Key)
		return nil
	}
	if op.Nothing {
		op.Result = words
		return nil
	}
	op.Result = strings.TrimSpace(words + " " + op.Word)
	writeLog(tx, r, op.Word, op.Result, op.Padding)
	return nil
}

// readLog reads a log: the record, which is decoded once, and the file.
func readLog(ctx context.Context, tx *kernel.Tx, name string) (r store.Record, words string, err error) {
	if r, err = tx.Get(ctx, counter(name)); err != nil || !r.Exists() {
		return r, "", err
	}
	location, err := kernel.Memo(tx, kernel.MemoOf(r), func() (string, int, error) { return string(r.Value), len(r.Value), nil })
	if err != nil {
		return r, "", err
	}
	data, err := tx.ReadFile(ctx, testScope, location, 64<<20)
	return r, strings.TrimRight(string(data), "."), err
}

func writeLog(tx *kernel.Tx, r store.Record, word, words string, padding int) {
	location := fmt.Sprintf("file:///kerneltest/%s-%s", word, tx.NewID())
	id := r.ID
	if !r.Exists() {
		id = tx.NewID()
	}
	tx.File(kernel.File{Warehouse: "w", Scope: testScope, Location: location, Data: []byte(words + strings.Repeat(".", padding))})
	tx.Put(r.Key, id, []byte(location))
}

// pair adds a word to two logs, and shares no batch.
type pair struct {
	Logs [2]string `json:"logs"`
	Word string    `json:"word"`
}

func (op *pair) Plan() kernel.Plan {
	return kernel.Plan{Op: "pair", Locks: lock.NewSet(lock.W(counter(op.Logs[0])), lock.W(counter(op.Logs[1])))}
}

func (op *pair) Decide(ctx context.Context, tx *kernel.Tx) error {
	for _, name := range op.Logs {
		r, words, err := readLog(ctx, tx, name)
		if err != nil {
			return err
		}
		writeLog(tx, r, op.Word, strings.TrimSpace(words+" "+op.Word), 0)
	}
	return nil
}

// words reads a log.
type words struct {
	Log    string `json:"log"`
	Result string `json:"result"`
}

func (op *words) Plan() kernel.Plan { return kernel.Plan{Op: "words"} }

func (op *words) Decide(ctx context.Context, tx *kernel.Tx) (err error) {
	_, op.Result, err = readLog(ctx, tx, op.Log)
	return err
}
