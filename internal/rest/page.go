package rest

import (
	"errors"
	"strconv"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
)

// Entries of a page: when the client leaves the size to the server, and at most.
const (
	pageSizeDefault = 1000
	pageSizeMax     = 10_000
)

// page reads the parameters of a list. Without pageToken the client does not
// know about pages and gets everything, whatever size it names: an old client
// would take a page for the whole list. An empty one asks for the first page.
func (c *call) page() (catalog.Page, error) {
	token, paged, err := c.parameter("pageToken")
	if err != nil {
		return catalog.Page{}, err
	}
	value, sized, err := c.parameter("pageSize")
	if err != nil {
		return catalog.Page{}, err
	}
	size := pageSizeDefault
	if sized {
		size, err = strconv.Atoi(value)
		if err != nil && !errors.Is(err, strconv.ErrRange) || size < 1 {
			return catalog.Page{}, refuse(catalog.ErrInvalid, "Invalid pageSize %q: it must be a whole number of at least 1", value)
		}
	}
	if !paged {
		return catalog.Page{}, nil
	}
	return catalog.Page{Token: token, Size: min(size, pageSizeMax)}, nil
}

// pageToken is the token of the next page as an answer holds it: null when there is none.
func pageToken(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}

// appendNextPage appends the token of the next page, and ends the answer.
func appendNextPage(dst []byte, next string) []byte {
	dst = rawjson.AppendName(dst, "next-page-token")
	if next == "" {
		return append(dst, "null}"...)
	}
	return append(rawjson.AppendString(dst, next), '}')
}

// appendNames appends an array of strings.
func appendNames(dst []byte, names []string) []byte {
	dst = append(dst, '[')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(dst, name)
	}
	return append(dst, ']')
}
