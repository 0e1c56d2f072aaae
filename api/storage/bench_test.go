package storage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// operation is the life of one object as a reconciler drives it: created,
// updated and durable, updated and durable, a watcher told.
func operation(b *testing.B, st *store, name string) {
	ctx := context.Background()
	out := &example.Pod{}
	require.NoError(b, st.Create(ctx, podKey(name), newPod(name), out, 0))
	w, err := st.Watch(ctx, podKey(name), storage.ListOptions{ResourceVersion: out.ResourceVersion, Predicate: storage.Everything})
	require.NoError(b, err)
	defer w.Stop()
	require.NoError(b, st.db.WaitDurable(ctx, label(b, st, name, 1)))
	require.NoError(b, st.db.WaitDurable(ctx, label(b, st, name, 2)))
	for range 2 {
		if e := <-w.ResultChan(); e.Type != watch.Modified {
			b.Fatalf("%+v", e)
		}
	}
}

// bareSyncs writes and fdatasyncs twice: what no design can do without.
func bareSyncs(b *testing.B, f *os.File, at int64) {
	for i := range int64(2) {
		_, err := f.WriteAt([]byte(strings.Repeat("x", 600)), at+i*600)
		require.NoError(b, err)
		require.NoError(b, fdatasync(f))
	}
}

// BenchmarkOperation reports the time of an operation, that of two bare
// fdatasyncs taken turn by turn in the same run, and the ratio.
func BenchmarkOperation(b *testing.B) {
	st := openStore(b, openTest(b))
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	require.NoError(b, err)
	defer f.Close()
	require.NoError(b, f.Truncate(16<<20))
	var bare, whole time.Duration
	for n := 0; b.Loop(); n++ {
		begin := time.Now()
		bareSyncs(b, f, int64(n%10000)*1200)
		middle := time.Now()
		operation(b, st, "a"+strconv.Itoa(n))
		bare, whole = bare+middle.Sub(begin), whole+time.Since(middle)
	}
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N), "µs-bare")
	b.ReportMetric(float64(whole.Microseconds())/float64(b.N), "µs-operation")
	b.ReportMetric(float64(whole)/float64(bare), "ratio")
}

// BenchmarkVolatileOperation is the same life of a volatile object.
func BenchmarkVolatileOperation(b *testing.B) {
	st := openStore(b, openTest(b))
	for n := 0; b.Loop(); n++ {
		operation(b, st, "v"+strconv.Itoa(n))
	}
}

// BenchmarkSyncBySize times one small write and fdatasync in preallocated
// mapped files of several sizes, as badger's logs are.
func BenchmarkSyncBySize(b *testing.B) {
	for _, size := range []int64{1 << 20, 4 << 20, 16 << 20, 64 << 20, 128 << 20} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "log"))
			require.NoError(b, err)
			defer f.Close()
			require.NoError(b, f.Truncate(size))
			data, err := mapFile(f, int(size))
			require.NoError(b, err)
			for n := 0; b.Loop(); n++ {
				at := (n * 700) % (int(size) - 700)
				copy(data[at:], "a small record")
				require.NoError(b, fdatasync(f))
			}
		})
	}
}

const manyObjects = 100_000

// fill writes n finished objects of about 900 bytes into a new directory.
func fillMany(b *testing.B, n int) string {
	dir := filepath.Join(b.TempDir(), "state")
	db, err := Open(Options{Dir: dir})
	require.NoError(b, err)
	st := openStore(b, db)
	for i := range n {
		pod := newPod(fmt.Sprintf("a%08d", i*7919%n))
		pod.Annotations = map[string]string{"digest": fmt.Sprintf("%064x", i*31), "path": strings.Repeat(strconv.Itoa(i), 60)}
		require.NoError(b, st.Create(context.Background(), podKey(pod.Name), pod, nil, 0))
	}
	require.NoError(b, db.Close())
	return dir
}

// BenchmarkOpenMany opens a database of 100,000 objects.
func BenchmarkOpenMany(b *testing.B) {
	dir := fillMany(b, manyObjects)
	b.ReportMetric(float64(dirSize(b, dir))/1e6, "MB-disk")
	for b.Loop() {
		db, err := Open(Options{Dir: dir})
		require.NoError(b, err)
		b.StopTimer()
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		b.ReportMetric(float64(stats.HeapAlloc)/1e6, "MB-heap")
		require.NoError(b, db.Close())
		b.StartTimer()
	}
}

// BenchmarkListMany lists 100,000 objects by pages of 500, and counts them.
func BenchmarkListMany(b *testing.B) {
	db, err := Open(Options{Dir: fillMany(b, manyObjects)})
	require.NoError(b, err)
	defer db.Close()
	st := openStore(b, db, func(c *StoreConfig) { c.RemainingItemCount = false })
	b.Run("page", func(b *testing.B) {
		opts := storage.ListOptions{}
		for b.Loop() {
			opts.Predicate.Limit = 500
			page := list(b, st, opts)
			require.Len(b, page.Items, 500)
			if opts.Predicate.Continue = page.Continue; page.Continue == "" {
				opts = storage.ListOptions{}
			}
		}
	})
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			stats, err := st.Stats(context.Background())
			require.NoError(b, err)
			require.EqualValues(b, manyObjects, stats.ObjectCount)
		}
	})
}

func dirSize(t testing.TB, dir string) (total int64) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		total += info.Size()
	}
	return total
}
