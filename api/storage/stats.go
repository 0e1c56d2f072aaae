package storage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"

	"k8s.io/apiserver/pkg/storage"
)

// totals are the number of objects of a resource and of their bytes as stored.
type totals struct {
	objects, bytes int64
}

func (t *totals) note(e *event) {
	t.bytes += int64(len(e.value)) - int64(len(e.prev.value))
	switch e.kind {
	case eventAdded:
		t.objects++
	case eventDeleted:
		t.objects--
	}
}

// statistics answer Stats. What there was is counted once; from then on the
// events say how it changes.
type statistics struct {
	sizes atomic.Bool // report the average size too

	mu      sync.Mutex
	counted bool
	base    totals // what was there before the first event of the stream
}

// Stats implements storage.Interface. Only the first call reads the keys.
func (st *store) Stats(context.Context) (storage.Stats, error) {
	if err := st.db.enter(); err != nil {
		return storage.Stats{}, err
	}
	defer st.db.leave()
	now := st.stream.totals()
	stats := storage.Stats{ObjectCount: now.objects}
	if st.stats.sizes.Load() && now.objects > 0 {
		stats.EstimatedAverageObjectSizeBytes = now.bytes / now.objects
	}
	return stats, nil
}

// EnableResourceSizeEstimation implements storage.Interface: from here on Stats
// reports the average size of an object. The store knows the sizes itself and
// does not call keys.
func (st *store) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("KeysFunc cannot be nil")
	}
	if err := st.db.enter(); err != nil {
		return err
	}
	defer st.db.leave()
	if st.stats.sizes.Swap(true) {
		return errors.New("size estimation is enabled already")
	}
	return nil
}

// totals returns what the resource holds now.
func (s *stream) totals() totals {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	for !s.stats.counted {
		s.mu.Lock()
		rev, since := s.db.rev.Load(), s.changed
		s.mu.Unlock()
		there := s.db.count(s.prefix, rev)
		s.stats.base = totals{there.objects - since.objects, there.bytes - since.bytes}
		s.stats.counted = rev >= s.floor() // else a compaction overtook the count
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return totals{s.stats.base.objects + s.changed.objects, s.stats.base.bytes + s.changed.bytes}
}

// count walks over the keys under prefix as of rev.
func (db *DB) count(prefix string, rev uint64) (t totals) {
	end, memory := prefixEnd(prefix), db.memory.snapshot()
	for r, ok := memory.next(prefix, end, rev); ok; r, ok = memory.next(r.key+"\x00", end, rev) {
		t.objects++
		t.bytes += int64(len(r.value))
	}
	if db.disk == nil {
		return t
	}
	txn := db.disk.NewTransactionAt(rev, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		t.objects++
		t.bytes += it.Item().ValueSize()
	}
	return t
}

// ReadinessCheck implements storage.Interface. It fails once the DB is closed
// or can no longer make writes durable.
func (st *store) ReadinessCheck() error {
	if err := st.db.enter(); err != nil {
		return err
	}
	defer st.db.leave()
	return st.db.durable.failure()
}

// RequestWatchProgress implements storage.Interface: every watch of the
// resource that asked for progress gets a bookmark soon.
func (st *store) RequestWatchProgress(context.Context) error {
	if err := st.db.enter(); err != nil {
		return err
	}
	defer st.db.leave()
	st.stream.requestProgress()
	return nil
}

// GetCurrentResourceVersion implements storage.Interface.
func (st *store) GetCurrentResourceVersion(context.Context) (uint64, error) {
	if err := st.db.enter(); err != nil {
		return 0, err
	}
	defer st.db.leave()
	return st.db.rev.Load(), nil
}

// CompactRevision implements storage.Interface: revisions below it can no
// longer be read. It is 0 while everything can.
func (st *store) CompactRevision() int64 { return int64(st.stream.floor()) }
