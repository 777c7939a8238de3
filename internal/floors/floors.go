package floors

// Floors are the packages of the module from the ground up, by their path below
// it. A package imports only packages of lower floors; those of one floor do not
// know each other.
var Floors = [][]string{
	// Pure vocabularies: no I/O, no clock, no goroutine.
	{"internal/key", "internal/rawjson", "internal/manifest", "internal/planted"},
	{"internal/schema", "internal/blob"},
	{"internal/tablemeta", "internal/store", "internal/lock"},

	// Suites, and the implementations that run them.
	{"internal/blob/blobtest", "internal/store/storetest", "internal/lock/locktest", "internal/planted/plantedtest", "internal/store/postgres/pgtest"},
	{"internal/blob/s3/s3test"},
	{"internal/blob/local", "internal/blob/s3", "internal/store/mem", "internal/store/embedded", "internal/store/postgres", "internal/lock/local", "internal/txn"},

	// What runs operations, and the operations.
	{"internal/journal"},
	{"internal/kernel", "internal/contention"},
	{"internal/kernel/kerneltest"},
	{"internal/catalog"},
	{"internal/duty"},
	{"internal/reclaim"},

	// What the outside sees.
	{"internal/rest", "internal/config"},
	{"internal/server"},
	{"cmd/landfast"},

	// Beside the house: nothing imports these.
	{"internal/sim/history"},
	{"internal/sim/check"},
	{"internal/sim", "internal/sim/exhaust"},
	{"internal/floors", "test/bench", "test/crash", "test/pgserver"},
}

// Concrete are the packages that hold a mode: one of several ways to keep a promise
// that an interface makes. Only the packages of Wiring import them, and tests.
var Concrete = []string{
	"internal/blob/local", "internal/blob/s3", "internal/store/mem", "internal/store/embedded", "internal/store/postgres",
	"internal/store/postgres/pgtest", "internal/lock/local",
	"internal/txn",
}

// Wiring are the packages that choose modes.
var Wiring = []string{"internal/server", "internal/sim", "test/bench", "test/pgserver"}

// Suites hold tests of contracts. Only tests and other suites import them.
var Suites = []string{
	"internal/blob/blobtest", "internal/blob/s3/s3test", "internal/store/storetest", "internal/lock/locktest", "internal/kernel/kerneltest",
	"internal/planted/plantedtest",
}

// Modules are the third-party modules that the program is built from, and who may
// import each. A module that is used in one place can be replaced there.
var Modules = map[string][]string{
	"github.com/alecthomas/kong":          {"cmd/landfast"},
	"github.com/aws/aws-sdk-go-v2":        {"internal/blob/s3"},
	"github.com/aws/smithy-go":            {"internal/blob/s3"},
	"github.com/anishathalye/porcupine":   {"internal/sim/check"},
	"github.com/cespare/xxhash/v2":        {"internal/txn"},
	"github.com/go-json-experiment/json":  {"internal/rawjson"},
	"github.com/google/uuid":              {"internal/catalog", "internal/kernel", "internal/rest", "internal/server", "internal/store/storetest", "internal/tablemeta"},
	"github.com/jackc/pgx/v5":             {"internal/store/postgres", "internal/store/postgres/pgtest"},
	"github.com/klauspost/compress":       {"internal/rest", "internal/tablemeta"},
	"github.com/maypok86/otter/v2":        {"internal/kernel", "internal/rest"},
	"github.com/prometheus/client_golang": {"internal/server"},
	"github.com/twmb/avro":                {"internal/manifest"},
	"go.yaml.in/yaml/v3":                  {"internal/config"},
	"golang.org/x/sync":                   {"internal/kernel", "internal/reclaim"},
	"golang.org/x/sys":                    {"internal/blob/local", "internal/duty", "internal/server"},
	"modernc.org/sqlite":                  {"internal/store/embedded"},
}

// TestModules are the third-party modules that test files, suites and the programs below test may import.
var TestModules = []string{
	"github.com/anishathalye/porcupine",
	"github.com/cespare/xxhash/v2", "github.com/google/go-cmp", "github.com/google/uuid", "github.com/jackc/pgx/v5", "github.com/klauspost/compress",
	"github.com/prometheus/client_golang", "github.com/rogpeppe/go-internal", "github.com/twmb/avro", "go.uber.org/goleak", "golang.org/x/sync",
	"golang.org/x/sys", "pgregory.net/rapid",
}
