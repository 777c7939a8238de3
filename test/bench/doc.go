// Command bench measures Landfast, each figure beside a floor that is measured
// in the same run: the least that the machine must do for the same answer. Run it
// with `make bench`; `-run` picks rows, `-seconds` says how long each takes.
//
// # Nouns
//
// A row is one measurement. A worker does one thing after another, as a client
// would: it waits for each answer. A comparison drives the workers of Landfast and
// those of the floor in turns, so that what else the machine does falls on both.
//
// # Floors
//
//   - Loading a table: a bare net/http handler that writes the same bytes.
//   - Committing: a bare net/http handler that writes, fsyncs and renames a file
//     as large as the table's metadata file, and answers with the same bytes.
//   - tablemeta: encoding/json validates the document, and it is copied once.
//   - The embedded store: one goroutine appends as many bytes to a file and fsyncs.
//
// Landfast is the program itself, built and started by the bench with its default
// configuration; the floor is a process of its own, too. One client, which does
// not decode what it receives, drives both over 127.0.0.1.
//
// # Promise
//
// A figure counts only what was answered with success, and every acknowledged
// commit is looked for at the end of its row: the bench fails when the table lacks
// one, when it has more versions than were acknowledged, or when an answer is not
// what it should be. It does not fail because something is slow.
//
// # Caveats
//
// Clients, Landfast and the floor share one machine, so the rates are not what a
// server of its own reaches; the ratios are what to trust. The files lie in -dir,
// which must be on a disk: on a memory file system an fsync costs nothing.
package main
