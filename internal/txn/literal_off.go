//go:build !planted

package txn

import "context"

// applyLiterally is a protocol that is wrong, of builds that make mistakes on purpose.
func (s *Store) applyLiterally(context.Context, division) error {
	panic("txn: this build makes no mistakes on purpose")
}
