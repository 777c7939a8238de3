package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/config"
)

// TestEveryKeyIsAFlag: help shows a flag for each key of the configuration.
func TestEveryKeyIsAFlag(t *testing.T) {
	var out bytes.Buffer
	if status := run([]string{"serve", "--help"}, surroundings{stdout: &out, stderr: &out}); status != 0 {
		t.Fatalf("status %d: %s", status, &out)
	}
	for _, k := range config.Keys {
		want := " --" + k.Flag() + "=" + k.Placeholder
		if k.IsBool() {
			want = " --" + k.Flag() + " "
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("help lacks %q", want)
		}
	}
}

// TestGivenFlags: only what was given counts, and a false is not the same as nothing.
func TestGivenFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want map[string]string
	}{
		{nil, map[string]string{}},
		{[]string{"--insecure"}, map[string]string{"insecure": "true"}},
		{[]string{"--insecure=false", "--data", ""}, map[string]string{"insecure": "false", "data": ""}},
		{[]string{"--log-level=debug", "--max-body-bytes", "1MiB"}, map[string]string{"log-level": "debug", "max-body-bytes": "1MiB"}},
	} {
		var all commands
		all.Serve.Settings = settingFlags()
		parser, err := kong.New(&all, kong.Vars{"url": "u", "data": "d"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(append([]string{"serve"}, c.args...)); err != nil {
			t.Errorf("%v: %v", c.args, err)
		}
		if diff := cmp.Diff(c.want, givenFlags(all.Serve.Settings)); diff != "" {
			t.Errorf("%v: %s", c.args, diff)
		}
	}
}
