// Package blob is where metadata files and data files lie, and the one way to
// reach them.
//
// A location is the URI under which clients know a file or a directory. Two
// spellings of one place must compare equal, so locations are compared in the
// form that [Normalize] gives them; everything that has no single such form is
// refused with a [LocationError]. A [Root] is a place in which one warehouse may
// keep files, a [Scope] is the list of a warehouse's roots, and a [Store] reads,
// creates and deletes files, each call naming the scope it may touch.
//
// Promises of every Store, which package blobtest checks:
//
//   - no call opens, creates or removes anything outside the scope it was given,
//     whatever symbolic links, `..` segments or special files lie on the way;
//   - a file that Create has reported as made is complete, durable and was never
//     visible under its name with other bytes;
//   - a file never changes: Create does not replace;
//   - a failure leaves no file behind, except that after [ErrUncertain] there may be a whole one.
//
// Caveats. Locations are compared by their bytes: on a file system that folds
// case, or that has two names for one directory (bind mounts, Windows short
// names, a link inside a root), two different locations may be one place. Links
// in the path of the root itself are resolved once, see [Scope.Canonical].
//
// The package holds no implementation; package local keeps files on a local or
// mounted file system, package s3 in buckets. [ByScheme] chooses between them.
package blob
