package thread

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func TestState(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	in := func(phase v1alpha1.RunPhase) *v1alpha1.Run {
		return &v1alpha1.Run{Status: v1alpha1.RunStatus{Phase: phase}}
	}
	for name, c := range map[string]struct {
		o    observed
		want v1alpha1.ThreadState
	}{
		"no run":                     {observed{lastUse: now}, v1alpha1.ThreadIdle},
		"a run that has just begun":  {observed{latest: in(""), lastUse: now}, v1alpha1.ThreadWorking},
		"a call under way":           {observed{latest: in(v1alpha1.RunWorking), active: true, lastUse: now.Add(-time.Hour)}, v1alpha1.ThreadWorking},
		"a call a moment ago":        {observed{latest: in(v1alpha1.RunWorking), lastUse: now.Add(time.Millisecond - Quiet)}, v1alpha1.ThreadWorking},
		"no call for a while":        {observed{latest: in(v1alpha1.RunWorking), lastUse: now.Add(-Quiet)}, v1alpha1.ThreadAwaitingHandoff},
		"interrupted":                {observed{latest: in(v1alpha1.RunInterrupted), lastUse: now}, v1alpha1.ThreadInterrupted},
		"handed off":                 {observed{latest: in(v1alpha1.RunCompleted), lastUse: now}, v1alpha1.ThreadYourTurn},
		"handed off, calls go on":    {observed{latest: in(v1alpha1.RunBlocked), active: true, lastUse: now}, v1alpha1.ThreadYourTurn},
		"a clock that was set back":  {observed{latest: in(v1alpha1.RunWorking), lastUse: now.Add(time.Hour)}, v1alpha1.ThreadWorking},
		"interrupted while it works": {observed{latest: in(v1alpha1.RunInterrupted), active: true, lastUse: now}, v1alpha1.ThreadInterrupted},
	} {
		c.o.now = now
		if got := state(c.o); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Calls alone cost a thread no write but one in a while.
func TestWorthWriting(t *testing.T) {
	at := func(d time.Duration) *metav1.MicroTime {
		m := metav1.NewMicroTime(time.Unix(1_700_000_000, 0).Add(d))
		return &m
	}
	before := v1alpha1.ThreadStatus{State: v1alpha1.ThreadWorking, LastUsedTime: at(0)}
	for name, c := range map[string]struct {
		after v1alpha1.ThreadStatus
		want  bool
	}{
		"nothing":               {before, false},
		"used again":            {v1alpha1.ThreadStatus{State: v1alpha1.ThreadWorking, LastUsedTime: at(Lag - time.Second)}, false},
		"used again much later": {v1alpha1.ThreadStatus{State: v1alpha1.ThreadWorking, LastUsedTime: at(Lag)}, true},
		"another state":         {v1alpha1.ThreadStatus{State: v1alpha1.ThreadYourTurn, LastUsedTime: at(0)}, true},
		"another run":           {v1alpha1.ThreadStatus{State: v1alpha1.ThreadWorking, LastUsedTime: at(0), CurrentRunRef: &v1alpha1.LocalReference{Name: "r"}}, true},
	} {
		if got := worthWriting(&before, &c.after); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if !worthWriting(&v1alpha1.ThreadStatus{}, &before) {
		t.Error("the first status is not written")
	}
}

// A start looks at the threads whose run may have changed before a crash, and passes over the others.
func TestSettled(t *testing.T) {
	ref := func(name string) *v1alpha1.LocalReference { return &v1alpha1.LocalReference{Name: name} }
	runs := []v1alpha1.LocalReference{{Name: "b"}, {Name: "a"}}
	for name, c := range map[string]struct {
		status v1alpha1.ThreadStatus
		want   bool
	}{
		"new":                           {v1alpha1.ThreadStatus{}, false},
		"without runs":                  {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadIdle}, true},
		"its first run has just begun":  {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadIdle, Runs: runs}, false},
		"handed off":                    {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadYourTurn, Runs: runs, CurrentRunRef: ref("b")}, true},
		"a new run has just begun":      {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadYourTurn, Runs: runs, CurrentRunRef: ref("a")}, false},
		"changed since":                 {v1alpha1.ThreadStatus{ObservedGeneration: 1, State: v1alpha1.ThreadYourTurn, Runs: runs, CurrentRunRef: ref("b")}, false},
		"interrupted":                   {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadInterrupted, Runs: runs, CurrentRunRef: ref("b")}, false},
		"working":                       {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadWorking, Runs: runs, CurrentRunRef: ref("b")}, false},
		"waiting for its handoff":       {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadAwaitingHandoff, Runs: runs, CurrentRunRef: ref("b")}, false},
		"of a store before runs' names": {v1alpha1.ThreadStatus{ObservedGeneration: 2, State: v1alpha1.ThreadYourTurn, CurrentRunRef: ref("b")}, false},
	} {
		if got := settled(&v1alpha1.Thread{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: c.status}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
