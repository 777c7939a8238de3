package rest

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/catalog"
)

// router finds the route of a request. net/http's own would redirect paths with
// empty or dotted segments and decode a slash within a name before it looks.
type router struct {
	routes [segmentsMax + 1][]compiledRoute // by how many segments they have
	// afterPrefix holds the words that follow {prefix} in some template. No
	// warehouse can have one as its name, so a path that has one in that place
	// has no prefix.
	afterPrefix map[string]bool
}

// segmentsMax is how many segments a template may have.
const segmentsMax = 8

type compiledRoute struct {
	*route
	name     string   // route.pattern
	segments []string // of the template
}

func newRouter(routes []route) *router {
	rt := &router{afterPrefix: map[string]bool{}}
	for i := range routes {
		segments := strings.Split(routes[i].template[1:], "/")
		n := len(segments)
		rt.routes[n] = append(rt.routes[n], compiledRoute{&routes[i], routes[i].pattern(), segments})
		if n > 2 && segments[1] == "{prefix}" {
			rt.afterPrefix[segments[2]] = true
		}
	}
	return rt
}

// pathValues are what the variable segments of a path say.
type pathValues struct {
	warehouse string // {prefix}, or {warehouse} of the management API
	namespace []string
	table     string // {table}, {view} or {function}
	view      bool   // table names a view
}

func (v pathValues) ident() catalog.Ident {
	return catalog.Ident{Namespace: v.namespace, Name: v.table}
}

// methodError refuses a method that the path does not have.
type methodError struct {
	error
	allowed string // as the header Allow holds it
}

func (e *methodError) Unwrap() error { return e.error }

func allowedMethods(err error) (string, bool) {
	var e *methodError
	if !errors.As(err, &e) {
		return "", false
	}
	return e.allowed, true
}

// rawPath is the path as it was sent. URL.EscapedPath would give up a slash that
// was sent as %2F if another character of the path should have been escaped and was not.
func rawPath(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// pathShownMax bounds what a message repeats of a path, in characters.
const pathShownMax = 200

// find returns the route for a method and a path as it was sent. An error comes
// with a route where one is known, so that the request is counted as what it was.
func (rt *router) find(method, path string) (*compiledRoute, pathValues, error) {
	var room [segmentsMax]string
	raw, ok := split(path, room[:0])
	if !ok {
		return nil, pathValues{}, noEndpoint(path)
	}
	if len(raw) > 1 && raw[0] == "v1" && rt.afterPrefix[raw[1]] {
		if len(raw) == segmentsMax {
			return nil, pathValues{}, noEndpoint(path)
		}
		raw = slices.Insert(raw, 1, catalog.MainWarehouse)
	}
	candidates := rt.routes[len(raw)]
	for i := range candidates {
		r := &candidates[i]
		if r.method == method && matches(r.segments, raw) {
			values, err := decodePath(r.segments, raw)
			return r, values, err
		}
	}
	var allowed []string
	for _, r := range candidates {
		if matches(r.segments, raw) {
			allowed = append(allowed, r.method)
		}
	}
	if len(allowed) == 0 {
		return nil, pathValues{}, noEndpoint(path)
	}
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	return nil, pathValues{}, &methodError{
		refuse(errMethod, "%s is not allowed here; allowed: %s", method, list), list,
	}
}

func noEndpoint(path string) *catalog.Error {
	hint := ""
	if len(path) > 1 && strings.HasSuffix(path, "/") {
		hint = "; paths end without a slash"
	}
	return refuse(errNoEndpoint, "There is no endpoint at %.*s%s", pathShownMax, path, hint)
}

// split appends the segments of a path to list, as many as it has room for. It fails for a path that no
// template can match: one with an empty segment, or with more segments.
func split(path string, list []string) ([]string, bool) {
	rest, ok := strings.CutPrefix(path, "/")
	for more := ok; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if segment == "" || len(list) == cap(list) {
			return nil, false
		}
		list = append(list, segment)
	}
	return list, ok
}

// matches tells whether a path has the shape of a template. A literal segment has
// only one spelling: what clients escape are names.
func matches(template, raw []string) bool {
	if len(template) != len(raw) {
		return false
	}
	for i, s := range template {
		if s[0] != '{' && s != raw[i] {
			return false
		}
	}
	return true
}

// decodePath decodes the variable segments of a path that matches the template.
func decodePath(template, raw []string) (v pathValues, err error) {
	for i, s := range template {
		if s[0] != '{' {
			continue
		}
		switch s {
		case "{prefix}", "{warehouse}":
			v.warehouse, err = decodeSegment(raw[i])
		case "{namespace}":
			v.namespace, err = decodeNamespace(raw[i])
		case "{table}", "{view}", "{function}":
			v.view = s == "{view}"
			v.table, err = decodeSegment(raw[i])
		default:
			panic("rest: no meaning for " + s)
		}
		if err != nil {
			return pathValues{}, err
		}
	}
	return v, nil
}

// decodeSegment decodes one segment by the rules of forms: Java's client writes a
// space as "+" and a plus as "%2B". A client that follows the rules of paths
// instead writes "%20", which means the same here, and must escape a plus.
func decodeSegment(raw string) (string, error) {
	s, err := url.QueryUnescape(raw)
	if err != nil {
		return "", refuse(errMalformed, "Cannot decode the path segment %q: %v", raw, err)
	}
	return s, nil
}

// levelSeparator stands between the levels of a namespace. No level can contain
// it, because names have no control characters.
const levelSeparator = "\x1f"

// decodeNamespace splits a segment into levels and then decodes each.
func decodeNamespace(raw string) ([]string, error) {
	levels := splitLevels(raw)
	for i, l := range levels {
		s, err := decodeSegment(l)
		if err != nil {
			return nil, err
		}
		levels[i] = s
	}
	return levels, nil
}

var escapedSeparators = strings.NewReplacer("%1F", levelSeparator, "%1f", levelSeparator)

func splitLevels(raw string) []string {
	if !strings.Contains(raw, "%") && !strings.Contains(raw, levelSeparator) {
		return []string{raw}
	}
	return strings.Split(escapedSeparators.Replace(raw), levelSeparator)
}

// parentReadings are what a `parent` parameter, decoded once as every parameter
// is, may mean, the likelier first. Java joins the names as they are. PyIceberg
// escapes them before it hands them to a library that escapes them once more. The
// second reading counts only where no namespace has the first as its name, so a
// name that really contains an escape sequence is found.
func parentReadings(value string) [][]string {
	readings := [][]string{strings.Split(value, levelSeparator)}
	if !strings.Contains(value, "%") {
		return readings
	}
	levels := splitLevels(value)
	for i, l := range levels {
		s, err := url.PathUnescape(l)
		if err != nil {
			return readings
		}
		levels[i] = s
	}
	if slices.Equal(levels, readings[0]) {
		return readings
	}
	return append(readings, levels)
}
