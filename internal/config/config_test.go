package config

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

// TestDefaultIsValid holds the table of keys to its own rules.
func TestDefaultIsValid(t *testing.T) {
	got, warnings, err := Load(Sources{})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("warnings %v, error %v", warnings, err)
	}
	want := Config{
		Data: "landfast-data", Listen: "127.0.0.1:8181", Store: "embedded", Coordination: "local",
		RequestTimeout: time.Minute, ShutdownTimeout: 30 * time.Second, MaxBodyBytes: 64 << 20,
		IdempotencyLifetime: 30 * time.Minute, Log: Log{Format: LogText}, Postgres: Postgres{MaxConnections: 16},
		Catalog: Catalog{LockTimeout: 30 * time.Second, LockRetryInterval: 100 * time.Millisecond, MaxLockRetries: 100},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNamesAreUnique: no two keys share a name in any of the places they have one.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, e := range clientEnv {
		seen[e] = "a client's variable"
	}
	for _, k := range Keys {
		names := []string{k.Name, k.Env(), "--" + k.Flag()}
		if k.alias != "" {
			names = append(names, k.alias)
		}
		for _, name := range names {
			if other, ok := seen[name]; ok {
				t.Errorf("%s is of %s and of %s", name, other, k.Name)
			}
			seen[name] = k.Name
		}
		if isSection(k.Name) {
			t.Errorf("%s is a key and a section", k.Name)
		}
	}
}

// TestEveryFieldHasAKey sets every key to another value and expects every field to change.
func TestEveryFieldHasAKey(t *testing.T) {
	others := map[string]string{
		"data": "/srv/x", "listen": "[::1]:0", "instance": "catalog-1", "insecure": "true", "store": "postgres", "coordination": "rows",
		"postgres.url": "postgres://u:s3cr3t@db/landfast", "postgres.password_file": "/run/password", "postgres.max_connections": "4", "postgres.pgbouncer": "true",
		"catalog.lock_timeout": "5s", "catalog.lock_retry_interval": "50ms", "catalog.max_lock_retries": "0",
		"request_timeout": "1m30s", "shutdown_timeout": "0s", "max_body_bytes": "3KiB",
		"idempotency.lifetime": "1h", "log.level": "warn", "log.format": "json", "pprof": "true", "warehouse.main.location": "file:///srv/lake",
		"s3.endpoint": "http://127.0.0.1:9000", "s3.region": "eu-central-1", "s3.path_style": "false", "s3.ca_file": "/etc/ca.pem",
		"s3.access_key_id": "key", "s3.secret_access_key": "s3cr3t",
	}
	for _, k := range Keys {
		v, ok := others[k.Name]
		if !ok {
			t.Errorf("%s: this test has no value for it", k.Name)
			continue
		}
		given := map[string]string{k.Flag(): v}
		want := v
		switch k.Name { // each of these needs the other
		case "store", "coordination":
			given["store"], given["coordination"] = "postgres", "rows"
			given["postgres-url"], given["warehouse-main-location"] = "postgres://db/landfast", "file:///srv/lake"
		case "postgres.url":
			want = "***"
		case "s3.access_key_id":
			given["s3-secret-access-key"] = "x"
		case "s3.secret_access_key":
			given["s3-access-key-id"] = "x"
			want = "***"
		}
		c, _, err := Load(Sources{Flags: given})
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if got := k.bind(&c).String(); got != want {
			t.Errorf("%s: %q was read as %q", k.Name, v, got)
		}
		if text := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(text, "s3cr3t") {
			t.Errorf("printed, the configuration shows the secret: %s", text)
		}
		if cmp.Equal(c, Default()) {
			t.Errorf("%s: configuration is the default", k.Name)
		}
	}
}

