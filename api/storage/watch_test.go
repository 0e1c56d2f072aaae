package storage

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// patience is how long a test waits for something that must happen.
const patience = 30 * time.Second

func startWatch(t testing.TB, st *store, rev uint64, change ...func(*storage.ListOptions)) watch.Interface {
	t.Helper()
	opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true, ResourceVersion: strconv.FormatUint(rev, 10)}
	for _, c := range change {
		c(&opts)
	}
	w, err := st.Watch(context.Background(), "/pods/", opts)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

// nextEvent returns the next event; ok is false when the watch has ended.
func nextEvent(t testing.TB, w watch.Interface) (e watch.Event, ok bool) {
	t.Helper()
	select {
	case e, ok = <-w.ResultChan():
		return e, ok
	case <-time.After(patience):
		t.Fatal("no event came")
		return e, false
	}
}

func wantEvent(t testing.TB, w watch.Interface, kind watch.EventType, name string, rev uint64) {
	t.Helper()
	e, ok := nextEvent(t, w)
	require.True(t, ok, "the watch ended")
	require.Equal(t, kind, e.Type, "%+v", e.Object)
	require.Equal(t, name, e.Object.(*example.Pod).Name)
	require.Equal(t, rev, revisionOf(t, e.Object))
}

func wantGone(t testing.TB, w watch.Interface) {
	t.Helper()
	e, ok := nextEvent(t, w)
	require.True(t, ok, "the watch ended without a reason")
	require.Equal(t, watch.Error, e.Type)
	require.Equal(t, metav1.StatusReasonExpired, e.Object.(*metav1.Status).Reason)
	require.EqualValues(t, 410, e.Object.(*metav1.Status).Code)
	_, ok = nextEvent(t, w)
	require.False(t, ok, "the watch went on after its error")
}

func TestWatchInterleavesTiersInOrder(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	w := startWatch(t, st, st.db.CurrentRevision())
	first := create(t, st, "disk")
	second := create(t, st, "volatile")
	third := label(t, st, "disk", 1)
	fourth := remove(t, st, "volatile")
	fifth := remove(t, st, "disk")
	require.Equal(t, []uint64{first + 1, first + 2, first + 3, first + 4}, []uint64{second, third, fourth, fifth})
	wantEvent(t, w, watch.Added, "disk", first)
	wantEvent(t, w, watch.Added, "volatile", second)
	wantEvent(t, w, watch.Modified, "disk", third)
	wantEvent(t, w, watch.Deleted, "volatile", fourth)
	wantEvent(t, w, watch.Deleted, "disk", fifth)
}

