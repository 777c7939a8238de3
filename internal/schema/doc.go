// Package schema holds the parts of Iceberg table metadata that describe rows:
// schemas, partition specs and sort orders, for format versions 1 to 3.
//
// A [Schema] is a struct of [Field]s, nested to any depth through structs,
// lists and maps, each with an id that is unique in the schema. A [Spec] derives
// partition values from fields, a [SortOrder] sorts by them; both name their
// source fields by id, and a transform (identity, bucket[16], day, ...).
//
// All three are parsed from the JSON of the specification's Appendix C, checked
// once, immutable from then on and safe for concurrent use. They do not alias
// the bytes that they were parsed from. JSON writes the canonical form: known
// members in the reference implementation's order, types in their canonical
// spelling, and behind them the members that this package does not know, byte
// for byte as they came. What is parsed from the output equals what was written.
//
// Parsing checks what is wrong in itself: an unknown type, an id used twice, two
// fields of one name, a default that does not fit its type. What depends on
// something else is asked for: [Schema.CheckFormat] (is this legal in v2?),
// [Spec.CheckCompatible] and [SortOrder.CheckCompatible] (does this schema still
// have the source columns?), [Spec.CheckNames] (does it shadow a partition?).
// So metadata that is wrong only for today's rules can still be loaded.
//
// A new table does not keep the ids of the request. [Schema.AssignFreshIDs]
// numbers its fields from 1, [Spec.Fresh] and [SortOrder.Fresh] follow them by
// column name. A spec added to a table goes through [Spec.Bind], which finds the
// partition field ids that the client left to the server.
//
// Every refusal is an [*Error] whose message is meant for the client. Nothing
// here reads a clock, draws a random number, does I/O or panics on any input.
//
// Caveats. Transforms of other names are carried, not understood. A default of a
// list or a map is refused, and of a struct all but {}: the reference
// implementation cannot load such a schema.
package schema
