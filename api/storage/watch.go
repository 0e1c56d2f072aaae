package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

const (
	// resultBuffer is how many events lie ready for a consumer.
	resultBuffer = 100
	// lastWord is how long a watch that was cut off waits for its consumer to
	// take the reason before the channel is closed without it.
	lastWord = 30 * time.Second
	// beforeDeadline is how long before the end of a watch's context its last
	// bookmark is sent.
	beforeDeadline = 2 * time.Second
)

// watcher is one watch. A goroutine of its own pulls events from the stream,
// filters them and hands copies to the consumer.
type watcher struct {
	st        *store
	key       string
	recursive bool
	pred      storage.SelectionPredicate
	progress  bool // bookmarks on request
	bookmarks bool // bookmarks from time to time
	stamped   bool // events carry the time they were made

	ctx    context.Context
	cancel context.CancelFunc
	result chan watch.Event
	woken  chan struct{}
	asked  chan struct{}
	lost   chan struct{}
	once   sync.Once

	pos uint64 // guarded by stream.mu: everything up to here was taken
}

var _ watch.Interface = (*watcher)(nil)

// Watch implements storage.Interface.
func (st *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	key, err := st.prepareKey(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rev, err := st.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if err := st.db.enter(); err != nil {
		return nil, err
	}
	defer st.db.leave()
	w := &watcher{
		st: st, key: key, recursive: opts.Recursive, pred: opts.Predicate,
		progress:  opts.ProgressNotify,
		bookmarks: opts.ProgressNotify || opts.Predicate.AllowWatchBookmarks,
		stamped:   opts.RecordTimestamps,
		result:    make(chan watch.Event, resultBuffer),
		woken:     make(chan struct{}, 1),
		asked:     make(chan struct{}, 1),
		lost:      make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.pos = st.db.rev.Load()
	initial := initialEvents(rev, opts)
	if rev > 0 && !initial {
		w.pos = rev
	}
	st.db.watchers.Add(1)
	go w.run(rev, initial, initialEventsEnd(opts))
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

// initialEvents says whether the watch begins with what exists.
func initialEvents(rev uint64, opts storage.ListOptions) bool {
	if opts.SendInitialEvents == nil {
		return rev == 0
	}
	return *opts.SendInitialEvents && utilfeature.DefaultFeatureGate.Enabled(features.WatchList)
}

// initialEventsEnd says whether a bookmark marks the end of what exists.
func initialEventsEnd(opts storage.ListOptions) bool {
	return opts.SendInitialEvents != nil && *opts.SendInitialEvents && opts.Predicate.AllowWatchBookmarks &&
		utilfeature.DefaultFeatureGate.Enabled(features.WatchList)
}

// Stop ends the watch. Events that already lie in the channel stay readable.
func (w *watcher) Stop() { w.cancel() }

// ResultChan returns the channel of events; it is closed when the watch ends.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// RequestWatchProgress asks for a bookmark on this watch.
func (w *watcher) RequestWatchProgress() error {
	w.ask()
	return nil
}

func (w *watcher) wake() { signal(w.woken) }
func (w *watcher) ask()  { signal(w.asked) }
func (w *watcher) cut()  { w.once.Do(func() { close(w.lost) }) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

var (
	// errStopped ends a watch without a word: its consumer or the DB ended it.
	errStopped = errors.New("the watch was stopped")
	errTooOld  = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
)

func (w *watcher) run(rev uint64, initial, mark bool) {
	defer w.st.db.watchers.Done()
	defer close(w.result)
	defer w.cancel()
	err := w.follow(rev, initial, mark)
	if errors.Is(err, errStopped) || errors.Is(err, ErrClosed) || w.ctx.Err() != nil {
		return
	}
	timer := time.NewTimer(lastWord)
	defer timer.Stop()
	select {
	case w.result <- watch.Event{Type: watch.Error, Object: statusOf(err)}:
	case <-w.ctx.Done():
	case <-w.st.db.done:
	case <-timer.C:
	}
}

func statusOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	return &s
}

// follow sends what exists, if asked for, and then every event until the watch
// ends. It never returns nil.
func (w *watcher) follow(rev uint64, initial, mark bool) error {
	st := w.st
	if w.ctx.Err() != nil {
		return errStopped
	}
	if err := w.checkStart(rev, initial); err != nil {
		return err
	}
	start := w.pos
	st.stream.add(w)
	defer st.stream.remove(w)
	if initial {
		if err := w.sendExisting(start); err != nil {
			return err
		}
	}
	if mark {
		if err := w.sendBookmark(start, true); err != nil {
			return err
		}
	}
	tick := w.bookmarkTicker()
	defer tick.stop()
	for due := false; ; {
		pos, err := w.drain()
		if err == nil && due {
			err = w.sendBookmark(pos, false)
		}
		if err != nil {
			return err
		}
		if due, err = w.wait(tick); err != nil {
			return err
		}
	}
}

// wait blocks until there may be something to do and says whether a bookmark
// is due.
func (w *watcher) wait(tick *bookmarkTicker) (bookmark bool, err error) {
	select {
	case <-w.woken:
		return false, nil
	case <-w.asked:
		return true, nil
	case <-tick.next():
		tick.again()
		return true, nil
	case <-w.lost:
		return false, errTooOld
	case <-w.ctx.Done():
	case <-w.st.db.done:
	}
	return false, errStopped
}

// checkStart refuses a start that cannot be told completely.
func (w *watcher) checkStart(rev uint64, initial bool) error {
	db := w.st.db
	switch current := db.rev.Load(); {
	case rev > current && initial:
		return storage.NewTooLargeResourceVersionError(rev, current, 1)
	case rev == 0, initial:
		return nil
	case rev > current:
		return errTooOld // of another database, or of a future that was lost
	}
	return tooOldForWatch(w.st.readable(rev))
}

// drain sends all events that are there and returns the revision up to which
// the consumer has been told everything.
func (w *watcher) drain() (uint64, error) {
	for {
		batch, behind, pos := w.st.stream.take(w)
		if behind {
			if err := w.catchUp(pos); err != nil {
				return 0, err
			}
			continue
		}
		if len(batch) == 0 {
			return pos, nil
		}
		for _, e := range batch {
			if err := w.deliver(e); err != nil {
				return 0, err
			}
		}
	}
}

// catchUp sends what the history has after since. The list of changes is made
// once; their objects are read some at a time.
func (w *watcher) catchUp(since uint64) error {
	changes, upto, err := w.st.changes(w, since)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(changes, batchSize) {
		events, err := w.st.recall(some, since)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := w.deliver(e); err != nil {
				return err
			}
		}
		since = some[len(some)-1].rev
		w.st.stream.moveTo(w, since)
	}
	w.st.stream.moveTo(w, upto)
	return nil
}

// sendExisting sends an addition for everything there is at revision rev.
func (w *watcher) sendExisting(rev uint64) error {
	const page = 500
	for from, more := w.key, true; more; {
		var found []record
		var err error
		if found, more, err = w.st.page(w.key, from, rev, w.recursive, w.st.activeOnly(w.pred), page); err != nil {
			return err
		}
		for _, r := range found {
			from = r.key + "\x00"
			e := &event{rev: r.rev, key: r.key, kind: eventAdded, existing: true, value: r.value, obj: r.obj}
			if err := w.deliver(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// deliver sends e to the consumer as its predicate sees it, if it does.
func (w *watcher) deliver(e *event) error {
	out, err := w.translate(e)
	if err != nil || out == nil {
		return err
	}
	if w.stamped && !e.existing {
		out.Object = &stampedObject{Object: out.Object, made: time.Now()}
	}
	return w.send(*out)
}

func (w *watcher) send(out watch.Event) error {
	select {
	case w.result <- out:
		return nil
	case <-w.lost:
		return errTooOld
	case <-w.ctx.Done():
		return errStopped
	case <-w.st.db.done:
		return errStopped
	}
}

// translate decides what e is to this watch: nothing, or an event with objects
// of the consumer's own.
func (w *watcher) translate(e *event) (*watch.Event, error) {
	all := w.pred.Empty()
	var cur, prev runtime.Object
	var err error
	if e.kind != eventDeleted {
		if cur, err = w.st.look(w.ctx, e.key, e.current(), e.rev); err != nil {
			return nil, err
		}
	}
	if e.kind == eventDeleted || e.kind == eventModified && !all {
		// The old object of a deletion carries the revision of the deletion.
		if prev, err = w.st.look(w.ctx, e.key, e.prev, e.rev); err != nil {
			return nil, corruptDeletion(e, err)
		}
	}
	now := cur != nil && (all || w.matches(cur))
	before := prev != nil && (all || w.matches(prev))
	switch {
	case e.kind == eventModified && now && (all || before):
		return w.event(watch.Modified, e, e.current(), cur)
	case now:
		return w.event(watch.Added, e, e.current(), cur)
	case before:
		return w.event(watch.Deleted, e, e.prev, prev)
	}
	return nil, nil
}

// event makes the consumer's event of seen, a look at v. Only now an object that
// others share is copied.
func (w *watcher) event(kind watch.EventType, e *event, v version, seen runtime.Object) (*watch.Event, error) {
	if seen != v.obj {
		return &watch.Event{Type: kind, Object: seen}, nil
	}
	obj, err := w.st.own(w.ctx, e.key, v, e.rev)
	return &watch.Event{Type: kind, Object: obj}, err
}

func (w *watcher) matches(obj runtime.Object) bool {
	ok, err := w.pred.Matches(obj)
	return err == nil && ok
}

// corruptDeletion wraps the error of a deleted object that cannot be decoded.
func corruptDeletion(e *event, err error) error {
	if e.kind != eventDeleted {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err),
	}}
}

func (w *watcher) sendBookmark(rev uint64, initialEnd bool) error {
	obj := w.st.cfg.NewFunc()
	if err := w.st.versioner.UpdateObject(obj, rev); err != nil {
		return fmt.Errorf("set the resource version of a bookmark: %w", err)
	}
	if initialEnd {
		if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
			return fmt.Errorf("annotate a bookmark: %w", err)
		}
	}
	return w.send(watch.Event{Type: watch.Bookmark, Object: obj})
}

// bookmarkTicker times the bookmarks of a watch: regularly, and once shortly
// before its context ends, so that the next watch can begin where this ended.
type bookmarkTicker struct {
	every time.Duration
	timer *time.Timer
	last  time.Time // when the one before the deadline is due; zero if none
}

func (w *watcher) bookmarkTicker() *bookmarkTicker {
	if !w.bookmarks {
		return &bookmarkTicker{}
	}
	t := &bookmarkTicker{every: w.st.db.opts.BookmarkInterval}
	if deadline, ok := w.ctx.Deadline(); ok {
		t.last = deadline.Add(-beforeDeadline)
	}
	t.timer = time.NewTimer(t.wait())
	return t
}

func (t *bookmarkTicker) wait() time.Duration {
	if left := time.Until(t.last); left > 0 {
		return min(t.every, left)
	}
	return t.every
}

func (t *bookmarkTicker) next() <-chan time.Time {
	if t.timer == nil {
		return nil
	}
	return t.timer.C
}

func (t *bookmarkTicker) again() { t.timer.Reset(t.wait()) }

func (t *bookmarkTicker) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// stampedObject carries the time its event was made, for callers that measure
// delivery.
type stampedObject struct {
	runtime.Object
	made time.Time
}

var _ storage.WatchEventWithRecordTime = (*stampedObject)(nil)

// GetObjectMeta returns the metadata of the wrapped object.
func (o *stampedObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(o.Object)
	if err != nil {
		return nil
	}
	return m
}

// DeepCopyObject copies the object and keeps the time.
func (o *stampedObject) DeepCopyObject() runtime.Object {
	return &stampedObject{Object: o.Object.DeepCopyObject(), made: o.made}
}

// RecordTime returns when the event was made.
func (o *stampedObject) RecordTime() time.Time { return o.made }

// Unwrap returns the object.
func (o *stampedObject) Unwrap() runtime.Object { return o.Object }