// TestOrderUnderLoad has 8 writers on both tiers and watchers of every speed,
// with a ring so short that the slow ones must read the history.
func TestOrderUnderLoad(t *testing.T) {
	t.Parallel()
	const writers, perWriter = 8, 150
	st := openStore(t, openTest(t, func(o *Options) { o.HistoryEvents = 64 }))
	start := st.db.CurrentRevision()
	delays := []time.Duration{0, 0, 100 * time.Microsecond, 2 * time.Millisecond}
	var watches []watch.Interface
	for range delays {
		watches = append(watches, startWatch(t, st, start))
	}
	want := map[string][]uint64{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range writers {
		name := fmt.Sprintf("%c%d", "dv"[i%2], i)
		wg.Go(func() {
			revs := []uint64{create(t, st, name)}
			for n := range perWriter {
				revs = append(revs, label(t, st, name, n))
			}
			mu.Lock()
			defer mu.Unlock()
			want[name] = revs
		})
	}
	got := make([]map[string][]uint64, len(delays))
	for i, w := range watches {
		wg.Go(func() { got[i] = drainInOrder(t, w, writers*(perWriter+1), delays[i]) })
	}
	wg.Wait()
	for i := range delays {
		require.Equal(t, want, got[i], "watcher %d", i)
	}
}

// drainInOrder reads n events and returns the revisions seen for each object.
func drainInOrder(t *testing.T, w watch.Interface, n int, delay time.Duration) map[string][]uint64 {
	seen := map[string][]uint64{}
	last := uint64(0)
	for range n {
		e, ok := nextEvent(t, w)
		if !ok || e.Type == watch.Error {
			t.Errorf("the watch ended early: %+v", e.Object)
			return seen
		}
		pod := e.Object.(*example.Pod)
		rev := revisionOf(t, pod)
		if rev <= last {
			t.Errorf("revision %d came after %d", rev, last)
		}
		last = rev
		seen[pod.Name] = append(seen[pod.Name], rev)
		time.Sleep(delay)
	}
	return seen
}

func TestWatchFromRingAndFromHistory(t *testing.T) {
	t.Parallel()
	for _, ring := range []int{1000, 2} {
		t.Run(fmt.Sprintf("ring of %d", ring), func(t *testing.T) {
			st := openStore(t, openTest(t, func(o *Options) { o.HistoryEvents = ring }))
			start := st.db.CurrentRevision()
			a := create(t, st, "a")
			v := create(t, st, "v")
			a2 := label(t, st, "a", 1)
			gone := remove(t, st, "v")
			v2 := create(t, st, "v")
			gone2 := remove(t, st, "a")
			for name, watched := range map[string]watch.Interface{
				"all": startWatch(t, st, start),
				"filtered": startWatch(t, st, start, func(o *storage.ListOptions) {
					o.Predicate = storage.SelectionPredicate{Label: labels.Everything(), Field: fields.OneTermNotEqualSelector("metadata.name", "nobody"), GetAttrs: storage.DefaultNamespaceScopedAttr}
				}),
			} {
				t.Log(name)
				wantEvent(t, watched, watch.Added, "a", a)
				wantEvent(t, watched, watch.Added, "v", v)
				wantEvent(t, watched, watch.Modified, "a", a2)
				wantEvent(t, watched, watch.Deleted, "v", gone)
				wantEvent(t, watched, watch.Added, "v", v2)
				wantEvent(t, watched, watch.Deleted, "a", gone2)
			}
			half := startWatch(t, st, a2)
			wantEvent(t, half, watch.Deleted, "v", gone)
			one, err := st.Watch(t.Context(), podKey("a"), storage.ListOptions{ResourceVersion: strconv.FormatUint(start, 10), Predicate: storage.Everything})
			require.NoError(t, err)
			wantEvent(t, one, watch.Added, "a", a)
			wantEvent(t, one, watch.Modified, "a", a2)
			wantEvent(t, one, watch.Deleted, "a", gone2)
			one.Stop()
		})
	}
}

// TestWatchSelectsTransitions: with a selector an update can begin or end what
// a watcher sees, also when the old object has to be read back.
func TestWatchSelectsTransitions(t *testing.T) {
	t.Parallel()
	for _, ring := range []int{1000, 1} {
		st := openStore(t, openTest(t, func(o *Options) { o.HistoryEvents = ring }))
		w := startWatch(t, st, st.db.CurrentRevision(), func(o *storage.ListOptions) {
			o.Predicate = storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"n": "1"}), Field: fields.Everything(), GetAttrs: func(obj runtime.Object) (labels.Set, fields.Set, error) {
				return obj.(*example.Pod).Labels, nil, nil
			}}
		})
		create(t, st, "a")
		create(t, st, "other")
		in := label(t, st, "a", 1)
		create(t, st, "other2")
		out := label(t, st, "a", 2)
		wantEvent(t, w, watch.Added, "a", in)
		wantEvent(t, w, watch.Deleted, "a", out)
	}
}

func TestWatchBelowTheFloorIsGone(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	old := create(t, st, "a")
	label(t, st, "a", 1)
	require.NoError(t, st.db.Compact(t.Context(), label(t, st, "a", 2)))
	wantGone(t, startWatch(t, st, old))
}

func TestWatchFromTheFutureIsGone(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	wantGone(t, startWatch(t, st, st.db.CurrentRevision()+5))
}

