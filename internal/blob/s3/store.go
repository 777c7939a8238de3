package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/landfast/landfast/internal/blob"
)

// Store implements [blob.Store] and [blob.Roots]. It keeps connections open; Close it at the end.
type Store struct {
	defaults blob.S3Options // of roots that have none
	clients  clients
	now      func() time.Time

	mu    sync.Mutex
	marks map[mark]time.Time // when a marker was last seen; at most marksMax
}

var _ blob.Backend = (*Store)(nil)

// New returns a Store that uses the options for every root that has none of its own. One per process is enough.
func New(defaults blob.S3Options) *Store {
	return &Store{defaults: defaults, clients: clients{policy: standard}, now: time.Now}
}

// Close closes the connections that are not in use. No call may be running.
func (s *Store) Close() {
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	s.clients.forget()
}

// object is a location resolved to a key of a bucket, and the client to reach it.
type object struct {
	*client
	bucket, key string
}

// object finds the location's root and the way to it.
func (s *Store) object(ctx context.Context, scope blob.Scope, location string) (object, error) {
	if err := ctx.Err(); err != nil {
		return object{}, err
	}
	root, path, err := scope.Locate(location)
	if err != nil {
		return object{}, err
	}
	return s.below(ctx, root, path)
}

// below is the object at a path below a root.
func (s *Store) below(ctx context.Context, root blob.Root, path string) (object, error) {
	rest, ok := strings.CutPrefix(root.URI, scheme)
	if !ok {
		return object{}, fmt.Errorf("root %s is not one of S3", root.URI)
	}
	c, err := s.clients.of(ctx, s.settings(root))
	if err != nil {
		return object{}, fmt.Errorf("root %s cannot be reached: %w", root.URI, err)
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	return object{c, bucket, strings.TrimPrefix(prefix+"/"+path, "/")}, nil
}

const scheme = "s3://"

// settings are those of the root's own options, or of the Store's.
func (s *Store) settings(root blob.Root) settings {
	if root.S3 != (blob.S3Options{}) {
		return settingsOf(root.S3)
	}
	return settingsOf(s.defaults)
}

// Read implements [blob.Store].
func (s *Store) Read(ctx context.Context, scope blob.Scope, location string, limit int64) ([]byte, error) {
	o, err := s.object(ctx, scope, location)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	var data []byte
	err = o.persist(ctx, func(ctx context.Context, stretch func(int64)) (err error) {
		data, err = o.get(ctx, limit, stretch)
		return err
	})
	var f *failure
	if errors.As(err, &f) && f.code == "NoSuchKey" {
		err = fmt.Errorf("%w (%s)", blob.ErrNotFound, f.text)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", location, err)
	}
	return data, nil
}

// readAhead bounds the memory that is taken on the server's word about the size of an object.
const readAhead = 16 << 20

func (o object) get(ctx context.Context, limit int64, stretch func(size int64)) ([]byte, error) {
	out, err := o.api.GetObject(ctx, &awss3.GetObjectInput{Bucket: &o.bucket, Key: &o.key})
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	size := max(0, aws.ToInt64(out.ContentLength))
	if size > limit {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", blob.ErrTooLarge, size, limit)
	}
	stretch(size)
	limit = min(limit, math.MaxInt64-1)
	buf := bytes.NewBuffer(make([]byte, 0, min(size, readAhead)+bytes.MinRead))
	n, err := buf.ReadFrom(io.LimitReader(out.Body, limit+1))
	if err != nil {
		return nil, &failure{text: "the answer broke off: " + err.Error(), sent: true, again: true}
	}
	if n > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", blob.ErrTooLarge, limit)
	}
	return buf.Bytes(), nil
}

// Delete implements [blob.Store].
func (s *Store) Delete(ctx context.Context, scope blob.Scope, location string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, path, err := scope.LocateFile(location)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	o, err := s.below(ctx, root, path)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := o.delete(ctx); err != nil {
		return fmt.Errorf("delete %s: %w", location, err)
	}
	return nil
}

