package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/landfast/landfast/internal/blob"
)

// settings are options with their defaults: what a client is made of.
type settings struct {
	endpoint, region, accessKeyID, secretAccessKey, caFile string
	pathStyle                                              bool
}

func settingsOf(o blob.S3Options) settings {
	s := settings{
		endpoint: o.Endpoint, region: o.Region, accessKeyID: o.AccessKeyID, secretAccessKey: o.SecretAccessKey,
		caFile: o.CAFile, pathStyle: o.UsesPathStyle(),
	}
	if s.region == "" && s.endpoint != "" {
		s.region = "us-east-1" // what such servers expect that have no regions
	}
	return s
}

// client speaks to one endpoint with one set of credentials.
type client struct {
	api       *awss3.Client
	transport *http.Transport
	policy    policy
}

// newClient reads the CA file, and what the environment says about credentials and
// region if the settings do not. It sends nothing.
func newClient(ctx context.Context, s settings, p policy) (*client, error) {
	transport, err := newTransport(s.caFile)
	if err != nil {
		return nil, err
	}
	var cfg aws.Config
	var given []func(*config.LoadOptions) error
	if s.region != "" {
		cfg.Region = s.region
		given = append(given, config.WithRegion(s.region))
	}
	if s.accessKeyID != "" {
		cfg.Credentials = credentials.NewStaticCredentialsProvider(s.accessKeyID, s.secretAccessKey, "")
		given = append(given, config.WithCredentialsProvider(cfg.Credentials))
	}
	// Where all is said, a profile of the process's user that is broken must do no harm.
	if cfg.Region == "" || cfg.Credentials == nil {
		given = append(given, config.WithLogger(logging.Nop{})) // it would write to standard error beside the log
		if cfg, err = config.LoadDefaultConfig(ctx, given...); err != nil {
			return nil, fmt.Errorf("the configuration that AWS clients share cannot be read: %w", err)
		}
	}
	if cfg.Region == "" {
		return nil, &blob.OptionError{Option: "region", Problem: "it is not set, and the environment does not say it", Remedy: "set it to that of the bucket"}
	}
	options := awss3.Options{
		Region: cfg.Region, Credentials: source{cfg.Credentials}, UsePathStyle: s.pathStyle,
		HTTPClient: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Retryer: aws.NopRetryer{}, // see the package's comment
		// Every request is signed with the hash of its body, which is check enough. By default the SDK
		// would send a CRC after the body, in chunks that many servers do not understand.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if s.endpoint != "" {
		options.BaseEndpoint = &s.endpoint
	}
	return &client{api: awss3.New(options), transport: transport, policy: p}, nil
}

// source hides what is inside of an error of credentials: the answer of the server that was to issue
// them must not be taken for that of S3.
type source struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (s source) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := s.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return c, errors.New(err.Error())
	}
	return c, nil
}

func newTransport(caFile string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   64, // as many requests as usually run at once
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true, // metadata may be gzip files, which are wanted as they are
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if caFile == "" {
		return t, nil
	}
	bad := func(problem string) error {
		return &blob.OptionError{Option: "ca-file", Problem: problem, Remedy: "name a PEM file of certificates that the server's user may read"}
	}
	pem, err := readCAFile(caFile)
	if err != nil {
		return nil, bad(err.Error())
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without any
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, bad(caFile + " has no certificate")
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// caFileMax is more than any list of authorities has, in bytes.
const caFileMax = 4 << 20

// readCAFile reads a regular file of bounded size: whoever makes warehouses could name a
// device that never ends, or a pipe that never begins.
func readCAFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	if info.Size() > caFileMax {
		return nil, fmt.Errorf("%s has more than %d MiB", name, caFileMax>>20)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, caFileMax))
}

// clientsMax bounds the clients that are kept: of the configuration, and of warehouses with options of their own.
const clientsMax = 64

// clients are those in use, by their settings.
type clients struct {
	policy policy
	mu     sync.Mutex
	open   map[settings]*client // at most clientsMax
}

// of returns the client for the settings, made at their first use. A CA file is read then, and not again.
func (c *clients) of(ctx context.Context, s settings) (*client, error) {
	c.mu.Lock()
	open, ok := c.open[s]
	c.mu.Unlock()
	if ok {
		return open, nil
	}
	made, err := newClient(ctx, s, c.policy) // reads files, so not under the mutex
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if open, ok := c.open[s]; ok {
		return open, nil // made by somebody else meanwhile; this one has no connections yet
	}
	if len(c.open) >= clientsMax {
		c.forget()
	}
	if c.open == nil {
		c.open = map[settings]*client{}
	}
	c.open[s] = made
	return made, nil
}

// forget drops all clients. Requests that run go on.
func (c *clients) forget() {
	for _, open := range c.open {
		open.transport.CloseIdleConnections()
	}
	c.open = nil
}
