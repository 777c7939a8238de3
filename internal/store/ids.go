package store

import (
	"fmt"
	"strconv"
	"sync"
)

// IDs gives the ids of new batches. Each is greater than all that it gave, and than all it was told of by Above: so a
// store that forgets old ids in their order takes no new batch for an old one, wherever the clock is set. It is safe
// for concurrent use.
type IDs struct {
	fresh func() string

	mu   sync.Mutex
	last uint64 // the time and the counter of the greatest id
}

// NewIDs makes IDs of those that fresh gives: UUIDv7s, of whatever clock.
func NewIDs(fresh func() string) *IDs { return &IDs{fresh: fresh} }

// Next gives an id. One of fresh's that is too low gets the next time and counter that is not; its random half stays.
func (s *IDs) Next() string {
	id := s.fresh()
	now, ok := order(id)
	if !ok || len(id) != 36 {
		panic(fmt.Sprintf("store: %q is no UUIDv7", id))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now > s.last {
		s.last = now
		return id
	}
	s.last++
	return fmt.Sprintf("%08x-%04x-7%03x%s", s.last>>28, s.last>>12&0xffff, s.last&0xfff, id[18:])
}

// Above has all later ids be greater than id: a UUIDv7, or how one begins, which stands for all that begin so. Another
// text, the empty one included, changes nothing.
func (s *IDs) Above(id string) {
	if len(id) == len("01234567-89ab") {
		id += "-7fff"
	}
	if at, ok := order(id); ok {
		s.mu.Lock()
		s.last = max(s.last, at)
		s.mu.Unlock()
	}
}

// order reads the 48 bits of time, in ms, and the 12 bits of the counter that begin a UUIDv7.
func order(id string) (uint64, bool) {
	if len(id) < len("01234567-89ab-7def") || id[8] != '-' || id[13:15] != "-7" {
		return 0, false
	}
	n, err := strconv.ParseUint(id[:8]+id[9:13]+id[15:18], 16, 60)
	return n, err == nil
}
