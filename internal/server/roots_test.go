package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRootsAndTheDataDirectory: no root holds the catalog's own files and no place
// for tables lies among them, by whatever name it comes; a refusal makes nothing.
func TestRootsAndTheDataDirectory(t *testing.T) {
	tmp := plainTempDir(t)
	c := testConfig(filepath.Join(tmp, "data"))
	i := run(t, c)
	beside := filepath.Join(tmp, "beside")
	if err := errors.Join(os.Mkdir(beside, 0o755), os.Symlink(c.Data, filepath.Join(beside, "link"))); err != nil {
		t.Fatal(err)
	}
	for n, tc := range []struct {
		dir           string
		root, allowed bool // refused as such
	}{
		{c.Data, true, true},
		{tmp, true, false},
		{filepath.Join(c.Data, "new"), true, true},
		{filepath.Join(c.Data, "catalog.db"), true, true},
		{filepath.Join(c.Data, "warehouses-not"), true, true},
		{filepath.Join(beside, "link"), true, true},
		{filepath.Join(beside, "link", "new"), true, true},
		{filepath.Join(c.Data, "warehouses"), false, false},
		{filepath.Join(c.Data, "warehouses", "new"), false, false},
		{filepath.Join(beside, "link", "warehouses", "newer"), false, false},
		{beside, false, false},
		{c.Data + "-not", false, false},
	} {
		for body, want := range map[string]bool{
			fmt.Sprintf(`{"name":"r%d","location":"file://%s"}`, n, tc.dir):            tc.root,
			fmt.Sprintf(`{"name":"a%d","allowed-locations":["file://%s"]}`, n, tc.dir): tc.allowed,
		} {
			r, got := i.do(t, "POST", "/management/v1/warehouses", body)
			if refused := r.StatusCode == 400 && strings.Contains(got, "the catalog itself is there, in "+c.Data+"; choose a directory beside that one"); refused != want || !refused && r.StatusCode != 200 {
				t.Errorf("%s: %d %s", body, r.StatusCode, got)
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(c.Data, "new")); err == nil {
		t.Error("a root was made all the same")
	}

	c = testConfig(filepath.Join(tmp, "other"))
	c.Warehouse.Main.Location = "file://" + tmp
	if _, err := tryRun(t, c); err == nil || !strings.Contains(err.Error(), "the root of the warehouse main: location ") {
		t.Errorf("got %v", err)
	}
}
