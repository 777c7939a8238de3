// Package contention tells a person who waits for whom: [Look] makes a [Report] of the
// requests in the lock table, with advice, and [Hot] remembers which keys were waited
// for most in the last minute. [Report.AddRows] adds who waits for whom in a database that
// several instances share.
//
// A Report is bounded whatever happens in the server, and says what it leaves out. Nothing
// here decides anything: a server without this package would commit the same.
package contention
