package storage

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// diskItem returns how badger holds a pod.
func diskItem(t *testing.T, st *store, name string) *badger.Item {
	t.Helper()
	txn := st.db.disk.NewTransactionAt(st.db.CurrentRevision(), false)
	t.Cleanup(txn.Discard)
	item, err := txn.Get([]byte(podKey(name)))
	require.NoError(t, err)
	return item
}

func TestCommitTimestampIsTheResourceVersion(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	create(t, st, "v")
	rev := create(t, st, "a")
	require.Equal(t, rev, diskItem(t, st, "a").Version())
	rev = label(t, st, "a", 1)
	require.Equal(t, rev, diskItem(t, st, "a").Version())
	require.Equal(t, rev, st.db.CurrentRevision())
}

// TestTimeToLiveIsIgnored: badger would hide the key without an event.
func TestTimeToLiveIsIgnored(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	require.NoError(t, st.Create(t.Context(), podKey("a"), newPod("a"), nil, 1))
	require.Zero(t, diskItem(t, st, "a").ExpiresAt())
	ttl := uint64(1)
	require.NoError(t, st.GuaranteedUpdate(t.Context(), podKey("a"), &example.Pod{}, false, nil,
		func(obj runtime.Object, _ storage.ResponseMeta) (runtime.Object, *uint64, error) {
			obj.(*example.Pod).Labels = map[string]string{"n": "1"}
			return obj, &ttl, nil
		}, nil))
	require.Zero(t, diskItem(t, st, "a").ExpiresAt())
}

// TestEventsComeBeforeDurability: a watcher may see what is not on disk yet, so
// whoever acts on it must wait.
func TestEventsComeBeforeDurability(t *testing.T) {
	t.Parallel()
	p := &syncProbe{}
	st := openStore(t, openTest(t, withProbe(p)))
	w := startWatch(t, st, st.db.CurrentRevision())
	release := p.hold()
	rev := create(t, st, "a")
	done := make(chan error, 1)
	go func() { done <- st.db.WaitDurable(context.Background(), rev) }()
	wantEvent(t, w, watch.Added, "a", rev)
	select {
	case err := <-done:
		t.Errorf("durable before it was synced: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	release()
	require.NoError(t, <-done)
}

func TestPagesCarryNoRemainingCount(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	st := openStore(t, db, func(c *StoreConfig) { c.RemainingItemCount = false })
	for n := range 7 {
		create(t, st, fmt.Sprintf("%c%d", "av"[n%2], n))
	}
	opts := storage.ListOptions{}
	opts.Predicate.Limit = 3
	page := list(t, st, opts)
	require.Equal(t, []string{"a0", "a2", "a4"}, names(page))
	require.Nil(t, page.RemainingItemCount)
	first := page.ResourceVersion
	remove(t, st, "a6") // the list stays at its revision
	create(t, st, "a7")
	opts.Predicate.Continue = page.Continue
	page = list(t, st, opts)
	require.Equal(t, []string{"a6", "v1", "v3"}, names(page))
	require.Equal(t, first, page.ResourceVersion)
	opts.Predicate.Continue = page.Continue
	page = list(t, st, opts)
	require.Equal(t, []string{"v5"}, names(page))
	require.Empty(t, page.Continue)
	counting := openStore(t, db, func(c *StoreConfig) { c.RemainingItemCount = true })
	opts.Predicate.Continue = ""
	require.EqualValues(t, 4, *list(t, counting, opts).RemainingItemCount)
}

// TestBadgerIsSmall holds the settings that keep idle memory low.
func TestBadgerIsSmall(t *testing.T) {
	t.Parallel()
	o := openTest(t).disk.Opts()
	require.False(t, o.SyncWrites)
	require.False(t, o.DetectConflicts)
	require.False(t, o.MetricsEnabled)
	require.Equal(t, 1, o.NumVersionsToKeep)
	require.EqualValues(t, []int64{8 << 20, 8 << 20, 0, 16 << 20}, []int64{o.MemTableSize, o.BlockCacheSize, o.IndexCacheSize, o.ValueLogFileSize})
	require.Equal(t, []int{2, 2, 6, 2}, []int{o.NumMemtables, o.NumLevelZeroTables, o.NumLevelZeroTablesStall, o.NumCompactors})
	require.Less(t, int64(DefaultMaxObjectBytes), o.ValueThreshold)
}

// TestTierIsForLife: an update keeps an object where it was created, whatever
// Volatile would say of its new content.
func TestTierIsForLife(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t), func(c *StoreConfig) {
		c.Volatile = func(obj runtime.Object) bool { return obj.(*example.Pod).Labels["n"] == "" && volatileByName(obj) }
	})
	create(t, st, "v")
	label(t, st, "v", 1)
	_, memory, ok, err := st.find(podKey("v"))
	require.NoError(t, err)
	require.True(t, ok && memory)
	_, onDisk, err := (&DB{disk: st.db.disk, memory: newMemoryTier()}).read(podKey("v"), st.db.CurrentRevision())
	require.NoError(t, err)
	require.False(t, onDisk)
	remove(t, st, "v") // a new object of the same name may live elsewhere
	pod := newPod("v")
	pod.Labels = map[string]string{"n": "1"}
	require.NoError(t, st.Create(t.Context(), podKey("v"), pod, nil, 0))
	diskItem(t, st, "v")
	require.Len(t, names(list(t, st, storage.ListOptions{ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})), 1)
}

