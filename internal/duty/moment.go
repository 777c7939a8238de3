package duty

import "time"

// A moment is the time by both clocks of a machine, for each misses what the other sees: the monotonic clock stands still
// while the machine is suspended, and the wall clock may be set back.
type moment struct {
	mono time.Time // has a monotonic reading, by which it is compared
	wall time.Time // has none
}

func now() moment {
	t := time.Now()
	return moment{mono: t, wall: t.Round(0)}
}

func (m moment) add(d time.Duration) moment {
	return moment{mono: m.mono.Add(d), wall: m.wall.Add(d)}
}

// before tells whether by no clock the end has come.
func (m moment) before(end moment) bool {
	return m.mono.Before(end.mono) && m.wall.Before(end.wall)
}
