package crash

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// wire stands between a server and its database. It passes on what both say, in order and
// never twice; what its mischief takes away does not arrive. It understands nothing of it: what
// one side says at once is a request, or an answer.
type wire struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu       sync.Mutex
	mischief func() mischief // of the next request; nil: none
	open     map[net.Conn]bool
	held     int // requests that are on their way

	// Connections of an earlier era are silent.
	era atomic.Int64
}

func newWire(target string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: l, target: target, open: map[net.Conn]bool{}}
	w.running.Go(w.accept)
	return w, nil
}

func (w *wire) address() string { return w.listener.Addr().String() }

// misbehave has each request meet what the function returns, one call at a time; nil: none does.
// A wire knows how to cut and hold a request, and to drop, cut and delay an answer. What it drops or cuts ends
// the connection.
func (w *wire) misbehave(next func() mischief) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mischief = next
}

// silence has nothing that is said arrive any more on the connections that are open, in either direction, and tells how
// many they are. They stay open.
func (w *wire) silence() int {
	w.era.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open) / 2
}

// holds is how many requests have come and are not passed on yet.
func (w *wire) holds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// close ends all connections.
func (w *wire) close() error {
	err := w.listener.Close()
	w.mu.Lock()
	for c := range w.open {
		c.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
	return err
}

func (w *wire) accept() {
	for {
		c, err := w.listener.Accept()
		if err != nil { // it was closed
			return
		}
		w.keep(c)
		w.running.Go(func() { w.join(c) })
	}
}

func (w *wire) keep(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[c] = true
}

func (w *wire) drop(c net.Conn) {
	c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

// join passes on what comes through one connection, until one of its ends has gone.
func (w *wire) join(server net.Conn) {
	defer w.drop(server)
	database, err := net.Dial("tcp", w.target)
	if err != nil { // it is down
		return
	}
	w.keep(database)
	defer w.drop(database)
	var next atomic.Pointer[mischief] // of the next answer
	era := w.era.Load()
	silent := func() bool { return w.era.Load() != era }
	var answering sync.WaitGroup
	answering.Go(func() {
		answers(database, server, &next, silent)
		server.Close()
	})
	w.requests(server, database, &next, silent)
	database.Close()
	answering.Wait()
}

// chunkMax bounds what is passed on at once.
const chunkMax = 64 << 10

// requests passes on requests, and tells what their answers are to meet.
func (w *wire) requests(from, to net.Conn, answer *atomic.Pointer[mischief], silent func() bool) {
	chunk := make([]byte, chunkMax)
	for {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		if silent() {
			continue
		}
		m := w.take()
		if m.holdRequest > 0 {
			<-time.After(m.holdRequest)
		}
		answer.Store(&m)
		if m.cutRequest > 0 {
			n = int(m.cutRequest * float64(n))
		}
		_, err = to.Write(chunk[:n])
		w.release()
		if err != nil || m.cutRequest > 0 {
			return
		}
	}
}

// take is what a request meets, which is held until its release.
func (w *wire) take() mischief {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held++
	if w.mischief == nil {
		return mischief{}
	}
	return w.mischief()
}

func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held--
}

// answers passes on answers.
func answers(from, to net.Conn, next *atomic.Pointer[mischief], silent func() bool) {
	chunk := make([]byte, chunkMax)
	for {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		if silent() {
			continue
		}
		var m mischief
		if its := next.Load(); its != nil {
			m = *its
		}
		if m.dropAnswer {
			return
		}
		if m.cutAnswer > 0 {
			_, _ = to.Write(chunk[:int(m.cutAnswer*float64(n))]) // it may have gone
			return
		}
		if m.delayAnswer > 0 {
			<-time.After(m.delayAnswer)
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return
		}
	}
}
