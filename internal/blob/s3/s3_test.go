package s3

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/s3/s3test"
)

// Property: a key is the bytes of the location, with nothing escaped, folded or cut.
func TestKeys(t *testing.T) {
	server := s3test.Start(t)
	s := newStore(t, server.Options, standard)
	bucket := server.NewBucket(t)
	root := blob.Root{URI: "s3://" + bucket}
	scope := blob.Scope{root}
	keys := []string{
		" b", "!$&'()*,;:=@~", "%", "%2F", "%25", "+", "a b", "a%20b", "a+b", "a/b c/d%/e+", "back\\slash", "day=2024-01-01",
		"quote\"'`", "{[<>]}|^", "Ünïcödé", "日本語", "e\u0301", "\u00e9", "🎉", strings.Repeat("n", 200),
	}
	for _, key := range keys {
		location := root.URI + "/" + key
		must(t, s.Create(t.Context(), scope, location, []byte(key)))
		if err := s.Create(t.Context(), scope, "s3a"+strings.TrimPrefix(location, "s3"), nil); !errors.Is(err, blob.ErrExists) {
			t.Errorf("%q again: %v; want ErrExists", key, err)
		}
		data, err := s.Read(t.Context(), scope, location, 1000)
		there, err2 := s.Exists(t.Context(), scope, location)
		if string(data) != key || !there || err != nil || err2 != nil {
			t.Errorf("%q: read %q, %v; exists %v, %v", key, data, err, there, err2)
		}
	}
	diff := func(got []string) string {
		want, have := map[string]bool{}, map[string]bool{}
		for _, key := range keys {
			want[key] = true
		}
		for _, key := range got {
			have[key] = true
		}
		return cmp.Diff(want, have)
	}
	if d := diff(server.Keys(t, bucket)); d != "" {
		t.Errorf("the server's files (-want +got):\n%s", d)
	}
	var listed []string
	must(t, s.List(t.Context(), scope, root.URI, func(e blob.Entry) error {
		listed = append(listed, strings.TrimPrefix(e.Location, root.URI+"/"))
		return s.Delete(t.Context(), scope, e.Location)
	}))
	if d := diff(listed); d != "" {
		t.Errorf("List (-want +got):\n%s", d)
	}
	if left := server.Keys(t, bucket); len(left) > 0 {
		t.Errorf("after all were deleted: %q", left)
	}
}

// Properties: what is wrong with bucket, credentials or options is said with a remedy, is never taken for a missing file, and does not show the secret.
func TestWhatIsWrong(t *testing.T) {
	server := s3test.Start(t)
	here := "s3://" + server.NewBucket(t)
	const secret = "a-wrong-secret"
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(notPEM, []byte("x"), 0o600))
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	for name, c := range map[string]struct {
		root   string
		change func(o *blob.S3Options)
		want   string
	}{
		"no bucket":           {"s3://no-such-bucket", func(*blob.S3Options) {}, "make the bucket"},
		"wrong secret":        {here, func(o *blob.S3Options) { o.SecretAccessKey = secret }, "check access key and secret"},
		"wrong key":           {here, func(o *blob.S3Options) { o.AccessKeyID = "nobody" }, "access key"},
		"wrong region":        {here, func(o *blob.S3Options) { o.Region = "eu-central-1" }, "check region and endpoint"},
		"no region":           {here, func(o *blob.S3Options) { o.Endpoint = "" }, "region: it is not set"},
		"CA file is missing":  {here, func(o *blob.S3Options) { o.CAFile = "/nonexistent/ca.pem" }, "no such file"},
		"CA file has no end":  {here, func(o *blob.S3Options) { o.CAFile = "/dev/zero" }, "no regular file"},
		"CA file is no PEM":   {here, func(o *blob.S3Options) { o.CAFile = notPEM }, "no certificate"},
		"https of plain http": {here, func(o *blob.S3Options) { o.Endpoint = "https" + strings.TrimPrefix(o.Endpoint, "http") }, "HTTP response to HTTPS client"},
	} {
		t.Run(name, func(t *testing.T) {
			options := server.Options
			c.change(&options)
			s := newStore(t, options, impatient)
			for call, err := range attempts(t.Context(), s, blob.Scope{{URI: c.root}}, c.root+"/f") {
				if err == nil || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrExists) {
					t.Errorf("%s: %v", call, err)
					continue
				}
				// A HEAD is answered in a number: nobody can tell a wrong secret from a missing right.
				vague := (call == "check" || call == "exists") && (strings.HasPrefix(name, "wrong") || name == "no bucket")
				if !vague && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v; want it to say: %s", call, err, c.want)
				}
				if strings.Contains(err.Error(), options.SecretAccessKey) {
					t.Errorf("%s shows the secret: %v", call, err)
				}
			}
		})
	}
	s := newStore(t, blob.S3Options{}, impatient)
	for name, options := range map[string]blob.S3Options{
		"endpoint": {Endpoint: "localhost:9000"}, "access-key-id": {AccessKeyID: "a"}, "secret-access-key": {SecretAccessKey: secret}, "ca-file": {CAFile: "ca.pem"},
	} {
		_, err := s.Resolve(t.Context(), here, options)
		if bad, ok := errors.AsType[*blob.OptionError](err); !ok || bad.Option != name || strings.Contains(err.Error(), secret) {
			t.Errorf("Resolve with a bad %s: %v", name, err)
		}
	}
	for _, uri := range []string{"file:///srv/lake", "lake", "s3://b/x"} {
		if _, err := s.Resolve(t.Context(), uri, server.Options); !isLocationError(err) {
			t.Errorf("Resolve %s: %v; want a LocationError", uri, err)
		}
	}
}

