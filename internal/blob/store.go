package blob

import (
	"context"
	"errors"
	"strings"
	"time"
)

// MarkPrefix begins the name of the file that says which warehouse lives in a
// root; the warehouse's id ends it. Stores refuse it in the name of any other file, so
// that no client can read, forge or delete a marker by choosing a location.
const MarkPrefix = ".landfast-warehouse-"

// Names that begin and end so are of files that exist only while a call runs. Whatever has
// such a name afterwards is a leftover of a call that was cut off.
const (
	TemporaryPrefix = ".landfast-"
	TemporarySuffix = ".tmp"
)

// IsTemporary tells whether the last part of a location or path is the name of a temporary file.
func IsTemporary(location string) bool {
	name := location[strings.LastIndexByte(location, '/')+1:]
	return strings.HasPrefix(name, TemporaryPrefix) && strings.HasSuffix(name, TemporarySuffix)
}

// Errors of a Store. They are wrapped with the operation and the location.
// A [*LocationError] comes before any file is touched, except that one which
// wraps ErrOutside may also come from a symbolic link met on the way.
var (
	// ErrNotFound says that nothing has this location, or that a parent of it is not a directory.
	// It is never the answer where the root itself is missing: an unmounted volume has lost no table.
	ErrNotFound = errors.New("blob: no such file")
	// ErrExists says that the location is taken; its bytes are as they were.
	ErrExists = errors.New("blob: the file exists already")
	// ErrTooLarge says that the file has more bytes than the caller's limit.
	ErrTooLarge = errors.New("blob: the file is larger than allowed")
	// ErrNotRegular says that a directory, pipe, socket or device has this location.
	ErrNotRegular = errors.New("blob: not a regular file")
	// ErrFull says that the disk, or this user's share of it, has no room left. Trying again at once will fail too.
	ErrFull = errors.New("blob: no space left")
	// ErrBelowFile says that a part of the path of what is to be created is no directory. It is wrapped by a *LocationError.
	ErrBelowFile = errors.New("blob: below a file")
	// ErrUncertain says that a Create was cut off from its store: the file may exist, or come to exist a
	// while later, or not. If it does it is whole. A fresh name is the way on.
	ErrUncertain = errors.New("blob: the file may or may not have been made")
	// ErrOutside says that the location is in no root of the scope, or that a symbolic link leads out of its root.
	ErrOutside = errors.New("blob: outside the warehouse's roots")
)

// ErrMarkMissing is that of Roots for a root without the marker of a warehouse: most
// often a volume that is not mounted, or the wrong one.
var ErrMarkMissing = errors.New("blob: the root has no marker of this warehouse")

// Store holds files that are written once, read many times and at last deleted.
//
// Its methods block on I/O and may be called by any number of goroutines. Those
// behind a network try again a few times, within their context, where that cannot
// do anything twice. A context that is done stops a call at its next step; a single
// read, write or sync of the operating system is not interrupted. Locations may
// be given in any spelling that Normalize accepts. Every error that is not
// listed for a method means that the file could not be reached, and says why.
type Store interface {
	// Read returns all bytes of the file, which belong to the caller.
	// A file of more than limit bytes is ErrTooLarge, whatever size it claims to have.
	// Errors: *LocationError, ErrOutside, ErrNotFound, ErrNotRegular, ErrTooLarge.
	Read(ctx context.Context, scope Scope, location string, limit int64) ([]byte, error)

	// Create makes a file of these bytes, and the directories above it where they are missing.
	// When it returns nil, file and name survive the loss of power. Of several calls for one location
	// exactly one returns nil, the others ErrExists. An error other than ErrUncertain leaves no file; directories
	// may stay. The caller must not change data before Create returns.
	// Errors: *LocationError, ErrOutside, ErrBelowFile, ErrExists, ErrFull, ErrUncertain.
	Create(ctx context.Context, scope Scope, location string, data []byte) error

	// Delete removes the file; a missing file is no error. Its location may be one that only NormalizeFile
	// accepts. The directory stays, even empty. The loss of power may bring the file back: whoever must know that it is gone asks again after a restart.
	// Errors: *LocationError, ErrOutside, ErrNotRegular.
	Delete(ctx context.Context, scope Scope, location string) error

	// Exists tells whether a regular file has this location, without opening it.
	// Errors: *LocationError, ErrOutside, ErrNotRegular.
	Exists(ctx context.Context, scope Scope, location string) (bool, error)

	// List calls yield for every regular file below a directory, at any depth, in no promised order. The directory
	// may be a root of the scope. A missing directory, or a file in its place, has none.
	//
	// A file that is there from before the call until after it is yielded exactly once; one that is made or deleted
	// meanwhile may be or not. Markers are not files. Symbolic links are neither yielded nor followed;
	// a directory that is itself reached by one is refused with ErrNotRegular, for its files have other locations.
	//
	// yield runs in the caller's goroutine and may call the Store. Its error ends the listing and is returned as it is.
	// Memory is bounded by the names of one directory, not by the files below it.
	// Errors: *LocationError, ErrOutside, ErrNotRegular.
	List(ctx context.Context, scope Scope, location string, yield func(Entry) error) error
}

