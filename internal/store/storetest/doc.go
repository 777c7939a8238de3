// Package storetest says, by running, what [store.Atomic] means. Every store
// passes [Run]; what it does not ask for, no caller may rely on.
//
// An [Env] is one fresh store, and a way to restart it if it outlives its
// process. The suite finds no fault with a store that answers
// *store.BlockedError while another batch is in its way, as long as trying
// again ends; every other answer is held to the letter of the contract.
//
// The suite knows no implementation. That it can fail is shown by its own
// tests, which run it against stores with planted bugs.
package storetest
