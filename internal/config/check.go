package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
)

// Bounds of the settings that have any. A request that may take longer than an
// hour is a mistake, and so is a body that would not fit in memory.
const (
	shortestRequest, longestRequest = 100 * time.Millisecond, time.Hour
	longestShutdown                 = time.Hour
	shortestLock, longestInterval   = time.Millisecond, time.Minute
	longestIdempotency              = 7 * 24 * time.Hour
	smallestBody, largestBody       = 1 << 10, 1 << 30
)

// check finds what is wrong with values that are well formed. Each problem has
// its key; Load adds where it came from.
func (c Config) check() (wrong []*Error) {
	add := func(key, remedy, format string, args ...any) {
		wrong = append(wrong, &Error{Key: key, Problem: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if c.Data == "" {
		add("data", "name a directory", "it is empty")
	}
	if problem := checkListen(c.Listen); problem != "" {
		add("listen", "write host:port, such as 127.0.0.1:8181, or [::1]:8181", "%q: %s", c.Listen, problem)
	} else if !c.Loopback() && !c.Insecure {
		add("listen", "listen on 127.0.0.1, or add --insecure if everybody who reaches this address may change every table",
			"other machines can reach %s, and there is no authentication yet", c.Listen)
	}
	if n := c.Instance; len(n) > InstanceMax || strings.Trim(n, instanceCharacters) != "" {
		add("instance", "write a short name, such as catalog-1", "%q is not 1 to %d letters, digits and . _ : -", n, InstanceMax)
	}
	if d := c.RequestTimeout; d < shortestRequest || d > longestRequest {
		add("request_timeout", "choose one in between", "%v is not from %v to %v", d, shortestRequest, longestRequest)
	}
	if d := c.ShutdownTimeout; d < 0 || d > longestShutdown {
		add("shutdown_timeout", "choose one in between", "%v is not from 0s to %v", d, longestShutdown)
	}
	if d := c.IdempotencyLifetime; d < 0 || d > longestIdempotency {
		add("idempotency.lifetime", "choose one in between", "%v is not from 0s to %v", d, longestIdempotency)
	}
	if n := c.MaxBodyBytes; n < smallestBody || n > largestBody {
		add("max_body_bytes", "choose a size in between", "%d bytes are not from 1KiB to 1GiB", n)
	}
	if l := c.Warehouse.Main.Location; l != "" {
		_, err := blob.Normalize(l)
		if bad, ok := errors.AsType[*blob.LocationError](err); ok {
			add("warehouse.main.location", bad.Remedy, "%q: %s", l, bad.Problem)
		}
	}
	if want := coordinations[c.Store]; c.Coordination != want {
		add("coordination", "leave it out", "with store: %s it is %s", c.Store, want)
	}
	if problem := checkPostgresURL(c.Postgres.URL); problem != "" {
		add("postgres.url", "write it as in postgres://user@host:5432/database?sslmode=verify-full", "%s", problem)
	}
	if c.Store == StorePostgres {
		if c.Postgres.URL == "" {
			add("postgres.url", "name the database: postgres://user@host:5432/database", "store is postgres, and it is not said where")
		}
		if c.Warehouse.Main.Location == "" {
			add("warehouse.main.location", "name a bucket (s3://bucket/prefix), or a directory that all instances share (file:///srv/lake)",
				"with store: postgres there is no data directory to put the files of tables in")
		}
	}
	if n := c.Postgres.MaxConnections; n < 2 || n > 1000 {
		add("postgres.max_connections", "choose one in between", "%d is not from 2 to 1000", n)
	}
	if f := c.Postgres.PasswordFile; f != "" && !filepath.IsAbs(f) {
		add("postgres.password_file", "write its absolute path", "%q is relative", f)
	}
	if d := c.Catalog.LockTimeout; d != 0 && d < shortestLock || d > longestRequest {
		add("catalog.lock_timeout", "choose one in between, or 0s not to wait", "%v is not from %v to %v", d, shortestLock, longestRequest)
	}
	if d := c.Catalog.LockRetryInterval; d < shortestLock || d > longestInterval {
		add("catalog.lock_retry_interval", "choose one in between", "%v is not from %v to %v", d, shortestLock, longestInterval)
	}
	for _, bad := range c.S3.Check() {
		add("s3."+strings.ReplaceAll(bad.Option, "-", "_"), bad.Remedy, "%s", bad.Problem)
	}
	return wrong
}

// InstanceMax is the longest name of an instance: PostgreSQL shows 63 bytes, with a request beside it.
const InstanceMax = 20

const instanceCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"

// checkPostgresURL finds what cannot be the address of a database. It repeats nothing of it, which may
// hold a password.
func checkPostgresURL(url string) (problem string) {
	scheme, _, isURL := strings.Cut(url, "://")
	switch {
	case url == "", isURL && (scheme == "postgres" || scheme == "postgresql"), !isURL && strings.Contains(url, "="):
		return ""
	case isURL:
		return "it does not begin with postgres://"
	}
	return "it is neither a URL nor host=... dbname=..."
}

// holdsPassword tells whether the address of a database has a password in it.
func holdsPassword(address string) bool {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		if _, ok := u.User.Password(); ok {
			return true
		}
	}
	return strings.Contains(address, "password=")
}

func checkListen(listen string) (problem string) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "it is not host:port"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("%q is not a port from 0 to 65535", port)
	} else if strconv.FormatUint(n, 10) != port {
		return fmt.Sprintf("port %q is not written plainly", port)
	}
	if strings.ContainsAny(host, " /@") {
		return fmt.Sprintf("%q is not a host", host)
	}
	return ""
}

// Loopback tells whether only this machine can reach the address. A name other
// than localhost could lead anywhere.
func (c Config) Loopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
