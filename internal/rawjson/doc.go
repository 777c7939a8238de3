// Package rawjson reads JSON strictly, and takes documents apart without
// decoding them.
//
// Two kinds of callers share it. Request bodies and small values are decoded
// into Go values by [Unmarshal]. Long documents, of which a caller understands
// only a part and must give back the rest unchanged, are cut into spans by
// [Object]: subslices of the input, in order, that cost few allocations however
// many members there are.
//
// Strict means: one value and nothing behind it, UTF-8 throughout, no member
// name twice in one object (names are compared after unescaping, so that
// "a" and "\u0061" are the same name), names matched case by case and at their
// own depth only, integers exact to 64 bits and never rounded from a fraction.
//
// [Lookup], [Pick], [Members], [Elements] and the like are for what [Object] or
// [Validate] has read: they look no closer than is needed to find the next
// comma, and do not allocate for what they pass by. On other input they return
// nonsense, but they end and stay within the input.
//
// Spans alias the input. Whoever keeps a span keeps the whole input in memory,
// and whoever changes the input changes its spans.
//
// Every refusal is an [*Error]; nothing here panics on any input. All functions
// are safe for concurrent use.
package rawjson
