package storage

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// TestNothingWorksAfterClose: every call gets ErrClosed; badger would panic.
func TestNothingWorksAfterClose(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{t.TempDir(), ""} {
		db, err := Open(Options{Dir: dir, HistoryEvents: 1})
		require.NoError(t, err)
		st := openStore(t, db)
		rev := create(t, st, "old")
		create(t, st, "a")
		w := startWatch(t, st, db.CurrentRevision())
		require.NoError(t, db.Close())
		require.NoError(t, db.Close(), "closing twice")
		_, ok := nextEvent(t, w)
		require.False(t, ok, "the watch goes on")
		ctx, all := t.Context(), storage.ListOptions{Predicate: storage.Everything, Recursive: true}
		for name, call := range map[string]func() error{
			"get":     func() error { _, err := get(st, "a"); return err },
			"get old": func() error { _, err := get(st, "old"); return err },
			"list":    func() error { return st.GetList(ctx, "/pods/", all, &example.PodList{}) },
			"create":  func() error { return st.Create(ctx, podKey("b"), newPod("b"), nil, 0) },
			"update":  func() error { _, err := tryLabel(st, "a", 1); return err },
			"delete": func() error {
				return st.Delete(ctx, podKey("old"), &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
			},
			"watch": func() error { _, err := st.Watch(ctx, "/pods/", all); return err },
			"stats": func() error { _, err := st.Stats(ctx); return err },
			"sizes": func() error {
				return st.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil })
			},
			"ready":    st.ReadinessCheck,
			"progress": func() error { return st.RequestWatchProgress(ctx) },
			"revision": func() error { _, err := st.GetCurrentResourceVersion(ctx); return err },
			"durable":  func() error { return db.WaitDurable(ctx, rev) },
			"compact":  func() error { return db.Compact(ctx, rev) },
			"store":    func() error { _, err := db.Store(podConfig()); return err },
		} {
			require.ErrorIs(t, call(), ErrClosed, "%s after close, dir %q", name, dir)
		}
	}
}

// TestCloseUnderLoad closes while everything is in use: calls end with success
// or ErrClosed, and Close returns.
func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	db, err := Open(Options{Dir: t.TempDir(), HistoryEvents: 8})
	require.NoError(t, err)
	st := openStore(t, db)
	create(t, st, "a")
	create(t, st, "v")
	var wg sync.WaitGroup
	started := make(chan struct{}, 100)
	loop := func(call func() error) {
		wg.Go(func() {
			for n := 0; ; n++ {
				err := call()
				if n == 3 {
					started <- struct{}{}
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	ctx := t.Context()
	loop(func() error { _, err := tryLabel(st, "a", int(db.CurrentRevision())); return err })
	loop(func() error { _, err := tryLabel(st, "v", int(db.CurrentRevision())); return err })
	loop(func() error { return db.WaitDurable(ctx, db.CurrentRevision()) })
	loop(func() error { return db.Compact(ctx, db.CurrentRevision()) })
	loop(func() error {
		return st.GetList(ctx, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, &example.PodList{})
	})
	loop(func() error {
		w, err := st.Watch(ctx, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true})
		if err == nil {
			<-w.ResultChan()
			w.Stop()
		}
		return err
	})
	for range 6 {
		<-started
	}
	require.NoError(t, db.Close())
	wg.Wait()
}
