// Package floors says which package may import which, and tests it.
//
// The module is built in floors: a package imports only packages of lower floors.
// [Floors] lists them from the ground up, and every package of the module is in it;
// one that is not fails the test, so that where it belongs is decided when it is
// made. Three more rules are lists beside it: concrete modes are named only where
// they are wired together, each third-party module has the packages that may use
// it, and some modules have none.
//
// Test files obey one rule less: they may use every implementation and suite of
// their own floor or below. The lint configuration repeats what can be said there
// (depguard), to have it in the editor; this test is the authority.
package floors
