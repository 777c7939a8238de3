// Package tablemeta is Iceberg table and view metadata: how it is read, what a
// commit may require of it, how updates change it, and how it is written.
//
// [Parse] reads the JSON of a metadata file into [Metadata]; [New] makes the
// first metadata of a table. A commit is a list of [Requirement]s, which [Check]
// compares with the current metadata, and a list of [Update]s, which [Commit]
// applies to it in order. [FileName], [Encode] and [Decode] say how metadata
// becomes a file and back. Views have the same: [ParseView], [CreateView],
// [CheckView], [CommitView], [ViewFileName], [EncodeView].
//
// The semantics are those of Iceberg's reference implementation, for format
// versions 1, 2 and 3. What is not understood survives: unknown members of a
// document, at every level, keep their bytes, and a document that was not changed
// is written back byte for byte. What an update brings is kept with all its
// members and digits, without its white space and without members that are null,
// which the reference cannot load. To that end, and for speed, a document is never
// decoded as a whole. Its scalars are; its long lists (snapshots, logs, statistics,
// schemas) stay spans of the document, and an update touches the spans that it
// changes.
//
// Everything here is pure: no clock, no randomness, no I/O. The time and the
// ids are arguments, so that a commit can be decided again and gives the same
// result. Metadata is immutable and safe for concurrent use.
//
// Where the reference leaves room for harm, this package is stricter:
//
//   - last-updated-ms and the times in both logs never run back, whatever the
//     clocks of clients and servers say; a snapshot from more than a minute
//     ahead of the server's clock is refused.
//   - What common readers of JSON cannot take is not stored: deep nesting, very
//     long numbers, names and strings. Nor are transforms of several sources.
//   - A table's uuid, once assigned, cannot be changed, and last-sequence-number
//     cannot fall: a snapshot without a parent that is older than it is stale.
//   - set-default-spec and set-default-sort-order want an id that exists; partition
//     fields that come without ids get ones that the table does not use otherwise.
//
// Removing what is not there is no change, of properties, schemas and specs too;
// setting a property is always one.
//
// Of views this package keeps representations that are not SQL, which the reference
// refuses when a view is made and loses when it is changed; what is unknown also tells
// versions apart. The version log does not run back, and does not follow a client's
// clock by more than a minute. A view's one format version is 1.
//
// Format version 4 is still being designed. Its metadata is read and served, a
// commit on it keeps what it does not understand and follows the rules of
// version 3; no table is created in it or upgraded to it. Version 5 and beyond
// are refused.
package tablemeta
