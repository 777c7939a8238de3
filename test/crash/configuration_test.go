package crash

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// configuration is a way to run the server: one process or several, on some store. The
// rounds know nothing else of it.
type configuration struct {
	name string
	// instances is how many servers run, all on the state below one directory.
	instances int
	// args are the flags of one of them.
	args func(state string, instance int) []string
	// wipe makes the state that of a catalog that never was.
	wipe func(state string) error
	// faults are those that it must stand; onVolume are those if its state lies on a volume.
	// Faults that strike together do so, and are healed, in this order: what is frozen can
	// not be stopped in good order any more, and what was killed starts when nothing else
	// is wrong.
	faults, onVolume []func() fault
}

// embedded is one server with a directory of its own.
var embedded = configuration{
	name:      "embedded",
	instances: 1,
	args: func(state string, _ int) []string {
		return []string{
			"serve", "--data", state, "--listen", "127.0.0.1:0", "--log-level", "warn",
			"--request-timeout", requestTimeLimit.String(), "--idempotency-lifetime", keyLifetime.String(),
		}
	},
	wipe:     wipeDirectory,
	faults:   slices.Concat(freezes, networks, clocks, deaths),
	onVolume: slices.Concat(disks, freezes, networks, clocks, deaths),
}

func wipeDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(dir, 0o700)
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
