package server

import (
	"net"
	"net/http"
	"net/http/pprof" // registers its handlers with http.DefaultServeMux, which nobody serves here
	runtimepprof "runtime/pprof"
)

// profilesPath is where the profiles are, each under its name.
const profilesPath = "/debug/pprof/"

// profiles are the handlers of net/http/pprof, by their paths. The command line is not among
// them: it may hold a secret.
func profiles() map[string]http.Handler {
	list := map[string]http.Handler{
		profilesPath:             http.HandlerFunc(pprof.Index),
		profilesPath + "profile": http.HandlerFunc(pprof.Profile),
		profilesPath + "symbol":  http.HandlerFunc(pprof.Symbol),
		profilesPath + "trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, p := range runtimepprof.Profiles() {
		list[profilesPath+p.Name()] = pprof.Handler(p.Name())
	}
	return list
}

// onlyFromHere passes on what this machine asks for itself, and no proxy on behalf of another: the
// connection comes from a loopback address, and the request says so, too.
func onlyFromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _, err := net.SplitHostPort(r.RemoteAddr)
		forwarded := r.Header.Get("Forwarded") != "" || r.Header.Get("X-Forwarded-For") != ""
		if err != nil || from == "" || !isLoopback(from) || !isLoopback(r.Host) || forwarded {
			http.Error(w, "profiles are for this machine alone: ask on it, by the address 127.0.0.1", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
