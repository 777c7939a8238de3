package kerneltest

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// Variables that tell a process of a test binary on which store its tests keep records; without one, on mem.
const (
	objectsVariable  = "KERNELTEST_OBJECTS"
	postgresVariable = "KERNELTEST_POSTGRES"
)

// OnObjects reports whether the tests of this process keep records in a store that can only
// swap single objects, instead of one with transactions. To run one of them so by hand:
//
//	KERNELTEST_OBJECTS=1 go test ./internal/catalog -run TestTranscripts
func OnObjects() bool { return os.Getenv(objectsVariable) != "" }

// OnPostgres reports whether they keep them in PostgreSQL. By hand:
//
//	KERNELTEST_POSTGRES=1 go test ./internal/catalog -run TestTranscripts
func OnPostgres() bool { return os.Getenv(postgresVariable) != "" }

// RunOnObjects runs the tests of this binary once more, in a process in which OnObjects is true,
// without those whose names match skip. The caller's own test must be one of them.
func RunOnObjects(t *testing.T, skip string) { runAgain(t, objectsVariable, skip) }

// RunOnPostgres is RunOnObjects for OnPostgres.
func RunOnPostgres(t *testing.T, skip string) { runAgain(t, postgresVariable, skip) }

func runAgain(t *testing.T, variable, skip string) {
	args := []string{"-test.skip", skip}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout", time.Until(deadline).String())
	}
	child := exec.CommandContext(t.Context(), os.Args[0], args...)
	child.Env = append(os.Environ(), variable+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("%s=1: %v\n%s", variable, err, out)
	}
}
