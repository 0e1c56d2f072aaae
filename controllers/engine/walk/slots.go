package walk

// slot is a place in the order of results: a directory to read, entries to visit, or results.
type slot[R any] struct {
	prev, next *slot[R]
	dir        *Dir
	items      []Item // nil: the directory is to be read
	seed       bool
	results    []R
	weight     int
	done       bool
	dropped    bool
}

// slots is a ring with a sentinel: the order of all results that are not yet in the outcome.
type slots[R any] struct{ end slot[R] }

func (l *slots[R]) init() { l.end.prev, l.end.next = &l.end, &l.end }

func (l *slots[R]) first() *slot[R] { return l.after(&l.end) }

func (l *slots[R]) after(s *slot[R]) *slot[R] {
	if s.next == &l.end {
		return nil
	}
	return s.next
}

func (l *slots[R]) append(s *slot[R]) { l.insertAfter(l.end.prev, s) }

func (l *slots[R]) insertAfter(at, s *slot[R]) {
	s.prev, s.next = at, at.next
	at.next.prev = s
	at.next = s
}

// remove leaves the links of s alone, so that a loop may go on from it.
func (l *slots[R]) remove(s *slot[R]) {
	s.prev.next = s.next
	s.next.prev = s.prev
}

func (l *slots[R]) all() []*slot[R] {
	var out []*slot[R]
	for s := l.first(); s != nil; s = l.after(s) {
		out = append(out, s)
	}
	return out
}
