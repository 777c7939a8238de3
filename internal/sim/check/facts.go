package check

import (
	"fmt"

	"github.com/landfast/landfast/internal/sim/history"
)

// This file is what can be told wrong without looking for an order. It follows from
// linearizability, and says more clearly what is the matter.

// facts are the answers that are wrong in themselves, or contradict another.
func facts(ops []history.Operation) []string {
	var wrong []string
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	requests, of := requestsOf(ops)
	writers := map[string]*request{} // by token
	for _, r := range requests {
		if r.first.Token != "" {
			writers[r.first.Token] = r
		}
		said := r.answer()
		for _, o := range r.members {
			if o.Call > o.Return {
				report("malformed history: it returned before it was called: %v", o)
			}
			if o != r.first && (o.Kind != r.first.Kind || o.Name != r.first.Name || o.Key == "" || o.Key != r.first.Key) {
				report("malformed history: this is no replay of that:\n  %v\n  %v", o, r.first)
			}
			if o.Replays >= 0 && said != nil && showsState(o) && o.Seen != said.Seen {
				report("a replay was answered otherwise than its request:\n  %v\n  %v", said, o)
			}
		}
	}
	files := map[string]*history.Operation{}
	uuids := map[string]*history.Operation{}
	for i := range ops {
		o := &ops[i]
		if !showsState(o) {
			continue
		}
		switch w := writers[o.Seen.Token]; {
		case o.Seen.Token == "" || w == of[i]:
		case w == nil:
			report("phantom: nobody wrote the token %q, which was shown to\n  %v", o.Seen.Token, o)
		case !w.happened():
			report("phantom: the operation was refused:\n  %v\nbut its token was shown to\n  %v", w.first, o)
		default:
			if from, _ := w.span(); from > o.Return {
				report("the token was shown before it was written:\n  %v\n  %v", o, w.first)
			}
		}
		if o.Seen.Location != "" {
			if before := files[o.Seen.Location]; before != nil && before.Seen != o.Seen {
				report("one metadata file was shown with two contents:\n  %v\n  %v", before, o)
			}
			files[o.Seen.Location] = o
		}
		if (o.Kind == history.CreateTable || o.Kind == history.CreateView) && o == of[i].first && o.Seen.UUID != "" {
			if before := uuids[o.Seen.UUID]; before != nil {
				report("two creations were answered with one uuid:\n  %v\n  %v", before, o)
			}
			uuids[o.Seen.UUID] = o
		}
	}
	return wrong
}
