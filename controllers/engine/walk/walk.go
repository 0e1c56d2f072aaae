package walk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
)

// Dir is one directory of a walk.
type Dir struct {
	// Path is absolute.
	Path string
	// Rel is relative to the search root and ends with a slash; it is empty for the root.
	Rel string
	// Data is what Visitor.Enter gave for the directory.
	Data any

	scope  *ignore.Scope
	device uint64
	known  bool // device is set; without it a pseudo file system may be entered
}

// NewRoot makes the directory where a walk begins. scope holds the rules from above; nil hides nothing.
func NewRoot(path string, scope *ignore.Scope, data any) *Dir {
	return &Dir{Path: path, scope: scope, Data: data}
}

func (d *Dir) child(name string, data any) *Dir {
	path := d.Path + "/" + name
	if d.Path == "/" {
		path = "/" + name
	}
	return &Dir{Path: path, Rel: d.Rel + name + "/", Data: data, scope: d.scope, device: d.device, known: d.known}
}

// Item is one entry of a directory.
type Item struct {
	Name string
	Type Type
}

// Visitor is what a search does on the way. Its methods are called by several goroutines at once.
type Visitor[R any] interface {
	// Wants says whether the entry is to be visited. Ignore files are consulted afterwards.
	Wants(d *Dir, name string, t Type) bool
	// Enter says whether a sub-directory is to be read, and gives the Data of its Dir.
	Enter(d *Dir, name string) (data any, ok bool)
	// Visit turns wanted entries of d, in order, into results. A long Visit should ask w.Stopped.
	Visit(w *Worker, d *Dir, items []Item) []R
	// Weight is what a result counts against the limit.
	Weight(R) int
}

// Worker is one goroutine of a walk.
type Worker struct {
	// ID counts from 0 and is below the number of workers; scratch memory can be kept by it.
	ID      int
	stop    *atomic.Bool
	listing listing
}

// Stopped says whether the walk is over: cancelled, out of time, or with enough results.
func (w *Worker) Stopped() bool { return w.stop.Load() }

// Options bound a walk.
type Options struct {
	// Workers is the number of goroutines, 0 for one per processor.
	Workers int
	// Limit ends the walk as soon as the first results in order weigh more than it; 0 is no limit.
	Limit int
	// Budget ends the walk after that time; 0 is no limit.
	Budget time.Duration
	// Batch is the number of entries visited as one piece of work; 0 visits them while the directory is read.
	Batch int
	// Git includes entries named .git.
	Git bool
	// Hidden is the number of ignored entries to report.
	Hidden int
}

// WorkerCount is the number of workers that o asks for.
func (o Options) WorkerCount() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return max(1, runtime.GOMAXPROCS(0))
}

// Seed is a place to begin: a directory to read, or entries of it to visit.
type Seed struct {
	Dir *Dir
	// Items are visited; if there are none the directory is read.
	Items []Item
}

// key sorts seeds as results are sorted.
func (s Seed) key() string {
	rel := s.Dir.Rel
	if len(s.Items) > 0 {
		rel += s.Items[0].Name
	}
	return strings.ReplaceAll(rel, "/", "\x00")
}

// Outcome is what a walk found.
type Outcome[R any] struct {
	// Results are in order of path parts.
	Results []R
	// TimedOut is set when the budget ended the walk; Unread directories were known but not read then.
	TimedOut bool
	Unread   int
	// Unreadable counts directories that could not be opened; UnreadableName is the first in time.
	Unreadable     int
	UnreadableName string
	// Hidden are entries that ignore files hid and the visitor wanted or would have entered, in order.
	// A walk from them obeys no ignore files.
	Hidden []Seed
}

// grace is how long a finished walk waits for a worker that hangs in a system call.
const grace = 250 * time.Millisecond

// Run walks from seeds, which are in order. It fails only if ctx is cancelled or a seed cannot be opened.
func Run[R any](ctx context.Context, seeds []Seed, v Visitor[R], o Options) (Outcome[R], error) {
	w := newWalker(v, o)
	for _, s := range seeds {
		w.list.append(&slot[R]{dir: s.Dir, items: s.Items, seed: true})
	}
	w.push(w.list.all())
	defer context.AfterFunc(ctx, func() { w.end(false) })()
	if o.Budget > 0 {
		defer time.AfterFunc(o.Budget, func() { w.end(true) }).Stop()
	}
	finished := make(chan struct{})
	var running sync.WaitGroup
	for id := range o.WorkerCount() {
		running.Go(func() { w.work(&Worker{ID: id, stop: &w.stop}) })
	}
	go func() { running.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-w.ended:
		select {
		case <-finished:
		case <-time.After(grace):
		}
	}
	out := w.collect()
	if err := ctx.Err(); err != nil {
		return out, err
	}
	return out, w.err
}

type walker[R any] struct {
	v     Visitor[R]
	o     Options
	stop  atomic.Bool
	ended chan struct{}

	mu      sync.Mutex
	idle    sync.Cond
	stack   []*slot[R] // the earliest in order is on top
	running int
	list    slots[R]
	out     Outcome[R]
	emitted int  // weight of out.Results
	waiting int  // weight of finished slots behind an unfinished one
	closed  bool // results that come now are late
	err     error
}

func newWalker[R any](v Visitor[R], o Options) *walker[R] {
	w := &walker[R]{v: v, o: o, ended: make(chan struct{})}
	w.idle.L = &w.mu
	w.list.init()
	return w
}

