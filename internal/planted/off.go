//go:build !planted

package planted

// Is is false: this build makes no mistakes on purpose.
func Is(Bug) bool { return false }
