package duty

import "time"

// SetWall gives a process a wall clock of its own, beside the monotonic one that all share.
func (r *Roster) SetWall(wall func() time.Time) {
	r.now = func() moment { return moment{mono: time.Now(), wall: wall()} }
}

// Trusted is how long Has says yes after a duty was taken or renewed.
const Trusted = Lifetime - margin
