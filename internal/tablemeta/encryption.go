package tablemeta

import (
	"encoding/base64"
	"strings"
)

// This file holds the changes to the keys that a table's files are encrypted with.

type addEncryptionKey struct {
	id    string
	value []byte
}

func decodeAddEncryptionKey(f *fields) change {
	value := f.kept("encryption-key")
	if f.err != nil {
		return nil
	}
	key := fields{what: f.what, object: value}
	id := key.encryptionKey()
	f.err = key.err
	return addEncryptionKey{id, value}
}

// encryptionKey reads a key, and returns its id.
func (f *fields) encryptionKey() (id string) {
	id = f.string("key-id")
	if !isBase64(f.string("encrypted-key-metadata")) {
		f.fail("field %q must be base64", "encrypted-key-metadata")
	}
	f.optionalString("encrypted-by-id")
	f.optionalStringMap("properties")
	return id
}

// isBase64 reports whether Java's decoder takes the text: padding may be left out,
// but not in part, and there are no line breaks.
func isBase64(text string) bool {
	encoding := base64.StdEncoding
	if len(text)%4 != 0 {
		encoding = base64.RawStdEncoding
	}
	_, err := encoding.DecodeString(text)
	return err == nil && !strings.ContainsAny(text, "\r\n")
}

// apply keeps an existing key: data may be encrypted with it.
func (c addEncryptionKey) apply(b *builder) error {
	if b.encryptionKeys.index(func(id *string) bool { return *id == c.id }) < 0 {
		b.encryptionKeys.add(c.id, c.value)
		b.changed = true
	}
	return nil
}

type removeEncryptionKey struct{ id string }

func (c removeEncryptionKey) apply(b *builder) error {
	if b.encryptionKeys.remove(func(id *string) bool { return *id == c.id }) > 0 {
		b.changed = true
	}
	return nil
}
