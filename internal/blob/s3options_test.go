package blob

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestS3OptionsCheck(t *testing.T) {
	yes := true
	for _, o := range []S3Options{
		{},
		{Endpoint: "http://127.0.0.1:9000"},
		{Endpoint: "https://s3.example.com/", Region: "eu-central-1", PathStyle: &yes, AccessKeyID: "AKIA", SecretAccessKey: "a/b+c=", CAFile: "/etc/ca.pem"},
		{Endpoint: "http://[::1]:9000"},
	} {
		if wrong := o.Check(); len(wrong) > 0 {
			t.Errorf("%v: %v", o, wrong[0])
		}
	}
	const secret = "s3cr3t"
	for _, c := range []struct {
		options S3Options
		want    []string // the options that are refused
	}{
		{S3Options{Endpoint: "127.0.0.1:9000"}, []string{"endpoint"}},
		{S3Options{Endpoint: "localhost"}, []string{"endpoint"}},
		{S3Options{Endpoint: "localhost:9000"}, []string{"endpoint"}},
		{S3Options{Endpoint: "ftp://x"}, []string{"endpoint"}},
		{S3Options{Endpoint: "http://"}, []string{"endpoint"}},
		{S3Options{Endpoint: "http://x/bucket"}, []string{"endpoint"}},
		{S3Options{Endpoint: "http://x?a=b"}, []string{"endpoint"}},
		{S3Options{Endpoint: "http://user:" + secret + "@x"}, []string{"endpoint"}},
		{S3Options{Endpoint: "http://user:" + secret + "%zz@x"}, []string{"endpoint"}},
		{S3Options{Region: "EU"}, []string{"region"}},
		{S3Options{Region: "eu central"}, []string{"region"}},
		{S3Options{AccessKeyID: "a"}, []string{"access-key-id"}},
		{S3Options{SecretAccessKey: secret}, []string{"secret-access-key"}},
		{S3Options{AccessKeyID: "a b", SecretAccessKey: secret}, []string{"access-key-id"}},
		{S3Options{AccessKeyID: "a", SecretAccessKey: secret + "\n"}, []string{"secret-access-key"}},
		{S3Options{CAFile: "ca.pem"}, []string{"ca-file"}},
		{S3Options{Endpoint: "x", Region: "X", SecretAccessKey: secret, CAFile: "x"}, []string{"endpoint", "region", "secret-access-key", "ca-file"}},
	} {
		var got []string
		for _, wrong := range c.options.Check() {
			got = append(got, wrong.Option)
			if wrong.Problem == "" || wrong.Remedy == "" || strings.Contains(wrong.Error(), secret) {
				t.Errorf("%v: %v", c.options, wrong)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.options, diff)
		}
	}
}

// Properties: no way of printing or logging options, or a root that has them, shows the secret; JSON keeps all.
func TestSecretIsNotShown(t *testing.T) {
	const secret = "s3cr3t"
	yes := true
	o := S3Options{Endpoint: "http://x", Region: "r", PathStyle: &yes, AccessKeyID: "key", SecretAccessKey: secret, CAFile: "/ca"}
	root := Root{URI: "s3://bucket/lake", S3: o}
	for _, v := range []any{o, &o, root, &root, Scope{root}, map[string]S3Options{"x": o}, struct{ O S3Options }{o}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, secret) {
				t.Errorf("%s of %T: %s", verb, v, got)
			}
		}
	}
	for _, v := range []any{o, root} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
		if strings.Contains(log.String(), secret) {
			t.Errorf("log of %T: %s", v, &log)
		}
	}
	if got, want := o.String(), `{endpoint:"http://x" region:"r" path-style:true access-key-id:"key" secret-access-key:*** ca-file:"/ca"}`; got != want {
		t.Errorf("String: %s; want %s", got, want)
	}
	if got, want := (S3Options{}).String(), `{endpoint:"" region:"" path-style:default access-key-id:"" secret-access-key: ca-file:""}`; got != want {
		t.Errorf("String: %s; want %s", got, want)
	}
	for _, r := range []Root{root, {URI: "s3://bucket"}, {URI: "file:///srv", Dir: "/srv"}} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"s3"`) != (r.S3 != S3Options{}) {
			t.Errorf("JSON: %s", text)
		}
		var back Root
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("through JSON (-before +after):\n%s", diff)
		}
	}
	public := root
	public.S3.SecretAccessKey = ""
	if diff := cmp.Diff(public, root.Public()); diff != "" {
		t.Errorf("Public (-want +got):\n%s", diff)
	}
	if root.S3.SecretAccessKey != secret {
		t.Error("Public changed the root")
	}
}

func TestUsesPathStyle(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		options S3Options
		want    bool
	}{
		{S3Options{}, false}, {S3Options{Endpoint: "http://x"}, true},
		{S3Options{PathStyle: &yes}, true}, {S3Options{Endpoint: "http://x", PathStyle: &no}, false},
	} {
		if got := c.options.UsesPathStyle(); got != c.want {
			t.Errorf("%v: %v", c.options, got)
		}
	}
}
