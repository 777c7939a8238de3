//go:build !planted

package kernel

import "context"

// cleanUp is a mistake, of builds that make some on purpose.
func cleanUp(context.Context, Files, []File) {
	panic("kernel: this build makes no mistakes on purpose")
}
