package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// blockBytesMax bounds a block of a file, compressed and decompressed. The reference
// writes blocks of 64 kB; PyIceberg writes a manifest list as a single one.
const blockBytesMax = 64 << 20

// Manifests yields the locations of the manifests that a manifest list names, in its
// order. An error ends it.
func Manifests(list []byte) iter.Seq2[string, error] {
	return locations(list, "manifest list", func(m *struct {
		Path string `avro:"manifest_path"`
	}) string {
		return m.Path
	})
}

// Files yields the locations of the data files or delete files that a manifest names,
// in its order: of all entries, those that say that a file was deleted too. One location
// may come several times. An error ends it.
func Files(manifest []byte) iter.Seq2[string, error] {
	return locations(manifest, "manifest", func(e *struct {
		File struct {
			Path string `avro:"file_path"`
		} `avro:"data_file"`
	}) string {
		return e.File.Path
	})
}

// locations reads records of which only the fields of R matter.
func locations[R any](data []byte, what string, location func(*R) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		fail := func(err error) { yield("", fmt.Errorf("read %s: %w", what, err)) }
		file, err := ocf.NewReader(bytes.NewReader(data),
			ocf.WithMaxBlockBytes(blockBytesMax),
			ocf.WithMaxDecompressedBlockBytes(blockBytesMax),
			// Some writers name fields after columns, whatever characters are in them.
			ocf.WithSchemaOpts(avro.WithLaxNames(nil)),
			ocf.WithDecodeOpts(avro.SkipUnknown()))
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = file.Close() }() // frees what decompresses; there is nothing to lose
		for {
			var record R
			err := file.Decode(&record)
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && location(&record) == "" {
				err = errors.New("an entry names no file")
			}
			if err != nil {
				fail(err)
				return
			}
			if !yield(location(&record), nil) {
				return
			}
		}
	}
}
