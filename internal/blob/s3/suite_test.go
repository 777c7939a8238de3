package s3

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/blob/blobtest"
	"github.com/landfast/landfast/internal/blob/s3/s3test"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	server := s3test.Start(t)
	blobtest.Run(t, func(t *testing.T) blobtest.Subject {
		s := New(blob.S3Options{})
		t.Cleanup(s.Close)
		return blobtest.Subject{Store: s, Roots: s, Options: server.Options, NewRoot: func() string { return "s3://" + server.NewBucket(t) + "/lake" }}
	})
}
