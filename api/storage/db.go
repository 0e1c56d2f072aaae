package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/go-logr/logr"

	"k8s.io/apiserver/pkg/storage"
)

const (
	// memoryWindow is how many revisions of volatile objects stay readable.
	memoryWindow = 4096
	// memoryStep is how often, in revisions, old volatile versions are dropped.
	memoryStep = 256
	// firstRevision is the revision of an empty store. Zero means "any" in
	// requests, so it cannot be one.
	firstRevision = 1
)

// DB is one database: the disk tier, the memory tier, the revision counter and
// the event streams. It is safe for concurrent use.
type DB struct {
	opts   Options
	log    logr.Logger
	disk   *badger.DB // nil if the DB is in memory only
	memory *memoryTier
	lock   *dirLock
	report Report
	// opened and trusted bound the revisions nobody can account for: those
	// after trusted, up to opened, were given out by an earlier process and may
	// have been lost.
	opened, trusted uint64
	// indexedSince is the revision from which on the index of active objects can
	// be read.
	indexedSince uint64

	// write is the writer lock. It guards limit and marks.
	write sync.Mutex
	limit uint64 // the counter may rise to this without touching the mark
	steps []uint64

	rev         atomic.Uint64 // newest published revision
	diskRev     atomic.Uint64 // newest revision written to the disk tier
	diskFloor   atomic.Uint64 // oldest readable revision of durable objects
	memoryFloor atomic.Uint64 // and of volatile ones
	durable     durability

	streamsMu sync.Mutex
	streams   map[string]*stream

	// life is held for reading while badger is in use and for writing by Close.
	life     sync.RWMutex
	closed   bool
	done     chan struct{}
	watchers sync.WaitGroup
	closing  sync.Once
	closeErr error
}

// Open opens or creates the database. It fails with a *LockedError while
// another process holds the directory and with a *DamagedError when data that
// was safe on disk cannot be read. A damaged tail of the newest log does not
// stop it: Recovery tells what was cut.
func Open(o Options) (*DB, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	db := &DB{
		opts: o, log: o.Logger, memory: newMemoryTier(),
		streams: map[string]*stream{}, done: make(chan struct{}),
	}
	if o.Dir == "" {
		db.limit = ^uint64(0)
		db.start(firstRevision, firstRevision)
		return db, nil
	}
	if err := db.openDisk(); err != nil {
		return nil, errors.Join(err, db.lock.release())
	}
	return db, nil
}

func (db *DB) openDisk() error {
	dir, err := filepath.Abs(db.opts.Dir)
	if err != nil {
		return fmt.Errorf("open the object store: %w", err)
	}
	db.opts.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("open the object store: %w", err)
	}
	if db.lock, err = lockDir(dir); err != nil {
		return err
	}
	if err := roomToOpen(db.opts); err != nil {
		return err
	}
	found, err := examine(dir, &db.report)
	if err != nil {
		return err
	}
	if db.disk, err = openBadger(dir, db.log); err != nil {
		return err
	}
	db.durable.init(dir, db.opts.Sync)
	if err := db.begin(found); err != nil {
		return errors.Join(err, db.durable.close(), db.disk.Close())
	}
	for _, sentence := range db.report.Sentences {
		db.log.Info("Repaired the object store", "what", sentence)
	}
	return nil
}

// begin makes the open disk tier one that can be read and written.
func (db *DB) begin(found examination) error {
	if err := db.openIndex(found); err != nil {
		return err
	}
	if err := db.durable.logs.syncAll(); err != nil { // what was found and the index, before a mark says that it is there
		return fmt.Errorf("sync the object store: %w", err)
	}
	return db.startCounter(found)
}