func isLocationError(err error) bool {
	_, ok := errors.AsType[*blob.LocationError](err)
	return ok
}

// Properties: without credentials, one is told so; those of the environment are used, and no endpoint from there.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	server := s3test.Start(t)
	for _, name := range []string{"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	bare := blob.S3Options{Endpoint: server.Options.Endpoint}
	root := blob.Root{URI: "s3://" + server.NewBucket(t)}
	for call, err := range attempts(t.Context(), newStore(t, bare, impatient), blob.Scope{root}, root.URI+"/f") {
		if outcome(err) != errPlain || !strings.Contains(err.Error(), "give access key and secret") {
			t.Errorf("%s without credentials: %v", call, err)
		}
	}
	// Who is to issue credentials may say that it has none, and that is no answer of S3.
	issuer := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(issuer.Close)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", issuer.URL)
	for call, err := range attempts(t.Context(), newStore(t, bare, impatient), blob.Scope{root}, root.URI+"/f") {
		if outcome(err) != errPlain || !strings.Contains(err.Error(), "give access key and secret") {
			t.Errorf("%s with an issuer that has no credentials: %v", call, err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", server.Options.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.Options.SecretAccessKey)
	if _, err := newStore(t, bare, impatient).Resolve(t.Context(), root.URI, blob.S3Options{}); err != nil {
		t.Errorf("with credentials of the environment: %v", err)
	}
}

// Property: a server with a certificate of its own is reached with its authority as CA file, and not without.
func TestCAFile(t *testing.T) {
	server := s3test.Start(t)
	target, err := url.Parse(server.Options.Endpoint)
	must(t, err)
	front := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	front.StartTLS()
	t.Cleanup(front.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600))
	uri := "s3://" + server.NewBucket(t) + "/lake"
	options := server.Options
	options.Endpoint = front.URL
	if _, err := newStore(t, blob.S3Options{}, impatient).Resolve(t.Context(), uri, options); err == nil || !strings.Contains(err.Error(), "CA file") || errors.Is(err, blob.ErrUncertain) {
		t.Errorf("without the CA file: %v", err)
	}
	options.CAFile = ca
	if _, err := newStore(t, blob.S3Options{}, impatient).Resolve(t.Context(), uri, options); err != nil {
		t.Errorf("with it: %v", err)
	}
}

// Properties: a marker that was seen is asked for once in markTTL, one that was not is asked for each time, and what one root has another has not.
func TestMarkersAreRemembered(t *testing.T) {
	server := s3test.Start(t)
	p, options := newProxy(t, server, script(pass))
	s := newStore(t, options, standard)
	clock := time.Now()
	s.now = func() time.Time { return clock }
	root := blob.Root{URI: "s3://" + server.NewBucket(t) + "/lake"}
	asks := func(root blob.Root, id string, want int) error {
		t.Helper()
		before := len(p.requests())
		err := s.CheckMark(t.Context(), root, id)
		if got := len(p.requests()) - before; got != want {
			t.Errorf("CheckMark of %s %s: %d requests, want %d", root.URI, id, got, want)
		}
		return err
	}
	for range 2 {
		if err := asks(root, "w", 1); !errors.Is(err, blob.ErrMarkMissing) {
			t.Errorf("not marked: %v", err)
		}
	}
	must(t, s.Mark(t.Context(), root, "w"))
	must(t, asks(root, "w", 1))
	must(t, asks(root, "w", 0))
	clock = clock.Add(markTTL - 1)
	must(t, asks(root, "w", 0))
	clock = clock.Add(1)
	must(t, asks(root, "w", 1))
	must(t, asks(root, "w", 0))
	inner, otherWay := blob.Root{URI: root.URI + "/x"}, blob.Root{URI: root.URI, S3: server.Options}
	for _, c := range []struct {
		root blob.Root
		id   string
		want int
	}{{inner, "w", 1}, {root, "v", 1}} {
		if err := asks(c.root, c.id, c.want); !errors.Is(err, blob.ErrMarkMissing) {
			t.Errorf("%s %s: %v", c.root.URI, c.id, err)
		}
	}
	must(t, asks(otherWay, "w", 0)) // not by way of the proxy
	clock = clock.Add(markTTL)
	for id := range marksMax + 1 { // more than are remembered
		s.marks[mark{uri: fmt.Sprint(id)}] = clock
	}
	must(t, asks(root, "w", 1))
	if len(s.marks) > marksMax {
		t.Errorf("%d markers are remembered", len(s.marks))
	}
}

// Property: a root's own options go before those of the Store, as a whole.
func TestOptionsOfTheRoot(t *testing.T) {
	yes, no := true, false
	defaults := blob.S3Options{Endpoint: "http://127.0.0.1:1", AccessKeyID: "default", SecretAccessKey: "secret"}
	s := New(defaults)
	for _, c := range []struct {
		own  blob.S3Options
		want settings
	}{
		{blob.S3Options{}, settings{endpoint: "http://127.0.0.1:1", region: "us-east-1", accessKeyID: "default", secretAccessKey: "secret", pathStyle: true}},
		{blob.S3Options{Region: "eu-north-1"}, settings{region: "eu-north-1"}},
		{blob.S3Options{Endpoint: "http://x"}, settings{endpoint: "http://x", region: "us-east-1", pathStyle: true}},
		{blob.S3Options{Endpoint: "http://x", PathStyle: &no}, settings{endpoint: "http://x", region: "us-east-1"}},
		{blob.S3Options{Region: "r", PathStyle: &yes}, settings{region: "r", pathStyle: true}},
		{blob.S3Options{CAFile: "/ca"}, settings{caFile: "/ca"}},
	} {
		if got := s.settings(blob.Root{URI: "s3://bucket", S3: c.own}); got != c.want {
			t.Errorf("%v: %+v; want %+v", c.own, got, c.want)
		}
	}
}

// Property: one client serves all who say the same, and not more are kept than clientsMax.
func TestClientsAreShared(t *testing.T) {
	s := New(blob.S3Options{Region: "r", AccessKeyID: "a", SecretAccessKey: "b"})
	of := func(o blob.S3Options) *client {
		got, err := s.below(context.Background(), blob.Root{URI: "s3://bucket", S3: o}, "f")
		must(t, err)
		return got.client
	}
	if of(blob.S3Options{}) != of(s.defaults) {
		t.Error("the same options have two clients")
	}
	for i := range 3 * clientsMax {
		o := s.defaults
		o.AccessKeyID = fmt.Sprint(i)
		if of(o) == of(s.defaults) {
			t.Fatal("other options have the same client")
		}
		if len(s.clients.open) > clientsMax {
			t.Fatalf("%d clients are kept", len(s.clients.open))
		}
	}
}

// The two requests of a commit, against a server on this machine.
func BenchmarkFile(b *testing.B) {
	server := s3test.Start(b)
	s := New(server.Options)
	defer s.Close()
	root := blob.Root{URI: "s3://" + server.NewBucket(b) + "/lake"}
	scope, data := blob.Scope{root}, make([]byte, 16<<10)
	location := func(n int) string { return fmt.Sprintf("%s/t/metadata/%d", root.URI, n) }
	n := 0
	b.Run("create", func(b *testing.B) {
		for b.Loop() {
			must(b, s.Create(b.Context(), scope, location(n), data))
			n++
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Read(b.Context(), scope, location(0), 1<<20)
			must(b, err)
		}
	})
}
