package blob_test

import (
	"testing"

	"github.com/landfast/landfast/internal/blob"
)

// The names of files that clients have written are taken as they are, but for what could
// lead out of a place.
func TestNormalizeFile(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"file:/w/t/data/ts=2020-01-01T00%3A00/a.parquet", "file:///w/t/data/ts=2020-01-01T00%3A00/a.parquet"},
		{"file:///w/t/data/city=New York/é?#[]{}\\.parquet", "file:///w/t/data/city=New York/é?#[]{}\\.parquet"},
		{"file:///w/t/data//a//b", "file:///w/t/data/a/b"},
		{"file:///w/t/data/%2e%2e/a", "file:///w/t/data/%2e%2e/a"},
		{"file:///w/t/../u/a", ""},
		{"file:///w/t/./a", ""},
		{"file:///w/t/a\x00b", ""},
		{"file:///w/t//../a", ""},
		{"s3a://bucket/t//a/ b%3A+é", "s3://bucket/t//a/ b%3A+é"},
		{"s3://bucket/t/../a", ""},
		{"s3://bucket/t//../a", ""},
		{"s3://bucket/t/a?versionId=1", ""},
		{"gs://bucket/t/a", ""},
		{"/w/t/a", ""},
	} {
		got, err := blob.NormalizeFile(c.in)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	scope := blob.Scope{{URI: "file:///w", Dir: "/data/w"}}
	if got, err := scope.CanonicalFile("file:/w/t/a b"); err != nil || got != "file:///data/w/t/a b" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := scope.Canonical("file:/w/t/a b"); err == nil {
		t.Error("Canonical takes what only CanonicalFile may")
	}
	if _, err := scope.CanonicalFile("file:/w/t/" + blob.MarkPrefix + "x"); err == nil {
		t.Error("a marker could be deleted")
	}
}
