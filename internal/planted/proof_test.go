package planted_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every mistake has one row in the table of docs/proof.md, which says what sees it; and there are no other rows.
func TestEveryMistakeHasARow(t *testing.T) {
	const file = "../../docs/proof.md"
	_, table, ok := strings.Cut(read(t, file), "\n## Planted bugs\n")
	if !ok {
		t.Fatalf("%s has no heading \"Planted bugs\"", file)
	}
	seenBy := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\w+: .*?) \|(.*)$`).FindAllStringSubmatch(table, -1) {
		if _, twice := seenBy[row[1]]; twice {
			t.Errorf("%s: %q has two rows", file, row[1])
		}
		seenBy[row[1]] = strings.Trim(row[2], "| ")
	}
	bugs := regexp.MustCompile(`(?m)^\t\w+ +Bug = "(.*)"$`).FindAllStringSubmatch(read(t, "bugs.go"), -1)
	if len(bugs) == 0 {
		t.Fatal("bugs.go has no mistakes")
	}
	for _, bug := range bugs {
		if seenBy[bug[1]] == "" {
			t.Errorf("%s: no row says what sees %q", file, bug[1])
		}
		delete(seenBy, bug[1])
	}
	for name := range seenBy {
		t.Errorf("%s: bugs.go has no mistake %q", file, name)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
