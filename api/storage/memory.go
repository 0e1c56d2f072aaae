package storage

import (
	"math"
	"sync"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime"
)

// record is one version of one key.
type record struct {
	key     string
	rev     uint64
	value   []byte
	deleted bool
	// obj is the decoded object, shared by all readers; only the memory tier has it.
	obj runtime.Object
	// memory says which tier the version came from.
	memory bool
	// dormant is known of durable objects.
	dormant bool
}

// versions is a tree of versions ordered as badger orders them, by key and then
// newest first, so that both tiers answer the same questions.
type versions struct {
	tree *btree.BTreeG[record]
}

// at returns the version of key that is valid at rev, a deletion included.
func (v versions) at(key string, rev uint64) (found record, ok bool) {
	v.tree.AscendGreaterOrEqual(record{key: key, rev: rev}, func(r record) bool {
		found, ok = r, r.key == key
		return false
	})
	return found, ok
}

// next returns the first object in [from, end) as of rev.
func (v versions) next(from, end string, rev uint64) (found record, ok bool) {
	seen := ""
	v.tree.AscendGreaterOrEqual(record{key: from, rev: math.MaxUint64}, func(r record) bool {
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

// each calls fn for every version in [from, end) after since, up to upto.
func (v versions) each(from, end string, since, upto uint64, fn func(record)) {
	v.tree.AscendGreaterOrEqual(record{key: from, rev: math.MaxUint64}, func(r record) bool {
		if r.key >= end {
			return false
		}
		if r.rev > since && r.rev <= upto {
			fn(r)
		}
		return true
	})
}

// memoryTier keeps volatile objects.
type memoryTier struct {
	mu  sync.Mutex
	all versions
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
	return &memoryTier{all: versions{btree.NewG(32, func(a, b record) bool {
		if a.key != b.key {
			return a.key < b.key
		}
		return a.rev > b.rev
	})}}
}

// put adds a version; revisions must rise from call to call.
func (m *memoryTier) put(r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.all.at(r.key, r.rev); ok {
		m.superseded = append(m.superseded, supersededVersion{at: r.rev, key: r.key, rev: old.rev})
	}
	if r.deleted {
		m.superseded = append(m.superseded, supersededVersion{at: r.rev, key: r.key, rev: r.rev})
	}
	r.memory = true
	m.all.tree.ReplaceOrInsert(r)
}

// get returns the version of key that is valid at rev, a deletion included.
func (m *memoryTier) get(key string, rev uint64) (record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all.at(key, rev)
}

// snapshot returns the tier as it is now, to be read without a lock. It costs
// next to nothing: later writes copy what they change.
func (m *memoryTier) snapshot() versions {
	m.mu.Lock()
	defer m.mu.Unlock()
	return versions{m.all.tree.Clone()}
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
		m.all.tree.Delete(record{key: s.key, rev: s.rev})
		n++
	}
	m.superseded = append(m.superseded[:0:0], m.superseded[n:]...)
}
