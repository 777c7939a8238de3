// Package rest is the Iceberg REST dialect: it decodes requests into the
// operations of package catalog, runs them, and encodes what they answer.
//
// # Nouns
//
// A route is a method, a path template and a handler. There is one table of
// them (routes.go), from which come the routing, the endpoints that /v1/config
// advertises, the label that metrics see, and docs/rest-coverage.md. A call is one
// request on its way through its handler. A refusal is an error that some row of
// the one error table (errors.go) gives a status and a type.
//
// # Promises
//
// Every answer with a status of 400 and above has the body
// {"error":{"message","type","code"}}, except to HEAD. Nothing is ever redirected.
// Every answer says Cache-Control: no-store. A request is refused in this order:
// its path, the form of its body (malformed JSON, a required member that is
// missing), then the warehouse, the namespace and the table that do not exist,
// then everything else. Every request has one deadline, which bounds the reading
// of its body, too.
//
// A status tells a writer what it must know: a change whose outcome is unknown,
// and nothing else, is CommitStateUnknownException, and no write answers 503,
// which Iceberg's clients take for the same. What was certainly not done is 409
// for a commit, so that the client makes it anew, and 429 for other writes, so
// that it sends it again.
//
// # Paths
//
// The path is split at "/" as it was sent, and each segment is decoded after
// that by the rules of forms, because the clients differ: "+" and "%20" are both
// a space, "%2B" is a plus, "%2F" is a slash within a name. A namespace is split
// into levels at "%1F" before they are decoded. The prefix is the name of a
// warehouse; a path without one means the warehouse main. A path ends without a
// slash: a slash too many stands before an empty name, which nothing has.
//
// # Caveats
//
// The handler does not authenticate anyone and does not limit how many requests
// run at once. A body is in memory as a whole until its request ends. Those beyond
// 64 KiB together hold at most four times Options.MaxBodyBytes, and one that finds
// no room is answered with 429. What is made of a body is not counted: it is usually
// a few times as much, and twenty times for a body of millions of tiny members.
//
// A request that net/http itself cannot read (a bad header, a header that is too
// long, a path such as /%zz) never comes here: its answer is plain text.
package rest
