package runner

import (
	"context"
	"sync"
)

// Locks are mutual exclusion by canonical path, first come first served. The zero value is ready to use.
type Locks struct {
	mu    sync.Mutex
	paths map[string]*queue
}

// queue is a held path: who holds it and who waits, in order.
type queue struct {
	holder  string
	waiting []*waiter
}

type waiter struct {
	holder string
	turn   chan struct{}
}

// Acquire waits for the path and returns the function that releases it, which is harmless to repeat. holder
// names the caller for others that wait. When ctx is done first, Acquire returns the holder of the moment and
// the cause.
func (l *Locks) Acquire(ctx context.Context, path, holder string) (release func(), heldBy string, err error) {
	l.mu.Lock()
	if l.paths == nil {
		l.paths = map[string]*queue{}
	}
	q, held := l.paths[path]
	if !held {
		l.paths[path] = &queue{holder: holder}
		l.mu.Unlock()
		return l.releaser(path), "", nil
	}
	w := &waiter{holder: holder, turn: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	l.mu.Unlock()

	select {
	case <-w.turn:
		return l.releaser(path), "", nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range q.waiting {
		if other == w {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return nil, q.holder, context.Cause(ctx)
		}
	}
	// The turn came in the same moment; pass it on.
	l.pass(path)
	return nil, holder, context.Cause(ctx)
}

// Holder returns who holds the path, or the empty string.
func (l *Locks) Holder(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.paths[path]; ok {
		return q.holder
	}
	return ""
}

func (l *Locks) releaser(path string) func() {
	var once sync.Once
	return func() {
		once.Do(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pass(path)
		})
	}
}

// pass gives the path to the next waiter, or frees it.
func (l *Locks) pass(path string) {
	q := l.paths[path]
	if len(q.waiting) == 0 {
		delete(l.paths, path)
		return
	}
	next := q.waiting[0]
	q.waiting = q.waiting[1:]
	q.holder = next.holder
	close(next.turn)
}
