package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/landfast/landfast/internal/blob"
)

// nonceKey is under which the metadata of an object tells what call of Create made it.
const nonceKey = "landfast-nonce"

// Create implements [blob.Store].
func (s *Store) Create(ctx context.Context, scope blob.Scope, location string, data []byte) error {
	o, err := s.object(ctx, scope, location)
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := o.create(ctx, data, rand.Text()); err != nil {
		return fmt.Errorf("create %s: %w", location, o.createNamed(err, location))
	}
	return nil
}

// createNamed gives an answer to a PUT the name that the contract has for it.
func (o object) createNamed(err error, location string) error {
	var f *failure
	if !errors.As(err, &f) || errors.Is(err, blob.ErrUncertain) {
		return err
	}
	switch {
	case f.status == http.StatusInsufficientStorage, f.code == "QuotaExceeded", f.code == "XMinioStorageFull":
		return fmt.Errorf("%w (%v); free some, nothing was changed", blob.ErrFull, f)
	// Two of servers that keep objects as files of a file system.
	case f.code == "ObjectParentIsFile":
		return &blob.LocationError{
			Location: location, Err: blob.ErrBelowFile,
			Problem: "a part of its path is a file", Remedy: "choose a location that does not lie below a file",
		}
	case f.code == "ExistingObjectIsDirectory":
		return blob.ErrExists
	}
	return err
}

// create makes the object, by as many attempts as it takes. The nonce is this call's alone.
func (o object) create(ctx context.Context, data []byte, nonce string) error {
	unsure := false // an attempt may have worked, or may yet
	fail := func(err error) error {
		if unsure {
			return fmt.Errorf("%w: %w", blob.ErrUncertain, err)
		}
		return err
	}
	for n := 1; ; n++ {
		err := o.put(ctx, data, nonce)
		if err == nil {
			return nil
		}
		var f *failure
		if !errors.As(err, &f) { // the context had ended before
			return fail(err)
		}
		unsure = unsure || f.mayHaveWorked()
		// An object is there, or is about to be. It is this call's if an attempt was lost on its way here, or if
		// something between here and the server has sent it twice.
		if f.status == http.StatusPreconditionFailed || f.code == conflict {
			made, err := o.nonce(ctx)
			switch {
			case err == nil && made == nonce:
				return nil
			case err == nil:
				return blob.ErrExists
			case !errors.Is(err, blob.ErrNotFound):
				unsure = unsure || f.status == http.StatusPreconditionFailed
				return fail(err)
			}
			// It has gone, or not come.
		} else if !f.again {
			return fail(f)
		}
		if n == o.policy.attempts {
			return fail(f)
		}
		if err := o.pause(ctx, n); err != nil {
			return fail(fmt.Errorf("%w, after: %w", err, f))
		}
	}
}

// put makes one attempt.
func (o object) put(ctx context.Context, data []byte, nonce string) error {
	size := int64(len(data))
	body := &upload{bytes: bytes.NewReader(data)}
	defer body.end()
	return o.once(ctx, size, func(ctx context.Context, _ func(int64)) error {
		_, err := o.api.PutObject(ctx, &awss3.PutObjectInput{
			Bucket: &o.bucket, Key: &o.key, Body: body, ContentLength: &size,
			IfNoneMatch: aws.String("*"), Metadata: map[string]string{nonceKey: nonce},
		})
		return err
	})
}

// nonce is that of the Create which made the object; empty if it was made by other means. Errors: ErrNotFound.
func (o object) nonce(ctx context.Context) (nonce string, err error) {
	err = o.persist(ctx, func(ctx context.Context, _ func(int64)) error {
		head, err := o.api.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &o.bucket, Key: &o.key})
		if err == nil {
			nonce = head.Metadata[nonceKey]
		}
		return err
	})
	return nonce, headNamed(err)
}

// upload is the body of one attempt, and ends with it: what sends a request may go on reading after its answer, or
// after the end of its context, when the bytes are the caller's again.
type upload struct {
	mu    sync.Mutex
	bytes *bytes.Reader // nil when it has ended
}

var errEnded = errors.New("the upload has ended")

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes == nil {
		return 0, errEnded
	}
	return u.bytes.Read(p)
}

// Seek implements io.Seeker: the bytes are read once for the signature before they are sent.
func (u *upload) Seek(offset int64, whence int) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes == nil {
		return 0, errEnded
	}
	return u.bytes.Seek(offset, whence)
}

func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes = nil
}
