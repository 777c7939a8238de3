//go:build !linux

package duty

import "time"

// sinceBoot is what comes nearest to the time since the machine started: the wall clock.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
