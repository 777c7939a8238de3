// Command landfast is an Apache Iceberg REST catalog in one binary: the server,
// and the commands that talk to one.
//
// Exit status: 0 done, 1 refused or failed, 2 usage or configuration, 3 no server
// could be reached.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/landfast/landfast/internal/config"
)

// version is set by the linker: see the Makefile.
var version = ""

// The exit statuses, beside 0.
const (
	exitRefused     = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// commands are all commands, as kong reads them.
type commands struct {
	Serve     serveCommand     `cmd:"" help:"Run the catalog: one process, one directory, nothing to configure."`
	Warehouse warehouseCommand `cmd:"" help:"Create, list, show and delete the warehouses of a running server."`
	Locks     locksCommand     `cmd:"" help:"Show who waits for whom in a running server."`
	Backup    backupCommand    `cmd:"" help:"Copy the catalog to a file, also while a server runs."`
	Config    configCommand    `cmd:"" help:"Check a configuration file."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

const description = `Landfast is an Apache Iceberg REST catalog.

  landfast serve                        run it on http://127.0.0.1:8181, with all state in ./landfast-data
  landfast warehouse create sales       add a warehouse to the running server
  landfast backup catalog-backup.db     copy the catalog, also while it runs

Exit status: 0 done, 1 refused or failed, 2 usage or configuration, 3 no server reached.`

// surroundings are what a command sees of the world.
type surroundings struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
}

func main() {
	os.Exit(run(os.Args[1:], surroundings{os.Stdin, os.Stdout, os.Stderr, os.Environ()}))
}

// run runs one command and returns its exit status.
func run(args []string, world surroundings) (status int) {
	var all commands
	all.Serve.Settings = settingFlags()
	ended := false // by --help
	parser, err := kong.New(&all,
		kong.Name("landfast"),
		kong.Description(description),
		kong.Writers(world.stdout, world.stderr),
		kong.Exit(func(int) { ended = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars{"url": defaultURL, "data": config.Default().Data},
		kong.Bind(world),
	)
	if err != nil {
		panic("landfast: the commands contradict each other: " + err.Error())
	}
	command, err := parser.Parse(args)
	if ended {
		return 0
	}
	if err == nil {
		err = command.Run()
	} else {
		err = usageError{fmt.Errorf("%w; see %s", err, helpFor(command, err))}
	}
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(world.stderr, "landfast: "+line)
	}
	return statusOf(err)
}

// helpFor is the command line that explains the command which was not understood.
func helpFor(command *kong.Context, err error) string {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		command = parse.Context
	}
	words := []string{"landfast"}
	if command != nil {
		for _, p := range command.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(append(words, "--help"), " ")
}

// usageError is an error of whoever called; unreachableError tells that no server answered.
type (
	usageError       struct{ error }
	unreachableError struct{ error }
)

func (e usageError) Unwrap() error       { return e.error }
func (e unreachableError) Unwrap() error { return e.error }

func statusOf(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[unreachableError](err); ok {
		return exitUnreachable
	}
	return exitRefused
}

type versionCommand struct{}

// Run prints the version, and what it was built with and for.
func (versionCommand) Run(world surroundings) error {
	_, err := fmt.Fprintf(world.stdout, "landfast %s (%s, %s/%s)\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// programVersion is what the linker set, or what the go command knows.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
