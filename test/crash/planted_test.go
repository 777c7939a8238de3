package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// plantedVariable names the mistake that a server makes which was built for it: see package planted.
const plantedVariable = "LANDFAST_PLANTED"

// effect is how the problems read that a mistake causes.
type effect struct{ *regexp.Regexp }

func effects(problems ...string) effect {
	return effect{regexp.MustCompile(strings.Join(problems, "|"))}
}

const (
	noOrder = `no order of the operations of \d+ rounds explains every answer`
	lost    = ` is lost\b`
	astray  = `, where it cannot be: `
	// nobody has done what an answer says.
	nobody = `, which nobody (took away|dropped)$`
)

var (
	// What was answered is not there yet for who comes next, and never after a kill.
	answersEarly = effects(`: 404 \{.*does not exist`, `: 409 \{.*already exists`, nobody, ` did not see .*, which was answered before it`,
		lost, astray, ` found nothing to drop, but it was `, ` is there but should not be`, `^half of a transaction`, noOrder,
		// The purge of a dropped table was looked for before it was written down.
		`^a file of a purged table is there `)
	clockFollowed = effects(`: 400 \{.*Invalid update timestamp \d+: before `, `last-updated-ms of .* runs back`, `: no reader accepts `)
	// What is repeated happens again, or is refused because it has happened.
	keysForgotten = effects(` was applied twice, `, ` nothing explains the version `, ` comes after .* in the history, but was answered before `, ` replaced the later `,
		`, repeated under its key: answered \d+ .* instead of `, `, repeated under its key: another body was answered `,
		`, repeated under its key: answered 2\d\d .* and, at the same time, 4\d\d `, `, repeated under its key: answered 4\d\d .* and, at the same time, 2\d\d `,
		`: 409 \{.*already exists`, ` has \d+ names: `, ` is there but should not be`, astray, noOrder)
	// A file is not there when its table is loaded, or never, because the disk is full.
	filesLate = effects(`Failed to open input stream for file`, ` was refused \(\d+\) and is visible`, nobody, lost, `metadata file .* (is missing|is damaged|cannot be used)`, `: file .* is missing`)
	// What was refused has happened.
	refusedThough = effects(` was refused( \(\d+\))? and is visible`, ` is visible as the last change, but did not happen`, lost, astray,
		` is there but should not be`, `, which it never was$`, nobody, `^half of a transaction`, noOrder)
)

// attempts is how often a mistake is played, with another seed, until an effect of it is seen that this test knows. What stops a
// drill is what the first odd answer says, and a mistake is odd in many ways; on a slow machine eighty rounds may not meet it.
const attempts = 3

// Servers that make these mistakes are found out within eighty rounds, at the third play at the latest, and known by what
// the mistake does.
func TestPlanted(t *testing.T) {
	for _, test := range []struct {
		name, configuration, mistake string
		effect                       effect
	}{
		{"answers come too early", "embedded", "embedded: a batch is answered before it is durable", answersEarly},
		{"time runs back", "embedded", "tablemeta: last-updated-ms follows the clock", clockFollowed},
		{"keys are forgotten", "embedded", "catalog: an idempotency key is not recorded with its change", keysForgotten},
		{"files come after a batch", "embedded", "kernel: files are written after the batch that names them", filesLate},
		{"what is not heard of did not happen", "postgres", "postgres: an answer that did not come is taken for a refusal", refusedThough},
		{"keys are forgotten by the others", "postgres", "catalog: an idempotency key is not recorded with its change", keysForgotten},
		{"files come after a batch of another", "postgres", "kernel: files are written after the batch that names them", filesLate},
		{"time runs back between servers", "postgres", "tablemeta: last-updated-ms follows the clock", clockFollowed},
	} {
		t.Run(test.name, func(t *testing.T) {
			for attempt := 1; ; attempt++ {
				play := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFaults$/^"+test.configuration+"$", "-test.v", "-rounds", "80")
				play.Env = append(os.Environ(), plantedVariable+"="+test.mistake)
				out, err := play.CombinedOutput()
				if err == nil && attempt == attempts {
					t.Fatalf("nothing was noticed\n%s", out)
				}
				found, err := test.effect.find(string(out))
				if err != nil && attempt == attempts {
					t.Fatalf("%v\n%s", err, out)
				}
				for _, kept := range keptIn.FindAllStringSubmatch(string(out), -1) {
					if err := os.RemoveAll(kept[1]); err != nil {
						t.Error(err)
					}
				}
				if err == nil {
					t.Log(found)
					return
				}
				t.Log(err)
			}
		})
	}
}

