package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
)

// Resolve implements [blob.Roots]. The bucket must be there. It is tried whether it keeps what Create
// promises: two objects of one name are made, and deleted again.
func (s *Store) Resolve(ctx context.Context, uri string, s3 blob.S3Options) (blob.Root, error) {
	if err := ctx.Err(); err != nil {
		return blob.Root{}, err
	}
	normal, err := blob.Normalize(uri)
	if err != nil {
		return blob.Root{}, err
	}
	if !strings.HasPrefix(normal, scheme) {
		return blob.Root{}, &blob.LocationError{Location: uri, Problem: "it is not on S3", Remedy: "write s3://bucket/prefix"}
	}
	if wrong := s3.Check(); len(wrong) > 0 {
		return blob.Root{}, wrong[0]
	}
	root := blob.Root{URI: normal, S3: s3}
	o, err := s.below(ctx, root, blob.TemporaryPrefix+rand.Text()+blob.TemporarySuffix)
	if err != nil {
		return blob.Root{}, err
	}
	if err := o.try(ctx); err != nil {
		return blob.Root{}, fmt.Errorf("root %s cannot be used: %w", normal, err)
	}
	return root, nil
}

// try makes the object twice, and expects the server to refuse the second and to keep what it was told of the first.
func (o object) try(ctx context.Context) error {
	first := rand.Text()
	if err := o.create(ctx, []byte("Landfast tries the bucket.\n"), first); err != nil {
		return fmt.Errorf("an object cannot be made: %w", err)
	}
	err := o.create(ctx, nil, rand.Text())
	kept, lost := o.nonce(ctx)
	switch {
	case err == nil:
		err = errors.New("its server ignores If-None-Match and replaces objects, so that two writers could destroy each other's work; " +
			"use a server, or a newer version of it, that knows conditional writes")
	case !errors.Is(err, blob.ErrExists):
		err = fmt.Errorf("a conditional write fails otherwise than it should: %w", err)
	case lost != nil:
		err = fmt.Errorf("an object cannot be looked at: %w", lost)
	case kept != first:
		err = errors.New("its server does not keep the metadata of objects (x-amz-meta-*); use one that does")
	default:
		err = nil
	}
	if cannot := o.delete(ctx); cannot != nil && err == nil {
		err = fmt.Errorf("an object cannot be deleted: %w", cannot)
	}
	return err
}

// Mark implements [blob.Roots]. The marker is an object whose one line is the id.
func (s *Store) Mark(ctx context.Context, root blob.Root, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := s.below(ctx, root, blob.MarkPrefix+id)
	if err != nil {
		return err
	}
	if err := o.create(ctx, []byte(id+"\n"), rand.Text()); err != nil {
		err = o.createNamed(err, root.URI)
		if !errors.Is(err, blob.ErrExists) {
			return fmt.Errorf("mark root %s: %w", root.URI, err)
		}
	}
	return nil
}

// markTTL is for how long a marker that was seen is taken to be there still.
const markTTL = 10 * time.Second

// marksMax bounds the markers that are remembered. To forget costs one request for each that is asked for again.
const marksMax = 4096

// mark is the marker of a warehouse in a root, reached in one way.
type mark struct {
	settings settings
	uri, id  string
}

// CheckMark implements [blob.Roots]. It runs before every operation, so that it believes for markTTL what it has seen. That a
// marker is missing it never believes.
func (s *Store) CheckMark(ctx context.Context, root blob.Root, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := mark{s.settings(root), root.URI, id}
	asked := s.now()
	s.mu.Lock()
	seen, ok := s.marks[m]
	s.mu.Unlock()
	if ok && asked.Sub(seen) < markTTL {
		return nil
	}
	o, err := s.below(ctx, root, blob.MarkPrefix+id)
	if err != nil {
		return err
	}
	_, err = o.nonce(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("%w: %s (%v); check endpoint, bucket and credentials, or, if the files were copied or restored to this place, make an empty object %s/%s",
			blob.ErrMarkMissing, root.URI, err, root.URI, blob.MarkPrefix+id)
	}
	if err != nil {
		return fmt.Errorf("check the marker of root %s: %w", root.URI, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks == nil || len(s.marks) >= marksMax {
		s.marks = map[mark]time.Time{}
	}
	s.marks[m] = asked
	return nil
}
