package crash

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// configuration is a way to run the server: one process or several, on some store. The
// rounds know nothing else of it.
type configuration struct {
	name string
	// instances is how many servers run, all on the same state.
	instances int
	// found makes the state that of a catalog that never was, and starts what else the servers need.
	found func(*drill) (ground, error)
	// args are the flags of one of them.
	args func(d *drill, instance int) []string
	// rounds is how many make a drill: each fault once, and then two at a time.
	rounds int
	// handsOver says that a purge which was cut short waits until another server may take it
	// over. Otherwise it goes on as soon as the server starts again.
	handsOver bool
	// variants are those that drills take turns in.
	variants []variant
}

// variant is what differs from one drill to the next.
type variant struct {
	// onVolume says that the state lies on a volume.
	onVolume bool
	// pooled says that PgBouncer stands before the database.
	pooled bool
	// flags come on top of the configuration's.
	flags []string
	// faults are those that it must stand. Faults that strike together do so, and are
	// healed, in this order: what is frozen can not be stopped in good order any more, and what
	// was killed starts when nothing else is wrong.
	faults []func() fault
	// alone are faults that never strike together with others.
	alone []func() fault
}

// ground is what servers stand on beside the directory of their state.
type ground interface {
	// quiet waits until nothing is under way there, also of what a server had begun that is gone.
	quiet(context.Context) error
	close() error
}

// bare is the ground of servers that have only the directory.
type bare struct{}

func (bare) quiet(context.Context) error { return nil }
func (bare) close() error                { return nil }

// embedded is one server with a directory of its own. In every other drill that is on a volume.
var embedded = configuration{
	name:      "embedded",
	instances: 1,
	found:     func(d *drill) (ground, error) { return bare{}, wipeDirectory(d.state) },
	args:      func(d *drill, _ int) []string { return append(commonFlags(), "--data", d.state) },
	rounds:    10,
	variants: []variant{
		{onVolume: len(disks) > 0, faults: slices.Concat(disks, freezes, networks, clocks, deaths)},
		{faults: slices.Concat(freezes, networks, clocks, deaths)},
	},
}

// commonFlags are those of every server.
func commonFlags() []string {
	return []string{
		"serve", "--listen", "127.0.0.1:0", "--log-level", "warn",
		"--request-timeout", requestTimeLimit.String(), "--idempotency-lifetime", keyLifetime.String(),
	}
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