var (
	// failure is what is printed of a drill that has failed: a line for each problem.
	failure = regexp.MustCompile(`(?m)^    main_test\.go:\d+: .*(\n        .*)*`)
	// place is what comes before the first of them.
	place = regexp.MustCompile(`^    main_test\.go:\d+: (round \d+, [^:]*: )?`)
	// idle is said of a fault when the run ends early.
	idle   = regexp.MustCompile(` hindered nobody in \d+ rounds$`)
	keptIn = regexp.MustCompile(`and their state are kept in (.*)`)
)

// find gives a problem that the mistake has caused, and where it was found. Every drill that failed must have one: what fails
// for no reason that the mistake gives is a false alarm.
func (e effect) find(out string) (found string, err error) {
	for _, drill := range failure.FindAllString(out, -1) {
		if idle.MatchString(drill) {
			continue
		}
		where := place.FindString(drill)
		problem, ok := e.first(strings.Split(strings.TrimPrefix(drill, where), "\n"))
		if !ok {
			return "", fmt.Errorf("a false alarm, or the mistake has an effect that the test does not know:\n%s", drill)
		}
		if found == "" {
			found = strings.TrimSpace(where) + " " + problem
		}
	}
	if found == "" {
		return "", errors.New("no drill failed")
	}
	return found, nil
}

func (e effect) first(problems []string) (string, bool) {
	for _, p := range problems {
		if p = strings.TrimSpace(p); e.MatchString(p) {
			return p, true
		}
	}
	return "", false
}

// A false alarm is not taken for a mistake that was found.
func TestPlantedIsFoundByItsEffect(t *testing.T) {
	const (
		kept        = "\n        the history, the servers' logs and their state are kept in /tmp/x"
		twice       = "    main_test.go:71: round 3, delay: load by w1 is odd\n        table t: commit c was applied twice, in versions 1 and 4" + kept + "\n"
		noWarehouse = "    main_test.go:71: find the warehouse main: 404 {\"error\":{\"message\":\"Warehouse does not exist: main\"}}" + kept + "\n"
		twoReasons  = "    main_test.go:71: round 9, kill + delay: create c, repeated under its key: answered 404 {} and, at the same time, 409 {}" + kept + "\n"
		doneOnce    = "    main_test.go:71: round 9, kill + delay: create c, repeated under its key: answered 200 {} and, at the same time, 409 {}" + kept + "\n"
		later       = "embedded: round    4 kill 300 acknowledged; 1s FAILED\n"
		slow        = "    main_test.go:76: freeze hindered nobody in 1 rounds\n"
		build       = "    main_test.go:48: build the server: exit status 1\n        undefined: store\n"
	)
	for name, test := range map[string]struct {
		effect effect
		out    string
		found  string // empty: it is not
	}{
		"an effect":                                 {keysForgotten, later + twice + later, "applied twice"},
		"the first line":                            {keysForgotten, doneOnce, "main_test.go:71: round 9, kill + delay: create c"},
		"two drills, both of them":                  {keysForgotten, twice + later + doneOnce, "applied twice"},
		"two drills, one of them a false alarm":     {keysForgotten, twice + later + twoReasons, ""},
		"a false alarm":                             {keysForgotten, later + twoReasons, ""},
		"an effect of another mistake":              {clockFollowed, twice, ""},
		"the warehouse is not there yet":            {answersEarly, noWarehouse, "find the warehouse main"},
		"the warehouse is not there, and should be": {filesLate, noWarehouse, ""},
		"a fault had no time":                       {keysForgotten, twice + slow, "applied twice"},
		"nothing but a fault that had no time":      {keysForgotten, slow, ""},
		"the server was not built":                  {answersEarly, build, ""},
		"a line that only says FAILED":              {answersEarly, later, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := test.effect.find(test.out)
			if (err == nil) != (test.found != "") || !strings.Contains(found, test.found) {
				t.Errorf("got %q, %v, want %q", found, err, test.found)
			}
		})
	}
}
