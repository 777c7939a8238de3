package blob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNormalize(t *testing.T) {
	long := strings.Repeat("a", 255)
	for _, c := range []struct{ in, want string }{
		// The official kit's spellings, and every other of a local path.
		{"file:/tmp/ns/table", "file:///tmp/ns/table"},
		{"file:///tmp/ns/table", "file:///tmp/ns/table"},
		{"file://localhost/tmp/ns/table", "file:///tmp/ns/table"},
		{"file://LOCALHOST/tmp", "file:///tmp"},
		{"FILE:/tmp", "file:///tmp"},
		{"File:///tmp", "file:///tmp"},
		{"file:/tmp/", "file:///tmp"},
		{"file:///tmp//", "file:///tmp"},
		{"file:///tmp///////", "file:///tmp"},
		{"file:/x", "file:///x"},
		{"file:/tmp/junit-123/ns_1/table/metadata/00000-a.metadata.json", "file:///tmp/junit-123/ns_1/table/metadata/00000-a.metadata.json"},
		{"file:/Tmp/TABLE", "file:///Tmp/TABLE"}, // paths keep their case
		{"file:/a/.hidden/..b/c../...", "file:///a/.hidden/..b/c../..."},
		{"file:/a/day=2024-01-01/x", "file:///a/day=2024-01-01/x"},
		{"file:/a/-._~!$&'()*+,;=:@", "file:///a/-._~!$&'()*+,;=:@"},
		{"file:///C:/data/landfast", "file:///C:/data/landfast"},
		{"file:/localhost/x", "file:///localhost/x"},
		{"file:/" + long, "file:///" + long},
		// Buckets.
		{"s3://bucket/key", "s3://bucket/key"},
		{"s3://bucket/key/", "s3://bucket/key"},
		{"s3://bucket", "s3://bucket"},
		{"s3://bucket/", "s3://bucket"},
		{"s3://bucket//", "s3://bucket"},
		{"S3://bucket/KEY", "s3://bucket/KEY"},
		{"s3a://bucket/key", "s3://bucket/key"},
		{"s3n://bucket/key", "s3://bucket/key"},
		{"s3://my.bucket-1/a/b/c", "s3://my.bucket-1/a/b/c"},
		{"s3://bucket/a b%20c/é/\\", "s3://bucket/a b%20c/é/\\"}, // bytes, not an escaped URI
		{"s3://bucket/" + long + long, "s3://bucket/" + long + long},
		{"s3://bucket/file:/x", "s3://bucket/file:/x"},
	} {
		got, err := Normalize(c.in)
		if err != nil || got != c.want {
			t.Errorf("Normalize(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}

	for _, c := range []struct{ in, problem string }{
		{"", "empty"},
		{"/tmp/x", "no scheme"},
		{"tmp/x", "no scheme"},
		{"./x", "no scheme"},
		{`C:\x`, "not supported"},
		{"C:/x", "not supported"},
		{"/a:b", "no scheme"},
		{":", "not supported"},
		{"file", "no scheme"},
		{"file:", "relative"},
		{"file:x", "relative"},
		{"file:./x", "relative"},
		{"file:../x", "relative"},
		{"file://", "no path"},
		{"file://x", "no path"},
		{"file://localhost", "no path"},
		{"file://host/x", "on host"},
		{"file://127.0.0.1/x", "on host"},
		{"file://localhost:80/x", "on host"},
		{"file://user@localhost/x", "on host"},
		{"file://./x", "on host"},
		{"file:/", "root of the file system"},
		{"file:///", "root of the file system"},
		{"file:////", "root of the file system"},
		{"file://localhost/", "root of the file system"},
		{"file:////x", "two slashes"},
		{"file:///a//b", "two slashes"},
		{"file:///a//b/", "two slashes"},
		{"file:///a/./b", `segment "."`},
		{"file:///a/.", `segment "."`},
		{"file:///.", `segment "."`},
		{"file:///a/../b", `segment ".."`},
		{"file:///a/..", `segment ".."`},
		{"file:///../a", `segment ".."`},
		{"file:/a b", "byte 7 is ' '"},
		{"file:///a%20b", "byte 9 is '%'"},
		{"file:///a%2e%2e/b", "byte 9 is '%'"},
		{"file:///a#b", "'#'"},
		{"file:///a?b", "'?'"},
		{`file:///a\b`, `'\\'`},
		{"file:///a[b]", "'['"},
		{"file:///a\"b", `'"'`},
		{"file:///a<b", "'<'"},
		{"file:///a{b}", "'{'"},
		{"file:///a|b", "'|'"},
		{"file:///a^b`", "'^'"},
		{"file:///a\x00b", "byte 9 is a control character"},
		{"file:///a\nb", "control character"},
		{"file:///a\x7fb", "control character"},
		{"file:///\u00e9", "byte 8 is not ASCII"},
		{"file:///e\u0301", "not ASCII"},
		{"file:///\xff", "not ASCII"},
		{"file:/" + long + "a", "has 256 bytes"},
		{"file:/" + strings.Repeat("a/", 2046), "has 4098 bytes"},
		{"s3:/bucket/key", "no bucket"},
		{"s3:bucket", "no bucket"},
		{"s3://", "bucket"},
		{"s3:///key", "bucket"},
		{"s3://ab/key", "not 3 to 63"},
		{"s3://" + strings.Repeat("b", 64), "not 3 to 63"},
		{"s3://Bucket/key", "lower-case"},
		{"s3://my_bucket/key", "lower-case"},
		{"s3://-bucket/key", "lower-case"},
		{"s3://bucket-/key", "lower-case"},
		{"s3://user@bucket/key", "'@'"},
		{"s3://bucket:9000/key", "':'"},
		{"s3://buck%65t/key", "'%'"},
		{"s3://bucket//key", "two slashes"},
		{"s3://bucket/a//b", "two slashes"},
		{"s3://bucket/a/../b", `segment ".."`},
		{"s3://bucket/./b", `segment "."`},
		{"s3://bucket/a?versionId=1", "'?'"},
		{"s3://bucket/a#b", "byte 13 is '#'"},
		{"s3://bucket/a\x00", "control character"},
		{"s3://bucket/\xff", "UTF-8"},
		{"gs://bucket/key", "not supported"},
		{"http://localhost/x", "not supported"},
		{"hdfs://localhost/x", "not supported"},
		{" file:///x", "not supported"},
		{"fi\x00le:///x", "not supported"},
	} {
		got, err := Normalize(c.in)
		var e *LocationError
		if !errors.As(err, &e) {
			t.Errorf("Normalize(%q) = %q, %v; want a LocationError", c.in, got, err)
			continue
		}
		if !strings.Contains(e.Problem, c.problem) || e.Location != c.in || e.Remedy == "" || e.Err != nil {
			t.Errorf("Normalize(%q): %#v; want the problem to mention %q", c.in, e, c.problem)
		}
		if text := e.Error(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) || len(text) > 2000 {
			t.Errorf("Normalize(%q): unfit for a log: %q", c.in, text)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		location, root string
		want           bool
	}{
		{"file:///a", "file:///a", true},
		{"file:///a/b", "file:///a", true},
		{"file:///a/b/c", "file:///a", true},
		{"file:///ab", "file:///a", false},
		{"file:///a", "file:///a/b", false},
		{"file:///b/a", "file:///a", false},
		{"s3://bucket/a", "s3://bucket", true},
		{"s3://bucket", "s3://bucket", true},
		{"s3://bucket2/a", "s3://bucket", false},
		{"s3://bucket/a", "file:///bucket", false},
		{"file:///A", "file:///a", false},
	} {
		if got := Within(c.location, c.root); got != c.want {
			t.Errorf("Within(%s, %s) = %v", c.location, c.root, got)
		}
	}
}

func TestAncestors(t *testing.T) {
	for _, c := range []struct {
		location string
		want     []string
	}{
		{"file:///a", []string{}},
		{"file:///a/b", []string{"file:///a"}},
		{"file:///a/b/c", []string{"file:///a/b", "file:///a"}},
		{"s3://bucket", []string{}},
		{"s3://bucket/k", []string{"s3://bucket"}},
		{"s3://bucket/k/l/m", []string{"s3://bucket/k/l", "s3://bucket/k", "s3://bucket"}},
	} {
		if diff := cmp.Diff(c.want, Ancestors(c.location)); diff != "" {
			t.Errorf("Ancestors(%s) (-want +got):\n%s", c.location, diff)
		}
	}
}

func TestFind(t *testing.T) {
	tmp, wh, inner, bucket := Root{URI: "file:///tmp", Dir: "/private/tmp"}, Root{URI: "file:///data/wh", Dir: "/data/wh"}, Root{URI: "file:///data/wh/x", Dir: "/mnt/x"}, Root{URI: "s3://bucket"}
	scope := Scope{wh, tmp, inner, bucket}
	for _, c := range []struct {
		location  string
		want      Root
		path      string
		canonical string
	}{
		{"file:/tmp/ns/table", tmp, "ns/table", "file:///private/tmp/ns/table"},
		{"file:///data/wh/a", wh, "a", "file:///data/wh/a"},
		{"file:///data/wh/x", wh, "x", "file:///data/wh/x"},
		{"file:///data/wh/x/y/", inner, "y", "file:///mnt/x/y"},
		{"file:///data/wh/xy/z", wh, "xy/z", "file:///data/wh/xy/z"},
		{"s3a://bucket/k/l", bucket, "k/l", "s3://bucket/k/l"},
	} {
		for range 2 {
			got, ok := scope.Find(c.location)
			root, path, err := scope.Locate(c.location)
			canonical, err2 := scope.Canonical(c.location)
			if !ok || err != nil || err2 != nil {
				t.Fatalf("%s: %v, %v, %v", c.location, ok, err, err2)
			}
			if diff := cmp.Diff([]any{c.want, c.want, c.path, c.canonical}, []any{got, root, path, canonical}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.location, diff)
			}
			slices.Reverse(scope) // the order of the roots says nothing
		}
	}
	for _, location := range []string{"file:///data/wh", "file:///data", "file:///data/why/a", "file:///tmp", "file:///tmpx", "s3://bucket", "s3://bucket2/k", "file:///etc/passwd"} {
		root, ok := scope.Find(location)
		_, _, err := scope.Locate(location)
		_, err2 := scope.Canonical(location)
		if ok || !errors.Is(err, ErrOutside) || !errors.Is(err2, ErrOutside) || !strings.Contains(err.Error(), "file:///data/wh,") {
			t.Errorf("%s: in %v, %v, %v", location, root, err, err2)
		}
	}
	if _, ok := scope.Find("file:///tmp/../data"); ok {
		t.Error("a location without a normal form is in a root")
	}
}

func TestSanitize(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"orders", "orders"},
		{"Orders-2_x", "Orders-2_x"},
		{"a.b c/d", "a_b_c_d"},
		{"", "_"},
		{".", "_"},
		{"..", "__"},
		{"\x00", "_"},
		{"é", "_"},
		{"日本", "__"},
		{"\xff\xfe", "__"},
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 65), strings.Repeat("x", 64)},
		{strings.Repeat("é", 255), strings.Repeat("_", 64)},
	} {
		if got := Sanitize(c.in); got != c.want {
			t.Errorf("Sanitize(%q) = %q; want %q", c.in, got, c.want)
		}
	}
}

