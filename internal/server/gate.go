package server

import "sync"

// gate counts the requests that run, and lets no new ones in once it is shut. It
// is safe for concurrent use.
type gate struct {
	mu      sync.Mutex
	running int
	shut    bool
	idle    chan struct{} // closed when it is shut and nothing runs
}

func newGate() *gate { return &gate{idle: make(chan struct{})} }

// enter reports whether a request may run; then leave must be called at its end.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.signalIfIdle()
}

// close shuts the gate. The channel is closed when the last request has left.
// It is called once.
func (g *gate) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	g.signalIfIdle()
	return g.idle
}

// signalIfIdle closes idle once: when nothing runs behind a shut gate, nothing will again.
func (g *gate) signalIfIdle() {
	if g.shut && g.running == 0 {
		close(g.idle)
	}
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}