// badgerOptions are small: the store holds some megabytes of small objects.
func badgerOptions(dir string, log logr.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithLogger(badgerLog{log.WithName("badger")}).
		WithMemTableSize(8 << 20).
		WithNumMemtables(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(6).
		WithNumCompactors(2).
		WithBlockCacheSize(8 << 20).
		WithIndexCacheSize(0).
		WithValueLogFileSize(16 << 20).
		WithValueThreshold(valueThreshold).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithNumVersionsToKeep(1).
		WithSyncWrites(false).
		WithBypassLockGuard(true).
		WithExternalMagic(formatVersion)
}

// formatVersion is the version of our key layout, kept in badger's manifest.
const formatVersion = 1

// openBadger opens the disk tier; a panic inside badger becomes an error.
func openBadger(dir string, log logr.Logger) (disk *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged(dir, "", fmt.Errorf("badger panicked: %v", p))
		}
	}()
	disk, err = badger.OpenManaged(badgerOptions(dir, log))
	if err != nil {
		return nil, damaged(dir, "", err)
	}
	return disk, nil
}

// startCounter sets the revision counter above everything an earlier process
// may have handed out.
func (db *DB) startCounter(found examination) error {
	highest := max(db.disk.MaxVersion(), firstRevision)
	start := max(highest, found.mark.Limit)
	trusted := highest
	switch {
	case found.markErr == nil && found.mark.Clean && found.mark.Limit >= highest && !db.report.damaged():
		trusted = start
	case found.markErr != nil && !found.fresh:
		// Without a mark nobody knows how far the counter had come.
		start = highest + markStep
		trusted = 0
		db.report.add("The file %s, which keeps the revision counter, could not be read (%v); the counter was moved on by %d.",
			markFile, found.markErr, markStep)
	}
	if db.report.damaged() {
		trusted = 0
	}
	db.diskFloor.Store(found.mark.Floor)
	db.disk.SetDiscardTs(found.mark.Floor)
	db.start(start, trusted)
	return db.reserve(start)
}

func (db *DB) start(rev, trusted uint64) {
	db.rev.Store(rev)
	db.opened, db.trusted = rev, trusted
	if rev > firstRevision { // volatile objects of before are gone, their deletions untold
		db.memoryFloor.Store(rev)
	}
	db.diskRev.Store(rev)
	db.durable.synced.Store(rev)
}

// reserve writes the mark ahead of rev, and on the way moves the floor of the
// disk tier: the file has it before badger may discard anything below it.
func (db *DB) reserve(rev uint64) error {
	floor := db.diskFloor.Load()
	db.steps = append(db.steps, rev)
	for len(db.steps) > 1 && db.steps[1]+db.opts.HistoryRevisions <= rev {
		db.steps = db.steps[1:]
	}
	if db.steps[0]+db.opts.HistoryRevisions <= rev {
		floor = max(floor, db.steps[0])
	}
	limit := rev + min(markStep, max(db.opts.HistoryRevisions, 1))
	if err := db.writeMarks(mark{Limit: limit, Floor: floor}); err != nil {
		return err
	}
	db.limit = limit
	db.raiseDiskFloor(floor)
	return nil
}

func (db *DB) raiseDiskFloor(floor uint64) {
	if floor <= db.diskFloor.Load() {
		return
	}
	db.diskFloor.Store(floor)
	db.disk.SetDiscardTs(floor)
	db.cutSlowWatchers()
}

// nextRevision returns the revision of the next write. The caller holds write.
func (db *DB) nextRevision() (uint64, error) {
	rev := db.rev.Load() + 1
	if rev > db.limit {
		if err := db.reserve(rev - 1); err != nil {
			return 0, err
		}
	}
	return rev, nil
}

// CurrentRevision returns the newest revision that has been published.
func (db *DB) CurrentRevision() uint64 { return db.rev.Load() }

// Recovery reports what Open found damaged and what it did about it.
func (db *DB) Recovery() Report { return db.report.clone() }

// enter keeps the database open until leave. It fails after Close.
func (db *DB) enter() error {
	db.life.RLock()
	if db.closed {
		db.life.RUnlock()
		return ErrClosed
	}
	return nil
}

func (db *DB) leave() { db.life.RUnlock() }

// Close ends all watches, waits for calls in flight and closes the files. It
// may be called more than once; calls that come later get ErrClosed.
func (db *DB) Close() error {
	db.closing.Do(func() { db.closeErr = db.close() })
	return db.closeErr
}

