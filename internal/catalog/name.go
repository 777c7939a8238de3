package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of names.
const (
	nameBytesMax       = 255
	namespaceLevelsMax = 32
)

// checkName refuses a name of a namespace level or a table that is not 1-255
// bytes of UTF-8 without control characters, or is `.` or `..`. Names are
// compared byte for byte: look-alikes are distinct.
func checkName(what, name string) error {
	switch {
	case name == "":
		return refuse(ErrInvalid, "Invalid %s: the name is empty", what)
	case len(name) > nameBytesMax:
		return refuse(ErrInvalid, "Invalid %s: the name is %d bytes long; at most %d are allowed", what, len(name), nameBytesMax)
	case !utf8.ValidString(name):
		return refuse(ErrInvalid, "Invalid %s %q: the name is not valid UTF-8", what, name)
	case name == "." || name == "..":
		return refuse(ErrInvalid, "Invalid %s %q: this name is reserved", what, name)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return refuse(ErrInvalid, "Invalid %s %q: the name contains the control character %U", what, name, r)
		}
	}
	return nil
}

// isPlain tells most names that checkName lets pass from the others, without a message.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return name != "" && len(name) <= nameBytesMax && name[0] != '.'
}

func checkNamespace(levels []string) error {
	if len(levels) == 0 {
		return refuse(ErrInvalid, "Invalid namespace: it has no levels")
	}
	if len(levels) > namespaceLevelsMax {
		return refuse(ErrInvalid, "Invalid namespace: it has %d levels; at most %d are allowed", len(levels), namespaceLevelsMax)
	}
	for i, l := range levels {
		if isPlain(l) {
			continue
		}
		what := "namespace"
		if len(levels) > 1 {
			what = fmt.Sprintf("namespace level %d", i+1)
		}
		if err := checkName(what, l); err != nil {
			return err
		}
	}
	return nil
}

func checkIdent(kind Kind, t Ident) error {
	if err := checkNamespace(t.Namespace); err != nil {
		return err
	}
	if isPlain(t.Name) {
		return nil
	}
	return checkName(string(kind)+" name", t.Name)
}

// Words that stand where a prefix could stand in a path.
var reservedWarehouseNames = []string{"namespaces", "tables", "views", "transactions", "config", "oauth"}

// isWarehouseName matches [a-z0-9][a-z0-9_-]{0,62}.
func isWarehouseName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 63
}

func checkWarehouseName(name string) error {
	if !isWarehouseName(name) {
		return refuse(ErrInvalid, "Invalid warehouse name %q: it must match [a-z0-9][a-z0-9_-]{0,62}", name)
	}
	if slices.Contains(reservedWarehouseNames, name) {
		return refuse(ErrInvalid, "Invalid warehouse name %q: reserved, as are %s", name, strings.Join(reservedWarehouseNames, ", "))
	}
	return nil
}
