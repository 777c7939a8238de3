package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAnswers: a refusal is told from a program that is not Landfast, and neither is taken for success.
func TestAnswers(t *testing.T) {
	const (
		done, refused, unreachable = 0, exitRefused, exitUnreachable
		asJSON                     = "application/json; charset=utf-8"
	)
	for _, c := range []struct {
		name        string
		status      int
		media, body string
		noAnswer    bool // the command expects none, as delete does
		want        int
		text        string
	}{
		{"done", 200, asJSON, `{"name":"x"}`, false, done, ""},
		{"nothing to say", 204, "", "", true, done, ""},
		{"nothing where something is due", 204, "", "", false, unreachable, "does not answer like a Landfast server (204 No Content)"},
		{"refused", 409, asJSON, `{"error":{"message":"no","type":"T","code":409}}`, false, refused, "refused: no (T, 409)"},
		{"unknown", 500, asJSON, `{"error":{"message":"who knows","type":"CommitStateUnknownException","code":500}}`, false, refused, "who knows"},
		{"another server's error", 404, "text/html", "<html>", false, unreachable, "does not answer like"},
		{"another API's error", 404, asJSON, `{"detail":"Not Found"}`, false, unreachable, "does not answer like"},
		{"another server's page", 200, "text/html", "<html>", false, unreachable, "does not answer like"},
		{"JSON by name only", 200, asJSON, "<html>", false, unreachable, "does not answer like"},
		{"redirect", 302, "", "", false, unreachable, "(302 Found)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.media != "" {
					w.Header().Set("Content-Type", c.media)
				}
				if c.status == 302 {
					w.Header().Set("Location", "/elsewhere")
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			var answer any = &warehouse{}
			if c.noAnswer {
				answer = nil
			}
			_, err := remote{URL: server.URL}.do(context.Background(), "GET", "/x", nil, answer)
			switch {
			case c.want == done && err != nil:
				t.Error(err)
			case c.want != done && (err == nil || statusOf(err) != c.want || !strings.Contains(err.Error(), c.text)):
				t.Errorf("got %v, want status %d and %q", err, c.want, c.text)
			}
		})
	}
}
