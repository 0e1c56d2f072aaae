package storage

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// modelState is what the store should hold: names to the label n.
type modelState map[string]int

type modelEvent struct {
	kind watch.EventType
	name string
	n    int
	rev  uint64
}

// model runs random operations against a map and against the store.
type model struct {
	dir    string
	db     *DB
	st     *store
	now    modelState
	past   map[uint64]modelState // what was visible at a revision
	events []modelEvent
	floor  uint64
}

var modelNames = []string{"a", "b", "c", "d1", "d2", "v1", "v2", "v3"}

func (m *model) open(t *rapid.T) {
	db, err := Open(Options{Dir: m.dir, HistoryEvents: 4, Sync: func(*os.File) error { return nil }})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	cfg := podConfig()
	cfg.Volatile = volatileByName
	withDrowsy(&cfg)
	st, err := db.newStore(cfg)
	require.NoError(t, err)
	m.db, m.st = db, st
	require.Empty(t, db.Recovery().Sentences)
}

func (m *model) record(kind watch.EventType, name string, n int, rev uint64) {
	m.events = append(m.events, modelEvent{kind, name, n, rev})
	m.past[rev] = maps.Clone(m.now)
}

func (m *model) create(t *rapid.T) {
	name := rapid.SampledFrom(modelNames).Draw(t, "name")
	out := &example.Pod{}
	err := m.st.Create(context.Background(), podKey(name), newPod(name), out, 0)
	if _, exists := m.now[name]; exists {
		require.True(t, storage.IsExist(err), "%v", err)
		return
	}
	require.NoError(t, err)
	m.now[name] = -1
	m.record(watch.Added, name, -1, m.revision(t, out))
}

func (m *model) update(t *rapid.T) {
	name, n := rapid.SampledFrom(modelNames).Draw(t, "name"), rapid.IntRange(0, 3).Draw(t, "n")
	before := m.db.CurrentRevision()
	rev, err := tryLabel(m.st, name, n)
	old, exists := m.now[name]
	switch {
	case !exists:
		require.True(t, storage.IsNotFound(err), "%v", err)
	case old == n:
		require.NoError(t, err)
		require.Equal(t, before, m.db.CurrentRevision(), "an update without a change was written")
	default:
		require.NoError(t, err)
		m.now[name] = n
		m.record(watch.Modified, name, n, rev)
	}
}

func (m *model) delete(t *rapid.T) {
	name := rapid.SampledFrom(modelNames).Draw(t, "name")
	out := &example.Pod{}
	err := m.st.Delete(context.Background(), podKey(name), out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	old, exists := m.now[name]
	if !exists {
		require.True(t, storage.IsNotFound(err), "%v", err)
		return
	}
	require.NoError(t, err)
	delete(m.now, name)
	m.record(watch.Deleted, name, old, m.revision(t, out))
}

func (m *model) revision(t *rapid.T, obj *example.Pod) uint64 {
	rev, err := m.st.versioner.ObjectResourceVersion(obj)
	require.NoError(t, err)
	return rev
}

// listPast compares the state at a random revision, page by page.
func (m *model) listPast(t *rapid.T) {
	revs := slices.Sorted(maps.Keys(m.past))
	if len(revs) == 0 {
		t.Skip("nothing was written yet")
	}
	rev := rapid.SampledFrom(revs).Draw(t, "revision")
	limit := rapid.Int64Range(1, 4).Draw(t, "limit")
	got, err := m.pages(rev, limit)
	if rev < m.floor {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	require.Equal(t, m.past[rev], got, "at revision %d", rev)
}

func (m *model) pages(rev uint64, limit int64) (modelState, error) {
	got, last, next := modelState{}, "", ""
	for first := true; first || next != ""; first = false {
		opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
		opts.Predicate.Limit, opts.Predicate.Continue = limit, next
		if first {
			opts.ResourceVersion, opts.ResourceVersionMatch = strconv.FormatUint(rev, 10), metav1.ResourceVersionMatchExact
		}
		page := &example.PodList{}
		if err := m.st.GetList(context.Background(), "/pods/", opts, page); err != nil {
			return nil, err
		}
		for _, pod := range page.Items {
			if pod.Name <= last {
				return nil, fmt.Errorf("%s came after %s", pod.Name, last)
			}
			last = pod.Name
			got[pod.Name] = labelOf(&pod)
		}
		next = page.Continue
	}
	return got, nil
}

func labelOf(pod *example.Pod) int {
	if text, ok := pod.Labels["n"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return -2
		}
		return n
	}
	return -1
}

// watchPast compares the events after a random revision, most of which are no
// longer in the ring.
func (m *model) watchPast(t *rapid.T) {
	if len(m.events) == 0 {
		t.Skip("nothing was written yet")
	}
	from := rapid.IntRange(0, len(m.events)-1).Draw(t, "event")
	start := m.events[from].rev
	w, err := m.st.Watch(context.Background(), "/pods/", storage.ListOptions{
		ResourceVersion: strconv.FormatUint(start, 10), Predicate: storage.Everything, Recursive: true,
	})
	require.NoError(t, err)
	defer w.Stop()
	if start < m.floor {
		require.Equal(t, watch.Error, (<-w.ResultChan()).Type)
		return
	}
	for _, want := range m.events[from+1:] {
		e := <-w.ResultChan()
		pod, ok := e.Object.(*example.Pod)
		require.True(t, ok, "%+v", e.Object)
		require.Equal(t, want, modelEvent{e.Type, pod.Name, labelOf(pod), m.revision(t, pod)})
	}
}

func (m *model) compact(t *rapid.T) {
	if len(m.events) == 0 {
		t.Skip("nothing was written yet")
	}
	rev := rapid.SampledFrom(m.events).Draw(t, "event").rev
	require.NoError(t, m.db.Compact(context.Background(), rev))
	m.floor = max(m.floor, rev)
}

// reopen loses what is volatile; watches and lists of before are refused.
func (m *model) reopen(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "restart") > 0 {
		t.Skip("restarts take long")
	}
	before := m.db.CurrentRevision()
	require.NoError(t, m.db.Close())
	m.open(t)
	require.GreaterOrEqual(t, m.db.CurrentRevision(), before)
	for name := range m.now {
		if volatileByName(newPod(name)) {
			delete(m.now, name)
		}
	}
	m.past = map[uint64]modelState{}
	if rev := m.db.CurrentRevision(); rev > firstRevision {
		m.floor = rev
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := &model{dir: t.TempDir(), now: modelState{}, past: map[uint64]modelState{}}
		m.open(r)
		defer func() { require.NoError(r, m.db.Close()) }()
		r.Repeat(map[string]func(*rapid.T){
			"create": m.create, "update": m.update, "update again": m.update, "delete": m.delete,
			"list": m.listPast, "watch": m.watchPast, "compact": m.compact, "reopen": m.reopen,
			"": func(t *rapid.T) {
				got, err := m.pages(m.db.CurrentRevision(), 3)
				require.NoError(t, err)
				require.Equal(t, m.now, got)
				stats, err := m.st.Stats(context.Background())
				require.NoError(t, err)
				require.EqualValues(t, len(m.now), stats.ObjectCount)
				checkIndex(t, m.st, true)
			},
		})
	})
}
