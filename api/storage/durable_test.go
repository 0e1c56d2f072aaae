package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// syncProbe is Options.Sync for tests: it counts, holds and fails syncs.
type syncProbe struct {
	calls atomic.Int64
	held  atomic.Pointer[chan struct{}]
	err   atomic.Pointer[error]
	mu    sync.Mutex
	names []string
}

func (p *syncProbe) sync(f *os.File) error {
	p.calls.Add(1)
	p.mu.Lock()
	p.names = append(p.names, filepath.Base(f.Name()))
	p.mu.Unlock()
	if held := p.held.Load(); held != nil {
		<-*held
	}
	if err := p.err.Load(); err != nil {
		return *err
	}
	return fdatasync(f)
}

// hold makes syncs wait until the returned function is called.
func (p *syncProbe) hold() (release func()) {
	c := make(chan struct{})
	p.held.Store(&c)
	return func() {
		p.held.Store(nil)
		close(c)
	}
}

func (p *syncProbe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls.Store(0)
	p.names = nil
}

func withProbe(p *syncProbe) func(*Options) { return func(o *Options) { o.Sync = p.sync } }

func TestOneWaiterCostsOneSync(t *testing.T) {
	t.Parallel()
	p := &syncProbe{}
	st := openStore(t, openTest(t, withProbe(p)))
	for n := range 5 {
		p.reset()
		rev := create(t, st, fmt.Sprintf("a%d", n))
		require.NoError(t, st.db.WaitDurable(t.Context(), rev))
		require.EqualValues(t, 1, p.calls.Load(), "%v", p.names)
		require.NoError(t, st.db.WaitDurable(t.Context(), rev))
		require.NoError(t, st.db.WaitDurable(t.Context(), rev-1))
		require.EqualValues(t, 1, p.calls.Load(), "what is durable was synced again")
	}
}

func TestVolatileWritesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := &syncProbe{}
	st := openStore(t, openTest(t, withProbe(p)))
	require.NoError(t, st.db.WaitDurable(t.Context(), create(t, st, "a")))
	p.reset()
	require.NoError(t, st.db.WaitDurable(t.Context(), create(t, st, "v")))
	require.Zero(t, p.calls.Load())
}

// TestWaitersShareOneSync: waiters whose writes a running sync covers join it;
// those who wrote later share the next one.
func TestWaitersShareOneSync(t *testing.T) {
	t.Parallel()
	const n = 20
	p := &syncProbe{}
	st := openStore(t, openTest(t, withProbe(p)))
	p.reset()
	release := p.hold()
	var wg sync.WaitGroup
	wait := func(rev uint64) {
		wg.Go(func() {
			if err := st.db.WaitDurable(t.Context(), rev); err != nil {
				t.Error(err)
			}
		})
	}
	var early []uint64
	for i := range n {
		early = append(early, create(t, st, fmt.Sprintf("early%d", i)))
	}
	for _, rev := range early {
		wait(rev)
	}
	require.Eventually(t, func() bool { return p.calls.Load() == 1 }, patience, time.Millisecond)
	for i := range n {
		wait(create(t, st, fmt.Sprintf("late%d", i)))
	}
	require.Eventually(t, func() bool {
		st.db.durable.mu.Lock()
		defer st.db.durable.mu.Unlock()
		return st.db.durable.next != nil
	}, patience, time.Millisecond)
	time.Sleep(20 * time.Millisecond) // let the last of them join; one that comes later is covered as well
	release()
	wg.Wait()
	require.LessOrEqual(t, p.calls.Load(), int64(2), "%v", p.names)
}

func TestWaitDurableHonoursItsContext(t *testing.T) {
	t.Parallel()
	p := &syncProbe{}
	st := openStore(t, openTest(t, withProbe(p)))
	release := p.hold()
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, st.db.WaitDurable(ctx, create(t, st, "a")), context.DeadlineExceeded)
}

func TestWaitForARevisionThatDoesNotExist(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t))
	require.True(t, apierrors.IsTimeout(st.db.WaitDurable(t.Context(), st.db.CurrentRevision()+1)))
}

