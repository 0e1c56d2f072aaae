package storage

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
)

type eventKind int

const (
	eventAdded eventKind = iota
	eventModified
	eventDeleted
)

// event is one write as watchers are told of it. It never changes once it is
// published.
type event struct {
	rev    uint64
	key    string
	kind   eventKind
	memory bool
	// dormant marks an object that is of no interest to those who ask for active ones.
	dormant bool
	// existing marks what a new watch is told of objects that were there before.
	existing bool
	value    []byte // as stored; nil for a deletion
	// obj is the writer's decoded object at rev; nil for a deletion, for events
	// read back from history, and with a transformer.
	obj runtime.Object
	// prev is the version before; its value is nil for an addition.
	prev version

	setRV func(runtime.Object, uint64) error
}

// version is a state of one object, decoded or not.
type version struct {
	rev   uint64
	value []byte
	obj   runtime.Object
	// dormant is known of durable objects.
	dormant bool
}

func (e *event) setRevision(rev uint64) error {
	e.rev = rev
	if e.obj == nil {
		return nil
	}
	if err := e.setRV(e.obj, rev); err != nil {
		return fmt.Errorf("set the resource version of %s: %w", e.key, err)
	}
	return nil
}

// current is the state that the event made; a deletion makes none.
func (e *event) current() version {
	return version{rev: e.rev, value: e.value, obj: e.obj, dormant: e.dormant}
}

// ringBytes bounds the encoded size of what one ring holds.
const ringBytes = 8 << 20

func (e *event) size() int { return len(e.value) + len(e.prev.value) }

// stream is the ordered sequence of events of one resource: a ring of the
// newest ones and the watchers that read it at their own pace.
type stream struct {
	db     *DB
	prefix string
	stats  statistics
	// memory says that the resource may have volatile objects.
	memory atomic.Bool

	mu       sync.Mutex
	ring     []*event // ring[(first+i)%len] for i < size, oldest first
	first    int
	size     int
	bytes    int               // of the values the ring holds
	evicted  uint64            // revision of the newest event no longer in the ring
	latest   map[string]*event // by key, the newest event in the ring
	watchers map[*watcher]struct{}
	changed  totals // by all events so far
}

func newStream(db *DB, prefix string) *stream {
	return &stream{
		db: db, prefix: prefix,
		ring:     make([]*event, db.opts.HistoryEvents),
		evicted:  db.rev.Load(),
		latest:   map[string]*event{},
		watchers: map[*watcher]struct{}{},
	}
}

func (s *stream) at(i int) *event { return s.ring[(s.first+i)%len(s.ring)] }

// publish makes a write visible: revision and event in one step.
func (s *stream) publish(e *event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db.rev.Store(e.rev)
	s.changed.note(e)
	before := s.evicted // who stands here or later has seen everything
	if s.size > 0 {
		before = s.at(s.size - 1).rev
	}
	for s.size == len(s.ring) || s.size > 0 && s.bytes+e.size() > ringBytes {
		s.evict()
	}
	s.bytes += e.size()
	s.ring[(s.first+s.size)%len(s.ring)] = e
	s.size++
	s.latest[e.key] = e
	for w := range s.watchers {
		switch {
		case w.wants(e):
			w.wake()
		case w.pos >= before:
			w.pos = max(w.pos, e.rev)
		}
		s.cutIfLost(w)
	}
}

func (s *stream) evict() {
	old := s.at(0)
	s.ring[s.first] = nil
	s.first = (s.first + 1) % len(s.ring)
	s.size--
	s.bytes -= old.size()
	s.evicted = old.rev
	if s.latest[old.key] == old {
		delete(s.latest, old.key)
	}
}

// recent returns the newest event of key if the ring still has it. It is the
// current state of key then.
func (s *stream) recent(key string) *event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[key]
}

// floor is the oldest revision from which the stream can be told completely.
func (s *stream) floor() uint64 {
	floor := s.db.diskFloor.Load()
	if s.memory.Load() || s.db.disk == nil {
		floor = max(floor, s.db.memoryFloor.Load())
	}
	return floor
}

// batchSize is how many events a watcher takes from the ring at once.
const batchSize = 64

// take returns the next events w wants and moves it past them. behind is true
// if the ring no longer has what w needs next. pos is where w stands after: it
// has seen everything up to that revision.
func (s *stream) take(w *watcher) (batch []*event, behind bool, pos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.pos < s.evicted {
		return nil, true, w.pos
	}
	i := sort.Search(s.size, func(i int) bool { return s.at(i).rev > w.pos })
	for ; i < s.size && len(batch) < batchSize; i++ {
		e := s.at(i)
		if w.wants(e) {
			batch = append(batch, e)
		}
		w.pos = e.rev
	}
	if i == s.size {
		w.pos = max(w.pos, s.db.rev.Load())
	}
	return batch, false, w.pos
}

// moveTo records that w has seen everything up to pos.
func (s *stream) moveTo(w *watcher, pos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.pos = max(w.pos, pos)
}

func (s *stream) add(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[w] = struct{}{}
}

func (s *stream) remove(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
}

// requestProgress asks every watch that was opened for it to send a bookmark.
func (s *stream) requestProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		if w.progress {
			w.ask()
		}
	}
}

func (s *stream) cutSlow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		s.cutIfLost(w)
	}
}

// cutIfLost ends a watch whose next event is neither in the ring nor in the
// history any more.
func (s *stream) cutIfLost(w *watcher) {
	if w.pos < s.evicted && w.pos < s.floor() {
		w.cut()
	}
}

// wants says whether e lies in what w watches.
func (w *watcher) wants(e *event) bool {
	if w.recursive {
		return strings.HasPrefix(e.key, w.key)
	}
	return e.key == w.key
}
