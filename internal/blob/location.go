package blob

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of a location, in bytes. 4096 is what Linux allows for a path; 255 is what every common
// file system allows for one name. A location beyond them could be stored but not opened.
const (
	maxLocation = 4096
	maxSegment  = 255
)

// LocationError refuses a location: what is wrong, where, and what to do.
type LocationError struct {
	Location string // as it was sent
	Problem  string
	Remedy   string
	Err      error // ErrOutside where the location is well formed but not allowed; otherwise nil
}

func (e *LocationError) Error() string {
	return fmt.Sprintf("location %s: %s; %s", quote(e.Location), e.Problem, e.Remedy)
}

func (e *LocationError) Unwrap() error { return e.Err }

// quote makes text of a client fit for one line of a log or an answer.
func quote(s string) string {
	const shown = 300
	if len(s) > shown {
		return fmt.Sprintf("%+q...", s[:shown])
	}
	return fmt.Sprintf("%+q", s)
}

const (
	remedyForm    = "write file:///absolute/path"
	remedySegment = "write each directory once, without empty, `.` or `..` parts"
	remedyChars   = "use a path of letters, digits and any of - . _ ~ ! $ & ' ( ) * + , ; = : @"
)

// Normalize returns the form in which locations are compared. Equal places that are spelled
// differently have one form, and that form is its own normal form:
//
//	file:/x  file:///x  file://localhost/x  FILE:///x/   ->  file:///x
//	s3://bucket/key/  s3a://bucket/key  s3n://bucket/key  ->  s3://bucket/key
//
// Trailing slashes are dropped. Refused with a *LocationError, because clients disagree about
// what they mean: no scheme or another scheme, a relative path, another host, empty, `.` and `..`
// segments, control characters, the file system's root, and in a file: path every character that a
// URI would have to escape (some clients escape, some do not). The key of an s3: location is kept byte
// by byte, but `?` and `#`, which Iceberg's S3 clients cut off, are refused.
//
// The result is what to compare, not what to answer: clients want back the string they sent.
func Normalize(location string) (string, error) { return normalize(location, false) }

// NormalizeFile is Normalize for the name of a file that a client has written, as a manifest has
// it. Such names hold values of partitions: every character but control characters may stand in the path
// of a file: location, byte for byte as the file system has it, for no client escapes or unescapes a name that
// it has written itself; and slashes in a row stand in the key of an s3: location.
func NormalizeFile(location string) (string, error) { return normalize(location, true) }

