package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// remote is the server that a command talks to.
type remote struct {
	URL string `name:"url" env:"LANDFAST_URL" default:"${url}" placeholder:"URL" help:"The server. Default: ${default}."`
}

// Bounds of one call. The server's own time for a request may be configured to be
// longer, but no call of these commands has a reason to take so long.
const (
	callTimeout   = 2 * time.Minute
	answerMaxSize = 64 << 20
)

// defaultURL is where `landfast serve` listens when nothing is configured.
const defaultURL = "http://127.0.0.1:8181"

// AfterApply takes an empty variable for none.
func (r *remote) AfterApply() error {
	if r.URL == "" {
		r.URL = defaultURL
	}
	return nil
}

// do sends one request and decodes the answer, which it also returns as it came.
// Its errors are a refusal of the server, a usageError or an unreachableError.
func (r remote) do(ctx context.Context, method, path string, body, answer any) ([]byte, error) {
	base, err := url.Parse(r.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" {
		return nil, usageError{fmt.Errorf("--url %q is not the URL of a server; write one such as http://127.0.0.1:8181", r.URL)}
	}
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base.String(), "/")+path, sent)
	if err != nil {
		return nil, usageError{err}
	}
	request.Header.Set("User-Agent", "landfast/"+programVersion())
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, r.unreachable(err)
	}
	defer response.Body.Close()
	received, err := io.ReadAll(io.LimitReader(response.Body, answerMaxSize))
	if err != nil {
		return nil, r.unreachable(err)
	}
	return received, r.understand(response, received, answer)
}

// unreachable says that no answer came, and what to do.
func (r remote) unreachable(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the method and the path, which nobody asked about
	}
	return unreachableError{fmt.Errorf("cannot reach %s: %w; start a server with `landfast serve`, or name one with --url or LANDFAST_URL", r.URL, err)}
}

// understand decodes the answer, or gives the server's refusal. What is neither
// comes from another program.
func (r remote) understand(response *http.Response, received []byte, answer any) error {
	stranger := unreachableError{fmt.Errorf("%s does not answer like a Landfast server (%s); name one with --url or LANDFAST_URL", r.URL, response.Status)}
	if response.StatusCode >= 400 {
		var refusal struct {
			Error struct {
				Message string `json:"message"`
				Type    string `json:"type"`
			} `json:"error"`
		}
		if err := json.Unmarshal(received, &refusal); err != nil || refusal.Error.Type == "" {
			return stranger
		}
		return fmt.Errorf("refused: %s (%s, %d)", refusal.Error.Message, refusal.Error.Type, response.StatusCode)
	}
	if response.StatusCode == http.StatusNoContent && answer == nil {
		return nil
	}
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK || err != nil || media != "application/json" || json.Unmarshal(received, answer) != nil {
		return stranger
	}
	return nil
}

// queryEscape escapes a name for a path or a query: the server reads both alike.
func queryEscape(s string) string { return url.QueryEscape(s) }

// printJSON writes JSON as it came, indented: no number in it is read.
func printJSON(to io.Writer, raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(to)
	return err
}
