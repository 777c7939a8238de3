package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/rest"
)

// slowAfter is when a request is worth a warning.
const slowAfter = time.Second

// front stands before every handler: it gives each request an id, counts it, and
// writes one line about it.
type front struct {
	next    http.Handler
	metrics *metrics
	log     *slog.Logger
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	answer := &answer{ResponseWriter: w}
	if ids := r.Header[rest.RequestIDHeader]; len(ids) > 0 && rest.IsRequestID(ids[0]) {
		answer.id[0] = ids[0]
	} else {
		answer.id[0] = rest.NewRequestID()
	}
	// The handlers find the id here, and do not make another.
	r.Header[rest.RequestIDHeader] = answer.id[:]
	w.Header()[rest.RequestIDHeader] = answer.id[:]

	f.metrics.requestsRunning.Add(1)
	defer func() {
		took := time.Since(began)
		f.metrics.requestsRunning.Add(-1)
		f.metrics.request(r.Pattern, r.Method, answer.status(), took)
		f.line(r, answer, took)
	}()
	f.next.ServeHTTP(answer, r)
}

// line writes the request's line of the log.
func (f *front) line(r *http.Request, a *answer, took time.Duration) {
	level := levelOf(r.Method, a.status(), took)
	if !f.log.Enabled(r.Context(), level) {
		return
	}
	f.log.LogAttrs(rest.WithRequestID(r.Context(), a.id[0]), level, "request",
		slog.String("method", r.Method), slog.String("path", shorten(r.URL.EscapedPath())), slog.Int("status", a.status()),
		slog.Duration("took", took), slog.Int64("bytes", a.bytes), slog.String("client", r.RemoteAddr), slog.String("agent", shorten(r.UserAgent())))
}

// levelOf keeps the log quiet where nothing happened, loud where somebody should
// look: reads that worked, and questions answered by no, are for debugging.
func levelOf(method string, status int, took time.Duration) slog.Level {
	reads := method == http.MethodGet || method == http.MethodHead
	switch {
	case status >= 500, took >= slowAfter:
		return slog.LevelWarn
	case reads && (status < 400 || status == http.StatusNotFound):
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// shorten keeps a client from filling the log with one line.
func shorten(s string) string {
	const longest = 512
	if len(s) <= longest {
		return s
	}
	return s[:longest] + "..."
}

// answer notes what was answered.
type answer struct {
	http.ResponseWriter
	code  int
	bytes int64
	id    [1]string // of the request, as headers hold it
}

func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= 200 { // a 1xx is not the answer yet
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController set deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// status is what net/http sends where a handler said nothing.
func (a *answer) status() int {
	if a.code == 0 {
		return http.StatusOK
	}
	return a.code
}

// newLog writes lines in the configured format, each with the id of the request
// that it is about.
func newLog(w io.Writer, c config.Log) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level}
	if c.Format == config.LogJSON {
		return slog.New(withRequestID{slog.NewJSONHandler(w, o)})
	}
	return slog.New(withRequestID{slog.NewTextHandler(w, o)})
}

type withRequestID struct{ slog.Handler }

func (h withRequestID) Handle(ctx context.Context, r slog.Record) error {
	if id := rest.RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h withRequestID) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withRequestID{h.Handler.WithAttrs(attrs)}
}

func (h withRequestID) WithGroup(name string) slog.Handler {
	return withRequestID{h.Handler.WithGroup(name)}
}