// TestPrecedence: flags win over the environment, which wins over the file, which wins over the defaults.
func TestPrecedence(t *testing.T) {
	file := write(t, "listen: 127.0.0.1:1\nrequest_timeout: 1s\nshutdown_timeout: 1s\nlog:\n  level: warn\n")
	got, _, err := Load(Sources{
		File:  file,
		Env:   []string{"LANDFAST_LISTEN=127.0.0.1:2", "LANDFAST_REQUEST_TIMEOUT=2s", "LANDFAST_LOG_LEVEL=", "HOME=/root"},
		Flags: map[string]string{"listen": "127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Listen, want.RequestTimeout, want.ShutdownTimeout, want.Log.Level = "127.0.0.1:3", 2*time.Second, time.Second, 4
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFiles reads each file of testdata and compares what is said about it, or what it sets.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var got strings.Builder
			c, _, err := Load(Sources{File: file})
			if err != nil {
				for _, line := range strings.Split(err.Error(), "\n") {
					fmt.Fprintln(&got, strings.TrimPrefix(line, "testdata/"))
				}
			} else {
				base := Default()
				for _, k := range Keys {
					if v := k.bind(&c).String(); v != k.bind(&base).String() {
						fmt.Fprintf(&got, "%s = %s\n", k.Name, v)
					}
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", got.String())
		})
	}
}

func TestUnknownVariableWarns(t *testing.T) {
	_, warnings, err := Load(Sources{Env: []string{
		"LANDFAST_LISTN=x", "LANDFAST_URL=http://127.0.0.1:1", "LANDFAST_CACHE=/tmp/x", "LANDFAST_ZZZZZZZZZZ=1", "LANDFASTER=1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"LANDFAST_LISTN: no setting has this name; the variable has no effect; did you mean LANDFAST_LISTEN?",
		"LANDFAST_ZZZZZZZZZZ: no setting has this name; the variable has no effect",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedValues gives each key values that are wrong, and expects one error that names the flag.
func TestRefusedValues(t *testing.T) {
	values := map[string][]string{
		"data":                        {""},
		"listen":                      {"", "8181", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:080", "a b:1", "0.0.0.0:8181", ":8181", "[::]:1", "example:1"},
		"instance":                    {"a b", "catalog/1", "twenty-one-characters", "ä"},
		"insecure":                    {"yes", "1", ""},
		"store":                       {"postgresql", "", "Embedded"},
		"coordination":                {"ring", "rows"},
		"postgres.url":                {"http://u:s3cr3t@db/landfast", "db.example.com:s3cr3t", "s3cr3t"},
		"postgres.password_file":      {"password", "./password"},
		"postgres.max_connections":    {"0", "1", "1001", "-1", "x", "16.0"},
		"postgres.pgbouncer":          {"yes", ""},
		"catalog.lock_timeout":        {"30", "-1s", "61m", "999us"},
		"catalog.lock_retry_interval": {"0s", "100", "61s"},
		"catalog.max_lock_retries":    {"-1", "1.5", "x", "4294967296"},
		"request_timeout":             {"60", "0s", "-1s", "2h", "1 s", "99ms"},
		"shutdown_timeout":            {"-1s", "61m", "x"},
		"max_body_bytes":              {"0", "1023", "-1", "64MB", "64 MiB", "1.5GiB", "2GiB", "9223372036854775807GiB", "99999999999999999999", "0x400", "MiB", "+1024"},
		"idempotency.lifetime":        {"-1s", "169h", "1d", "P1D"},
		"log.level":                   {"trace", "INFO+1", ""},
		"log.format":                  {"logfmt"},
		"pprof":                       {"on", "1", ""},
		"s3.endpoint":                 {"localhost:9000", "127.0.0.1:9000", "http://x/y", "http://user:s3cr3t@x"},
		"s3.region":                   {"EU", "eu central"},
		"s3.path_style":               {"yes", "1"},
		"s3.access_key_id":            {"key without a secret", "key"},
		"s3.secret_access_key":        {"s3cr3t", "s3cr3t\n"},
		"s3.ca_file":                  {"ca.pem"},
		"warehouse.main.location":     {"lake", "/srv/lake", "file:lake", "file:///srv/my%20lake", "s3://b/x", "gs://bucket/x", "file:///"},
	}
	for _, k := range Keys {
		if len(values[k.Name]) == 0 {
			t.Errorf("%s: this test has no values for it", k.Name)
		}
		for _, v := range values[k.Name] {
			_, _, err := Load(Sources{Flags: map[string]string{k.Flag(): v}})
			var bad *Error
			if !errors.As(err, &bad) {
				t.Errorf("--%s=%q: accepted (%v)", k.Flag(), v, err)
				continue
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("--%s: the error shows a secret: %v", k.Flag(), err)
			}
			if bad.Where != "--"+k.Flag() || bad.Problem == "" || bad.Remedy == "" {
				t.Errorf("--%s=%q: %v", k.Flag(), v, err)
			}
		}
	}
}

// TestPostgres: what belongs together, and what is said about what is missing.
func TestPostgres(t *testing.T) {
	complete := "store: postgres\npostgres: {url: 'postgres://db/landfast'}\nwarehouse: {main: {location: 's3://bucket/lake'}}\n"
	got, warnings, err := Load(Sources{File: write(t, complete)})
	if err != nil || len(warnings) != 0 {
		t.Fatalf("%v, warnings %v", err, warnings)
	}
	want := Default()
	want.Store, want.Coordination, want.Postgres.URL, want.Warehouse.Main.Location = "postgres", "rows", "postgres://db/landfast", "s3://bucket/lake"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, _, err = Load(Sources{Flags: map[string]string{"store": "postgres", "coordination": "local"}})
	wrong := `--coordination: with store: postgres it is rows; leave it out
default: postgres.url: store is postgres, and it is not said where; name the database: postgres://user@host:5432/database
default: warehouse.main.location: with store: postgres there is no data directory to put the files of tables in; ` +
		`name a bucket (s3://bucket/prefix), or a directory that all instances share (file:///srv/lake)`
	if err == nil || err.Error() != wrong {
		t.Errorf("got\n%v\nwant\n%s", err, wrong)
	}
}

// TestPostgresWarnings: a password that others can see, and a database that is not used.
func TestPostgresWarnings(t *testing.T) {
	const visible = "--postgres-url: it holds a password, and every user of this machine can see a flag; use postgres.password_file or LANDFAST_POSTGRES_URL"
	for _, c := range []struct {
		flags map[string]string
		env   []string
		want  []string
	}{
		{map[string]string{"store": "postgres", "postgres-url": "postgres://u:s3cr3t@db/landfast"}, nil, []string{visible}},
		{map[string]string{"store": "postgres", "postgres-url": "host=db password=s3cr3t"}, nil, []string{visible}},
		{map[string]string{"store": "postgres", "postgres-url": "postgres://u@db/landfast"}, nil, nil},
		{map[string]string{"store": "postgres"}, []string{"LANDFAST_POSTGRES_URL=postgres://u:s3cr3t@db/landfast"}, nil},
		{nil, []string{"LANDFAST_POSTGRES_URL=postgres://u:s3cr3t@db/landfast"},
			[]string{"LANDFAST_POSTGRES_URL: it has no effect with store: embedded; did you mean store: postgres?"}},
	} {
		c.env = append(c.env, "LANDFAST_WAREHOUSE_MAIN_LOCATION=file:///srv/lake")
		_, got, err := Load(Sources{Env: c.env, Flags: c.flags})
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%v %v: %v, -want +got:\n%s", c.flags, c.env, err, diff)
		}
	}
}

// TestAliases: the variables of the catalog that Landfast's users come from are understood; ours win.
func TestAliases(t *testing.T) {
	theirs := []string{"ICEBERG_CATALOG_LOCK_TIMEOUT=5s", "ICEBERG_CATALOG_LOCK_RETRY_INTERVAL=50ms", "ICEBERG_CATALOG_MAX_LOCK_RETRIES=200", "ICEBERG_CATALOG_OTHER=1"}
	ours := []string{"LANDFAST_CATALOG_LOCK_TIMEOUT=6s", "LANDFAST_CATALOG_LOCK_RETRY_INTERVAL=60ms", "LANDFAST_CATALOG_MAX_LOCK_RETRIES=201"}
	file := write(t, "catalog: {lock_timeout: 7s, lock_retry_interval: 70ms, max_lock_retries: 202}\n")
	for name, c := range map[string]struct {
		file string
		env  []string
		want Catalog
	}{
		"theirs":            {"", theirs, Catalog{5 * time.Second, 50 * time.Millisecond, 200}},
		"theirs, then ours": {"", slices.Concat(theirs, ours), Catalog{6 * time.Second, 60 * time.Millisecond, 201}},
		"ours, then theirs": {"", slices.Concat(ours, theirs), Catalog{6 * time.Second, 60 * time.Millisecond, 201}},
		"a file":            {file, nil, Catalog{7 * time.Second, 70 * time.Millisecond, 202}},
		"a file and theirs": {file, theirs, Catalog{5 * time.Second, 50 * time.Millisecond, 200}},
	} {
		got, warnings, err := Load(Sources{File: c.file, Env: c.env})
		if diff := cmp.Diff(c.want, got.Catalog); diff != "" || err != nil || len(warnings) != 0 {
			t.Errorf("%s: %v, warnings %v, -want +got:\n%s", name, err, warnings, diff)
		}
	}
}

// TestS3 reads a whole section, with the secret from the environment.
func TestS3(t *testing.T) {
	got, _, err := Load(Sources{
		File: write(t, "warehouse: {main: {location: 's3://bucket/lake'}}\ns3:\n  endpoint: https://s3.example.com\n  path_style: false\n  access_key_id: key\n"),
		Env:  []string{"LANDFAST_S3_SECRET_ACCESS_KEY=s3cr3t"},
	})
	if err != nil {
		t.Fatal(err)
	}
	no := false
	want := Default()
	want.Warehouse.Main.Location = "s3://bucket/lake"
	want.S3 = blob.S3Options{Endpoint: "https://s3.example.com", PathStyle: &no, AccessKeyID: "key", SecretAccessKey: "s3cr3t"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAcceptedListen lists addresses that need no --insecure.
func TestAcceptedListen(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "127.9.9.9:65535", "localhost:8181", "[::1]:8181", "[::ffff:127.0.0.1]:1"} {
		if _, _, err := Load(Sources{Flags: map[string]string{"listen": listen}}); err != nil {
			t.Error(err)
		}
	}
	if c, _, err := Load(Sources{Flags: map[string]string{"listen": ":0", "insecure": "true"}}); err != nil || c.Loopback() {
		t.Errorf("loopback %v, error %v", c.Loopback(), err)
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	_, _, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.yaml")})
	if err == nil || !strings.Contains(err.Error(), "none.yaml: the configuration cannot be read: no such file or directory; name a YAML file") {
		t.Error(err)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"listen", "lisetn", 1}, {"listen", "listn", 1},
		{"listen", "Listen", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"ca", "abc", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestReference keeps docs/configuration.md as the code has it: go test ./internal/config -update.
func TestReference(t *testing.T) {
	golden(t, filepath.Join("..", "..", "docs", "configuration.md"), Reference())
}

// TestReferenceExampleIsDefault: the example in the reference can be pasted and changes nothing.
func TestReferenceExampleIsDefault(t *testing.T) {
	_, rest, ok := strings.Cut(Reference(), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("no example")
	}
	c, _, err := Load(Sources{File: write(t, example)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c); diff != "" {
		t.Error(diff)
	}
	for _, k := range Keys {
		last := k.Name[strings.LastIndex(k.Name, ".")+1:]
		if !strings.Contains(example, last+":") {
			t.Errorf("the example lacks %s", k.Name)
		}
	}
}

// FuzzFile: no file makes Load panic, and every error is one line that begins with the file's name.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		given := map[string]setting{}
		for _, err := range parseFile("f.yaml", data, given) {
			if !strings.HasPrefix(err.Error(), "f.yaml") {
				t.Errorf("%q: error %v", data, err)
			}
		}
		for name := range maps.Keys(given) {
			if _, ok := find(name); !ok {
				t.Errorf("%q: unknown key %q was taken", data, name)
			}
		}
	})
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "landfast.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// golden compares got with the file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is out of date; run the test with -update and look at the change:\n%s", file, diff)
	}
}
