package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseFile reads settings from YAML. Whatever it does not know is an error, with
// its line: a misspelt key that was silently ignored would be found much later.
func parseFile(name string, data []byte, given map[string]setting) []*Error {
	f := &file{name: name, given: given, lines: map[string]int{}}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil // an empty file says nothing
	} else if err != nil {
		return []*Error{f.malformed(err)}
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		f.refuse(&second, "", "there is a second document", "keep everything in one, without a line ---")
	} else if !errors.Is(err, io.EOF) {
		return []*Error{f.malformed(err)}
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return f.errs // only comments
	}
	f.section(root, "")
	return f.errs
}

// file is one file on its way into settings.
type file struct {
	name  string
	given map[string]setting
	lines map[string]int // by key: where it stands
	errs  []*Error
}

func (f *file) at(line int) string { return fmt.Sprintf("%s:%d", f.name, line) }

func (f *file) refuse(n *yaml.Node, key, problem, remedy string) {
	f.errs = append(f.errs, &Error{Where: f.at(n.Line), Key: key, Problem: problem, Remedy: remedy, line: n.Line})
}

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): `)

// malformed moves the line out of the parser's words, where every other error has it.
func (f *file) malformed(err error) *Error {
	where, problem := f.name, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		where, problem = f.name+":"+m[1], err.Error()[len(m[0]):]
	}
	return &Error{Where: where, Problem: "not YAML: " + problem, Remedy: "write `key: value` on each line; docs/configuration.md has an example"}
}

// section reads the keys below prefix, which is empty or ends in a dot.
func (f *file) section(n *yaml.Node, prefix string) {
	if n.Kind != yaml.MappingNode {
		f.refuse(n, strings.TrimSuffix(prefix, "."), "a value stands where keys are expected", "write `key: value` lines"+below(prefix))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := prefix + k.Value
		if first, again := f.lines[key]; again {
			f.refuse(k, key, fmt.Sprintf("it stands on line %d already", first), "keep one of them")
			continue
		}
		f.lines[key] = k.Line
		switch _, known := find(key); {
		case known && strings.Contains(k.Value, "."):
			f.refuse(k, key, "its parts are joined by dots", "write each on a line of its own, indented below the one before")
		case known:
			f.leaf(k, v, key)
		case isSection(key):
			f.section(v, key+".")
		default:
			f.unknown(k, key)
		}
	}
}

// leaf reads the value of a key.
func (f *file) leaf(k, v *yaml.Node, key string) {
	switch {
	case v.Kind != yaml.ScalarNode:
		f.refuse(v, key, "it is not a single value", "write `"+k.Value+": value` on one line")
	case v.Tag == "!!null":
		f.refuse(k, key, "it has no value", "give it one, or delete the line")
	default:
		f.given[key] = setting{v.Value, f.at(v.Line), key, v.Line}
	}
}

func (f *file) unknown(k *yaml.Node, key string) {
	remedy := "the keys are listed in docs/configuration.md"
	if n := nearest(key, namesOfKeysAndSections()); n != "" {
		remedy = "did you mean " + n + "?"
	}
	f.refuse(k, key, "no setting has this name", remedy)
}

// isSection tells whether keys lie below this one.
func isSection(key string) bool {
	for _, k := range Keys {
		if strings.HasPrefix(k.Name, key+".") {
			return true
		}
	}
	return false
}

func namesOfKeysAndSections() []string {
	var names []string
	for _, k := range Keys {
		names = append(names, k.Name)
		for i, c := range k.Name {
			if c == '.' {
				names = append(names, k.Name[:i])
			}
		}
	}
	return names
}

func below(prefix string) string {
	if prefix == "" {
		return ""
	}
	return " below " + strings.TrimSuffix(prefix, ".")
}