// TestStuckWatcherIsCutOff: a consumer that does not read is told 410 once its
// place is neither in the ring nor in the history, after what it was sent
// before, in order; its goroutine ends.
func TestStuckWatcherIsCutOff(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t, func(o *Options) { o.HistoryEvents = 16 }))
	stuck := startWatch(t, st, st.db.CurrentRevision())
	create(t, st, "a")
	for n := range 600 {
		label(t, st, "a", n)
	}
	require.NoError(t, st.db.Compact(t.Context(), st.db.CurrentRevision()))
	last := uint64(0)
	for {
		e, ok := nextEvent(t, stuck)
		require.True(t, ok, "the watch ended without a reason")
		if e.Type == watch.Error {
			require.Equal(t, metav1.StatusReasonExpired, e.Object.(*metav1.Status).Reason)
			break
		}
		rev := revisionOf(t, e.Object)
		require.True(t, last == 0 || rev == last+1, "%d after %d", rev, last)
		last = rev
	}
	require.Less(t, last, st.db.CurrentRevision(), "nothing was lost, so nothing had to be cut off")
	_, ok := nextEvent(t, stuck)
	require.False(t, ok)
	require.Eventually(t, func() bool {
		st.stream.mu.Lock()
		defer st.stream.mu.Unlock()
		return len(st.stream.watchers) == 0
	}, patience, time.Millisecond, "the watcher is still registered")
}

// TestConsumersOwnTheirObjects: what one consumer does to an object no other
// one sees, nor the store.
func TestConsumersOwnTheirObjects(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	start := st.db.CurrentRevision()
	in := newPod("a")
	in.Labels = map[string]string{"n": "0"}
	out := &example.Pod{}
	require.NoError(t, st.Create(t.Context(), podKey("a"), in, out, 0))
	in.Labels["n"], out.Labels["n"] = "spoilt", "spoilt"
	first, _ := nextEvent(t, startWatch(t, st, start))
	first.Object.(*example.Pod).Labels["n"] = "spoilt"
	second, _ := nextEvent(t, startWatch(t, st, start))
	require.Equal(t, "0", second.Object.(*example.Pod).Labels["n"])
	got, err := get(st, "a")
	require.NoError(t, err)
	got.Labels["n"] = "spoilt"
	again, err := get(st, "a")
	require.NoError(t, err)
	require.Equal(t, "0", again.Labels["n"])
}

// TestBookmarks: a quiet watch of one object learns of revisions made elsewhere,
// and progress comes when it is asked for.
func TestBookmarks(t *testing.T) {
	t.Parallel()
	db := openTest(t, func(o *Options) { o.BookmarkInterval = time.Hour })
	st := openStore(t, db)
	start := create(t, st, "a")
	w, err := st.Watch(t.Context(), podKey("a"), storage.ListOptions{
		ResourceVersion: strconv.FormatUint(start, 10), Predicate: storage.Everything, ProgressNotify: true,
	})
	require.NoError(t, err)
	defer w.Stop()
	moved := label(t, st, "a", 1)
	wantEvent(t, w, watch.Modified, "a", moved) // the watch is registered now
	last := create(t, st, "b")
	require.NoError(t, st.RequestWatchProgress(t.Context()))
	wantEvent(t, w, watch.Bookmark, "", last)
}

// TestInitialEventsEnd is the opening of a client-go reflector: everything
// there is, the marked bookmark, then changes.
func TestInitialEventsEnd(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	a, v := create(t, st, "a"), create(t, st, "v")
	w, err := st.Watch(t.Context(), "/pods/", storage.ListOptions{
		Predicate: func() storage.SelectionPredicate {
			p := storage.Everything
			p.AllowWatchBookmarks = true
			return p
		}(),
		Recursive: true, ResourceVersion: "", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: ptr.To(true),
	})
	require.NoError(t, err)
	defer w.Stop()
	wantEvent(t, w, watch.Added, "a", a)
	wantEvent(t, w, watch.Added, "v", v)
	mark, _ := nextEvent(t, w)
	require.Equal(t, watch.Bookmark, mark.Type)
	require.Equal(t, "true", mark.Object.(*example.Pod).Annotations[metav1.InitialEventsAnnotationKey])
	require.Equal(t, v, revisionOf(t, mark.Object))
	wantEvent(t, w, watch.Modified, "v", label(t, st, "v", 1))
}