func (db *DB) close() error {
	close(db.done)
	db.life.Lock()
	db.closed = true
	db.life.Unlock()
	db.watchers.Wait()
	if db.disk == nil {
		return nil
	}
	err := db.durable.close()
	db.write.Lock()
	defer db.write.Unlock()
	err = errors.Join(err, db.disk.Close())
	if err == nil && db.durable.failure() == nil {
		err = db.writeMarks(mark{Limit: db.rev.Load(), Floor: db.diskFloor.Load(), Clean: true})
	}
	if err = errors.Join(err, db.lock.release()); err != nil {
		return fmt.Errorf("close the object store: %w", err)
	}
	return nil
}

// Compact makes revisions below rev unreadable, so that their space can be
// reclaimed. The store does this by itself; operators and tests may hurry it.
func (db *DB) Compact(_ context.Context, rev uint64) error {
	db.write.Lock() // before enter, always: Close must not come between them
	defer db.write.Unlock()
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if current := db.rev.Load(); rev > current {
		return storage.NewTooLargeResourceVersionError(rev, current, 0)
	}
	if db.disk != nil && rev > db.diskFloor.Load() {
		if err := db.writeMarks(mark{Limit: db.limit, Floor: rev}); err != nil {
			return err
		}
		db.raiseDiskFloor(rev)
	}
	db.raiseMemoryFloor(rev)
	return nil
}

func (db *DB) raiseMemoryFloor(floor uint64) {
	if floor <= db.memoryFloor.Load() {
		return
	}
	db.memoryFloor.Store(floor)
	db.memory.forget(floor)
	db.cutSlowWatchers()
}

func (db *DB) cutSlowWatchers() {
	db.streamsMu.Lock()
	defer db.streamsMu.Unlock()
	for _, s := range db.streams {
		s.cutSlow()
	}
}

// apply applies one write to its tier and publishes it. The caller holds write
// and has set everything in e but the revision.
func (db *DB) apply(s *stream, e *event) error {
	if err := db.durable.failure(); err != nil {
		return err
	}
	if !e.memory {
		if err := db.room(e); err != nil {
			return err
		}
	}
	rev, err := db.nextRevision()
	if err != nil {
		return err
	}
	if err := e.setRevision(rev); err != nil {
		return err
	}
	if e.memory {
		db.memory.put(record{key: e.key, rev: rev, value: e.value, obj: e.obj, deleted: e.kind == eventDeleted})
	} else if err := db.putDisk(e); err != nil {
		return err
	} else {
		db.diskRev.Store(rev)
	}
	s.publish(e)
	if rev%memoryStep == 0 && rev > memoryWindow {
		db.raiseMemoryFloor(rev - memoryWindow)
	}
	return nil
}

// dormantMark is the bit beside the key of a dormant object: the table of keys
// alone says that it need not be read. Objects without it are in the index.
const dormantMark = 1

func (db *DB) putDisk(e *event) error {
	txn := db.disk.NewTransactionAt(e.rev-1, true)
	defer txn.Discard()
	var err error
	if e.kind == eventDeleted {
		err = txn.Delete([]byte(e.key))
	} else {
		entry := badger.NewEntry([]byte(e.key), e.value)
		if e.dormant {
			entry = entry.WithMeta(dormantMark)
		}
		err = txn.SetEntry(entry)
	}
	if err == nil {
		err = putIndex(txn, e)
	}
	if err != nil {
		return fmt.Errorf("write %s to the object store: %w", e.key, err)
	}
	if err := txn.CommitAt(e.rev, nil); err != nil {
		// Part of it may be in the log: nothing can be written over that.
		return db.durable.fail(fmt.Errorf("write %s to the object store: %w", e.key, err))
	}
	return nil
}

// badgerLog passes badger's messages on: its errors and warnings as ours, the
// rest as detail.
type badgerLog struct{ log logr.Logger }

func (l badgerLog) Errorf(format string, args ...any) {
	l.log.Info("The database reports an error", "message", fmt.Sprintf(format, args...))
}

func (l badgerLog) Warningf(format string, args ...any) {
	l.log.Info("The database warns", "message", fmt.Sprintf(format, args...))
}

func (l badgerLog) Infof(format string, args ...any) {
	if log := l.log.V(2); log.Enabled() {
		log.Info("The database says", "message", fmt.Sprintf(format, args...))
	}
}

func (l badgerLog) Debugf(string, ...any) {}
