// Package s3test starts a real S3 server for tests, that of test/s3server.
package s3test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/blob"
)

// Server is a running server. It may be used by any number of goroutines.
type Server struct {
	// Options lead to it, with the credentials of its only user.
	Options blob.S3Options
	dir     string
}

// startMax bounds the start, with the time that it takes to build the server for the first time.
const startMax = 8 * time.Minute

// Start starts a server of the test's own, in 60 ms, and ends it after the test. The very first start on a machine builds it.
func Start(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(script(t), dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second
	stdin, err := cmd.StdinPipe() // the server ends when it is closed, and so with this process
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tooLong := time.AfterFunc(startMax, func() { stdin.Close(); stdout.Close() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	tooLong.Stop()
	said := strings.Fields(line)
	if err != nil || len(said) != 3 {
		stdin.Close()
		t.Fatalf("the S3 server does not start: %q, %v, %v\n%s", line, err, cmd.Wait(), &stderr)
	}
	t.Cleanup(func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the S3 server ended badly: %v\n%s", err, &stderr)
		}
	})
	return &Server{
		Options: blob.S3Options{Endpoint: said[0], AccessKeyID: said[1], SecretAccessKey: said[2]},
		dir:     dir,
	}
}

// NewBucket makes an empty bucket and returns its name.
func (s *Server) NewBucket(t testing.TB) string {
	t.Helper()
	bucket := "bucket-" + strings.ToLower(rand.Text())
	if err := os.Mkdir(filepath.Join(s.dir, "buckets", bucket), 0o777); err != nil {
		t.Fatal(err)
	}
	return bucket
}

// Keys are those of the objects of a bucket, sorted, as the server keeps them: files of a directory.
func (s *Server) Keys(t testing.TB, bucket string) []string {
	t.Helper()
	var keys []string
	top := filepath.Join(s.dir, "buckets", bucket)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			keys = append(keys, strings.TrimPrefix(path, top+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// script is that which starts the server, from wherever in the module the test runs.
func script(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(dir, "test", "s3server", "start.sh")
		if _, missing := os.Stat(path); missing == nil {
			return path
		}
		if above := filepath.Dir(dir); above != dir {
			dir = above
			continue
		}
		err = fmt.Errorf("no test/s3server above the working directory")
	}
	t.Fatal(err)
	return ""
}
