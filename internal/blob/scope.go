package blob

import (
	"path/filepath"
	"strings"
)

// Root is a place in which files may lie.
type Root struct {
	// URI is normalised. It is how clients spell the root, links and all.
	URI string `json:"uri"`
	// Dir is the directory behind a file: root as the operating system spells it: absolute, with the
	// symbolic links of its path resolved once, when the root was accepted. Empty for other schemes.
	Dir string `json:"dir,omitempty"`
	// S3 says how an s3: root is reached. Zero: as the configuration of the server says at the time.
	S3 S3Options `json:"s3,omitzero"`
}

// Place is the root as [Scope.Canonical] spells what lies in it.
func (r Root) Place() string {
	if r.Dir == "" {
		return r.URI
	}
	return DirURI(r.Dir)
}

// Scope is the list of roots in which one warehouse's files may lie: plain, encodable data.
// Every call of a Store names one, so that no path outside is ever opened. The empty scope allows nothing.
type Scope []Root

// Find returns the root that holds the location: of several, the longest. What a Store reads and
// writes lies strictly below a root, and so does every table; a location that equals a root is therefore in
// it only if another root lies above. A location that has no normal form is in no root.
func (s Scope) Find(location string) (Root, bool) {
	normal, err := Normalize(location)
	if err != nil {
		return Root{}, false
	}
	return s.find(normal)
}

func (s Scope) find(normal string) (best Root, found bool) {
	for _, r := range s {
		if normal != r.URI && Within(normal, r.URI) && len(r.URI) > len(best.URI) {
			best, found = r, true
		}
	}
	return best, found
}

// Locate is Find for implementations of Store: the root, and the path below it with `/` between its
// parts, free of empty, `.` and `..` parts. Errors: *LocationError, which wraps ErrOutside where the location has no root;
// names that begin as a marker's does are refused.
func (s Scope) Locate(location string) (root Root, path string, err error) {
	return s.locate(location, Normalize)
}

// LocateFile is Locate by the rules of [NormalizeFile].
func (s Scope) LocateFile(location string) (root Root, path string, err error) {
	return s.locate(location, NormalizeFile)
}

func (s Scope) locate(location string, normalize func(string) (string, error)) (root Root, path string, err error) {
	normal, err := normalize(location)
	if err != nil {
		return Root{}, "", err
	}
	root, ok := s.find(normal)
	if !ok {
		return Root{}, "", s.outside(location)
	}
	path = normal[len(root.URI)+1:]
	if strings.Contains("/"+path, "/"+MarkPrefix) {
		return Root{}, "", &LocationError{Location: location, Problem: "names that begin with " + MarkPrefix + " are reserved", Remedy: "choose another"}
	}
	return root, path, nil
}

// LocateDir is Locate for a directory to be listed, which may also be a root itself: its path is empty.
func (s Scope) LocateDir(location string) (root Root, path string, err error) {
	if normal, err := Normalize(location); err == nil {
		for _, r := range s {
			if r.URI == normal {
				return r, "", nil
			}
		}
	}
	return s.Locate(location)
}

// Canonical returns the normal form of the location with the links of its root's path resolved: two
// spellings of one directory by way of two roots have one canonical form. It is the key for an index of
// locations. Links below the root are not followed, for it does no I/O. Errors are those of Locate.
func (s Scope) Canonical(location string) (string, error) {
	return canonical(s.Locate(location))
}

// CanonicalFile is Canonical by the rules of [NormalizeFile]: what tells whether a file lies in a place.
func (s Scope) CanonicalFile(location string) (string, error) {
	return canonical(s.LocateFile(location))
}

func canonical(root Root, path string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return root.Place() + "/" + path, nil
}

// DirURI is the file: location of an absolute directory of this operating system. It escapes nothing:
// whether the result may be a location is for Normalize to say.
func DirURI(dir string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
}

func (s Scope) outside(location string) error {
	uris := make([]string, len(s))
	for i, r := range s {
		uris[i] = r.URI
	}
	e := &LocationError{Location: location, Err: ErrOutside, Problem: "this warehouse has no place for files", Remedy: "give it a location"}
	if len(s) > 0 {
		e.Problem = "it lies below none of the warehouse's roots (" + strings.Join(uris, ", ") + ")"
		e.Remedy = "choose a location below one of them, or a warehouse that allows this one"
	}
	return e
}
