package catalog

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

const (
	// scanSize is how many records one read of the store asks for: one more than pages have
	// by default.
	scanSize = 1001
	pageMax  = 10_000
)

// listPage reads one page of the records under p. A token holds the last name
// of the page before, so that what is made or dropped between two pages neither
// repeats nor hides anything else.
func listPage(ctx context.Context, tx *kernel.Tx, p key.Prefix, page Page) (records []store.Record, next string, err error) {
	after := ""
	if page.Token != "" {
		last, err := base64.RawURLEncoding.DecodeString(page.Token)
		if err != nil || !strings.HasPrefix(string(last), p.Path) {
			return nil, "", refuse(ErrInvalid, "Invalid page token %q: it was not given for this list; start again without one", page.Token)
		}
		after = string(last)
	}
	page.Size = min(page.Size, pageMax)
	for {
		want := scanSize
		if page.Size > 0 {
			want = min(want, page.Size-len(records)+1) // one more than asked for tells whether there are more
		}
		rs, err := tx.List(ctx, p, after, want)
		if err != nil {
			return nil, "", err
		}
		if records == nil {
			records = rs
		} else {
			records = append(records, rs...)
		}
		if page.Size > 0 && len(records) > page.Size {
			records = records[:page.Size]
			return records, base64.RawURLEncoding.EncodeToString([]byte(records[page.Size-1].Key.Path)), nil
		}
		if len(rs) < want {
			return records, "", nil
		}
		after = rs[len(rs)-1].Key.Path
	}
}
