// Package history is what clients did to a catalog and what they were told, as plain
// data: the simulator writes it, and so does the harness that kills real processes.
// Package check judges it.
package history