// TestFailedSyncIsFinal: after a failed fdatasync nobody can know what reached
// the disk, so neither a later wait nor a write may succeed.
func TestFailedSyncIsFinal(t *testing.T) {
	t.Parallel()
	p := &syncProbe{}
	db, err := Open(Options{Dir: t.TempDir(), Sync: p.sync})
	require.NoError(t, err)
	st := openStore(t, db)
	safe := create(t, st, "safe")
	require.NoError(t, db.WaitDurable(t.Context(), safe))
	broken := errors.New("input/output error")
	p.err.Store(&broken)
	rev := create(t, st, "a")
	require.ErrorIs(t, db.WaitDurable(t.Context(), rev), broken)
	p.err.Store(nil)
	require.ErrorIs(t, db.WaitDurable(t.Context(), rev), broken)
	_, err = tryLabel(st, "a", 1)
	require.ErrorIs(t, err, broken)
	require.ErrorIs(t, st.ReadinessCheck(), broken)
	_, err = get(st, "safe")
	require.NoError(t, err, "reading goes on")
	require.NoError(t, db.Close())
}

// TestOlderLogsAreSynced: badger's own Sync reaches only the newest log. Here
// the memtable is switched between the write and the wait, and the older log
// must be synced, unless its content has become a table file by then.
func TestOlderLogsAreSynced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var order []string
	logs := &walFiles{dir: dir, sealed: map[string]bool{}, sync: func(f *os.File) error {
		order = append(order, filepath.Base(f.Name()))
		return nil
	}}
	touch := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600)) }
	round := func() []string {
		order = nil
		require.NoError(t, logs.syncAll())
		return order
	}
	touch("00001.mem")
	require.Equal(t, []string{"00001.mem", filepath.Base(dir)}, round())
	require.Equal(t, []string{"00001.mem"}, round())
	touch("00002.mem")
	touch("00003.mem")
	require.Equal(t, []string{"00001.mem", "00002.mem", "00003.mem", filepath.Base(dir)}, round())
	require.Equal(t, []string{"00003.mem"}, round(), "complete logs are synced once")
	require.NoError(t, os.Remove(filepath.Join(dir, "00001.mem")))
	require.NoError(t, os.Remove(filepath.Join(dir, "00002.mem")))
	require.Equal(t, []string{"00003.mem"}, round())
	touch("00004.mem")
	require.Equal(t, []string{"00003.mem", "00004.mem", filepath.Base(dir)}, round())
	require.NoError(t, logs.close())
	touch("99999.mem")
	touch("100000.mem")
	require.Equal(t, []string{"00004.mem", "99999.mem", "100000.mem", filepath.Base(dir)}, round(), "the newest is the highest number")
	require.Equal(t, []string{"100000.mem"}, round())
	require.NoError(t, logs.close())
}

// TestSyncAcrossMemtables writes through several memtables and checks that no
// wait leaves a log that exists unsynced.
func TestSyncAcrossMemtables(t *testing.T) {
	t.Parallel()
	p := &syncProbe{}
	st := openStore(t, openTest(t, withProbe(p)))
	big := strings.Repeat("x", 200<<10)
	for n := range 120 { // 24 MB: three memtables
		pod := newPod(fmt.Sprintf("a%d", n))
		pod.Annotations = map[string]string{"big": big}
		require.NoError(t, st.Create(t.Context(), podKey(pod.Name), pod, nil, 0))
		if n%10 != 0 {
			continue
		}
		require.NoError(t, st.db.WaitDurable(t.Context(), st.db.CurrentRevision()))
	}
	synced := map[string]bool{}
	for _, name := range p.names {
		synced[name] = true
	}
	require.GreaterOrEqual(t, len(synced), 3, "%v", synced)
}

func TestSizeCap(t *testing.T) {
	t.Parallel()
	st := openStore(t, openTest(t, func(o *Options) { o.MaxObjectBytes = 2000 }))
	before := create(t, st, "a")
	big := newPod("b")
	big.Annotations = map[string]string{"big": strings.Repeat("x", 2000)}
	err := st.Create(t.Context(), podKey("b"), big, nil, 0)
	require.True(t, apierrors.IsRequestEntityTooLargeError(err), "%v", err)
	err = st.GuaranteedUpdate(t.Context(), podKey("a"), newPod(""), false, nil, func(runtime.Object, storage.ResponseMeta) (runtime.Object, *uint64, error) {
		return big, nil, nil
	}, nil)
	require.True(t, apierrors.IsRequestEntityTooLargeError(err), "%v", err)
	require.Equal(t, before, st.db.CurrentRevision(), "something was written")
	_, err = Open(Options{MaxObjectBytes: valueThreshold})
	require.ErrorContains(t, err, "size cap")
}
