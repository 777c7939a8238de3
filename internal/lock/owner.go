package lock

import "context"

// Owner says who asks for a lock, so that a person can read who waits for whom.
// It is never used to decide anything: two requests with equal owners exclude
// each other like any others.
type Owner struct {
	Op        string `json:"op"`         // the operation, as its plan names it
	RequestID string `json:"request-id"` // the request it runs for
	Client    string `json:"client"`     // who sent the request, as far as known
}

type ownerKey struct{}

// WithOwner is ctx with the owner of the locks acquired under it.
func WithOwner(ctx context.Context, o Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// OwnerFrom is the owner that ctx carries; without one it is zero.
func OwnerFrom(ctx context.Context) Owner {
	o, _ := ctx.Value(ownerKey{}).(Owner)
	return o
}
