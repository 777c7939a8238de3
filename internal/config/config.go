package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/landfast/landfast/internal/blob"
)

// Config is one complete set of settings. Each field is described where its key
// is, in the table of keys.
type Config struct {
	Data            string
	Listen          string // host:port; an empty host is every interface
	Instance        string // empty: the host's name and the port
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
	// Postgres is where the records are with StorePostgres.
	Postgres Postgres
	Catalog  Catalog
}

// The values of Store and Coordination.
const (
	StoreEmbedded     = "embedded"
	StorePostgres     = "postgres"
	CoordinationLocal = "local"
	CoordinationRows  = "rows"
)

// Postgres says how a database is reached.
type Postgres struct {
	URL            string // may hold a password
	PasswordFile   string
	MaxConnections int
	PgBouncer      bool
}

// String leaves the URL out, which may hold a password.
func (p Postgres) String() string {
	return fmt.Sprintf("{url:%s password-file:%q max-connections:%d pgbouncer:%v}", (*secret)(&p.URL), p.PasswordFile, p.MaxConnections, p.PgBouncer)
}

// GoString is String, for %#v.
func (p Postgres) GoString() string { return p.String() }

// LogValue is String, for logs of any form.
func (p Postgres) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Catalog bounds how long a change waits for what others have locked in the store.
type Catalog struct {
	LockTimeout       time.Duration
	LockRetryInterval time.Duration
	MaxLockRetries    int
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
	c.complete()
	return c
}

// complete fills in the defaults that depend on other settings.
func (c *Config) complete() {
	if c.Coordination == "" {
		c.Coordination = coordinations[c.Store]
	}
}

// coordinations is the one that each store knows.
var coordinations = map[string]string{StoreEmbedded: CoordinationLocal, StorePostgres: CoordinationRows}
