// Package s3 keeps files in buckets of S3, or of a server that speaks its protocol.
//
// A [Store] serves every s3: root; the options of the root say how its bucket is
// reached, and those that the Store was made with where the root has none. A file
// is one object, whose key is the location's path byte by byte; a directory is no
// more than the beginning of keys. Buckets are not made.
//
// Create is one PUT with If-None-Match, so that of several writers one wins. The
// object bears a nonce of the call, in its metadata: where a request was answered
// by nobody, or the same name is being written by somebody else, the object is
// looked at, and the nonce says whose it is. This is why Create may try again, as
// all other calls do: at most [policy.attempts] times, each for a bounded time, with
// growing pauses, and never longer than the context allows. What is then still not
// known is blob.ErrUncertain. The SDK's own retries are off, for they would take the
// answer to a lost first attempt for that of somebody else.
//
// Resolve tries all this on the bucket: a server that ignores If-None-Match, or
// loses metadata, is refused before there is a file to be lost on it.
//
// Caveats. A marker that was found is believed for [markTTL]: a bucket is not
// unmounted. Deleting a file of a bucket with versions leaves its old version. S3
// says that it denies access to a missing file, if the credentials may not list
// the bucket; that is an error here and never a missing file. What an upload that
// was cut off has left is an object whole or not there: there are no temporary
// files but those of Resolve.
package s3
