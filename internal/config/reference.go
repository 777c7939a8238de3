package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reference is docs/configuration.md, made from the table of keys.
func Reference() string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from internal/config by "go test ./internal/config -update"; do not edit. -->

# Configuration

Nothing has to be configured: ` + "`landfast serve`" + ` runs with the defaults below. Each setting can be given in
three places; where several name one, the first of these wins:

1. a flag of ` + "`landfast serve`" + `, such as ` + "`--log-level debug`" + `;
2. an environment variable, such as ` + "`LANDFAST_LOG_LEVEL=debug`" + ` (an empty one counts as not set, and an
   unknown one whose name begins with LANDFAST_ is warned of);
3. the YAML file that ` + "`--config FILE`" + ` names. An unknown key in it is an error; ` + "`landfast config check FILE`" + `
   reads a file and starts nothing.

Durations are numbers with a unit: ` + "`500ms`, `30s`, `1m30s`" + `. Sizes are numbers of bytes, or numbers with a
unit: ` + "`512KiB`, `64MiB`, `1GiB`" + `.

## The file with all defaults

` + "```yaml\n" + exampleFile() + "```\n" + `
## Settings

| key | variable | flag | value | default |
|---|---|---|---|---|
`)
	for _, k := range Keys {
		byDefault := "none"
		if k.Default != "" {
			byDefault = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | `%s` | `--%s` | %s | %s |\n", k.Name, anchor(k.Name), k.Env(), k.Flag(), k.Type, byDefault)
	}
	for _, k := range Keys {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", k.Name, k.Doc)
		if k.Detail != "" {
			fmt.Fprintf(&b, "\n%s\n", k.Detail)
		}
	}
	b.WriteString(`
## Variables of the other commands

| variable | read by | meaning |
|---|---|---|
| ` + "`LANDFAST_URL` | `landfast warehouse`, `landfast locks`" + ` | the server to talk to, when there is no ` + "`--url`" + ` |
| ` + "`LANDFAST_CACHE` | `make lint`, `make test`, `make conformance`" + ` | where what they download and build is kept |
`)
	return b.String()
}

// exampleFile is a file with every key at its default. Keys without one stand in a comment, and
// so do sections without any that has: one without keys is an error.
func exampleFile() string {
	var b strings.Builder
	var open []string // the sections that the last line is in
	for _, k := range Keys {
		parts := strings.Split(k.Name, ".")
		sections, leaf := parts[:len(parts)-1], parts[len(parts)-1]
		comment := ""
		if k.Default == "" {
			comment = "# "
		}
		for i, s := range sections {
			if i >= len(open) || open[i] != s {
				if hasDefault(strings.Join(sections[:i+1], ".")) {
					fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), s)
				} else {
					fmt.Fprintf(&b, "# %s%s:\n", strings.Repeat("  ", i), s)
				}
			}
		}
		open = sections
		value := cmp.Or(k.Default, k.Example)
		fmt.Fprintf(&b, "%s%s%s: %s\n", comment, strings.Repeat("  ", len(sections)), leaf, value)
	}
	return b.String()
}

// hasDefault tells whether a key of the section has one.
func hasDefault(section string) bool {
	return slices.ContainsFunc(Keys, func(k Key) bool { return k.Default != "" && strings.HasPrefix(k.Name, section+".") })
}

// anchor is how a heading is linked to on the usual hosts of Markdown.
func anchor(heading string) string { return strings.ReplaceAll(heading, ".", "") }
