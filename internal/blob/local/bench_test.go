package local

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/landfast/landfast/internal/blob"
)

// BenchmarkCreate compares Create and CreateDeferred of 1.5 KiB in one metadata directory with the system calls that
// they cannot do without. All files stay until the end: an ext4 without a journal makes new ones slowly, for minutes, where
// many were removed.
func BenchmarkCreate(b *testing.B) {
	data, base, runs := make([]byte, 1536), tempDir(b), 0
	bare := func(dirSync bool) func(b *testing.B, dir string) func(i int64) error {
		return func(b *testing.B, dir string) func(i int64) error {
			must(b, os.MkdirAll(dir, 0o777))
			return func(i int64) error {
				name := filepath.Join(dir, fmt.Sprint(i))
				f, err := os.OpenFile(name+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
				if err != nil {
					return err
				}
				defer f.Close()
				if _, err := f.Write(data); err != nil {
					return err
				}
				if err := f.Sync(); err != nil {
					return err
				}
				if err := os.Rename(name+".tmp", name); err != nil || !dirSync {
					return err
				}
				d, err := os.Open(dir)
				if err != nil {
					return err
				}
				defer d.Close()
				return d.Sync()
			}
		}
	}
	ours := func(b *testing.B, dir string) func(i int64) error {
		s := New()
		root, err := s.Resolve(b.Context(), blob.DirURI(filepath.Dir(filepath.Dir(dir))), blob.S3Options{})
		must(b, err)
		scope, location := blob.Scope{root}, root.URI+"/t/metadata/"
		return func(i int64) error {
			return s.Create(b.Context(), scope, location+fmt.Sprint(i), data)
		}
	}
	// Every thousandth file is followed by the Sync of all of them.
	deferred := func(b *testing.B, dir string) func(i int64) error {
		s := New()
		root, err := s.Resolve(b.Context(), blob.DirURI(filepath.Dir(filepath.Dir(dir))), blob.S3Options{})
		must(b, err)
		scope, location := blob.Scope{root}, root.URI+"/t/metadata/"
		if !s.Defers(scope, location+"f") {
			b.Log("nothing is deferred here")
		}
		return func(i int64) error {
			if err := s.CreateDeferred(b.Context(), scope, location+fmt.Sprint(i), data); err != nil || i%1000 > 0 {
				return err
			}
			return s.Sync(b.Context())
		}
	}
	for _, c := range []struct {
		name string
		open func(b *testing.B, dir string) func(i int64) error
	}{
		{"write+sync+rename", bare(false)},
		{"write+sync+rename+dirsync", bare(true)},
		{"Create", ours},
		{"CreateDeferred", deferred},
	} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/writers=%d", c.name, writers), func(b *testing.B) {
				runs++
				create := c.open(b, filepath.Join(base, fmt.Sprint(runs), "t", "metadata"))
				var n atomic.Int64
				b.ReportAllocs()
				if writers == 1 {
					for b.Loop() {
						must(b, create(n.Add(1)))
					}
					return
				}
				b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := create(n.Add(1)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkLook is what a load pays: a stat, and a read of 4 KiB.
func BenchmarkLook(b *testing.B) {
	s := New()
	root := newRoot(b, s)
	scope, location := blob.Scope{root}, root.URI+"/sales/eu/orders-0b3f/metadata/00000-a.metadata.json"
	must(b, s.Create(b.Context(), scope, location, make([]byte, 4096)))
	path := filepath.Join(root.Dir, "sales/eu/orders-0b3f/metadata/00000-a.metadata.json")
	for _, c := range []struct {
		name string
		look func() error
	}{
		{"os.Stat", func() error { _, err := os.Stat(path); return err }},
		{"Exists", func() error { _, err := s.Exists(b.Context(), scope, location); return err }},
		{"os.ReadFile", func() error { _, err := os.ReadFile(path); return err }},
		{"Read", func() error { _, err := s.Read(b.Context(), scope, location, 1<<20); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, c.look())
			}
		})
	}
}
