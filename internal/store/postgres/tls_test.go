package postgres_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store/postgres"
	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// password is that of a role of TestTLS.
const password = "hush-hush"

// What the roles of TestTLS may do: each only over TLS, the one with a password, the other with a certificate.
const hbaTLS = `local   all postgres           trust
host    all postgres 127.0.0.1/32 trust
hostssl all owner    127.0.0.1/32 scram-sha-256
hostssl all holder   127.0.0.1/32 cert
`

// A server that takes nothing but TLS is used over TLS, if it is the one that it should be; otherwise Open says in one line why not.
func TestTLS(t *testing.T) {
	right, another := newAuthority(t, "right"), newAuthority(t, "another")
	rightFile, anotherFile := save(t, "right.crt", right.pem), save(t, "another.crt", another.pem)
	certificate, private := right.issue(t, x509.Certificate{
		Subject: pkix.Name{CommonName: "holder"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	certificateFile, keyFile := save(t, "holder.crt", certificate), save(t, "holder.key", private)

	c, err := pgtest.Start("password_encryption=scram-sha-256")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	put := func(name string, content []byte) {
		t.Helper()
		if err := c.Put(name, content); err != nil {
			t.Fatal(err)
		}
	}
	put("pg_hba.conf", []byte(hbaTLS))
	put("ca.crt", right.pem)
	// The servers' addresses by the names of their certificates.
	for name, address := range map[string]string{"here": "127.0.0.1", "elsewhere": "127.0.0.2"} {
		certificate, private := right.issue(t, x509.Certificate{
			Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.ParseIP(address)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		put(name+".crt", certificate)
		put(name+".key", private)
	}
	for _, role := range []string{"owner PASSWORD '" + password + "'", "holder"} {
		exec(t, connect(t, c.URL("postgres")), "CREATE ROLE "+role+" LOGIN")
	}

	full := func(authority string) url.Values {
		return url.Values{"sslmode": {"verify-full"}, "sslrootcert": {authority}}
	}
	owner, holder := url.UserPassword("owner", password), url.User("holder")
	for _, test := range []struct {
		name string
		// server is the name of its certificate; empty: it speaks no TLS.
		server     string
		user       *url.Userinfo
		parameters url.Values
		refusal    []string // nil: it serves
	}{
		{"the right authority", "here", owner, full(rightFile), nil},
		{"nobody insists on it", "here", owner, nil, nil},
		{"a client's certificate", "here", holder, url.Values{
			"sslmode": {"verify-full"}, "sslrootcert": {rightFile}, "sslcert": {certificateFile}, "sslkey": {keyFile},
		}, nil},
		{"another authority", "here", owner, full(anotherFile), []string{"certificate signed by unknown authority"}},
		{"another host's certificate", "elsewhere", owner, full(rightFile), []string{"127.0.0.2, not 127.0.0.1"}},
		{"another host's certificate, whose name is not looked at", "elsewhere", owner, url.Values{"sslmode": {"verify-ca"}, "sslrootcert": {rightFile}}, nil},
		{"no TLS where it is wanted", "here", owner, url.Values{"sslmode": {"disable"}}, []string{"28000", "pg_hba.conf"}},
		{"TLS where there is none", "", owner, full(rightFile), []string{"server refused TLS connection"}},
		{"no client's certificate", "here", holder, full(rightFile), []string{"28000", "valid client certificate"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY"} {
				t.Setenv(name, "")
			}
			settings := []string{"ssl=off"}
			if test.server != "" {
				settings = []string{"ssl=on", "ssl_ca_file=ca.crt", "ssl_cert_file=" + test.server + ".crt", "ssl_key_file=" + test.server + ".key"}
			}
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := c.Restart(settings...); err != nil {
				t.Fatal(err)
			}
			database, err := url.Parse(c.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			admin := connect(t, database.String())
			exec(t, admin, "GRANT CREATE ON DATABASE "+strings.TrimPrefix(database.Path, "/")+" TO PUBLIC")
			database.User, database.RawQuery = test.user, test.parameters.Encode()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, err := postgres.Open(ctx, postgres.Options{URL: database.String()})
			if test.refusal != nil {
				if err == nil {
					_ = s.Close()
					t.Fatal("it was opened")
				}
				if ctx.Err() != nil {
					t.Errorf("it took until the end of its context: %v", err)
				}
				wantLine(t, err.Error(), test.refusal)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			k := key.ForPointer("w", newID())
			version := create(t, s, k)
			if r, err := s.Get(ctx, k); err != nil || r.Version != version {
				t.Errorf("got version %q, %v, want %q", r.Version, err, version)
			}
			if !value[bool](t, admin, `SELECT coalesce(bool_and(ssl), false) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'landfast%'`) {
				t.Error("there is a session that is not encrypted, or none at all")
			}
		})
	}
}

// lineMax is how long one clear line may be.
const lineMax = 400

// wantLine wants one line for an operator, with these words in it and without what is nobody's business.
func wantLine(t *testing.T, line string, words []string) {
	t.Helper()
	t.Log(line)
	if strings.Contains(line, "\n") || len(line) > lineMax {
		t.Errorf("it is not one line of at most %d bytes", lineMax)
	}
	for _, word := range words {
		if !strings.Contains(line, word) {
			t.Errorf("there is no %q in it", word)
		}
	}
	for _, word := range []string{password, "goroutine", ".go:"} {
		if strings.Contains(line, word) {
			t.Errorf("%q is in it", word)
		}
	}
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	pem         []byte
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{key: newKey(t)}
	template := limited(x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = encode("CERTIFICATE", der)
	return a
}

// issue signs a certificate, and gives it with its private key.
func (a authority) issue(t *testing.T, template x509.Certificate) (certificate, private []byte) {
	t.Helper()
	k := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, limited(template), a.certificate, k.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)
}

// limited is a template with what every certificate has.
func limited(template x509.Certificate) *x509.Certificate {
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	return &template
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// save writes a file for the store, and gives its path.
func save(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
