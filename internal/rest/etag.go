package rest

import "strings"

// quoteTag is an entity tag as a header holds it.
func quoteTag(tag string) string { return `"` + tag + `"` }

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