// TestRingIsBoundedInBytes: large objects do not fill the memory.
func TestRingIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	start := st.db.CurrentRevision()
	w := startWatch(t, st, start)
	const n = 60
	for i := range n {
		pod := newPod(fmt.Sprintf("v%02d", i))
		pod.Annotations = map[string]string{"big": noise(i, 400<<10)}
		require.NoError(t, st.Create(t.Context(), podKey(pod.Name), pod, nil, 0))
	}
	st.stream.mu.Lock()
	held, size := st.stream.bytes, st.stream.size
	st.stream.mu.Unlock()
	require.LessOrEqual(t, held, ringBytes)
	require.Less(t, size, n)
	require.Positive(t, size)
	late := startWatch(t, st, start)
	for i := range uint64(n) {
		wantEvent(t, w, watch.Added, fmt.Sprintf("v%02d", i), start+1+i)
		wantEvent(t, late, watch.Added, fmt.Sprintf("v%02d", i), start+1+i)
	}
}

// TestMemoryObjectsAreNobodys: what is kept decoded is changed neither by who wrote it nor by who read it, and reading
// it decodes nothing.
func TestMemoryObjectsAreNobodys(t *testing.T) {
	t.Parallel()
	codec := &countingCodec{Codec: podConfig().Codec}
	st := openStore(t, openTest(t), func(c *StoreConfig) { c.Codec = codec })
	w, err := st.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything})
	require.NoError(t, err)
	defer w.Stop()
	mine, out := newPod("v"), &example.Pod{}
	mine.Labels = map[string]string{"n": "1"}
	require.NoError(t, st.Create(t.Context(), podKey("v"), mine, out, 0))
	for _, pod := range []*example.Pod{mine, out, (<-w.ResultChan()).Object.(*example.Pod), &list(t, st, storage.ListOptions{}).Items[0]} {
		require.Equal(t, "1", pod.Labels["n"])
		pod.Labels["n"] = "spoiled"
	}
	label(t, st, "v", 2)
	for range 2 {
		pod, err := get(st, "v")
		require.NoError(t, err)
		require.Equal(t, "2", pod.Labels["n"])
		pod.Labels["n"] = "spoiled"
	}
	require.Equal(t, "2", (<-w.ResultChan()).Object.(*example.Pod).Labels["n"])
	require.Zero(t, codec.decoded.Load())
}
