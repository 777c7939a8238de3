package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// onlyHere passes on the requests that name this machine as their host. A web page
// can have a name of its own lead to 127.0.0.1, and its browser then treats this
// server as part of the page (DNS rebinding); but the browser still says the name.
func onlyHere(next http.Handler, otherwise http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			otherwise(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback tells whether a Host header names this machine, with a port or without. No
// browser leaves the header out, so that whoever does is no page's victim.
func isLoopback(host string) bool {
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && (host[0] == '[' || strings.IndexByte(host, ':') == colon) {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	if host == "" || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && addr.Unmap().IsLoopback()
}
