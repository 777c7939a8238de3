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
// has arrived, at most until the request's deadline. The bytes are the request's:
// they count in the budget of bodies until it ends.
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
	size := r.ContentLength
	if compressed {
		z, err := gzip.NewReader(sent)
		if err != nil {
			return nil, c.bodyError(sent, err)
		}
		src, size = io.LimitReader(z, limit+1), -1
	}
	data, err := c.readAll(src, size)
	switch {
	case errors.Is(err, errCrowded):
		// Most clients look for an answer only when they have sent everything, and
		// would take a connection that breaks before for an unknown outcome.
		_, _ = io.Copy(io.Discard, sent) // ends with the body, its limit or the deadline
		c.boundReads(time.Time{})
		return nil, err
	case int64(len(data)) > limit, sent.n > limit:
		return nil, c.tooLarge()
	case err != nil:
		return nil, c.bodyError(sent, err)
	case len(data) == 0:
		return nil, errEmptyBody()
	}
	c.boundReads(time.Time{})
	c.body = data
	return data, nil
}

// Bounds of the memory that bodies take. A small one costs no more than a header
// may, so it is not counted, and no crowd of large ones keeps it out.
const (
	uncountedBody = 64 << 10
	// budgetBodies is the budget in bodies of the largest size. One that grows holds
	// its old array and the new one for a moment, so that three are sure of room.
	budgetBodies = 4
)

// readAll reads to the end, as io.ReadAll does, and takes what it holds from the
// budget, which the end of the request gives back. What is counted is what has
// arrived, not what was announced: a client that sends nothing keeps nothing. size
// is that of the whole, or -1. It returns errCrowded where the budget is spent.
func (c *call) readAll(src io.Reader, size int64) ([]byte, error) {
	longest := c.h.opt.MaxBodyBytes + 1
	if size >= 0 {
		longest = size + 1 // the last byte is for finding that there is no more
	}
	data := make([]byte, 0, min(longest, uncountedBody))
	for {
		if len(data) == cap(data) {
			grown := min(longest, 2*int64(cap(data)))
			if int64(len(data)) >= grown {
				return data, nil // beyond the limit
			}
			if !c.h.bodies.take(grown) {
				return nil, errCrowded
			}
			data = append(make([]byte, 0, grown), data...)
			c.h.bodies.give(c.counted) // of the array before
			c.counted = grown
		}
		n, err := src.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return data, err
		}
	}
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
