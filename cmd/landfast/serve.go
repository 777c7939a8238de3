package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/server"
)

type serveCommand struct {
	ConfigFile string       `name:"config" placeholder:"FILE" help:"Read settings from this YAML file."`
	Settings   kong.Plugins `embed:""` // one flag for each key of the configuration
}

// Help is what --help adds.
func (serveCommand) Help() string {
	return `Everything lives in the data directory, which is made at the first start and holds the state of
one catalog: stop the server, start it again, and all is there. The start screen has the lines
to paste into PyIceberg, Spark, Trino and DuckDB.

With --store postgres there is no data directory, and any number of instances share a database:
see docs/postgres.md.

Each setting can stand in the file of --config, in the environment (--log-level is
LANDFAST_LOG_LEVEL), or here; flags win over the environment, which wins over the file.
See docs/configuration.md.

Ctrl-C or SIGTERM lets the running requests finish; a second one ends the server at once, which
loses nothing that was acknowledged.`
}

// Run serves until a signal.
func (c *serveCommand) Run(world surroundings) error {
	cfg, warnings, err := config.Load(config.Sources{File: c.ConfigFile, Env: world.environ, Flags: givenFlags(c.Settings)})
	if err != nil {
		return usageError{err}
	}
	ctx, stop := untilSignal(world)
	defer stop()
	return server.Run(ctx, server.Options{
		Config: cfg, Version: programVersion(), Screen: world.stdout, Log: world.stderr, Warn: warnings,
	})
}

// untilSignal is a context that ends with the first SIGINT or SIGTERM. The second
// ends the process.
func untilSignal(world surroundings) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
			return
		}
		s, ok := <-signals
		if !ok {
			return
		}
		fmt.Fprintf(world.stderr, "landfast: ended at once by a second signal (%v)\n", s)
		os.Exit(exitRefused)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// settingFlags makes a flag of each key of the configuration, so that there is one
// table of them. A flag that was not given stays nil.
func settingFlags() kong.Plugins {
	var fields []reflect.StructField
	for i, k := range config.Keys {
		help := k.Doc
		if k.Default != "" {
			help += " Default: " + k.Default + "."
		}
		f := reflect.StructField{Name: "Key" + strconv.Itoa(i), Type: reflect.TypeFor[*string]()}
		tag := fmt.Sprintf("name:%q help:%q", k.Flag(), help)
		if k.IsBool() {
			f.Type = reflect.TypeFor[*bool]()
		} else {
			tag += fmt.Sprintf(" placeholder:%q", k.Placeholder)
		}
		f.Tag = reflect.StructTag(tag)
		fields = append(fields, f)
	}
	return kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}
}

// givenFlags are the flags of settingFlags that were given, as text.
func givenFlags(settings kong.Plugins) map[string]string {
	given := map[string]string{}
	values := reflect.ValueOf(settings[0]).Elem()
	for i, k := range config.Keys {
		if v := values.Field(i); !v.IsNil() {
			given[k.Flag()] = fmt.Sprint(v.Elem().Interface())
		}
	}
	return given
}

type configCommand struct {
	Check configCheckCommand `cmd:"" help:"Read a configuration file, say what is wrong with it, and start nothing."`
}

type configCheckCommand struct {
	File string `arg:"" placeholder:"FILE" help:"The YAML file."`
}

// Run reads the file, and the environment, where secrets are.
func (c *configCheckCommand) Run(world surroundings) error {
	if _, _, err := config.Load(config.Sources{File: c.File, Env: world.environ}); err != nil {
		return usageError{err}
	}
	_, err := fmt.Fprintf(world.stdout, "%s: ok\n", c.File)
	return err
}

type backupCommand struct {
	File string `arg:"" placeholder:"FILE" help:"The file to write; it must not exist."`
	Data string `name:"data" env:"LANDFAST_DATA" default:"${data}" placeholder:"DIR" help:"The data directory of the catalog. Default: ${default}."`
}

// Help is what --help adds.
func (backupCommand) Help() string {
	return `The copy is one moment's state of the catalog: of its warehouses, namespaces and tables. The files
of the tables are not in it. They are only ever added and deleted, so a copy of them that is made
after this one, of everything below the roots of the warehouses, fits it.

A catalog in PostgreSQL is backed up with pg_dump: see docs/postgres.md.

To restore: stop the server, move catalog.db, catalog.db-wal and catalog.db-shm out of the data
directory, copy the backup there as catalog.db, and start. See docs/operations.md.`
}

// Run makes the copy.
func (c *backupCommand) Run(world surroundings) error {
	if slices.Contains(world.environ, "LANDFAST_STORE="+config.StorePostgres) {
		return usageError{errors.New("LANDFAST_STORE says that the catalog is in PostgreSQL; back it up with " +
			"`pg_dump --format custom --schema landfast --file FILE DATABASE`: see docs/postgres.md")}
	}
	if c.Data == "" { // an empty variable is as good as none
		c.Data = config.Default().Data
	}
	if err := server.Backup(context.Background(), c.Data, c.File); err != nil {
		return err
	}
	_, err := fmt.Fprintf(world.stdout, "wrote %s; it holds the catalog, not the files of the tables\n", c.File)
	return err
}
