package rest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/catalog"
)

// The tag of a table is that of its state and, where a load also tells how its
// files are reached, a digest of that: what changes the answer changes the tag.

// tagSeparator stands between the two; the tag of a state is hexadecimal.
const tagSeparator = "-"

// tag is the entity tag of a load of the table, whose files are reached as config says.
func (c *call) tag(t catalog.TableState, config map[string]string) string {
	if len(config) == 0 {
		return t.ETag
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(config)) {
		_, _ = fmt.Fprintf(h, "%q=%q\n", name, config[name]) // a hash takes all
	}
	return t.ETag + tagSeparator + hex.EncodeToString(h.Sum(nil)[:8])
}

// stateTags are the parts of tags that are of tables' states.
func stateTags(tags []string) []string {
	list := tags
	for i, t := range tags {
		if state, _, cut := strings.Cut(t, tagSeparator); cut {
			if &list[0] == &tags[0] {
				list = slices.Clone(tags)
			}
			list[i] = state
		}
	}
	return list
}

// quoteTag is an entity tag as a header holds it.
func quoteTag(tag string) string { return `"` + tag + `"` }

// weakTag is the tag of an answer that was compressed. A strong one would say that the bytes
// are those of the answer that was not.
func weakTag(quoted string) string { return "W/" + quoted }

// holdsWeak tells whether a quoted tag is named as a weak one in the values of If-None-Match: it is
// given back as the client knows it, so that a cache finds its answer by it.
func holdsWeak(headers []string, quoted string) bool {
	for _, h := range headers {
		if before, _, ok := strings.Cut(h, quoted); ok && strings.HasSuffix(before, "W/") {
			return true
		}
	}
	return false
}

// anyTag is what If-None-Match says for "whatever there is".
const anyTag = "*"

// parseTags reads the values of If-None-Match: quoted tags, weak ones, lists of
// both, and "*". Java's client sends a tag as it got it, and some send it without
// the quotes. Weak and strong mean the same for a read. What is none of these
// matches nothing, as if it was not sent.
func parseTags(headers []string) []string {
	var tags []string
	for _, rest := range headers {
		for rest != "" {
			rest = strings.TrimLeft(rest, " \t,")
			var tag string
			quoted, isQuoted := strings.CutPrefix(strings.TrimPrefix(rest, "W/"), `"`)
			if isQuoted {
				var closed bool
				tag, rest, closed = strings.Cut(quoted, `"`)
				if !closed || tag == anyTag {
					continue // a tag that is spelled like the wildcard is none of ours
				}
			} else {
				tag, rest, _ = strings.Cut(rest, ",")
				tag = strings.TrimRight(tag, " \t")
			}
			if tag != "" {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}
