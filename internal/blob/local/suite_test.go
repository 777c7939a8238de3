package local

import (
	"testing"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/blobtest"
)

func TestSuite(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blobtest.Subject {
		s := New()
		return blobtest.Subject{Store: s, Roots: s, NewRoot: func() string { return blob.DirURI(tempDir(t)) }}
	})
}

func TestDeferrer(t *testing.T) {
	blobtest.RunDeferrer(t, func(t *testing.T) blobtest.Subject {
		s := New()
		return blobtest.Subject{Store: s, Roots: s, NewRoot: func() string { return blob.DirURI(tempDir(t)) }}
	})
}

func TestProber(t *testing.T) {
	s := New()
	root, err := s.Resolve(t.Context(), blob.DirURI(tempDir(t)), blob.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	blobtest.RunProber(t, s, root)
}
