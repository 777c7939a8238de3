package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/rest"
	"github.com/landfast/landfast/internal/store"
)

func TestLevelOfARequest(t *testing.T) {
	for _, c := range []struct {
		method string
		status int
		took   time.Duration
		want   slog.Level
	}{
		{"GET", 200, 0, slog.LevelDebug},
		{"GET", 304, 0, slog.LevelDebug},
		{"HEAD", 404, 0, slog.LevelDebug},
		{"GET", 404, 0, slog.LevelDebug},
		{"GET", 400, 0, slog.LevelInfo},
		{"POST", 200, 0, slog.LevelInfo},
		{"POST", 404, 0, slog.LevelInfo},
		{"POST", 409, 0, slog.LevelInfo},
		{"DELETE", 204, 0, slog.LevelInfo},
		{"GET", 500, 0, slog.LevelWarn},
		{"POST", 503, 0, slog.LevelWarn},
		{"GET", 200, slowAfter, slog.LevelWarn},
		{"POST", 200, slowAfter - 1, slog.LevelInfo},
	} {
		if got := levelOf(c.method, c.status, c.took); got != c.want {
			t.Errorf("%s %d in %v is logged at %v, want %v", c.method, c.status, c.took, got, c.want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("wrapped: %w", err) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "done"},
		{wrap(&catalog.Error{Kind: catalog.ErrAlreadyExists}), "refused"},
		{wrap(kernel.ErrContended), "contended"},
		{wrap(kernel.ErrBlocked), "contended"},
		{wrap(kernel.ErrOverloaded), "overloaded"},
		{wrap(store.ErrUnavailable), "overloaded"},
		{wrap(store.ErrUnstorable), "refused"},
		{wrap(context.Canceled), "cancelled"},
		{fmt.Errorf("%w: %w", kernel.ErrContended, store.ErrOutcomeUnknown), "unknown"},
		{wrap(errors.New("disk on fire")), "failed"},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}

// TestJSONLog: each line is one object, with the id of its request, whatever the client sends.
func TestJSONLog(t *testing.T) {
	var out bytes.Buffer
	log := newLog(&out, config.Log{Level: slog.LevelInfo, Format: config.LogJSON}).With("a", 1).WithGroup("g")
	ctx := rest.WithRequestID(t.Context(), "id-1")
	log.DebugContext(ctx, "not shown")
	log.InfoContext(ctx, "line\nbreak", "path", "/a\r\nlevel=ERROR")
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
		t.Fatalf("%d lines:\n%s", n, &out)
	}
	var line struct {
		Msg string `json:"msg"`
		A   int    `json:"a"`
		G   struct{ Path, Request string }
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Msg != "line\nbreak" || line.A != 1 || line.G.Request != "id-1" {
		t.Errorf("%s %v", &out, err)
	}
}
