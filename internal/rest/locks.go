package rest

// showLocks answers who waits for whom. It takes no lock, so that it
// answers when nothing else does.
func (c *call) showLocks() error { return c.ok(c.h.opt.Locks(c.ctx)) }
