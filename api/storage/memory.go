package storage

import (
	"math"
	"sync"

	"github.com/google/btree"
)

// record is one version of one key.
type record struct {
	key     string
	rev     uint64
	value   []byte
	deleted bool
	// memory says which tier the version came from.
	memory bool
}

// memoryTier keeps volatile objects: a tree of versions ordered as badger
// orders them, by key and then newest first, so that both tiers answer the same
// questions.
type memoryTier struct {
	mu   sync.RWMutex
	tree *btree.BTreeG[record]
	// superseded lists versions nobody can see at or above a revision, in the
	// order of that revision.
	superseded []supersededVersion
}

type supersededVersion struct {
	at  uint64 // the revision that replaced the version
	key string
	rev uint64
}

func newMemoryTier() *memoryTier {
	return &memoryTier{tree: btree.NewG(32, func(a, b record) bool {
		if a.key != b.key {
			return a.key < b.key
		}
		return a.rev > b.rev
	})}
}

// put adds a version; revisions must rise from call to call.
func (m *memoryTier) put(r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.at(r.key, r.rev); ok {
		m.superseded = append(m.superseded, supersededVersion{at: r.rev, key: r.key, rev: old.rev})
	}
	if r.deleted {
		m.superseded = append(m.superseded, supersededVersion{at: r.rev, key: r.key, rev: r.rev})
	}
	r.memory = true
	m.tree.ReplaceOrInsert(r)
}

// get returns the version of key that is valid at rev, a deletion included.
func (m *memoryTier) get(key string, rev uint64) (record, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.at(key, rev)
}

func (m *memoryTier) at(key string, rev uint64) (found record, ok bool) {
	m.tree.AscendGreaterOrEqual(record{key: key, rev: rev}, func(r record) bool {
		found, ok = r, r.key == key
		return false
	})
	return found, ok
}

// next returns the first object in [from, end) as of rev.
func (m *memoryTier) next(from, end string, rev uint64) (found record, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	seen := ""
	m.tree.AscendGreaterOrEqual(record{key: from, rev: math.MaxUint64}, func(r record) bool {
		if r.key >= end {
			return false
		}
		if r.rev > rev || r.key == seen {
			return true
		}
		seen = r.key
		if r.deleted {
			return true
		}
		found, ok = r, true
		return false
	})
	return found, ok
}

// versions calls fn for every version in [from, end) after since, up to upto.
func (m *memoryTier) versions(from, end string, since, upto uint64, fn func(record)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.tree.AscendGreaterOrEqual(record{key: from, rev: math.MaxUint64}, func(r record) bool {
		if r.key >= end {
			return false
		}
		if r.rev > since && r.rev <= upto {
			fn(r)
		}
		return true
	})
}

// forget drops what nobody can see at floor or later.
func (m *memoryTier) forget(floor uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, s := range m.superseded {
		if s.at > floor {
			break
		}
		m.tree.Delete(record{key: s.key, rev: s.rev})
		n++
	}
	m.superseded = append(m.superseded[:0:0], m.superseded[n:]...)
}
