package duty

import "time"

// A moment is the time by two clocks of a machine. Go's monotonic clock stands still while the machine is suspended; the
// other goes on. The wall clock is neither: somebody may set it, and then nothing has happened.
type moment struct {
	mono time.Time     // has a monotonic reading, by which it is compared
	boot time.Duration // by the clock of sinceBoot
}

func now() moment { return moment{mono: time.Now(), boot: sinceBoot()} }

func (m moment) add(d time.Duration) moment {
	return moment{mono: m.mono.Add(d), boot: m.boot + d}
}

// before tells whether by no clock the end has come.
func (m moment) before(end moment) bool {
	return m.mono.Before(end.mono) && m.boot < end.boot
}