// Properties: a normal form is its own, holds nothing that leads elsewhere, and is spelled in one way only; all that lies in a
// location is found by its ancestors; Within is a partial order; the parts that Sanitize makes can stand in a location.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"file:/tmp/ns/table", "file:///a/b/", "file://localhost/x", "s3://bucket/a b/%", "s3a://bucket", "file:////x", "file:///a/../b", "file:///a%2e", "s3://bucket/é/..", "", ":", "FILE:/a",
	} {
		f.Add(seed, seed+"/x", "x")
	}
	f.Fuzz(func(t *testing.T, a, b, name string) {
		if part := Sanitize(name); part == "" || len(part) > 64 || part != Sanitize(part) {
			t.Fatalf("Sanitize(%q) = %q", name, part)
		} else if _, err := Normalize("file:///" + part); err != nil {
			t.Fatal(err)
		}
		na, err := Normalize(a)
		if err != nil {
			if na != "" || len(err.Error()) == 0 {
				t.Fatalf("Normalize(%q) = %q, %v", a, na, err)
			}
			return
		}
		if again, err := Normalize(na); err != nil || again != na {
			t.Fatalf("%q -> %q -> %q, %v", a, na, again, err)
		}
		for _, spelling := range []string{a + "/", na + "///", strings.Replace(na, "file://", "file:", 1), strings.Replace(na, "s3://", "s3a://", 1)} {
			if len(spelling) > maxLocation {
				continue
			}
			if again, err := Normalize(spelling); err != nil || again != na {
				t.Fatalf("%q -> %q, but %q -> %q, %v", a, na, spelling, again, err)
			}
		}
		_, path, _ := strings.Cut(na, "://")
		for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "\x00\n") {
				t.Fatalf("%q -> %q has the segment %q", a, na, segment)
			}
		}
		above := Ancestors(na)
		for i, up := range above {
			if n, err := Normalize(up); err != nil || n != up || up == na || !Within(na, up) || Within(up, na) {
				t.Fatalf("%q above %q: %q, %v", up, na, n, err)
			}
			if i > 0 && !Within(above[i-1], up) {
				t.Fatalf("%q comes after %q", up, above[i-1])
			}
		}
		nb, err := Normalize(b)
		if err != nil {
			return
		}
		if !Within(na, na) || (Within(na, nb) && Within(nb, na)) != (na == nb) {
			t.Fatalf("Within is no order on %q and %q", na, nb)
		}
		if Within(na, nb) != (na == nb || slices.Contains(above, nb)) {
			t.Fatalf("%q within %q: %v, but its ancestors are %q", na, nb, Within(na, nb), above)
		}
		scope := Scope{{URI: na}, {URI: nb}}
		if root, ok := scope.Find(b); ok && (root.URI == nb || !Within(nb, root.URI)) {
			t.Fatalf("Find(%q) in %v: %v", b, scope, root)
		}
	})
}

