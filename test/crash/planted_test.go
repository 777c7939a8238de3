package crash

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// plantedVariable names the mistake that a server makes which was built for it: see package planted.
const plantedVariable = "LANDFAST_PLANTED"

// Servers that make these mistakes are found out within eighty rounds.
func TestPlanted(t *testing.T) {
	for _, test := range []struct{ name, configuration, mistake string }{
		{"answers come too early", "embedded", "embedded: a batch is answered before it is durable"},
		{"time runs back", "embedded", "tablemeta: last-updated-ms follows the clock"},
		{"keys are forgotten", "embedded", "catalog: an idempotency key is not recorded with its change"},
		{"files come after a batch", "embedded", "kernel: files are written after the batch that names them"},
		{"what is not heard of did not happen", "postgres", "postgres: an answer that did not come is taken for a refusal"},
		{"keys are forgotten by the others", "postgres", "catalog: an idempotency key is not recorded with its change"},
	} {
		t.Run(test.name, func(t *testing.T) {
			play := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFaults$/^"+test.configuration+"$", "-test.v", "-rounds", "80")
			play.Env = append(os.Environ(), plantedVariable+"="+test.mistake)
			out, err := play.CombinedOutput()
			if err != nil && bytes.Contains(out, []byte("find the warehouse main: 404")) {
				t.Log("found before the first round: the warehouse that the start has made is not there yet")
				return
			}
			if err == nil || !bytes.Contains(out, []byte("FAILED")) {
				t.Fatalf("nothing was noticed: %v\n%s", err, out)
			}
			t.Logf("found in %s", regexp.MustCompile(`round +\d+`).Find(regexp.MustCompile(`round +\d.*FAILED`).Find(out)))
		})
	}
}
