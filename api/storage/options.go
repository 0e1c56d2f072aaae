package storage

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// Defaults of Options. Sizes are in bytes.
const (
	// DefaultMaxObjectBytes is the size cap of one encoded object.
	DefaultMaxObjectBytes = 512 << 10
	// DefaultHistoryEvents is the number of recent events a resource keeps in memory.
	DefaultHistoryEvents = 1000
	// DefaultHistoryRevisions is how far back a list or a watch may ask.
	DefaultHistoryRevisions = 20000
	// DefaultBookmarkInterval is the time between two bookmarks on a quiet watch.
	DefaultBookmarkInterval = time.Minute

	// valueThreshold is where badger would move a value to its value log. The
	// size cap lies below it, so that the write-ahead logs of the memtables are
	// the only files WaitDurable has to sync.
	valueThreshold = 1 << 20
)

// Options say where and how a DB keeps its data. The zero value is a DB in
// memory with default sizes.
type Options struct {
	// Dir holds the database, owned by one process at a time. It is created with
	// mode 0700. Empty: everything lives in memory, nothing is ever durable.
	Dir string
	// Logger is told what was repaired and what went wrong in the background.
	Logger logr.Logger
	// MaxObjectBytes caps an encoded object; 0 is DefaultMaxObjectBytes. It must
	// stay below 1 MiB.
	MaxObjectBytes int
	// HistoryEvents is the length of the ring of recent events of each resource;
	// 0 is DefaultHistoryEvents.
	HistoryEvents int
	// HistoryRevisions is how many revisions stay readable behind the newest; at
	// least that many, at most twice; 0 is DefaultHistoryRevisions.
	HistoryRevisions uint64
	// BookmarkInterval is the time between bookmarks; 0 is DefaultBookmarkInterval.
	BookmarkInterval time.Duration
	// Sync makes the written content of f durable. Nil is fdatasync. Tests count
	// calls with it and make it fail.
	Sync func(f *os.File) error
	// FreeSpace returns the bytes that may still be written to the file system of
	// dir. Nil asks the system. Below 64 MB the store refuses durable writes. While
	// there is plenty it is asked ten times a second at most.
	FreeSpace func(dir string) (uint64, error)
}

func (o Options) withDefaults() (Options, error) {
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	if o.MaxObjectBytes == 0 {
		o.MaxObjectBytes = DefaultMaxObjectBytes
	}
	if o.MaxObjectBytes < 0 || o.MaxObjectBytes >= valueThreshold {
		return o, fmt.Errorf("the size cap is %d bytes; it must be positive and below %d", o.MaxObjectBytes, valueThreshold)
	}
	if o.HistoryEvents <= 0 {
		o.HistoryEvents = DefaultHistoryEvents
	}
	if o.HistoryRevisions == 0 {
		o.HistoryRevisions = DefaultHistoryRevisions
	}
	if o.BookmarkInterval <= 0 {
		o.BookmarkInterval = DefaultBookmarkInterval
	}
	if o.Sync == nil {
		o.Sync = fdatasync
	}
	if o.FreeSpace == nil {
		o.FreeSpace = seldom(freeSpace)
	}
	return o, nil
}

// StoreConfig describes one resource to DB.Store.
type StoreConfig struct {
	// Codec encodes objects for storage and decodes them into the type of NewFunc.
	Codec runtime.Codec
	// NewFunc and NewListFunc return an empty object and an empty list.
	NewFunc, NewListFunc func() runtime.Object
	// ResourcePrefix starts every key of the resource, as "/operations/"; a
	// missing closing slash is added.
	ResourcePrefix string
	// GroupResource names the resource in errors.
	GroupResource schema.GroupResource
	// Volatile decides, once, at creation, whether an object lives in memory
	// only. Nil: every object is durable.
	Volatile func(runtime.Object) bool
	// Dormant, if set, marks objects that a list or a watch which demands
	// ActiveField=true by its field selector passes over without reading them.
	// It must be true only of objects whose field is not "true".
	Dormant     func(runtime.Object) bool
	ActiveField string
	// RemainingItemCount makes paged lists carry the number of objects left. It
	// costs a walk over the rest of the keys for each page.
	RemainingItemCount bool
	// Transformer, if set, stands between the codec and the store. Watch events
	// and reads then decode stored bytes instead of sharing the writer's object.
	Transformer value.Transformer
}

// ErrClosed is returned by every call on a DB that has been closed.
var ErrClosed = errors.New("the object store is closed")

// LockedError says that another process holds the database directory.
type LockedError struct {
	Dir string
	// PID is the holder's process id as it wrote it down, 0 if unknown.
	PID int
}

// Error says who holds the directory and what to do.
func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the object store %s is in use by %s; stop it or use another directory", e.Dir, who)
}

// DamagedError says that the database cannot be opened without losing data
// that was already safe on disk.
type DamagedError struct {
	Dir string
	// File is what could not be read, relative to Dir; empty if unknown.
	File string
	// MoveTo names a free directory beside Dir for setting the data aside.
	MoveTo string
	Err    error
}

// Error says what is damaged and what the user can do. Nothing was changed.
func (e *DamagedError) Error() string {
	what := e.Dir
	if e.File != "" {
		what = e.File + " in " + e.Dir
	}
	return fmt.Sprintf("the object store cannot be opened: %s is damaged (%v); nothing was changed. "+
		"Restore the directory from a backup, or set it aside with \"mv %s %s\" and start again with an empty store",
		what, e.Err, e.Dir, e.MoveTo)
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }
