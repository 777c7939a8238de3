package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/s3/s3test"
)

// newStore is a Store that gives up soon.
func newStore(t *testing.T, options blob.S3Options, p policy) *Store {
	s := New(options)
	s.clients.policy = p
	t.Cleanup(s.Close)
	return s
}

// Properties: whatever is lost on the way, Create says that it made the file only if it did, that somebody else did only if so, and
// otherwise that it does not know; it takes no more requests than needed.
func TestCreateThroughFaults(t *testing.T) {
	server := s3test.Start(t)
	const put, head = "PUT", "HEAD"
	const soon = 2 * time.Second // the request must have come by then, and been done
	for _, c := range []struct {
		name    string
		others  bool // somebody else's file is there
		acts    []act
		want    error // nil: made
		there   bool  // and the file exists afterwards, where it is not made or others'
		asked   []string
		already time.Duration // the context ends so soon
	}{
		{name: "no fault", acts: []act{pass}, asked: []string{put}},
		{name: "request lost", acts: []act{dropRequest, pass}, asked: []string{put, put}},
		{name: "requests lost", acts: []act{dropRequest, dropRequest, dropRequest, pass}, asked: []string{put, put, put, put}},
		{name: "reply lost", acts: []act{dropReply, pass}, asked: []string{put, put, head}},
		{name: "replies lost", acts: []act{dropReply, dropReply, dropReply, pass}, asked: []string{put, put, put, put, head}},
		{name: "reply lost, and that of the look", acts: []act{dropReply, pass, dropReply, fail500, pass}, asked: []string{put, put, head, head, head}},
		{name: "500", acts: []act{fail500, pass}, asked: []string{put, put}},
		{name: "500 of what was done", acts: []act{done500, pass}, asked: []string{put, put, head}},
		{name: "slow down", acts: []act{slowDown, slowDown, pass}, asked: []string{put, put, put}},
		{name: "conflict with nobody", acts: []act{conflict409, pass}, asked: []string{put, head, put}},
		{name: "conflict with a lost request of its own", acts: []act{dropReply, conflict409, pass}, asked: []string{put, put, head}},
		{name: "sent twice on the way", acts: []act{twice, pass}, asked: []string{put, head}},

		{name: "exists", others: true, acts: []act{pass}, want: blob.ErrExists, asked: []string{put, head}},
		{name: "exists, request lost", others: true, acts: []act{dropRequest, pass}, want: blob.ErrExists, asked: []string{put, put, head}},
		{name: "exists, reply lost", others: true, acts: []act{dropReply, pass}, want: blob.ErrExists, asked: []string{put, put, head}},
		{name: "exists, 500", others: true, acts: []act{done500, pass}, want: blob.ErrExists, asked: []string{put, put, head}},
		{name: "conflict with somebody", others: true, acts: []act{conflict409, pass}, want: blob.ErrExists, asked: []string{put, head}},

		{name: "all lost", acts: []act{dropRequest}, want: blob.ErrUncertain, asked: []string{put, put, put, put}},
		{name: "all replies lost", acts: []act{dropReply}, want: blob.ErrUncertain, there: true, asked: []string{put, put, put, put}},
		{name: "500 for ever", acts: []act{fail500}, want: blob.ErrUncertain, asked: []string{put, put, put, put}},
		{name: "the look fails", acts: []act{dropReply, pass, fail500}, want: blob.ErrUncertain, there: true, asked: []string{put, put, head, head, head, head}},
		{name: "denied after a loss", acts: []act{dropReply, denied}, want: blob.ErrUncertain, there: true, asked: []string{put, put}},
		{name: "the context ends", acts: []act{hold}, want: blob.ErrUncertain, asked: []string{put}, already: soon},
		{name: "the context ends after it was done", acts: []act{doneHold}, want: blob.ErrUncertain, there: true, asked: []string{put}, already: soon},

		{name: "denied", acts: []act{denied}, want: errPlain, asked: []string{put}},
		{name: "no bucket", acts: []act{gone}, want: errPlain, asked: []string{put}},
		{name: "conflict, and the look fails", acts: []act{conflict409, denied}, want: errPlain, asked: []string{put, head}},
		{name: "conflict for ever", acts: []act{conflict409, pass, conflict409, pass, conflict409, pass, conflict409, pass}, want: errPlain,
			asked: []string{put, head, put, head, put, head, put, head}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, options := newProxy(t, server, script(c.acts...))
			s, straight := newStore(t, options, impatient), newStore(t, server.Options, standard)
			bucket := server.NewBucket(t)
			root := blob.Root{URI: "s3://" + bucket}
			scope, location := blob.Scope{root}, root.URI+"/t/metadata/f"
			if c.others {
				must(t, straight.Create(t.Context(), scope, location, []byte("others")))
			}
			ctx := t.Context()
			if c.already > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.already)
				defer cancel()
			}
			err := s.Create(ctx, scope, location, []byte("mine"))
			if got := outcome(err); got != c.want {
				t.Errorf("Create: %v; want %v", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), location) {
				t.Errorf("Create: %v, which does not name the file", err)
			}
			if c.already > 0 && !errors.Is(err, context.DeadlineExceeded) || c.already == 0 && errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Create: %v; the context ended: %v", err, c.already > 0)
			}
			if diff := cmp.Diff(c.asked, p.requests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			want := ""
			switch {
			case c.others:
				want = "others"
			case c.want == nil || c.there:
				want = "mine"
			}
			data, err := straight.Read(t.Context(), scope, location, 100)
			if want == "" && !errors.Is(err, blob.ErrNotFound) || want != "" && (err != nil || string(data) != want) {
				t.Errorf("there is %q, %v; want %q", data, err, want)
			}
		})
	}
}

// errPlain stands for an error that has no name in the contract.
var errPlain = errors.New("plain")

// outcome is the name that the contract has for an error.
func outcome(err error) error {
	if err == nil {
		return nil
	}
	for _, named := range []error{blob.ErrExists, blob.ErrUncertain, blob.ErrNotFound, blob.ErrFull, blob.ErrTooLarge, blob.ErrOutside, blob.ErrMarkMissing} {
		if errors.Is(err, named) {
			return named
		}
	}
	return errPlain
}

// Properties: of several creators of one name, through faults at random, at most one is told that it made the file; the file is its, or that of one who
// is told that nobody knows; and who is told that the file exists has not made it.
func TestOneCreatorThroughRandomFaults(t *testing.T) {
	const rounds, creators = 40, 4
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	faults := []act{dropRequest, dropReply, fail500, done500, slowDown, conflict409, twice}
	server := s3test.Start(t)
	_, options := newProxy(t, server, func(string) act {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(2) == 0 {
			return pass
		}
		return faults[random.IntN(len(faults))]
	})
	s, straight := newStore(t, options, impatient), newStore(t, server.Options, standard)
	root := blob.Root{URI: "s3://" + server.NewBucket(t) + "/lake"}
	scope := blob.Scope{root}
	counts := map[error]int{}
	for round := range rounds {
		location := fmt.Sprintf("%s/t-%d/f", root.URI, round)
		errs := make([]error, creators)
		var all sync.WaitGroup
		for i := range creators {
			all.Go(func() { errs[i] = s.Create(t.Context(), scope, location, fmt.Append(nil, i)) })
		}
		all.Wait()
		maker := -1
		data, err := straight.Read(t.Context(), scope, location, 10)
		if err == nil {
			fmt.Sscan(string(data), &maker)
		} else if !errors.Is(err, blob.ErrNotFound) {
			t.Fatal(err)
		}
		for i, err := range errs {
			got := outcome(err)
			counts[got]++
			switch {
			case got == nil && i != maker:
				t.Errorf("%s: creator %d was told that it made what %d made", location, i, maker)
			case got != nil && got != blob.ErrUncertain && i == maker:
				t.Errorf("%s: creator %d made it and was told: %v", location, i, err)
			case got == blob.ErrExists && maker < 0:
				t.Errorf("%s: creator %d was told that it exists: %v", location, i, err)
			case got != nil && got != blob.ErrUncertain && got != blob.ErrExists && got != errPlain:
				t.Errorf("%s: creator %d: %v", location, i, err)
			}
		}
	}
	t.Logf("outcomes: %v", counts)
	if counts[nil] == 0 || counts[blob.ErrExists] == 0 {
		t.Errorf("outcomes: %v; want some of each", counts)
	}
}

// Properties: calls that may be done twice survive faults that pass; faults that do not pass are plain errors,
// never a missing file; nothing is asked more often than the policy says.
func TestOtherCallsThroughFaults(t *testing.T) {
	server := s3test.Start(t)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	calls := map[string]func(ctx context.Context, s *Store, root blob.Root) error{
		"read": func(ctx context.Context, s *Store, root blob.Root) error {
			got, err := s.Read(ctx, blob.Scope{root}, root.URI+"/t/f", 1<<20)
			if err == nil && !bytes.Equal(got, data) {
				return fmt.Errorf("read %d other bytes", len(got))
			}
			return err
		},
		"exists": func(ctx context.Context, s *Store, root blob.Root) error {
			there, err := s.Exists(ctx, blob.Scope{root}, root.URI+"/t/f")
			if err == nil && !there {
				return errors.New("it is said not to exist")
			}
			return err
		},
		"list": func(ctx context.Context, s *Store, root blob.Root) error {
			var found []string
			err := s.List(ctx, blob.Scope{root}, root.URI+"/t", func(e blob.Entry) error {
				found = append(found, e.Location)
				return nil
			})
			if diff := cmp.Diff([]string{root.URI + "/t/f"}, found); err == nil && diff != "" {
				return errors.New(diff)
			}
			return err
		},
		"check": func(ctx context.Context, s *Store, root blob.Root) error { return s.CheckMark(ctx, root, "w") },
		"delete": func(ctx context.Context, s *Store, root blob.Root) error {
			if err := s.Delete(ctx, blob.Scope{root}, root.URI+"/t/f"); err != nil {
				return err
			}
			if keys := server.Keys(t, strings.TrimPrefix(root.URI, "s3://")); len(keys) != 1 {
				return fmt.Errorf("deleted, and there are %q", keys)
			}
			return nil
		},
	}
	for _, c := range []struct {
		acts  []act
		asked int // of each call
		want  error
		but   map[string]error // what else some calls say, who cannot know better
	}{
		{acts: []act{pass}, asked: 1},
		{acts: []act{dropRequest, dropReply, pass}, asked: 3},
		{acts: []act{cutReply, pass}, asked: 2},
		{acts: []act{fail500, done500, slowDown, pass}, asked: 4},
		{acts: []act{dropRequest}, asked: 4, want: errPlain},
		{acts: []act{slowDown}, asked: 4, want: errPlain},
		{acts: []act{denied}, asked: 1, want: errPlain},
		// HEAD says nothing more than 404; of a marker it means the same, and a file is asked for with a second request, for the bucket.
		{acts: []act{gone}, asked: 1, want: errPlain, but: map[string]error{"check": blob.ErrMarkMissing}},
	} {
		for name, call := range calls {
			t.Run(fmt.Sprint(name, c.acts), func(t *testing.T) {
				p, options := newProxy(t, server, script(c.acts...))
				s, straight := newStore(t, options, impatient), newStore(t, server.Options, standard)
				root := blob.Root{URI: "s3://" + server.NewBucket(t)}
				must(t, straight.Create(t.Context(), blob.Scope{root}, root.URI+"/t/f", data))
				must(t, straight.Mark(t.Context(), root, "w"))
				want, asked := c.want, c.asked
				if other, ok := c.but[name]; ok {
					want = other
				}
				if c.acts[0] == gone && name == "exists" {
					asked++
				}
				if c.acts[0] == cutReply && (name == "exists" || name == "check" || name == "delete") {
					asked = 1 // their answers have no body
				}
				err := call(t.Context(), s, root)
				if got := outcome(err); got != want {
					t.Errorf("%v; want %v", err, want)
				}
				if got := p.requests(); len(got) != asked {
					t.Errorf("requests %v; want %d", got, asked)
				}
			})
		}
	}
}

