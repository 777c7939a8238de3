package floors_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notFunctions are the words in the life of a commit that name no function of ours.
var notFunctions = map[string]bool{"server": true, "rest": true, "Plan": true, "Result": true}

// The life of a commit in ARCHITECTURE.md names functions that exist.
func TestArchitectureIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, life, ok := strings.Cut(string(page), "## Life of a commit")
	life, _, end := strings.Cut(life, "\n## ")
	if !ok || !end {
		t.Fatal("ARCHITECTURE.md does not tell the life of a commit")
	}
	declared := declaredNames(t)
	names := regexp.MustCompile("`([^`/ ]+)`").FindAllStringSubmatch(life, -1)
	if len(names) < 30 {
		t.Errorf("the life of a commit names %d functions", len(names))
	}
	for _, m := range names {
		name := m[1][strings.LastIndexByte(m[1], '.')+1:]
		if !notFunctions[name] && !declared[name] {
			t.Errorf("`%s`: there is no %s", m[1], name)
		}
	}
}

// declaredNames are those of the functions, methods and types of the program.
func declaredNames(t *testing.T) map[string]bool {
	declared := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				declared[d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						declared[s.Name.Name] = true
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}
