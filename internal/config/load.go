package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

const envPrefix = "LANDFAST_"

// clientEnv are the variables that other commands than serve read.
var clientEnv = []string{"LANDFAST_URL", "LANDFAST_CACHE"}

// Sources are the places that a configuration comes from. The zero value gives the defaults.
type Sources struct {
	File  string            // path of a YAML file; empty: none
	Env   []string          // NAME=value, as from os.Environ; an empty value is as good as none
	Flags map[string]string // by Key.Flag: those that were given
}

// Error is one thing that is wrong with a configuration.
type Error struct {
	Where   string // file:line, a variable or a flag; "default" if nobody said it
	Key     string // as it was written; empty where there is none
	Problem string
	Remedy  string

	line int // in the file; 0 elsewhere
}

func (e *Error) Error() string {
	s := e.Where + ": "
	if e.Key != "" {
		s += e.Key + ": "
	}
	return s + e.Problem + "; " + e.Remedy
}

// setting is a value that was given, and where.
type setting struct {
	value string
	where string
	key   string // as it was written there
	line  int    // in the file; 0 elsewhere
}

// Load merges the sources. The warnings are for the log: nothing that they name
// has any effect. The error joins an [*Error] for each thing that is wrong; the
// Config is then not to be used.
func Load(src Sources) (Config, []string, error) {
	var wrong []*Error
	given := make(map[string]setting, len(Keys))

	if src.File != "" {
		data, err := os.ReadFile(src.File)
		if err != nil {
			return Config{}, nil, &Error{Where: src.File, Problem: "the configuration cannot be read: " + cause(err), Remedy: "name a YAML file that this user may read"}
		}
		wrong = parseFile(src.File, data, given)
	}
	warnings := fromEnv(src.Env, given)
	for _, k := range Keys {
		if v, ok := src.Flags[k.Flag()]; ok {
			given[k.Name] = setting{value: v, where: "--" + k.Flag()}
		}
	}

	if s := given["postgres.url"]; strings.HasPrefix(s.where, "--") && holdsPassword(s.value) {
		warnings = append(warnings, s.where+": it holds a password, and every user of this machine can see a flag; use postgres.password_file or LANDFAST_POSTGRES_URL")
	}

	c := Default()
	c.Coordination = ""
	for _, k := range Keys {
		s, ok := given[k.Name]
		if !ok {
			continue
		}
		if err := k.bind(&c).Set(s.value); err != nil {
			wrong = append(wrong, &Error{Where: s.where, Key: s.key, Problem: fmt.Sprintf("%q is not a value for it", s.value), Remedy: err.Error(), line: s.line})
		}
	}
	c.complete()
	if s, ok := given["postgres.url"]; ok && c.Store != StorePostgres {
		warnings = append(warnings, s.where+": it has no effect with store: "+c.Store+"; did you mean store: "+StorePostgres+"?")
	}
	// A value that could not be read has left its default, so the rest can be looked at all the same.
	for _, p := range c.check() {
		s, ok := given[p.Key]
		if !ok {
			s = setting{where: "default", key: p.Key}
		}
		p.Where, p.Key, p.line = s.where, s.key, s.line
		wrong = append(wrong, p)
	}
	return c, warnings, inOrder(wrong)
}

// inOrder joins the errors: those of the file from its top to its end, then the others.
func inOrder(wrong []*Error) error {
	slices.SortStableFunc(wrong, func(a, b *Error) int {
		if (a.line == 0) != (b.line == 0) {
			return b.line - a.line
		}
		return a.line - b.line
	})
	errs := make([]error, len(wrong))
	for i, e := range wrong {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// fromEnv takes the settings from the environment, and warns of what looks like one and is none.
func fromEnv(environ []string, given map[string]setting) (warnings []string) {
	byName := make(map[string]Key, len(Keys))
	known := slices.Clone(clientEnv)
	for _, k := range Keys {
		byName[k.Env()] = k
		known = append(known, k.Env())
		if k.alias != "" {
			byName[k.alias] = k
		}
	}
	// Names are compared without what they share, which would make all of them look alike.
	suffixes := make([]string, len(known))
	for i, name := range known {
		suffixes[i] = strings.TrimPrefix(name, envPrefix)
	}
	for _, entry := range environ {
		name, v, _ := strings.Cut(entry, "=")
		if v == "" {
			continue
		}
		if k, ok := byName[name]; ok {
			if name != k.alias || given[k.Name].where != k.Env() {
				given[k.Name] = setting{value: v, where: name}
			}
		} else if !strings.HasPrefix(name, envPrefix) {
			continue
		} else if !slices.Contains(known, name) {
			w := name + ": no setting has this name; the variable has no effect"
			if n := nearest(strings.TrimPrefix(name, envPrefix), suffixes); n != "" {
				w += "; did you mean " + envPrefix + n + "?"
			}
			warnings = append(warnings, w)
		}
	}
	slices.SortFunc(warnings, cmp.Compare)
	return warnings
}

// cause is what the operating system said, without the path, which the caller names.
func cause(err error) string {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}
