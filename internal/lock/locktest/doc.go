// Package locktest is the suite that every [lock.Locker] passes, and [Yes], a
// Locker that grants everything.
//
// Every test runs in a bubble of testing/synctest: its clock is fake, long waits
// cost nothing, and that nobody can go on is known rather than guessed. A Locker
// under test therefore does its I/O in memory, on fakes whose goroutines live in
// the bubble, and takes its time from package time.
//
// The random tests print their seed in the name of the subtest. A seed fixes what
// each actor asks for and when, not how the scheduler interleaves those who act
// at the same instant.
package locktest
