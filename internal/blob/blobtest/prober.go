package blobtest

import (
	"testing"

	"github.com/landfast/landfast/internal/blob"
)

// RunProber checks that what has gone is noticed, and nothing else is taken for gone.
func RunProber(t *testing.T, s interface {
	blob.Store
	blob.Prober
}, root blob.Root) {
	scope := blob.Scope{root}
	file := root.URI + "/probed/a"
	for _, c := range []struct {
		location string
		want     bool
	}{
		{file, false}, {root.URI + "/probed", false}, {root.URI + "/probed/b", true}, {file + "/below", true}, {"s3://elsewhere/a", false},
	} {
		if c.location == file {
			if !s.Gone(scope, file) {
				t.Errorf("%s is taken to be there before it is made", file)
			}
			if err := s.Create(t.Context(), scope, file, []byte("a")); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Gone(scope, c.location); got != c.want {
			t.Errorf("%s: gone %v, want %v", c.location, got, c.want)
		}
	}
}
