package project

import (
	"context"
	"sync"
	"time"
)

const (
	// settle is how long everything must have been left alone before git looked at it: a later change within the
	// same tick of the file system's clock would not show.
	settle = 2 * time.Second
	// maxPaths is how many files and directories are remembered, of all checkouts; of one it is half of that.
	maxPaths = 1 << 17
	// surveyWait is how long it may take to learn what git looks at.
	surveyWait = 30 * time.Second
)

// shared remembers checkouts for the whole process.
var shared = newMemory(settle)

// memory keeps what git said of a checkout together with the stamps of all that git looks at for it: its own
// files, its configuration, every file that is tracked, every directory that is not ignored and the ignore and
// attribute files in them. While all of these are the same git would say the same.
//
// The stamps are taken after git has answered, when nobody waits for them, and only kept if everything was last
// changed some time before git was asked: then they are those of the files that git saw. Where git looks at more
// than that (submodules, nested repositories, included configuration) or the file system's times are not to be
// relied upon, git is asked each time. One thing stamps cannot show, to git neither: a page of a file that a
// process has mapped and writes to once more before the system has written it out.
type memory struct {
	settle time.Duration
	max    int          // how many paths are remembered
	later  func(func()) // runs what nobody waits for

	mu     sync.Mutex
	of     map[string]*snapshot // by the checkout's top directory
	paths  int                  // of all of them
	making bool                 // a snapshot, one at a time
	asked  int                  // how often git was, for tests
	why    error                // there is no snapshot of the checkout that was asked for last, for tests
}

// snapshot is what git said of a checkout, and what it had looked at.
type snapshot struct {
	checkout Checkout
	own      *marks // git's files and its configuration
	tree     *marks // the checkout's
	used     time.Time
}

func (s *snapshot) size() int { return len(s.own.paths) + len(s.tree.paths) }

func newMemory(settle time.Duration) *memory {
	return &memory{settle: settle, max: maxPaths, of: map[string]*snapshot{}, later: func(f func()) { go f() }}
}

func (m *memory) state(ctx context.Context, p Project) *Checkout {
	if !p.Git {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	top := Discover(p.Root).Root // p.Root may be a directory in the checkout
	c := m.recall(ctx, top)
	if c == nil {
		c = m.ask(ctx, top, p.Root)
	}
	c.Root = p.Root
	return c
}

// recall returns what git said if it would say the same now.
func (m *memory) recall(ctx context.Context, top string) *Checkout {
	m.mu.Lock()
	s := m.of[top]
	m.mu.Unlock()
	if s == nil {
		return nil
	}
	same := s.own.hold(ctx) && s.tree.hold(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !same {
		if m.of[top] == s && ctx.Err() == nil {
			m.forget(top)
		}
		return nil
	}
	s.used = time.Now()
	c := s.checkout
	return &c
}

func (m *memory) forget(top string) {
	m.paths -= m.of[top].size()
	delete(m.of, top)
}

func (m *memory) ask(ctx context.Context, top, dir string) *Checkout {
	sv := newSurvey(top)
	c := ask(ctx, dir)
	if m.worth(c) {
		known := *c
		m.later(func() { m.remember(sv, known) })
	}
	return c
}

// worth says whether to make a snapshot, which then has begun.
func (m *memory) worth(c *Checkout) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if c.Note != "" || c.Dirty == nil || m.making {
		return false
	}
	m.making = true
	return true
}

// remember makes a snapshot, for which others that were not used for longer are forgotten.
func (m *memory) remember(sv *survey, c Checkout) {
	ctx, cancel := context.WithTimeout(context.Background(), surveyWait)
	defer cancel()
	tree, err := sv.run(ctx, m.settle, m.max/2)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.making, m.why = false, err
	if err != nil {
		return
	}
	s := &snapshot{checkout: c, own: sv.own, tree: tree, used: time.Now()}
	if m.of[sv.top] != nil {
		m.forget(sv.top)
	}
	for m.paths+s.size() > m.max && len(m.of) > 0 {
		m.forget(m.oldest())
	}
	m.of[sv.top] = s
	m.paths += s.size()
}

func (m *memory) oldest() (top string) {
	for t, s := range m.of {
		if top == "" || s.used.Before(m.of[top].used) {
			top = t
		}
	}
	return top
}