func (o object) delete(ctx context.Context) error {
	err := o.persist(ctx, func(ctx context.Context, _ func(int64)) error {
		_, err := o.api.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &o.bucket, Key: &o.key})
		return err
	})
	var f *failure
	if errors.As(err, &f) && f.code == "NoSuchKey" { // S3 says that all is well, others this
		return nil
	}
	return err
}

// Exists implements [blob.Store].
func (s *Store) Exists(ctx context.Context, scope blob.Scope, location string) (bool, error) {
	o, err := s.object(ctx, scope, location)
	if err != nil {
		return false, fmt.Errorf("look for: %w", err)
	}
	_, err = o.nonce(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		// The answer has no body that could say what is missing: the object or the bucket.
		if err = o.findBucket(ctx); err == nil {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", location, err)
	}
	return true, nil
}

func (o object) findBucket(ctx context.Context) error {
	err := o.persist(ctx, func(ctx context.Context, _ func(int64)) error {
		_, err := o.api.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: &o.bucket})
		return err
	})
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound {
		return &failure{code: "NoSuchBucket", status: f.status, text: "there is no bucket " + o.bucket}
	}
	return err
}

// headNamed gives an answer to a HEAD the name that the contract has for it.
func headNamed(err error) error {
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound {
		return fmt.Errorf("%w (%s)", blob.ErrNotFound, f.text)
	}
	return err
}

// List implements [blob.Store]. Keys that end in a slash, which some tools make to show directories, are no files.
func (s *Store) List(ctx context.Context, scope blob.Scope, location string, yield func(blob.Entry) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, path, err := scope.LocateDir(location)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	top, err := s.below(ctx, root, "")
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	dir := top.key
	if path != "" {
		dir += path + "/"
	}
	for from := (*string)(nil); ; {
		page, err := top.list(ctx, dir, from)
		if err != nil {
			return fmt.Errorf("list %s: %w", location, err)
		}
		for _, e := range page.Contents {
			below := strings.TrimPrefix(aws.ToString(e.Key), top.key)
			if strings.HasSuffix(below, "/") || strings.Contains("/"+below, "/"+blob.MarkPrefix) {
				continue
			}
			err := yield(blob.Entry{
				Location: root.URI + "/" + below, Size: aws.ToInt64(e.Size), Modified: *e.LastModified, Temporary: blob.IsTemporary(below),
			})
			if err != nil {
				return err
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		from = page.NextContinuationToken
	}
}

// list gets the page of the keys that begin with dir after a token; nil for the first.
func (o object) list(ctx context.Context, dir string, from *string) (page *awss3.ListObjectsV2Output, err error) {
	err = o.persist(ctx, func(ctx context.Context, _ func(int64)) (err error) {
		page, err = o.api.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{
			Bucket: &o.bucket, Prefix: &dir, ContinuationToken: from,
			EncodingType: types.EncodingTypeUrl, // XML cannot hold every key
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	bad := func(problem string) error { return errors.New("the server's list is broken: " + problem) }
	if aws.ToBool(page.IsTruncated) && (page.NextContinuationToken == nil || from != nil && *page.NextContinuationToken == *from) {
		return nil, bad("it has no end")
	}
	for i, e := range page.Contents {
		key := aws.ToString(e.Key)
		if page.EncodingType == types.EncodingTypeUrl { // not all servers do as they are asked
			if key, err = url.QueryUnescape(key); err != nil {
				return nil, bad(err.Error())
			}
			page.Contents[i].Key = &key
		}
		if !strings.HasPrefix(key, dir) {
			return nil, bad(fmt.Sprintf("%.300q does not begin with %q", key, dir))
		}
		if e.LastModified == nil {
			return nil, bad(fmt.Sprintf("%.300q has no time", key))
		}
	}
	return page, nil
}
