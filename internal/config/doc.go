// Package config is everything that `landfast serve` can be told, and where it
// may be told: a YAML file, environment variables and flags.
//
// A [Key] is one setting. The table of keys is the only place where a setting is
// described: from it come the strict decoding of the file, the names of the
// variables (`log.level` is LANDFAST_LOG_LEVEL) and flags (--log-level), the
// defaults, and docs/configuration.md.
//
// [Load] merges the [Sources] into a [Config]: flags win over the environment,
// the environment wins over the file, the file wins over the defaults. What it
// returns without an error is valid; an error lists everything that is wrong at
// once, each with the place that said it and with what to do.
//
// Caveat: what depends on the machine, such as whether the data directory can be
// written, is for package server to find out.
package config
