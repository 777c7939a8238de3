package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// patience bounds what a test waits for.
const patience = 30 * time.Second

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func batch(conds []store.Cond, writes ...store.Write) store.Batch {
	return store.Batch{ID: newID(), Conds: conds, Writes: writes}
}

func put(k key.Key, id, value string) store.Write {
	return store.Write{Key: k, ID: id, Value: []byte(value)}
}

// creation is a batch that makes a record, with further conditions.
func creation(k key.Key, more ...store.Cond) store.Batch {
	return batch(append(more, store.Is(k, store.Absent)), put(k, "i", "{}"))
}

// create makes a record.
func create(t testing.TB, s *postgres.Store, k key.Key, more ...store.Cond) store.Version {
	t.Helper()
	b := creation(k, more...)
	if err := s.Apply(t.Context(), b); err != nil {
		t.Fatalf("create %v: %v", k, err)
	}
	return store.Version(b.ID)
}

// settled applies a batch, again while another transaction is in its way.
func settled(ctx context.Context, s *postgres.Store, b store.Batch) error {
	for {
		err := s.Apply(ctx, b)
		blocked, ok := errors.AsType[*store.BlockedError](err)
		if !ok {
			return err
		}
		select {
		case <-time.After(time.Until(blocked.Until)):
		case <-ctx.Done():
			return err
		}
	}
}

// connect is a connection beside the store.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// value gives the one value that a query finds.
func value[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := conn.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// until waits for a condition.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// lockRow locks a row in a transaction of its own, until it is released.
func lockRow(t testing.TB, url string, k key.Key, mode string) (release func()) {
	t.Helper()
	conn := connect(t, url)
	exec(t, conn, "BEGIN")
	exec(t, conn, "SELECT FROM landfast.records WHERE level = $1 AND path = $2 "+mode, int16(k.Level), k.Path)
	return func() { exec(t, conn, "COMMIT") }
}

// waiting is the SQL condition of sessions of stores that wait for a lock.
const waiting = "application_name LIKE 'landfast%' AND wait_event_type = 'Lock' AND datname = current_database()"

// wantOutcome wants the answer, twice, and that the record of the batch is there accordingly.
func wantOutcome(t testing.TB, s *postgres.Store, b store.Batch, want store.Outcome) {
	t.Helper()
	for range 2 {
		if got, err := s.Outcome(t.Context(), b); err != nil || got != want {
			t.Fatalf("outcome: got %v, %v, want %v", got, err, want)
		}
	}
	if want == store.NotApplied {
		err := settled(t.Context(), s, b)
		if conflict, ok := errors.AsType[*store.ConflictError](err); !ok || len(conflict.Conds) != 0 {
			t.Fatalf("applied after all: got %v, want a conflict without conditions", err)
		}
	}
	k := b.Writes[0].Key
	if r, err := s.Get(t.Context(), k); err != nil || (r.Version == store.Version(b.ID)) != (want == store.Applied) {
		t.Fatalf("the batch is %v, and %v has version %q, %v", want, k, r.Version, err)
	}
}

// fault is what a proxy does to a request or its answer.
type fault int32

const (
	none          fault = iota
	cutRequest          // the request is lost, and the connection with it
	cutReply            // the answer is lost, and the connection with it
	cutReadiness        // likewise, but for its last message, which says that the transaction has ended
	detainRequest       // the request arrives when the proxy is told to release it
)

// strike is a fault that a proxy has in store for the first request which contains a text: others may come before it, such as the
// ping of a connection.
type strike struct {
	fault fault
	text  string
}

// proxy stands between a store and its server.
type proxy struct {
	addr     string
	listener net.Listener
	next     atomic.Pointer[strike] // nil: none
	free     chan struct{}
	freeing  sync.Once
	done     chan struct{} // gets a token for each fault that has run its course

	mu    sync.Mutex
	conns []net.Conn
	era   atomic.Int32 // connections of an earlier one are silent
}

// release lets the request go that is detained.
func (p *proxy) release() { p.freeing.Do(func() { close(p.free) }) }

// silence has nothing that is said on a connection of now arrive any more, in either direction.
func (p *proxy) silence() { p.era.Add(1) }

func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), listener: l, free: make(chan struct{}), done: make(chan struct{}, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			backend, err := new(net.Dialer).DialContext(context.Background(), "tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client, backend)
			p.mu.Unlock()
			running.Go(func() { p.serve(client, backend) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.release()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		running.Wait()
	})
	return p
}

// readiness is the last message of an answer, outside of a transaction block.
var readiness = []byte{'Z', 0, 0, 0, 5, 'I'}

func (p *proxy) serve(client, backend net.Conn) {
	defer client.Close()
	defer backend.Close()
	era := p.era.Load()
	silent := func() bool { return p.era.Load() != era }
	var reply atomic.Int32
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		defer client.Close()
		var answer []byte
		buf := make([]byte, 64<<10)
		for {
			n, err := backend.Read(buf)
			if err != nil {
				return
			}
			if silent() {
				continue
			}
			f := fault(reply.Load())
			if f == none {
				_, _ = client.Write(buf[:n])
				continue
			}
			if answer = append(answer, buf[:n]...); !bytes.HasSuffix(answer, readiness) {
				continue
			}
			if f == cutReadiness {
				_, _ = client.Write(bytes.TrimSuffix(answer, readiness))
			}
			p.done <- struct{}{}
			return
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			_ = backend.Close()
			return
		}
		if silent() {
			continue
		}
		f := none
		if next := p.next.Load(); next != nil && bytes.Contains(buf[:n], []byte(next.text)) && p.next.CompareAndSwap(next, nil) {
			f = next.fault
		}
		switch f {
		case cutRequest:
			_ = backend.Close()
			p.done <- struct{}{}
			return
		case detainRequest:
			<-p.free
			f = cutReply // nobody is there to hear it
		}
		reply.Store(int32(f))
		if _, err := backend.Write(buf[:n]); err != nil {
			return
		}
		if f != none {
			_, _ = io.Copy(io.Discard, client)
			running.Wait()
			return
		}
	}
}
