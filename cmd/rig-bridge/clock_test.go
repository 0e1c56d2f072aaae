package main

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestE6ClockJumps: the clock jumps an hour forward and back while a command runs. It is not ended early, its
// elapsed time is what it was, a real timeout still comes, and no receipt ends before it begins.
func TestE6ClockJumps(t *testing.T) {
	var hours atomic.Int64
	d, c := running(t, &settings{now: func() time.Time {
		return time.Now().Round(0).Add(time.Duration(hours.Load()) * time.Hour) // without the monotonic reading
	}})
	w := open(t, c, t.TempDir())
	stop := make(chan struct{})
	jumping := make(chan struct{})
	go func() {
		defer close(jumping)
		for n := int64(1); ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond):
				hours.Store([]int64{1, 0, -1}[n%3])
			}
		}
	}()
	args := e2e.Args{"workspace_id": w, "request_key": "k1", "command": "sleep 2; echo done", "timeout": 30}
	res := call(t, c, "bash", args)
	if res.IsError || res.Text() != "done\n" {
		t.Fatalf("the command: %s", res.Raw)
	}
	again := call(t, c, "bash", args)
	for _, r := range []e2e.Result{res, again} {
		if ms, _ := r.Structured["elapsed_ms"].(float64); ms < 2000 || ms > 20_000 {
			t.Errorf("it took %v ms by its answer", ms)
		}
	}
	began := time.Now()
	late := call(t, c, "bash", e2e.Args{"workspace_id": w, "request_key": "k2", "command": "sleep 60", "timeout": 1})
	if took := time.Since(began); late.Code() != v1alpha1.CodeCommandTimeout || took < time.Second || took > 30*time.Second {
		t.Errorf("after %v: %s", took, late.Raw)
	}
	close(stop)
	<-jumping
	first, second := receipt(t, d, w, "k1"), receipt(t, d, w, "k2")
	for _, op := range []*v1alpha1.Operation{first, second} {
		if op.Status.CompletionTime.Before(op.Status.StartTime) {
			t.Errorf("%s ended %v before it began", op.Spec.RequestKey, op.Status.StartTime.Sub(op.Status.CompletionTime.Time))
		}
	}
	if first.ResourceVersion >= second.ResourceVersion && len(first.ResourceVersion) >= len(second.ResourceVersion) {
		t.Errorf("the receipts are out of order: %s, then %s", first.ResourceVersion, second.ResourceVersion)
	}
}

// TestClockSetBack: a command that began before the clock was set back has not ended before it began.
func TestClockSetBack(t *testing.T) {
	var hours atomic.Int64
	d, c := running(t, &settings{now: func() time.Time { return time.Now().Round(0).Add(time.Duration(hours.Load()) * time.Hour) }})
	dir := t.TempDir()
	w := open(t, c, dir)
	answered := make(chan e2e.Result, 1)
	go func() {
		res, err := c.Call(t.Context(), "bash", e2e.Args{"workspace_id": w, "request_key": "k1", "command": "touch begun; sleep 0.5"})
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	begun(t, dir)
	hours.Store(-1)
	if res := <-answered; res.IsError {
		t.Fatal(res.Text())
	}
	if op := receipt(t, d, w, "k1"); op.Status.CompletionTime.Before(op.Status.StartTime) {
		t.Errorf("it began at %v and ended at %v", op.Status.StartTime, op.Status.CompletionTime)
	}
}
