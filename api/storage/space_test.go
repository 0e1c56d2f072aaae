package storage

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// TestFullDisk: durable writes are refused with a reason before the disk is
// full; reading, volatile objects and, for a while, deleting go on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	var free atomic.Uint64
	free.Store(1 << 40)
	st := openStore(t, openTest(t, func(o *Options) {
		o.FreeSpace = func(string) (uint64, error) { return free.Load(), nil }
	}))
	create(t, st, "a")
	create(t, st, "b")
	free.Store(spaceForWrites - 1)
	before := st.db.CurrentRevision()
	err := st.Create(t.Context(), podKey("c"), newPod("c"), nil, 0)
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, "nearly full: 63 MB")
	_, err = tryLabel(st, "a", 1)
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.Equal(t, before, st.db.CurrentRevision())
	create(t, st, "v")
	_, err = get(st, "a")
	require.NoError(t, err)
	remove(t, st, "a")
	free.Store(spaceForDeletions - 1)
	err = st.Delete(t.Context(), podKey("b"), &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	free.Store(1 << 40)
	label(t, st, "b", 1)
}

// TestOpenOnAFullDisk: badger would end the process with a signal, so the store
// says what is wrong instead, and opens when there is room.
func TestOpenOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	free := uint64(spaceToOpen) - 1
	o := Options{Dir: dir, FreeSpace: func(string) (uint64, error) { return free, nil }}
	_, err := Open(o)
	require.ErrorContains(t, err, "nearly full: 39 MB are free")
	free = spaceToOpen
	db, err := Open(o)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

func TestFreeSpaceOfTheSystem(t *testing.T) {
	t.Parallel()
	free, err := freeSpace(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	_, err = freeSpace("/does/not/exist")
	require.ErrorContains(t, err, "/does/not/exist")
}

// TestFreeSpaceIsAskedSeldom: while there is plenty, and only then.
func TestFreeSpaceIsAskedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left, asked := uint64(plenty), 0
		ask := seldom(func(string) (uint64, error) { asked++; return left, nil })
		for range 100 {
			got, err := ask("d")
			require.NoError(t, err)
			require.EqualValues(t, plenty, got)
		}
		require.Equal(t, 1, asked)
		left = plenty - 1
		time.Sleep(plentyFor)
		for range 2 {
			got, err := ask("d")
			require.NoError(t, err)
			require.Equal(t, left, got)
		}
		require.Equal(t, 3, asked)
	})
}

// blocks returns the bytes the files of dir really take.
func blocks(t testing.TB, dir string) (total int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		var stat syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, e.Name()), &stat); err == nil {
			total += stat.Blocks * 512
		}
	}
	return total
}

// TestDiskStaysFlat rewrites a few objects until 200 MB have been written: what
// is older than the history goes, and the value log never holds anything.
func TestDiskStaysFlat(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t, func(o *Options) { o.HistoryRevisions = 100; o.HistoryEvents = 10 }))
	for n := range 1000 {
		name := fmt.Sprintf("a%d", n%5)
		pod := newPod(name)
		pod.Annotations = map[string]string{"n": fmt.Sprint(n), "noise": noise(n, 200<<10)}
		err := st.GuaranteedUpdate(t.Context(), podKey(name), &example.Pod{}, true, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) { return pod.DeepCopy(), nil }), nil)
		require.NoError(t, err)
	}
	const bound = 110 << 20 // 200 revisions of 200 KB, six tables before a stall, logs
	require.Eventually(t, func() bool { return blocks(t, st.db.opts.Dir) < bound }, patience, 50*time.Millisecond,
		"%d MB", blocks(t, st.db.opts.Dir)>>20)
	logs, err := filepath.Glob(filepath.Join(st.db.opts.Dir, "*.vlog"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	require.Less(t, used(t, logs[0]), int64(64))
}

// noise returns n bytes of text that do not compress well.
func noise(seed, n int) string {
	raw := make([]byte, n/2)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(raw)
	return hex.EncodeToString(raw)
}

// TestHistoryTrails: at least HistoryRevisions stay readable, at most twice as
// many, and the rest is 410 Gone; also after a restart.
func TestHistoryTrails(t *testing.T) {
	t.Parallel()
	const keep = 50
	o := Options{Dir: t.TempDir(), HistoryRevisions: keep}
	db, err := Open(o)
	require.NoError(t, err)
	st := openStore(t, db, func(c *StoreConfig) { c.Volatile = nil })
	create(t, st, "a")
	for n := range 7 * keep {
		rev := label(t, st, "a", n)
		floor := uint64(st.CompactRevision())
		require.True(t, floor+keep <= rev || floor == 0, "floor %d at %d", floor, rev)
		require.LessOrEqual(t, rev, floor+2*keep+2)
	}
	check := func(st *store, floor uint64) {
		err := st.GetList(context.Background(), "/pods/", exactly(floor-1), &example.PodList{})
		require.True(t, apierrors.IsResourceExpired(err), "%v", err)
		require.NoError(t, st.GetList(context.Background(), "/pods/", exactly(floor), &example.PodList{}))
	}
	floor := uint64(st.CompactRevision())
	check(st, floor)
	require.NoError(t, db.Close())
	db, err = Open(o)
	require.NoError(t, err)
	defer db.Close()
	st = openStore(t, db, func(c *StoreConfig) { c.Volatile = nil })
	require.EqualValues(t, floor, st.CompactRevision(), "the floor was forgotten")
	check(st, floor)
}

func exactly(rev uint64) storage.ListOptions {
	return storage.ListOptions{
		Predicate: storage.Everything, Recursive: true,
		ResourceVersion: fmt.Sprint(rev), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
}
