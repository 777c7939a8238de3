// Command bench measures Landfast, and other Iceberg catalogs beside it, each
// figure beside a floor that is measured in the same run: the least that the
// machine must do for the same answer. Run it with `make bench`; `-run` picks rows,
// `-seconds` says how long each takes, `-write` writes docs/performance.md.
//
// # Nouns
//
// A row is one measurement. A worker does one thing after another, as a client
// would: it waits for each answer. A side is one of those that a row drives in
// turns, so that what else the machine does falls on all of them: a catalog, or the
// floor. A contest is a row whose sides are all catalogs and the floor. A goal is a
// figure to reach, judged by the results of the rows.
//
// # Floors
//
//   - Reading: a bare net/http handler that writes the same bytes.
//   - Writing: a bare net/http handler that writes, fsyncs and renames a file as
//     large as the table's metadata file, one for each table of a transaction, and
//     answers with the same bytes.
//   - tablemeta: encoding/json validates the document, and it is copied once.
//   - The embedded store: one goroutine appends as many bytes to a file and fsyncs.
//   - Landfast on PostgreSQL, distinct tables: beside the floor, the batches of as many commits and nothing else.
//
// Landfast is the program itself, built and started by the bench with its default
// configuration; the floor is a process of its own, too. The same clients drive all
// sides over 127.0.0.1 and read their answers in the same way.
//
// # Promise
//
// A figure counts only what was answered with success, and every acknowledged
// write is looked for at the end of its row: the bench fails when Landfast lacks
// one, when a table has more versions than were acknowledged, or when an answer is
// not what it should be. It does not fail because something is slow, nor because of
// what another catalog does: the line of that one says so.
//
// # Caveats
//
// Clients, catalogs and the floor share one machine, so the rates are not what a
// server of its own reaches; the ratios are what to trust. The files lie in -dir,
// which must be on a disk: on a memory file system an fsync costs nothing.
package main
