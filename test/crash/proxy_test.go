package crash

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// proxy stands between the writers and a server. Each connection of a writer has one of
// its own to the server. It passes on every byte as it came, in order, and never twice;
// what its mischief takes away does not arrive.
type proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	target   string          // host and port of the server; empty: there is none
	mischief func() mischief // of the next request; nil: none
	accepted int
	open     map[net.Conn]bool // to clients
}

// mischief is what happens to one request and its answer. The zero value is nothing.
type mischief struct {
	dropRequest bool          // the server never sees it
	cutRequest  float64       // if > 0: the server sees this share of it, and the end of the connection
	holdRequest time.Duration // it goes on after this time, even if the client has gone
	// outlive has a client that goes away before the answer stay, for the server.
	outlive     bool
	dropAnswer  bool          // the client sees the end of the connection instead
	loseAnswer  bool          // the same, as soon as the server has the request
	cutAnswer   float64       // if > 0: the client sees this share of it
	delayAnswer time.Duration // it comes after this time
}

func newProxy() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, open: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

// lead has new connections lead to the server at a URL; empty: nowhere.
func (p *proxy) lead(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = strings.TrimPrefix(url, "http://")
}

// misbehave has each request meet what the function returns, one call at a time; nil: none does.
func (p *proxy) misbehave(next func() mischief) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mischief = next
}

// idle returns when every one of so many connections that clients made is over, and
// what the server had got through them is answered or given up.
func (p *proxy) idle(ctx context.Context, made func() int) error {
	return poll(ctx, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := made(); p.accepted < n || len(p.open) > 0 {
			return fmt.Errorf("of %d connections %d have arrived and %d are open", n, p.accepted, len(p.open))
		}
		return nil
	})
}

// close ends all connections.
func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
	return err
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil { // it was closed
			return
		}
		p.mu.Lock()
		p.accepted++
		p.open[c] = true
		p.mu.Unlock()
		p.running.Go(func() {
			p.serve(c)
			c.Close()
			p.mu.Lock()
			delete(p.open, c)
			p.mu.Unlock()
		})
	}
}

// exchange is a request and what is on its way back, byte for byte.
type exchange struct {
	request *http.Request // to know where an answer ends
	sent    []byte
}

// serve passes on the requests of one connection, one after another.
func (p *proxy) serve(client net.Conn) {
	requests, gone, over := make(chan exchange), make(chan struct{}), make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(gone)
		var sent bytes.Buffer
		in := bufio.NewReader(io.TeeReader(client, &sent))
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			select {
			case requests <- exchange{r, bytes.Clone(sent.Bytes())}:
				sent.Reset() // the client waits for the answer: nothing of the next request is here
			case <-over:
				return
			}
		}
	})
	defer reading.Wait()
	defer client.Close()
	defer close(over)
	server := &upstream{}
	defer server.close()
	for {
		select {
		case e := <-requests:
			if !p.pass(e, client, server, gone) {
				return
			}
		case <-gone:
			return
		}
	}
}

// upstream is the connection to the server.
type upstream struct {
	conn *net.TCPConn
	in   *bufio.Reader
	got  bytes.Buffer
}

func (u *upstream) dial(target string) error {
	if u.conn != nil {
		return nil
	}
	if target == "" {
		return errors.New("there is no server")
	}
	c, err := net.Dial("tcp", target)
	if err != nil {
		return err
	}
	u.conn = c.(*net.TCPConn)
	u.in = bufio.NewReader(io.TeeReader(c, &u.got))
	return nil
}

// answer reads the next answer.
func (u *upstream) answer(r *http.Request) (data []byte, last bool, err error) {
	u.got.Reset()
	a, err := http.ReadResponse(u.in, r)
	if err != nil {
		return nil, true, err
	}
	_, err = io.Copy(io.Discard, a.Body)
	a.Body.Close()
	return u.got.Bytes(), a.Close, err
}

// leave sends no more and waits until the server has ended the connection: nothing of
// what came through it is under way then.
func (u *upstream) leave() {
	_ = u.conn.CloseWrite() // fails if the server has gone
	_, _ = io.Copy(io.Discard, u.in)
}

func (u *upstream) close() {
	if u.conn != nil {
		u.conn.Close()
	}
}

// next is what a request meets, and where it goes.
func (p *proxy) next() (mischief, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mischief == nil {
		return mischief{}, p.target
	}
	return p.mischief(), p.target
}

// pass passes on one request and its answer. It returns false when the connection is to end.
func (p *proxy) pass(e exchange, client net.Conn, server *upstream, gone <-chan struct{}) bool {
	m, target := p.next()
	if m.dropRequest {
		return false
	}
	if m.holdRequest > 0 {
		<-time.After(m.holdRequest)
	}
	if server.dial(target) != nil {
		return false
	}
	if m.cutRequest > 0 {
		part := 1 + int(m.cutRequest*float64(len(e.sent)-1))
		if _, err := server.conn.Write(e.sent[:min(part, len(e.sent)-1)]); err == nil {
			server.leave()
		}
		return false
	}
	if _, err := server.conn.Write(e.sent); err != nil {
		return false
	}
	if m.loseAnswer {
		client.Close()
	}
	answered := make(chan struct{})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer close(answered)
	watching.Go(func() {
		select {
		case <-gone:
			if !m.outlive {
				_ = server.conn.CloseWrite() // the server sees that the client has gone
			}
		case <-answered:
		}
	})
	answer, last, err := server.answer(e.request)
	if err != nil || m.dropAnswer || m.loseAnswer {
		return false
	}
	if m.cutAnswer > 0 {
		_, _ = client.Write(answer[:int(m.cutAnswer*float64(len(answer)))]) // it may have gone
		return false
	}
	if m.delayAnswer > 0 {
		select {
		case <-time.After(m.delayAnswer):
		case <-gone:
		}
	}
	_, err = client.Write(answer)
	return err == nil && !last
}
