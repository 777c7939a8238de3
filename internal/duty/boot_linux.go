package duty

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine started, suspended or not.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil { // no Linux that Go runs on lacks it
		return 0
	}
	return time.Duration(t.Nano())
}