// work takes up slots until there are none.
func (w *walker[R]) work(wk *Worker) {
	for {
		s := w.next()
		if s == nil {
			return
		}
		if s.items != nil {
			w.finish(s, w.v.Visit(wk, s.dir, s.items), nil)
			continue
		}
		children, err := w.read(wk, s.dir)
		if err != nil {
			w.unreadable(s, err)
		}
		w.finish(s, nil, children)
	}
}

func (w *walker[R]) next() *slot[R] {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.stop.Load() {
			return nil
		}
		if n := len(w.stack); n > 0 {
			s := w.stack[n-1]
			w.stack[n-1] = nil
			w.stack = w.stack[:n-1]
			if s.dropped {
				continue
			}
			w.running++
			return s
		}
		if w.running == 0 {
			return nil
		}
		w.idle.Wait()
	}
}

// push puts slots on the stack so that the first is taken first. The lock is held or not yet needed.
func (w *walker[R]) push(list []*slot[R]) {
	for _, s := range slices.Backward(list) {
		if !s.done {
			w.stack = append(w.stack, s)
		}
	}
}

// finish records what became of a slot: results, or slots that take its place in the order.
func (w *walker[R]) finish(s *slot[R], results []R, children []*slot[R]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	defer w.wake(len(children))
	if s.dropped || w.closed {
		return
	}
	s.done = true
	if w.stop.Load() && s.items == nil && len(children) == 0 {
		s.done = false // perhaps interrupted: count it as unread
	}
	w.settle(s, results)
	after := s
	for _, c := range children {
		w.list.insertAfter(after, c)
		after = c
		if c.done {
			w.settle(c, c.results)
		}
	}
	w.push(children)
	w.advance()
	if w.o.Limit > 0 && w.emitted+w.waiting > w.o.Limit {
		w.prune()
	}
}

func (w *walker[R]) settle(s *slot[R], results []R) {
	s.results = results
	for _, r := range results {
		s.weight += w.v.Weight(r)
	}
	w.waiting += s.weight
}

func (w *walker[R]) wake(added int) {
	if added > 1 || w.running == 0 && len(w.stack) == 0 || w.stop.Load() {
		w.idle.Broadcast()
	} else if added == 1 {
		w.idle.Signal()
	}
}

// advance moves finished slots at the front into the outcome.
func (w *walker[R]) advance() {
	for s := w.list.first(); s != nil && s.done; s = w.list.first() {
		w.out.Results = append(w.out.Results, s.results...)
		w.emitted += s.weight
		w.waiting -= s.weight
		w.list.remove(s)
		if w.o.Limit > 0 && w.emitted > w.o.Limit {
			w.endLocked()
			return
		}
	}
}

// prune drops all slots that come after enough finished results: whatever earlier slots add, later ones
// cannot be among the first.
func (w *walker[R]) prune() {
	weight := w.emitted
	s := w.list.first()
	for ; s != nil && weight <= w.o.Limit; s = w.list.after(s) {
		if s.done {
			weight += s.weight
		}
	}
	for s != nil {
		next := w.list.after(s)
		if s.done {
			w.waiting -= s.weight
		}
		s.dropped, s.results = true, nil
		w.list.remove(s)
		s = next
	}
}

// end stops the walk from outside.
func (w *walker[R]) end(timedOut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stop.Load() {
		w.out.TimedOut = timedOut
	}
	w.endLocked()
}

func (w *walker[R]) endLocked() {
	if w.stop.CompareAndSwap(false, true) {
		close(w.ended)
	}
	w.idle.Broadcast()
}

// collect takes what there is, in order, and closes the walk to late results.
func (w *walker[R]) collect() Outcome[R] {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for s := w.list.first(); s != nil; s = w.list.after(s) {
		if s.done || s.results != nil {
			w.out.Results = append(w.out.Results, s.results...)
		}
		if !s.done && s.items == nil {
			w.out.Unread++
		}
	}
	slices.SortFunc(w.out.Hidden, func(a, b Seed) int { return strings.Compare(a.key(), b.key()) })
	return w.out
}

// unreadable notes a directory that could not be read; one that has vanished meanwhile is no news.
func (w *walker[R]) unreadable(s *slot[R], err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.seed && s.dir.Rel == "" {
		w.err = &fs.PathError{Op: "open", Path: s.dir.Path, Err: err}
		w.endLocked()
		return
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return
	}
	if w.out.Unreadable == 0 {
		w.out.UnreadableName = s.dir.Rel
	}
	w.out.Unreadable++
}

func (w *walker[R]) hide(s Seed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.out.Hidden) < w.o.Hidden {
		w.out.Hidden = append(w.out.Hidden, s)
	}
}

// InGit says whether path lies in a .git directory, whose content is then what the search is about.
func InGit(path string) bool {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if filepath.Base(path) == ignore.GitDir {
			return true
		}
	}
	return false
}

// Shortfalls are the notices of what a walk with options o did not reach.
func (out Outcome[R]) Shortfalls(o Options) []string {
	var notices []string
	if out.TimedOut {
		left := "files not read to their end"
		if out.Unread > 0 {
			left = counted(out.Unread, "directory", "directories") + " unread"
		}
		notices = append(notices, fmt.Sprintf("incomplete: stopped after %s with %s. Narrow path or pattern",
			counted(int(o.Budget.Round(time.Second)/time.Second), "second", "seconds"), left))
	}
	if out.Unreadable > 0 {
		notices = append(notices, fmt.Sprintf("incomplete: %s could not be read: %s",
			counted(out.Unreadable, "directory", "directories"), Display(out.UnreadableName)))
	}
	return notices
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