// Entry is a file that List found.
type Entry struct {
	// Location is the root's URI and the path below it. It may be one that the other methods refuse, for
	// others may give their files names that no location can hold.
	Location string
	Size     int64
	Modified time.Time
	// Temporary marks what has a temporary name. Once it is older than any call may take, it may be deleted.
	Temporary bool
}

// Roots decides what may become a root, and keeps the markers that tie a root to one warehouse.
// Calls block on I/O and may be made by any number of goroutines.
type Roots interface {
	// Resolve makes a Root of what a person wrote. A directory that is missing is created, durably; a bucket is
	// not. It is called once for each root, when it is accepted; the result is what is stored. The options
	// are of an s3: root, and zero for every other.
	// Errors: *LocationError, *OptionError, or why there can be no root.
	Resolve(ctx context.Context, uri string, s3 S3Options) (Root, error)

	// Mark leaves a file with the warehouse's id in the root. A root may bear the marks of several
	// warehouses, and that of one which was never made, or is gone, does no harm.
	// Errors: ErrFull.
	Mark(ctx context.Context, root Root, id string) error

	// CheckMark looks for the marker. Its errors name the remedy.
	// Errors: ErrMarkMissing.
	CheckMark(ctx context.Context, root Root, id string) error
}

// Prober is what a Store may also be: one that notices cheaply that a file has gone.
type Prober interface {
	// Gone reports that certainly nothing has the location. False says nothing. It takes a system call or two.
	Gone(scope Scope, location string) bool
}

// Deferrer is what a Store may also be: one that makes many small files durable together.
type Deferrer interface {
	// Defers tells whether it is worth calling CreateDeferred for the location. It may look at the file system.
	Defers(scope Scope, location string) bool

	// CreateDeferred is Create, except that the loss of power may take or shorten the file, its name and the directories
	// made for it, until a Sync that began after it has returned nil. While the call runs, and after one that was cut
	// off, the file may be seen short: nobody may know its location before it returns.
	CreateDeferred(ctx context.Context, scope Scope, location string, data []byte) error

	// Sync makes durable what CreateDeferred made in this process before the call. After an error other than that of
	// ctx any file made since the Sync before may be lost, whatever a later Sync says: what is in memory may have been
	// given up. Only Rewrite helps.
	Sync(ctx context.Context) error

	// Rewrite gives the file exactly these bytes, durably, whatever was there, and makes the directories above it where
	// they are missing. Nobody ever sees another content than the old and the new.
	// Errors: *LocationError, ErrOutside, ErrBelowFile, ErrFull.
	Rewrite(ctx context.Context, scope Scope, location string, data []byte) error
}
