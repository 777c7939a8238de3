package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

// TestS3Flags: a secret is read whole, from a file or standard input, or refused: without it a
// warehouse would be changed to the credentials of the server.
func TestS3Flags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, stdin string
		flags       s3Flags
		want        *blob.S3Options // nil and no refusal: no flag was given
		refusal     string
	}{
		{name: "none"},
		{name: "without a secret", flags: s3Flags{Region: "eu-central-1"}, want: &blob.S3Options{Region: "eu-central-1"}},
		{name: "a file", flags: s3Flags{AccessKeyID: "id", SecretFile: file}, want: &blob.S3Options{AccessKeyID: "id", SecretAccessKey: "of-the-file"}},
		{name: "standard input", stdin: " typed\n", flags: s3Flags{AccessKeyID: "id", SecretFile: "-"}, want: &blob.S3Options{AccessKeyID: "id", SecretAccessKey: "typed"}},
		{name: "the longest", stdin: strings.Repeat("x", secretMax), flags: s3Flags{SecretFile: "-"}, want: &blob.S3Options{SecretAccessKey: strings.Repeat("x", secretMax)}},
		{name: "nothing", stdin: "\n", flags: s3Flags{SecretFile: "-"}, refusal: "empty, or has more than 4096 bytes"},
		{name: "too long", stdin: strings.Repeat("x", secretMax+1), flags: s3Flags{SecretFile: "-"}, refusal: "empty, or has more than 4096 bytes"},
		{name: "a missing file", flags: s3Flags{SecretFile: file + "2"}, refusal: "--s3-secret-file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.flags.options(strings.NewReader(c.stdin))
			if (err != nil) != (c.refusal != "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
				t.Fatalf("error %v, want %q", err, c.refusal)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