// Properties: a server that does not answer is left after the policy's time, the context's end ends a call at once, and only then is the error the context's.
func TestSilentServer(t *testing.T) {
	server := s3test.Start(t)
	_, options := newProxy(t, server, script(hold))
	root := blob.Root{URI: "s3://" + server.NewBucket(t)}
	scope, location := blob.Scope{root}, root.URI+"/f"
	hasty := impatient
	hasty.attempts, hasty.answer = 2, 50*time.Millisecond
	calls := map[string]func(ctx context.Context, s *Store) error{
		"read":   func(ctx context.Context, s *Store) error { _, err := s.Read(ctx, scope, location, 10); return err },
		"exists": func(ctx context.Context, s *Store) error { _, err := s.Exists(ctx, scope, location); return err },
		"create": func(ctx context.Context, s *Store) error { return s.Create(ctx, scope, location, []byte("x")) },
		"delete": func(ctx context.Context, s *Store) error { return s.Delete(ctx, scope, location) },
		"list": func(ctx context.Context, s *Store) error {
			return s.List(ctx, scope, root.URI, func(blob.Entry) error { return nil })
		},
		"mark":    func(ctx context.Context, s *Store) error { return s.Mark(ctx, root, "w") },
		"check":   func(ctx context.Context, s *Store) error { return s.CheckMark(ctx, root, "w") },
		"resolve": func(ctx context.Context, s *Store) error { _, err := s.Resolve(ctx, root.URI, options); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			err := call(t.Context(), newStore(t, options, hasty))
			want := errPlain
			if name == "create" || name == "mark" || name == "resolve" {
				want = blob.ErrUncertain
			}
			if outcome(err) != want || !strings.Contains(err.Error(), "no whole answer within 50") || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("no answer: %v; want %v", err, want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			slow := impatient
			slow.answer = time.Hour
			if err := call(ctx, newStore(t, options, slow)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the context ended: %v", err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Property: after its attempt an upload gives out nothing more, because its bytes are the caller's again.
func TestUploadEnds(t *testing.T) {
	u := &upload{bytes: bytes.NewReader([]byte("0123456789"))}
	p := make([]byte, 4)
	if n, err := u.Read(p); n != 4 || err != nil {
		t.Errorf("Read: %d, %v", n, err)
	}
	if at, err := u.Seek(0, io.SeekStart); at != 0 || err != nil {
		t.Errorf("Seek: %d, %v", at, err)
	}
	u.end()
	if n, err := u.Read(p); n != 0 || !errors.Is(err, errEnded) {
		t.Errorf("Read after the end: %d, %v", n, err)
	}
	if _, err := u.Seek(0, io.SeekStart); !errors.Is(err, errEnded) {
		t.Errorf("Seek after the end: %v", err)
	}
}

// Property: where nothing listens, a call fails as such, and Create knows that it made nothing.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	endpoint := "http://" + l.Addr().String()
	l.Close()
	s := newStore(t, blob.S3Options{Endpoint: endpoint, AccessKeyID: "a", SecretAccessKey: "b"}, impatient)
	scope := blob.Scope{{URI: "s3://bucket"}}
	for name, err := range attempts(t.Context(), s, scope, "s3://bucket/f") {
		if outcome(err) != errPlain || !strings.Contains(err.Error(), "check the endpoint") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// attempts runs every method of a Store, and what can be asked of the root.
func attempts(ctx context.Context, s *Store, scope blob.Scope, location string) map[string]error {
	_, read := s.Read(ctx, scope, location, 1<<20)
	_, exists := s.Exists(ctx, scope, location)
	_, resolve := s.Resolve(ctx, scope[0].URI, s.defaults)
	return map[string]error{
		"read": read, "exists": exists, "resolve": resolve,
		"create": s.Create(ctx, scope, location, []byte("x")),
		"delete": s.Delete(ctx, scope, location),
		"list":   s.List(ctx, scope, location, func(blob.Entry) error { return nil }),
		"mark":   s.Mark(ctx, scope[0], "w"),
		"check":  s.CheckMark(ctx, scope[0], "w"),
	}
}
