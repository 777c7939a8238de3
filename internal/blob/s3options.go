package blob

import (
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
)

// S3Options say how the bucket of an s3: root is reached. They hold together: a root
// that sets any of them takes none from the configuration of the server, so that no
// credentials go to an endpoint that they were not meant for.
//
// Its JSON form has the secret, because the catalog must keep it; whoever answers a client
// shows that of [Root.Public]. Printed or logged, it does not show the secret.
type S3Options struct {
	// Endpoint is the URL of a server other than that of AWS, as http://127.0.0.1:9000. Empty: AWS.
	Endpoint string `json:"endpoint,omitempty"`
	// Region is that of the bucket. Empty: us-east-1 if there is an Endpoint, else what the
	// environment of the process says to every client of AWS.
	Region string `json:"region,omitempty"`
	// PathStyle tells whether the bucket stands in the path of a URL, not in its host. Nil: only if there is an Endpoint.
	PathStyle *bool `json:"path-style,omitempty"`
	// The credentials: both, or none, which are then looked for where every client of AWS does.
	AccessKeyID     string `json:"access-key-id,omitempty"`
	SecretAccessKey string `json:"secret-access-key,omitempty"`
	// CAFile is the absolute path of a PEM file of authorities that are trusted besides those of the system.
	CAFile string `json:"ca-file,omitempty"`
}

// OptionError refuses S3Options: which of them, what is wrong, and what to do. It does not repeat a secret.
type OptionError struct {
	Option  string // as in JSON
	Problem string
	Remedy  string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("S3 option %s: %s; %s", e.Option, e.Problem, e.Remedy)
}

// UsesPathStyle is PathStyle with its default.
func (o S3Options) UsesPathStyle() bool {
	if o.PathStyle != nil {
		return *o.PathStyle
	}
	return o.Endpoint != ""
}

// Check finds what cannot be right, in the order of the fields. It does no I/O.
func (o S3Options) Check() (wrong []*OptionError) {
	refuse := func(option, problem, remedy string) { wrong = append(wrong, &OptionError{option, problem, remedy}) }
	if problem := checkEndpoint(o.Endpoint); problem != "" {
		refuse("endpoint", problem, "write it as in https://s3.example.com:9000")
	}
	if strings.Trim(o.Region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		refuse("region", quote(o.Region)+" has other characters than a-z, 0-9 and -", "write it as in eu-central-1")
	}
	const blank, asIssued = "it has a space or a control character", "write it as it was issued"
	if strings.ContainsFunc(o.AccessKeyID, blankOrControl) {
		refuse("access-key-id", blank, asIssued)
	} else if o.AccessKeyID != "" && o.SecretAccessKey == "" {
		refuse("access-key-id", "there is no secret-access-key with it", "give both or none")
	}
	if strings.ContainsFunc(o.SecretAccessKey, blankOrControl) {
		refuse("secret-access-key", blank, asIssued)
	} else if o.AccessKeyID == "" && o.SecretAccessKey != "" {
		refuse("secret-access-key", "there is no access-key-id with it", "give both or none")
	}
	if o.CAFile != "" && !filepath.IsAbs(o.CAFile) {
		refuse("ca-file", quote(o.CAFile)+" is no absolute path", "write one")
	}
	return wrong
}

func checkEndpoint(endpoint string) (problem string) {
	if endpoint == "" {
		return ""
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil, u.Host == "":
		return "it is no URL with a host" // not repeated: what is no URL may be anything
	case u.Scheme != "http" && u.Scheme != "https":
		return "it is neither http nor https"
	case u.User != nil:
		return "it has credentials"
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return "something follows its host and port"
	}
	return ""
}

func blankOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// String shows everything but the secret, of which it says only whether there is one.
func (o S3Options) String() string {
	style, secret := "default", ""
	if o.PathStyle != nil {
		style = fmt.Sprint(*o.PathStyle)
	}
	if o.SecretAccessKey != "" {
		secret = "***"
	}
	return fmt.Sprintf("{endpoint:%q region:%q path-style:%s access-key-id:%q secret-access-key:%s ca-file:%q}",
		o.Endpoint, o.Region, style, o.AccessKeyID, secret, o.CAFile)
}

// GoString is String, for %#v.
func (o S3Options) GoString() string { return o.String() }

// LogValue is String, for logs of any form.
func (o S3Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// LogValue leaves the options out: a log in JSON would have the secret.
func (r Root) LogValue() slog.Value { return slog.StringValue(r.URI) }

// Public is the root without its secret. What is left still tells whether the root has options of its own.
func (r Root) Public() Root {
	r.S3.SecretAccessKey = ""
	return r
}
