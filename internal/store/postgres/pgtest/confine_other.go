//go:build !linux

package pgtest

import (
	"os/exec"
	"strings"
)

// confine has the server end with the test: a shell starts it, and ends it when its standard input,
// the other end of which only the test holds, is closed.
func confine(cmd *exec.Cmd) {
	if !strings.HasSuffix(cmd.Path, "/postgres") && !strings.HasSuffix(cmd.Path, "/pgbouncer") {
		return
	}
	const guard = `exec 3<&0; "$@" </dev/null & child=$!
		{ read -r _ <&3; kill -QUIT $child; } 2>/dev/null &
		trap 'kill -QUIT $child' QUIT TERM
		wait $child; wait $child; kill $! 2>/dev/null`
	args := append([]string{"sh", "-c", guard, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Args = "/bin/sh", args
	if _, err := cmd.StdinPipe(); err != nil {
		panic(err) // it has none yet
	}
}

// own does nothing: who tests here is not root.
func own(string) error { return nil }
