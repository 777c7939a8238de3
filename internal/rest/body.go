package rest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
)

// readBody returns the request's body, decompressed. It blocks until the body
// has arrived, at most until the request's deadline.
func (c *call) readBody() ([]byte, error) {
	r, limit := c.r, c.h.opt.MaxBodyBytes
	if r.Body == nil || r.ContentLength == 0 {
		return nil, errEmptyBody()
	}
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	compressed, err := isGzip(r.Header.Values("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, c.tooLarge()
	}
	sent := &sentBody{src: io.LimitReader(r.Body, limit+1)}
	var src io.Reader = sent
	if compressed {
		z, err := gzip.NewReader(sent)
		if err != nil {
			return nil, c.bodyError(sent, err)
		}
		src = io.LimitReader(z, limit+1)
	}
	data, err := io.ReadAll(src)
	switch {
	case int64(len(data)) > limit, sent.n > limit:
		return nil, c.tooLarge()
	case err != nil:
		return nil, c.bodyError(sent, err)
	case len(data) == 0:
		return nil, errEmptyBody()
	}
	c.boundReads(time.Time{})
	return data, nil
}

// boundReads sets the time after which nothing is read from the connection any
// more; zero: never. It holds for the body of this request only, whether it is
// read here or by net/http, which reads what a refusal left over. It must not
// outlast the body: it would then look as if the client had gone away.
func (c *call) boundReads(deadline time.Time) {
	// The error says that there is no connection below, as in a test.
	_ = http.NewResponseController(c.w).SetReadDeadline(deadline)
}

func errEmptyBody() error {
	return refuse(errMalformed, "The request has no body: send a JSON object")
}

// checkMediaType lets only JSON pass. A web page can make a browser send other
// types to a server that it may not talk to.
func checkMediaType(contentType string) error {
	if contentType == "" {
		return refuse(errMediaType, "The body has no Content-Type: send application/json")
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) || media != "application/json" {
		return refuse(errMediaType, "Content-Type %q is not supported: send application/json", contentType)
	}
	return nil
}

// isGzip tells whether the body is compressed.
func isGzip(encodings []string) (bool, error) {
	encoding := strings.Join(encodings, ", ")
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return false, nil
	case "gzip", "x-gzip":
		return true, nil
	}
	return false, refuse(errMediaType, "Content-Encoding %q is not supported: send gzip or none", encoding)
}

func (c *call) tooLarge() error {
	return refuse(errTooLarge, "The body has more than %d bytes, the limit of this server (max_body_bytes)", c.h.opt.MaxBodyBytes)
}

// bodyError tells a connection that failed from a body that cannot be decompressed.
func (c *call) bodyError(sent *sentBody, err error) error {
	switch {
	case sent.n > c.h.opt.MaxBodyBytes:
		return c.tooLarge()
	case errors.Is(sent.err, os.ErrDeadlineExceeded):
		return refuse(errTooSlow, "The body did not arrive within %s", c.h.opt.RequestTimeout)
	case sent.err != nil:
		return refuse(errMalformed, "The body ended early: %v", sent.err)
	}
	return refuse(errMalformed, "Cannot decompress the body: %v", err)
}

// sentBody counts what the client sent and remembers why there was no more.
type sentBody struct {
	src io.Reader
	n   int64
	err error // other than io.EOF
}

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// decode reads the body, a JSON object, into a value. Members that the value has
// no field for are ignored: clients may be newer than this server.
func (c *call) decode(into requestBody) error {
	data, err := c.readBody()
	if err != nil {
		return err
	}
	return decodeBody(data, into)
}

// decodeClosed is decode for callers that are ours: a member that the value has
// no field for is a mistake.
func (c *call) decodeClosed(into requestBody, known ...string) error {
	data, err := c.readBody()
	if err != nil {
		return err
	}
	if members, err := rawjson.Object(data); err == nil { // otherwise decodeBody says what is wrong
		for _, m := range members {
			if err := checkKnown(m.Name, known); err != nil {
				return err
			}
		}
	}
	return decodeBody(data, into)
}

// requestBody is what a body is decoded into.
type requestBody interface {
	// missing names the members that must be there and are not.
	missing() []string
}

func decodeBody(data []byte, into requestBody) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return refuse(errMalformed, "Cannot read the body: expected an object, found null")
	}
	if err := rawjson.Unmarshal(data, into); err != nil {
		return refuse(errMalformed, "Cannot read the body: %v", err)
	}
	if missing := into.missing(); len(missing) > 0 {
		return refuse(errMalformed, "The body lacks what is required: %s", strings.Join(missing, ", "))
	}
	return nil
}
