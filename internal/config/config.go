package config

import (
	"log/slog"
	"time"

	"github.com/landfast/landfast/internal/blob"
)

// Config is one complete set of settings. Each field is described where its key
// is, in the table of keys.
type Config struct {
	Data            string
	Listen          string // host:port; an empty host is every interface
	Insecure        bool
	Store           string
	Coordination    string
	RequestTimeout  time.Duration
	ShutdownTimeout time.Duration
	MaxBodyBytes    int64
	// IdempotencyLifetime is 0 where idempotency keys are not heeded.
	IdempotencyLifetime time.Duration
	Log                 Log
	Pprof               bool
	Warehouse           Warehouse
	// S3 is how the buckets are reached of every warehouse that has no options of its own.
	S3 blob.S3Options
}

// Log says what is logged, and how.
type Log struct {
	Level  slog.Level
	Format string // LogText or LogJSON
}

// The formats of a log.
const (
	LogText = "text"
	LogJSON = "json"
)

// Warehouse is what can be said about warehouses before there are any.
type Warehouse struct {
	Main MainWarehouse
}

// MainWarehouse is the warehouse that a new catalog begins with.
type MainWarehouse struct {
	// Location is a file: or s3: URI, as it was written; empty: warehouses/main in the data directory.
	Location string
}

// Default is the configuration of somebody who said nothing. It is valid.
func Default() Config {
	var c Config
	for _, k := range Keys {
		if err := k.bind(&c).Set(k.Default); err != nil {
			panic("config: default of " + k.Name + ": " + err.Error())
		}
	}
	return c
}
