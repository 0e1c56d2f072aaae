package storage

import (
	"context"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"k8s.io/apiserver/pkg/storage"
)

// sizeEstimate is what Stats reports beyond the number of objects.
type sizeEstimate struct {
	mu      sync.Mutex
	enabled bool
	sizes   map[string]int // by key, bytes as stored
	bytes   int64
}

func (s *sizeEstimate) note(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.enabled {
		return
	}
	s.bytes -= int64(s.sizes[e.key])
	delete(s.sizes, e.key)
	if e.kind != eventDeleted {
		s.sizes[e.key] = len(e.value)
		s.bytes += int64(len(e.value))
	}
}

// Stats implements storage.Interface. It counts keys without reading values.
func (st *store) Stats(context.Context) (storage.Stats, error) {
	if err := st.db.enter(); err != nil {
		return storage.Stats{}, err
	}
	defer st.db.leave()
	stats := storage.Stats{ObjectCount: st.countKeys()}
	st.sizes.mu.Lock()
	defer st.sizes.mu.Unlock()
	if n := int64(len(st.sizes.sizes)); st.sizes.enabled && n > 0 {
		stats.EstimatedAverageObjectSizeBytes = st.sizes.bytes / n
	}
	return stats, nil
}

func (st *store) countKeys() (n int64) {
	prefix, rev := st.cfg.ResourcePrefix, st.db.rev.Load()
	end := prefixEnd(prefix)
	for r, ok := st.db.memory.next(prefix, end, rev); ok; r, ok = st.db.memory.next(r.key+"\x00", end, rev) {
		n++
	}
	if st.db.disk == nil {
		return n
	}
	txn := st.db.disk.NewTransactionAt(rev, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix)})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		n++
	}
	return n
}

// EnableResourceSizeEstimation implements storage.Interface: from here on Stats
// reports the average size of an object. The store keeps the sizes itself and
// does not need keys.
func (st *store) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("KeysFunc cannot be nil")
	}
	st.db.write.Lock() // no write may slip between the scan and the first note
	defer st.db.write.Unlock()
	if err := st.db.enter(); err != nil {
		return err
	}
	defer st.db.leave()
	st.sizes.mu.Lock()
	defer st.sizes.mu.Unlock()
	if st.sizes.enabled {
		return errors.New("size estimation is enabled already")
	}
	sizes, total := map[string]int{}, int64(0)
	prefix := st.cfg.ResourcePrefix
	err := st.scan(prefix, prefix, st.db.rev.Load(), 100, func(r record) (bool, error) {
		sizes[r.key] = len(r.value)
		total += int64(len(r.value))
		return true, nil
	})
	if err != nil {
		return err
	}
	st.sizes.enabled, st.sizes.sizes, st.sizes.bytes = true, sizes, total
	return nil
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

// CompactRevision implements storage.Interface: the newest revision that can no
// longer be told completely is one below the floor; the floor itself is what
// upstream calls compacted.
func (st *store) CompactRevision() int64 { return int64(st.stream.floor()) }
