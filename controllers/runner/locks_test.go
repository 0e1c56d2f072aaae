package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestLocksExcludeEachOther(t *testing.T) {
	var l Locks
	inside := 0
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			release, _, err := l.Acquire(t.Context(), "/p", fmt.Sprint(i))
			if err != nil {
				t.Error(err)
				return
			}
			inside++ // the race detector sees two holders
			release()
			release()
		})
	}
	all.Wait()
	if inside != 50 {
		t.Errorf("%d of 50 got in", inside)
	}
	if h := l.Holder("/p"); h != "" {
		t.Errorf("still held by %q", h)
	}
}

func TestLocksAreFair(t *testing.T) {
	var l Locks
	release, _, err := l.Acquire(t.Context(), "/p", "first")
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan string, 3)
	for i, name := range []string{"a", "b", "c"} {
		go func() {
			r, _, err := l.Acquire(t.Context(), "/p", name)
			if err != nil {
				t.Error(err)
			}
			order <- name
			r()
		}()
		for waiting(&l, "/p") != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	release()
	for _, want := range []string{"a", "b", "c"} {
		if got := <-order; got != want {
			t.Errorf("%s came before %s", got, want)
		}
	}
}

func TestLocksNameTheHolderWhenTheWaitEnds(t *testing.T) {
	var l Locks
	release, _, err := l.Acquire(t.Context(), "/p", "op-1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	busy := errors.New("busy")
	time.AfterFunc(10*time.Millisecond, func() { cancel(busy) })
	if _, heldBy, err := l.Acquire(ctx, "/p", "op-2"); heldBy != "op-1" || !errors.Is(err, busy) {
		t.Errorf("heldBy = %q, err = %v", heldBy, err)
	}
	if waiting(&l, "/p") != 0 {
		t.Error("the one that gave up still waits")
	}
	release()
	r, _, err := l.Acquire(t.Context(), "/p", "op-3")
	if err != nil {
		t.Fatal(err)
	}
	r()
}

func waiting(l *Locks, path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.paths[path]; ok {
		return len(q.waiting)
	}
	return 0
}
