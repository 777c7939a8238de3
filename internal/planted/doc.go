// Package planted holds the mistakes that the proof must see.
//
// A mistake is a line of the code under test of the form
//
//	if planted.Is(planted.BlindClear) { ... }
//
// Without the build tag `planted` Is is the constant false, and the compiler leaves the
// mistake out: no binary that anybody runs contains one. With the tag, a test makes one
// mistake at a time and shows that the simulator, the exhaustive search or the fault
// harness notices. A mistake that nothing notices is a hole in the checkers.
package planted

// Bug names one mistake. Its text says what goes wrong.
type Bug string
