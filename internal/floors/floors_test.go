package floors

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/landfast/landfast/"

// source is one Go file: where it is, and what it imports. Files for every
// operating system and build tag count, which is why this is not left to go list.
type source struct {
	file    string // below the module, with slashes
	pkg     string // its directory
	test    bool
	imports []string
}

// TestModule holds the module to the lists of this package.
func TestModule(t *testing.T) {
	sources, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 100 {
		t.Fatalf("only %d files were found: is the module elsewhere?", len(sources))
	}
	for _, broken := range check(sources) {
		t.Error(broken)
	}
}

// TestListsAreCurrent: everything that is listed exists, so that the lists say what is.
func TestListsAreCurrent(t *testing.T) {
	sources, err := read("../..")
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	uses := map[string]bool{}
	for _, s := range sources {
		has[s.pkg] = true
		for _, i := range s.imports {
			if m, ok := moduleOf(i); ok && !s.test {
				uses[m+" in "+s.pkg] = true
			}
		}
	}
	for _, p := range slices.Concat(slices.Concat(Floors...), Concrete, Wiring, Suites) {
		if !has[p] {
			t.Errorf("%s is listed and does not exist", p)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(Modules)) {
		for _, p := range Modules[m] {
			if !uses[m+" in "+p] {
				t.Errorf("%s may use %s and does not", p, m)
			}
		}
	}
}

// TestRules breaks each rule once, for a rule that cannot fail is none.
func TestRules(t *testing.T) {
	file := func(name string, imports ...string) source {
		return source{file: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), imports: imports}
	}
	for _, c := range []struct {
		name string
		file source
		want []string
	}{
		{"down", file("internal/kernel/a.go", module+"internal/store", "fmt", "golang.org/x/sync/errgroup"), nil},
		{"up", file("internal/store/a.go", module+"internal/kernel"),
			[]string{"internal/store/a.go: imports internal/kernel, which is not on a lower floor"}},
		{"sideways", file("internal/rest/a.go", module+"internal/config"),
			[]string{"internal/rest/a.go: imports internal/config, which is not on a lower floor"}},
		{"unlisted", file("internal/util/a.go"),
			[]string{"internal/util/a.go: its package is on no floor: list it in internal/floors"}},
		{"import of an unlisted package", file("internal/rest/a.go", module+"internal/util"),
			[]string{"internal/rest/a.go: imports internal/util, which is not on a lower floor"}},
		{"a mode below server", file("internal/rest/a.go", module+"internal/lock/local"),
			[]string{"internal/rest/a.go: imports internal/lock/local, a mode, which only internal/server and internal/sim and test/bench and test/pgserver may name"}},
		{"a mode above server", file("cmd/landfast/a.go", module+"internal/store/embedded"),
			[]string{"cmd/landfast/a.go: imports internal/store/embedded, a mode, which only internal/server and internal/sim and test/bench and test/pgserver may name"}},
		{"a mode in server", file("internal/server/a.go", module+"internal/store/embedded"), nil},
		{"a mode in a test", file("internal/kernel/a_test.go", module+"internal/store/mem", module+"internal/kernel"), nil},
		{"up in a test", file("internal/store/a_test.go", module+"internal/kernel"),
			[]string{"internal/store/a_test.go: imports internal/kernel, which is on a higher floor"}},
		{"a suite in a test", file("internal/store/mem/a_test.go", module+"internal/store/storetest"), nil},
		{"a suite in the program", file("internal/store/mem/a.go", module+"internal/store/storetest"),
			[]string{"internal/store/mem/a.go: imports internal/store/storetest, which is for tests"}},
		{"a suite in a suite", file("internal/kernel/kerneltest/a.go", module+"internal/lock/locktest"), nil},
		{"a module elsewhere", file("internal/rest/a.go", "go.yaml.in/yaml/v3"),
			[]string{"internal/rest/a.go: imports go.yaml.in/yaml/v3, which only internal/config may"}},
		{"an unlisted module", file("internal/rest/a.go", "github.com/apache/iceberg-go/table"),
			[]string{"internal/rest/a.go: imports github.com/apache/iceberg-go/table, of a module that is not listed in internal/floors"}},
		{"an unlisted module in a test", file("internal/rest/a_test.go", "github.com/stretchr/testify/assert"),
			[]string{"internal/rest/a_test.go: imports github.com/stretchr/testify/assert, of a module that is not listed in internal/floors"}},
		{"a test module in a test", file("internal/rest/a_test.go", "github.com/google/go-cmp/cmp"), nil},
		{"cgo", file("internal/store/embedded/a.go", "C"),
			[]string{"internal/store/embedded/a.go: uses cgo, and the program is built without"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, check([]source{c.file})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// check applies every rule to every file and says what is broken.
func check(sources []source) (broken []string) {
	floorOf := map[string]int{}
	for n, floor := range Floors {
		for _, p := range floor {
			floorOf[p] = n
		}
	}
	for _, s := range sources {
		say := func(format string, args ...any) {
			broken = append(broken, s.file+": "+fmt.Sprintf(format, args...))
		}
		own, listed := floorOf[s.pkg]
		if !listed {
			say("its package is on no floor: list it in internal/floors")
			continue
		}
		for _, i := range s.imports {
			local, ours := strings.CutPrefix(i, module)
			switch {
			case i == "C":
				say("uses cgo, and the program is built without")
			case ours:
				if problem := checkOwn(s, own, local, floorOf); problem != "" {
					say("imports %s, %s", local, problem)
				}
			case strings.Contains(strings.Split(i, "/")[0], "."): // not of the standard library
				if problem := checkModule(s, i); problem != "" {
					say("imports %s, %s", i, problem)
				}
			}
		}
	}
	return broken
}

// checkOwn looks at an import of one of our packages.
func checkOwn(s source, own int, imported string, floorOf map[string]int) (problem string) {
	other, listed := floorOf[imported]
	concrete, suite := slices.Contains(Concrete, imported), slices.Contains(Suites, imported)
	switch {
	case s.test && !concrete && !isSuiteOf(imported, s.pkg) && (!listed || other > own):
		return "which is on a higher floor"
	case s.test:
		return ""
	case suite && !slices.Contains(Suites, s.pkg):
		return "which is for tests"
	case concrete && !slices.Contains(Wiring, s.pkg):
		return "a mode, which only " + strings.Join(Wiring, " and ") + " may name"
	case !listed || other >= own:
		return "which is not on a lower floor"
	}
	return ""
}

// isSuiteOf tells whether a suite lies below a package: internal/kernel/kerneltest tests internal/kernel.
func isSuiteOf(suite, pkg string) bool {
	return slices.Contains(Suites, suite) && strings.HasPrefix(suite, pkg+"/")
}

// checkModule looks at an import of a third-party module.
func checkModule(s source, imported string) (problem string) {
	if s.test || slices.Contains(Suites, s.pkg) || strings.HasPrefix(s.pkg, "test/") {
		for _, m := range TestModules {
			if within(imported, m) {
				return ""
			}
		}
	}
	m, listed := moduleOf(imported)
	switch {
	case !listed:
		return "of a module that is not listed in internal/floors"
	case !slices.Contains(Modules[m], s.pkg):
		return "which only " + strings.Join(Modules[m], ", ") + " may"
	}
	return ""
}

// moduleOf is the listed module of an import.
func moduleOf(imported string) (string, bool) {
	for m := range Modules {
		if within(imported, m) {
			return m, true
		}
	}
	return "", false
}

func within(imported, module string) bool {
	return imported == module || strings.HasPrefix(imported, module+"/")
}

// read finds the Go files of the module at root. Nested modules are their own affair.
func read(root string) (sources []source, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && file != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		s, err := parse(root, file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted since the directory was read
		}
		sources = append(sources, s)
		return err
	})
	return sources, err
}

func parse(root, file string) (source, error) {
	below, err := filepath.Rel(root, file)
	if err != nil {
		return source{}, err
	}
	below = filepath.ToSlash(below)
	s := source{file: below, pkg: path.Dir(below), test: strings.HasSuffix(below, "_test.go")}
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return source{}, err
	}
	for _, i := range tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("%s: %w", below, err)
		}
		s.imports = append(s.imports, p)
	}
	return s, nil
}
