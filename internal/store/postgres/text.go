package postgres

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// hexMark begins a text that stands for bytes in hexadecimal.
const hexMark = `\x`

// encodeText gives the text that a column holds: the same, but for what PostgreSQL
// cannot hold and what would be mistaken for that.
func encodeText[T string | []byte](s T) string {
	text := string(s)
	if strings.HasPrefix(text, hexMark) || strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return hexMark + hex.EncodeToString([]byte(text))
	}
	return text
}

// decodeText is the reverse of encodeText.
func decodeText(column string) ([]byte, error) {
	digits, isHex := strings.CutPrefix(column, hexMark)
	if !isHex {
		return []byte(column), nil
	}
	text, err := hex.DecodeString(digits)
	if err != nil {
		return nil, fmt.Errorf("a column holds \\x and no bytes in hexadecimal: %w", errForeign)
	}
	return text, nil
}
