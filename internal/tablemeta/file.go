package tablemeta

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

const (
	metadataPath     = "write.metadata.path"
	compressionCodec = "write.metadata.compression-codec"

	codecNone = "none"
	codecGzip = "gzip"

	extension = ".metadata.json"
)

// codec is how a metadata file is compressed: as the properties say, or as byDefault.
func codec(properties *list[string], byDefault string) (string, error) {
	name, ok := property(properties, compressionCodec)
	if !ok {
		return byDefault, nil
	}
	for _, known := range []string{codecNone, codecGzip} {
		if strings.EqualFold(name, known) {
			return known, nil
		}
	}
	return "", invalid("Invalid codec name: %s", excerpt(name))
}

// FileName is the location of the file for m: in the directory that the table's
// properties name, or in metadata under its location. It is numbered one higher
// than baseFile, the file that m's base is in, or 0 if that is empty or has no
// number. The uuid makes it unlike every other.
func FileName(m *Metadata, baseFile, uuid string) string {
	return fileName(&m.properties, m.location, codecNone, baseFile, uuid)
}

func fileName(properties *list[string], location, byDefault, baseFile, uuid string) string {
	directory, ok := property(properties, metadataPath)
	if ok {
		directory = stripTrailingSlash(directory)
	} else {
		directory = stripTrailingSlash(location) + "/metadata"
	}
	compressed := ""
	// Metadata with an unknown codec is refused when it is made and when it is
	// encoded.
	if name, _ := codec(properties, byDefault); name == codecGzip {
		compressed = ".gz"
	}
	return fmt.Sprintf("%s/%05d-%s%s%s", directory, fileNumber(baseFile)+1, uuid, compressed, extension)
}

// fileNumber is the number that a metadata file's name starts with, or -1.
func fileNumber(file string) int64 {
	name := file[strings.LastIndexByte(file, '/')+1:]
	digits, _, ok := strings.Cut(name, "-")
	if !ok {
		return -1
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return -1
	}
	return int64(n)
}

// IsFileName reports whether the reference implementation would open a file at the
// location as the metadata of a table or a view. It looks at nothing else, and no
// closer: any number or directory may be before the extension, anything behind it.
func IsFileName(location string) bool { return strings.Contains(location, extension) }

// Encode is the bytes of the file for m: its JSON, compressed as its properties
// say. The caller must not change them. An unknown codec is an [*InvalidError].
func Encode(m *Metadata) ([]byte, error) {
	return encode(&m.properties, codecNone, m.doc)
}

func encode(properties *list[string], byDefault string, doc []byte) ([]byte, error) {
	name, err := codec(properties, byDefault)
	if err != nil {
		return nil, err
	}
	if name == codecNone {
		return doc, nil
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	// Writing to memory does not fail.
	_, _ = w.Write(doc)
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("tablemeta: compress metadata: %w", err)
	}
	return out.Bytes(), nil
}

// Decode is the JSON in the bytes of a metadata file, whatever the file's name
// says about its compression. More than limit bytes of it are [ErrTooLarge];
// broken compression is an [*InvalidError]. The result may alias data.
func Decode(data []byte, limit int64) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if int64(len(data)) > limit {
			return nil, ErrTooLarge
		}
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, brokenGzip(err)
	}
	// A byte beyond the limit shows that there are more.
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case int64(len(out)) > limit:
		return nil, ErrTooLarge
	case err != nil:
		return nil, brokenGzip(err)
	}
	return out, nil
}

func brokenGzip(err error) *InvalidError {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &InvalidError{Message: "Invalid metadata file: the compressed text is truncated", Err: err}
	}
	return &InvalidError{Message: "Invalid metadata file: " + err.Error(), Err: err}
}
