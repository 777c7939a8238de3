package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// policy says how long to wait for a server, and how often.
type policy struct {
	attempts    int           // of one request, the first included
	answer      time.Duration // for an answer to begin
	bytesPerSec int64         // that a body has at least
	firstPause  time.Duration // each pause is twice the one before, and at most lastPause
	lastPause   time.Duration
}

// standard makes five pauses of 3 s together: what a server needs that is restarted, or asks to slow down.
var standard = policy{attempts: 6, answer: 10 * time.Second, bytesPerSec: 1 << 20, firstPause: 100 * time.Millisecond, lastPause: 2 * time.Second}

// limit is the time for one attempt that moves a body of so many bytes.
func (p policy) limit(size int64) time.Duration {
	return p.answer + time.Duration(float64(size)/float64(p.bytesPerSec)*float64(time.Second))
}

// failure is an attempt that did not succeed, in the words of the server or of the way to it.
type failure struct {
	code   string // of S3; empty if there was no answer, or one without a code
	status int    // of HTTP; 0 if there was no answer
	text   string
	sent   bool  // the request may have reached the server
	again  bool  // another attempt may succeed
	ended  error // of the caller's context, if that is why
}

func (f *failure) Unwrap() error { return f.ended }

func (f *failure) Error() string {
	if remedy := f.remedy(); remedy != "" {
		return f.text + "; " + remedy
	}
	return f.text
}

// mayHaveWorked tells whether the server may have done what it was asked.
func (f *failure) mayHaveWorked() bool {
	return f.sent && (f.status < 300 || f.status >= 500 && f.status != http.StatusNotImplemented && f.status != http.StatusInsufficientStorage)
}

func (f *failure) remedy() string {
	switch {
	case f.code == "NoSuchBucket":
		return "make the bucket, or name another"
	case f.code == "InvalidAccessKeyId", f.code == "SignatureDoesNotMatch", f.code == "ExpiredToken", f.code == "InvalidToken":
		return "check access key and secret"
	case f.code == "RequestTimeTooSkewed":
		return "set the clock of this machine"
	case f.code == "AuthorizationHeaderMalformed", f.status >= 300 && f.status < 400:
		return "check region and endpoint: the bucket is in another place"
	case f.status == http.StatusForbidden, f.status == http.StatusUnauthorized:
		return "let the credentials get, put, delete and list objects of the bucket (of a missing object S3 says the same to who may not list)"
	case f.status == http.StatusNotImplemented:
		return "use a server that knows conditional writes (If-None-Match)"
	case f.status == 0 && !f.sent && f.again:
		return "check the endpoint, and that its server runs"
	}
	return ""
}

// errSlow ends an attempt that takes too long.
var errSlow = errors.New("too slow")

// once makes one attempt. The error is that of ctx if it had ended before, else a *failure, or what send itself has
// found. send may stretch its time when it knows how much there is to move.
func (c *client) once(ctx context.Context, size int64, send func(ctx context.Context, stretch func(size int64)) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := c.policy.limit(size)
	timer := time.AfterFunc(limit, func() { cancel(errSlow) })
	defer timer.Stop()
	err := send(attempt, func(size int64) {
		limit = c.policy.limit(size)
		timer.Reset(limit)
	})
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return &failure{text: "the request was given up: " + ended.Error(), sent: true, ended: ended}
	}
	if errors.Is(context.Cause(attempt), errSlow) {
		return &failure{text: fmt.Sprintf("no whole answer within %v", limit), sent: true, again: true}
	}
	return understood(err)
}

// understood makes a *failure of an error of the SDK, and leaves others as they are.
func understood(err error) error {
	var operation *smithy.OperationError
	if !errors.As(err, &operation) {
		return err
	}
	var (
		answer *smithyhttp.ResponseError
		lost   *smithyhttp.RequestSendError
		api    smithy.APIError
	)
	switch {
	case errors.As(err, &lost): // first, for the SDK adds an answer that never came
		f := &failure{text: lost.Err.Error(), sent: true, again: true}
		var (
			network     *net.OpError
			certificate *tls.CertificateVerificationError
		)
		switch {
		case errors.As(err, &certificate):
			f.sent, f.again = false, false
			f.text += "; give the server's authority as the CA file"
		case errors.As(err, &network) && network.Op == "dial":
			f.sent = false
		}
		return f
	case errors.As(err, &answer):
		f := &failure{status: answer.HTTPStatusCode(), sent: true}
		said := "an answer that cannot be read"
		if errors.As(err, &api) {
			f.code, said = api.ErrorCode(), api.ErrorCode()
			if m := api.ErrorMessage(); m != "" && m != said {
				said += ": " + m
			}
		}
		f.text = fmt.Sprintf("%.300q (HTTP status %d)", said, f.status)
		f.again = passes(f.status, f.code)
		return f
	}
	// It was not even signed: there are no credentials, or none that can be had now.
	return &failure{text: operation.Err.Error() + "; give access key and secret, or what AWS clients take them from"}
}

// passes tells whether the server may answer otherwise in a moment.
func passes(status int, code string) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	if status < 300 { // success, but the answer broke off
		return true
	}
	return code == "RequestTimeout" || code == "OperationAborted" || code == conflict
}

// conflict is S3's answer to one of several conditional requests for one key at the same time.
const conflict = "ConditionalRequestConflict"

// persist makes attempts until one succeeds, or fails for good. It is for requests that may be done twice.
func (c *client) persist(ctx context.Context, send func(ctx context.Context, stretch func(size int64)) error) error {
	for n := 1; ; n++ {
		err := c.once(ctx, 0, send)
		var f *failure
		if err == nil || !errors.As(err, &f) || !f.again || n == c.policy.attempts {
			return err
		}
		if ended := c.pause(ctx, n); ended != nil {
			return fmt.Errorf("%w, after: %w", ended, f)
		}
	}
}

// pause waits after the nth attempt, half of the time by chance, so that those who failed together do not come back together.
func (c *client) pause(ctx context.Context, n int) error {
	most := min(c.policy.firstPause<<(n-1), c.policy.lastPause)
	timer := time.NewTimer(most/2 + rand.N(most/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