func normalize(location string, written bool) (string, error) {
	refuse := func(remedy, format string, args ...any) (string, error) {
		return "", &LocationError{Location: location, Problem: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	if location == "" {
		return refuse(remedyForm, "it is empty")
	}
	if len(location) > maxLocation {
		return refuse("shorten it", "it has %d bytes, more than %d", len(location), maxLocation)
	}
	scheme, rest, ok := strings.Cut(location, ":")
	if !ok || strings.ContainsAny(scheme, "/\\") {
		return refuse(remedyForm, "it has no scheme")
	}
	switch strings.ToLower(scheme) {
	case "file":
		path, problem := filePath(rest)
		if problem != "" {
			return refuse(remedyForm, "%s", problem)
		}
		if written {
			if i := strings.IndexFunc(path, isControl); i >= 0 {
				return refuse(remedyChars, "byte %d is a control character", len(location)-len(path)+i)
			}
			path = emptySegments.ReplaceAllString(path, "/")
		} else if problem, remedy := checkFilePath(path, len(location)-len(path)); problem != "" {
			return refuse(remedy, "%s", problem)
		}
		path = strings.TrimRight(path, "/")
		if path == "" {
			return refuse("name a directory below it", "the root of the file system cannot hold tables")
		}
		if problem := checkSegments(path[1:], maxSegment); problem != "" {
			return refuse(remedySegment, "%s", problem)
		}
		return "file://" + path, nil
	case "s3", "s3a", "s3n":
		// The three name one object; Iceberg's S3FileIO takes each for the others.
		authority, ok := strings.CutPrefix(rest, "//")
		if !ok {
			return refuse(remedyForm, "it names no bucket")
		}
		bucket, key, _ := strings.Cut(authority, "/")
		if problem := checkBucket(bucket); problem != "" {
			return refuse("name the bucket as in s3://bucket/key", "%s", problem)
		}
		key = strings.TrimRight(key, "/")
		if problem := checkKey(key, len(location)-len(authority)+len(bucket)+1); problem != "" {
			return refuse("choose a key without it", "%s", problem)
		}
		if key == "" {
			return "s3://" + bucket, nil
		}
		segments := key
		if written {
			segments = emptySegments.ReplaceAllString(key, "/")
		}
		if problem := checkSegments(segments, maxLocation); problem != "" {
			return refuse(remedySegment, "%s", problem)
		}
		return "s3://" + bucket + "/" + key, nil
	}
	return refuse(remedyForm, "scheme %s is not supported", quote(scheme))
}

var emptySegments = regexp.MustCompile("//+")

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// filePath takes the path out of what follows `file:`.
func filePath(rest string) (path, problem string) {
	if authority, ok := strings.CutPrefix(rest, "//"); ok {
		slash := strings.IndexByte(authority, '/')
		if slash < 0 {
			return "", "it has a host and no path"
		}
		if host := authority[:slash]; host != "" && !strings.EqualFold(host, "localhost") {
			return "", fmt.Sprintf("it is on host %s, which is not this one", quote(host))
		}
		rest = authority[slash:]
	}
	if !strings.HasPrefix(rest, "/") {
		return "", "its path is relative"
	}
	return rest, ""
}

// checkFilePath finds the first byte that a URI could not hold as it is; at is where path begins in the location.
func checkFilePath(path string, at int) (problem, remedy string) {
	for i := range len(path) {
		c := path[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("/-._~!$&'()*+,;=:@", c) >= 0: // RFC 3986: pchar and the separator
		case c < 0x20 || c == 0x7f:
			return fmt.Sprintf("byte %d is a control character", at+i), remedyChars
		case c >= utf8.RuneSelf:
			return fmt.Sprintf("byte %d is not ASCII, and clients disagree about how to escape it", at+i), remedyChars
		default:
			return fmt.Sprintf("byte %d is %q, which some clients escape and some do not", at+i, c), remedyChars
		}
	}
	return "", ""
}

// checkBucket holds buckets to what all S3 servers accept; it shuts out users, ports and capitals,
// which would make one bucket look like two.
func checkBucket(bucket string) string {
	if len(bucket) < 3 || len(bucket) > 63 {
		return fmt.Sprintf("bucket %s has %d bytes, not 3 to 63", quote(bucket), len(bucket))
	}
	for i := range len(bucket) {
		c := bucket[i]
		edge := i == 0 || i == len(bucket)-1
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || !edge && (c == '-' || c == '.') {
			continue
		}
		return fmt.Sprintf("bucket %s has %q, but a bucket has lower-case letters, digits, and inside it - and .", quote(bucket), c)
	}
	return ""
}

// checkKey finds what no S3 key may hold here; at is where the key begins in the location.
func checkKey(key string, at int) string {
	if !utf8.ValidString(key) {
		return "its key is not valid UTF-8"
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c < 0x20 || c == 0x7f:
			return fmt.Sprintf("byte %d is a control character", at+i)
		case c == '?' || c == '#':
			return fmt.Sprintf("byte %d is %q, at which clients cut the key off", at+i, c)
		}
	}
	return ""
}

// checkSegments refuses the segments that some clients fold away and others do not.
func checkSegments(path string, longest int) string {
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "":
			return "it has two slashes in a row"
		case segment == "." || segment == "..":
			return fmt.Sprintf("it has the segment %q", segment)
		case len(segment) > longest:
			return fmt.Sprintf("segment %s has %d bytes, more than %d", quote(segment), len(segment), longest)
		}
	}
	return ""
}

// Within tells whether location is root or lies below it, segment by segment: `/a/b` is within `/a`,
// `/ab` is not. Both must be normalised. It is a partial order.
func Within(location, root string) bool {
	return strings.HasPrefix(location, root) && (len(location) == len(root) || location[len(root)] == '/')
}

// Ancestors returns every location strictly above a normalised one, nearest first: for file:///a/b/c
// file:///a/b and file:///a, for s3://bucket/k/l s3://bucket/k and s3://bucket.
func Ancestors(location string) []string {
	_, path, _ := strings.Cut(location, "://")
	path = strings.TrimPrefix(path, "/") // a file: path begins with the slash that ends the empty host
	above := make([]string, 0, strings.Count(path, "/"))
	for n := strings.LastIndexByte(path, '/'); n >= 0; n = strings.LastIndexByte(path[:n], '/') {
		above = append(above, location[:len(location)-len(path)+n])
	}
	return above
}

// Sanitize reduces a name to what may stand as one segment of a location that the server chooses:
// at most 64 bytes of [A-Za-z0-9_-], and at least one. Every other character becomes `_`. Different names may
// come out equal, so something unique must stand next to it.
func Sanitize(name string) string {
	const longest = 64
	out := make([]byte, 0, min(len(name), longest))
	for _, c := range name {
		if len(out) == longest {
			break
		}
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			out = append(out, byte(c))
		default:
			out = append(out, '_')
		}
	}
	if len(out) == 0 {
		return "_"
	}
	return string(out)
}
