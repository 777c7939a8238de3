package duty

import "time"

// SetBoot gives a process a clock of its own that goes on while the machine is suspended, beside the monotonic one that all share.
func (r *Roster) SetBoot(boot func() time.Duration) {
	r.now = func() moment { return moment{mono: time.Now(), boot: boot()} }
}

// Trusted is how long Has says yes after a duty was taken or renewed.
const Trusted = Lifetime - margin
