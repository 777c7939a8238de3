package config

import (
	"strings"
)

// Key describes one setting.
type Key struct {
	// Name is its path in the file: parts in snake_case, separated by dots.
	Name string
	// Type is how its values are written, in a word or two: for people.
	Type string
	// Placeholder stands for a value in the help of a flag.
	Placeholder string
	// Default is the value of somebody who said nothing, written as in the file.
	Default string
	// Example is a value for one that has no Default.
	Example string
	// Doc is one sentence, and Detail whatever else must be known.
	Doc, Detail string

	// alias is another name of its environment variable, or empty.
	alias string
	// bind gives access to the key's field of c.
	bind func(c *Config) value
}

// The types of values.
const (
	typeText     = "text"
	typeBool     = "true or false"
	typeDuration = "duration"
	typeSize     = "size"
	typeNumber   = "number"
)

// Keys is the table of all settings, in the order in which they are documented.
var Keys = []Key{
	{
		Name: "data", Type: typeText, Placeholder: "DIR", Default: "landfast-data",
		Doc: "The data directory: where all state lives.",
		Detail: "It is made when it is missing. A relative path starts at the working directory, also when it stands in a file. " +
			"Its absolute path must be free of characters that a URI would escape, such as spaces, because paths of tables begin with it.",
		bind: func(c *Config) value { return (*text)(&c.Data) },
	},
	{
		Name: "listen", Type: "host:port", Placeholder: "HOST:PORT", Default: "127.0.0.1:8181",
		Doc: "The address to serve.",
		Detail: "Port 0 takes a free one and prints it. There is no authentication yet, so that an address other than " +
			"of the loopback interface also needs `insecure`. On the loopback interface, requests whose `Host` is neither " +
			"`localhost` nor a loopback address are refused with 421, because a web page could send them.",
		bind: func(c *Config) value { return (*text)(&c.Listen) },
	},
	{
		Name: "instance", Type: typeText, Placeholder: "NAME", Example: "catalog-1",
		Doc: "The name of this instance where there are several: in its log, in PostgreSQL's `application_name`, and in `landfast locks`.",
		Detail: "1 to 20 letters, digits and `.`, `_`, `:`, `-`. Default: the last 20 characters of the host's name and the port, as in `host-1:8181`. " +
			"Nothing is decided by it; two instances with one name can only be mistaken for each other.",
		bind: func(c *Config) value { return (*text)(&c.Instance) },
	},
	{
		Name: "insecure", Type: typeBool, Default: "false",
		Doc:  "Serve other machines, and every `Host`, without authentication: everybody who reaches the address may read, change and drop every table.",
		bind: func(c *Config) value { return (*boolean)(&c.Insecure) },
	},
	{
		Name: "store", Type: "one of: embedded, postgres", Placeholder: "KIND", Default: StoreEmbedded,
		Doc: "Where the catalog's records are kept: `embedded` is a file in the data directory, for one instance; `postgres` is a " +
			"database that several share.",
		Detail: "See [PostgreSQL](postgres.md). With `postgres` there is no data directory.",
		bind:   func(c *Config) value { return choice{&c.Store, []string{StoreEmbedded, StorePostgres}} },
	},
	{
		Name: "coordination", Type: "one of: local, rows", Placeholder: "KIND", Example: CoordinationRows,
		Doc: "Who orders those who want the same table: `local` is a queue in this process, `rows` are row locks of PostgreSQL behind it.",
		Detail: "Default: `local` with the embedded store, `rows` with PostgreSQL; neither store knows another. It is a key of its own because " +
			"other stores will have a choice.",
		bind: func(c *Config) value {
			return optionalChoice{choice{&c.Coordination, []string{CoordinationLocal, CoordinationRows}}}
		},
	},
	{
		Name: "postgres.url", Type: "postgres: URL", Placeholder: "URL", Example: "postgres://landfast@db.example.com:5432/landfast?sslmode=verify-full",
		Doc: "The database for `store: postgres`, as libpq's URLs and keyword/value strings name it.",
		Detail: "What it leaves out is taken from PostgreSQL's own variables (`PGHOST`, `PGUSER`, `PGPASSWORD`, `PGSSLROOTCERT`, ...) and `~/.pgpass`. " +
			"Several hosts with `target_session_attrs=read-write` find the primary. Keep the password out of it, and out of a flag at any rate, which every user of the machine can see: use `postgres.password_file` or " +
			"`LANDFAST_POSTGRES_URL`. Nothing shows the URL again.",
		bind: func(c *Config) value { return (*secret)(&c.Postgres.URL) },
	},
	{
		Name: "postgres.password_file", Type: "absolute path", Placeholder: "FILE", Example: "/run/secrets/landfast-postgres",
		Doc:    "A file whose first line is the password.",
		Detail: "It is read at start. Only the server's user should be able to read it.",
		bind:   func(c *Config) value { return (*text)(&c.Postgres.PasswordFile) },
	},
	{
		Name: "postgres.max_connections", Type: typeNumber, Placeholder: "N", Default: "16",
		Doc: "How many connections this instance has at most, from 2 to 1000.",
		Detail: "Requests wait in memory for a free one. At most half of them wait for rows that others have locked. All instances together must stay " +
			"below the server's `max_connections`. While PostgreSQL hangs at COMMIT there may be up to twice as many.",
		bind: func(c *Config) value { return (*number)(&c.Postgres.MaxConnections) },
	},
	{
		Name: "postgres.pgbouncer", Type: typeBool, Default: "false",
		Doc:    "PgBouncer, in transaction or in session mode, stands between this instance and PostgreSQL.",
		Detail: "Statements are then not prepared, and nothing is kept in a session.",
		bind:   func(c *Config) value { return (*boolean)(&c.Postgres.PgBouncer) },
	},
	{
		Name: "catalog.lock_timeout", Type: typeDuration, Placeholder: "DURATION", Default: "30s",
		Doc: "How long a change waits, in all, for rows that another transaction has locked, with PostgreSQL.",
		Detail: "The request's own deadline (`request_timeout`) bounds it too, and all attempts together. `0s` does not wait at all: who finds a row " +
			"locked is refused at once. `ICEBERG_CATALOG_LOCK_TIMEOUT` is another " +
			"name of the variable.",
		alias: "ICEBERG_CATALOG_LOCK_TIMEOUT",
		bind:  func(c *Config) value { return (*duration)(&c.Catalog.LockTimeout) },
	},
	{
		Name: "catalog.lock_retry_interval", Type: typeDuration, Placeholder: "DURATION", Default: "100ms",
		Doc:    "About how long a change waits in memory, without a connection, between two attempts to lock a row.",
		Detail: "Each pause is a random time around it. `ICEBERG_CATALOG_LOCK_RETRY_INTERVAL` is another name of the variable.",
		alias:  "ICEBERG_CATALOG_LOCK_RETRY_INTERVAL",
		bind:   func(c *Config) value { return (*duration)(&c.Catalog.LockRetryInterval) },
	},
	{
		Name: "catalog.max_lock_retries", Type: typeNumber, Placeholder: "N", Default: "100",
		Doc:    "How many attempts to lock a row follow the first one.",
		Detail: "`0` gives up after the first. `ICEBERG_CATALOG_MAX_LOCK_RETRIES` is another name of the variable.",
		alias:  "ICEBERG_CATALOG_MAX_LOCK_RETRIES",
		bind:   func(c *Config) value { return (*number)(&c.Catalog.MaxLockRetries) },
	},
	{
		Name: "request_timeout", Type: typeDuration, Placeholder: "DURATION", Default: "60s",
		Doc:  "The time that one request may take, waiting in queues included.",
		bind: func(c *Config) value { return (*duration)(&c.RequestTimeout) },
	},
	{
		Name: "shutdown_timeout", Type: typeDuration, Placeholder: "DURATION", Default: "30s",
		Doc:  "The time that running requests get to finish after SIGTERM or SIGINT.",
		bind: func(c *Config) value { return (*duration)(&c.ShutdownTimeout) },
	},
	{
		Name: "max_body_bytes", Type: typeSize, Placeholder: "SIZE", Default: "64MiB",
		Doc: "The largest body of a request, counted after decompression; a larger one is answered with 413.",
		Detail: "The bodies of all requests that run may together hold four times as much in memory; one that finds no room is answered with 429. " +
			"What the server makes of a body while it works is not counted: usually a few times its size, twenty times for one of millions of tiny members.",
		bind: func(c *Config) value { return (*size)(&c.MaxBodyBytes) },
	},
	{
		Name: "idempotency.lifetime", Type: typeDuration, Placeholder: "DURATION", Default: "30m",
		Doc:    "The time for which an `Idempotency-Key` is remembered: a request that is sent again under it is answered as the first was, and changes nothing more.",
		Detail: "Clients learn of it from `/v1/config` and then send a key with every change. `0s` neither advertises nor heeds keys.",
		bind:   func(c *Config) value { return (*duration)(&c.IdempotencyLifetime) },
	},
	{
		Name: "log.level", Type: "one of: debug, info, warn, error", Placeholder: "LEVEL", Default: "info",
		Doc:    "The least severe level that is logged.",
		Detail: "Each request is one line: a read that succeeded at debug, a write that succeeded and a refusal at info, a failure and a slow request at warn.",
		bind:   func(c *Config) value { return (*level)(&c.Log.Level) },
	},
	{
		Name: "log.format", Type: "one of: text, json", Placeholder: "FORMAT", Default: LogText,
		Doc:  "How a line of the log, which goes to standard error, is written.",
		bind: func(c *Config) value { return choice{&c.Log.Format, []string{LogText, LogJSON}} },
	},
	{
		Name: "pprof", Type: typeBool, Default: "false",
		Doc: "Serve profiles of the program at `/debug/pprof/`, to requests from this machine alone.",
		Detail: "Whoever can ask for them sees what the server does and slows it down while a profile is taken. " +
			"See [profiles](operations.md#profiles).",
		bind: func(c *Config) value { return (*boolean)(&c.Pprof) },
	},
	{
		Name: "warehouse.main.location", Type: "file: or s3: URI", Placeholder: "URI", Example: "file:///srv/lake",
		Doc: "The root of the warehouse `main`, as in `file:///srv/lake` or `s3://bucket/prefix`.",
		Detail: "Default: `warehouses/main` in the data directory; with `store: postgres` there is none, and it must be a bucket or a directory that " +
			"all instances share. It is read once, when the catalog is new; afterwards it has no effect.",
		bind: func(c *Config) value { return (*text)(&c.Warehouse.Main.Location) },
	},
	{
		Name: "s3.endpoint", Type: "http: or https: URL", Placeholder: "URL", Example: "http://127.0.0.1:9000",
		Doc: "The server that holds the buckets of warehouses on S3. Default: AWS.",
		Detail: "This and all other keys of `s3` are for every warehouse that has none of its own: one that sets any of them takes none from here. " +
			"The server must know conditional writes (`If-None-Match`); one that does not is refused when a warehouse is made. Its buckets are not made.",
		bind: func(c *Config) value { return (*text)(&c.S3.Endpoint) },
	},
	{
		Name: "s3.region", Type: typeText, Placeholder: "REGION", Example: "eu-central-1",
		Doc:    "The region of the buckets.",
		Detail: "Default: `us-east-1` if there is an endpoint, else what the environment says to every client of AWS, such as `AWS_REGION`.",
		bind:   func(c *Config) value { return (*text)(&c.S3.Region) },
	},
	{
		Name: "s3.path_style", Type: "one of: true, false", Placeholder: "BOOL", Example: "true",
		Doc:    "Whether the bucket stands in the path of a URL (`http://host/bucket/key`), not in its host.",
		Detail: "Default: true if there is an endpoint, else false.",
		bind:   func(c *Config) value { return optionalBoolean{&c.S3.PathStyle} },
	},
	{
		Name: "s3.access_key_id", Type: typeText, Placeholder: "ID", Example: "landfast",
		Doc: "The access key for S3.",
		Detail: "Without it credentials are looked for where every client of AWS does: in the environment (`AWS_ACCESS_KEY_ID`), " +
			"the shared files of the user, a web identity token, the container, the instance.",
		bind: func(c *Config) value { return (*text)(&c.S3.AccessKeyID) },
	},
	{
		Name: "s3.secret_access_key", Type: "secret text", Placeholder: "SECRET", Example: "from-the-environment",
		Doc:    "The secret of the access key.",
		Detail: "Nothing shows it again. Give it in the variable or in a file that only the server's user may read: every user of the machine can see a flag.",
		bind:   func(c *Config) value { return (*secret)(&c.S3.SecretAccessKey) },
	},
	{
		Name: "s3.ca_file", Type: "absolute path", Placeholder: "FILE", Example: "/etc/ssl/s3.pem",
		Doc:    "A PEM file of certificate authorities to trust for S3, besides those of the system.",
		Detail: "It is read when the first request needs it; a new one is read after a restart.",
		bind:   func(c *Config) value { return (*text)(&c.S3.CAFile) },
	},
}

// Env is the key's environment variable.
func (k Key) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// Flag is the key's flag, without its dashes.
func (k Key) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name) }

// IsBool tells whether the key's flag may stand without a value.
func (k Key) IsBool() bool { return k.Type == typeBool }

// find is the key of that name.
func find(name string) (Key, bool) {
	for _, k := range Keys {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}

// nearest is the candidate that the name was most probably meant to be, or "" when none resembles it.
func nearest(name string, candidates []string) string {
	best, least := "", 1+len(name)/2
	for _, c := range candidates {
		if d := distance(name, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete or replace, or pairs of neighbours to swap, that turn a into b.
func distance(a, b string) int {
	// Three rows of the table d[i][j], the distance of a[:i] and b[:j].
	above2, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		above2, above, row = above, row, above2
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := 1
			if a[i-1] == b[j-1] {
				replace = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], above2[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
