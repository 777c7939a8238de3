package crash

import (
	"fmt"
	"testing"
)

// Two answers to one repeated request may differ for a reason, and for no other.
func TestAgreed(t *testing.T) {
	refusal := func(status int, kind, message string) answer {
		return answer{status: status, body: fmt.Appendf(nil, `{"error":{"type":%q,"message":%q}}`, kind, message)}
	}
	var (
		nothing = answer{err: errEnded}
		open    = refusal(500, "CommitStateUnknownException", "")
		ok      = answer{status: 204}
		shows   = answer{status: 200, body: []byte("a")}
		other   = answer{status: 200, body: []byte("b")}
		gone    = refusal(404, "NoSuchTableException", "")
		taken   = refusal(409, "AlreadyExistsException", "")
		bad     = refusal(400, "IllegalArgumentException", "")
		before  = refusal(404, "NoSuchTableException", "The request has succeeded before, but its file is deleted")
	)
	rename := func(s *scene) *operation { return s.rename(s.plain, "n.free", cutOff) }
	commit := func(s *scene) *operation {
		o := s.commit(s.plain, "b", cutOff)
		s.plain.doubtful = false
		return o
	}
	freed := func(s *scene) { s.rename(s.moved, "n.away", cutOff).naming.from = "n.free" }
	tests := []struct {
		name    string
		request func(*scene) *operation
		a, b    answer
		but     func(*scene)
		found   answer
		agree   bool
	}{
		{"twice the same", commit, shows, shows, nil, shows, true},
		{"two changes", commit, shows, other, nil, shows, false},
		{"one did not come", commit, nothing, shows, nil, shows, true},
		{"neither came", commit, open, nothing, nil, nothing, false},
		{"done and refused", commit, shows, gone, nil, shows, false},
		{"refused for one reason", rename, taken, taken, nil, taken, true},
		{"refused for two reasons", rename, taken, gone, nil, taken, true},
		{"refused, and refused without a reason", rename, gone, bad, nil, gone, false},
		{"a rename, first refused for its new name, which another frees", rename, taken, ok, freed, ok, true},
		{"the same, the other way round", rename, ok, taken, freed, ok, true},
		{"a rename, first refused for its new name, which nobody frees", rename, taken, ok, nil, taken, false},
		{"the rename that freed it had an answer", rename, taken, ok, func(s *scene) {
			s.rename(s.moved, "n.away", works).naming.from = "n.free"
		}, taken, false},
		{"a rename, done and refused for its table", rename, gone, ok, freed, gone, false},
		{"done before, its file deleted", commit, before, before, func(s *scene) { s.plain.forgets = true }, before, true},
		{"the same, of a table that was dropped", commit, before, before, func(s *scene) { s.drop(s.plain, false, works) }, before, true},
		{"done before, its file deleted, which nobody may have", commit, before, before, nil, before, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			o := test.request(s)
			o.refusable = []int{409}
			if test.but != nil {
				test.but(s)
			}
			o.sending.repeated = true
			again := make([]*sending, 0, len(s.h.ops))
			for _, o := range s.h.ops {
				again = append(again, o.sending)
			}
			found, agree := s.h.agreed(o.sending, test.a, test.b, namesFreed(again))
			if agree != test.agree || agree && found.text() != test.found.text() {
				t.Errorf("%d %s, agree %v; want %d %s, %v", found.status, found.text(), agree, test.found.status, test.found.text(), test.agree)
			}
		})
	}
}