// Property: Within is transitive. Random locations are seldom nested, so these are drawn from few segments.
func TestWithinIsTransitive(t *testing.T) {
	var all []string
	for _, base := range []string{"file://", "s3://aaa"} {
		for _, a := range []string{"/a", "/aa", "/a-"} {
			for _, b := range []string{"", "/a", "/aa"} {
				for _, c := range []string{"", "/a", "/b"} {
					all = append(all, base+a+b+c)
				}
			}
		}
	}
	nested := 0
	for _, x := range all {
		for _, y := range all {
			for _, z := range all {
				if Within(x, y) && Within(y, z) {
					nested++
					if !Within(x, z) {
						t.Fatalf("%s within %s within %s", x, y, z)
					}
				}
			}
		}
	}
	if nested <= len(all) {
		t.Fatalf("only %d nested triples", nested)
	}
}

func ExampleNormalize() {
	normal, _ := Normalize("file:/tmp/ns/table/")
	fmt.Println(normal)
	_, err := Normalize("file:///tmp/a b")
	fmt.Println(err)
	// Output:
	// file:///tmp/ns/table
	// location "file:///tmp/a b": byte 13 is ' ', which some clients escape and some do not; use a path of letters, digits and any of - . _ ~ ! $ & ' ( ) * + , ; = : @
}
