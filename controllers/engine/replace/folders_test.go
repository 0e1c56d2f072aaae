package replace

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Who comes while a sync runs is served by the next one, all of them by the same.
func TestFoldersShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fs folders
		calls, failed := 0, errors.New("no disk")
		slow := func() error {
			calls++
			time.Sleep(time.Second)
			if calls == 2 {
				return failed
			}
			return nil
		}
		var all sync.WaitGroup
		all.Go(func() {
			if err := fs.sync("/a", slow); err != nil {
				t.Errorf("the first: %v", err)
			}
		})
		time.Sleep(time.Millisecond)
		for range 10 {
			all.Go(func() {
				if err := fs.sync("/a", slow); !errors.Is(err, failed) {
					t.Errorf("one that came later: %v, want the error of the second sync", err)
				}
			})
		}
		alone := 0
		if err := fs.sync("/b", func() error { alone++; return nil }); err != nil || alone != 1 {
			t.Errorf("another folder: %v, %d syncs, want 1 at once", err, alone)
		}
		all.Wait()
		if calls != 2 {
			t.Errorf("%d syncs, want 2", calls)
		}
		if len(fs.byPath) != 0 {
			t.Errorf("%d folders are kept", len(fs.byPath))
		}
	})
}

// A sync never covers a caller that came after it began.
func TestFolderSyncBeginsAfterTheCall(t *testing.T) {
	var fs folders
	var mu sync.Mutex
	written, synced := 0, 0
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 200 {
				mu.Lock()
				written++
				mine := written
				mu.Unlock()
				if err := fs.sync("/a", func() error {
					mu.Lock()
					upto := written
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					synced = max(synced, upto)
					mu.Unlock()
					return nil
				}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				if synced < mine {
					t.Errorf("write %d: synced up to %d", mine, synced)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
}
