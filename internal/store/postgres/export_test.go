package postgres

import "context"

// ForgetOld is a round of forgetting, which otherwise comes once a minute.
func (s *Store) ForgetOld(ctx context.Context) error { return s.forgetOld(ctx) }

// The limits that doc.go and errors name.
const (
	PathMax   = pathMax
	ValuesMax = valuesMax
)
