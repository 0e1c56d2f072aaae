package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/thread"
)

func TestFromTheFirstCallToTheHandoff(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	first := w.begin("t")
	if again := w.begin("t"); again != first {
		t.Errorf("a second call belongs to %s, the first to %s", again, first)
	}
	r := w.run(first)
	if r.Status.Phase != v1alpha1.RunWorking || r.Spec.Title != "About t" || r.Status.StartTime == nil || r.Spec.ThreadRef.Name != "t" {
		t.Errorf("the run is %+v", r)
	}
	if o := r.OwnerReferences; len(o) != 1 || o[0].Name != "t" || o[0].Kind != "Thread" {
		t.Errorf("the run belongs to %v", o)
	}
	h, err := w.handOff("t", first, "op1")
	w.must(err)
	r = w.run(first)
	if r.Status.Phase != v1alpha1.RunNeedsInput || r.Status.Summary != "Look at op1" || r.Status.HandoffRef.Name != h.Name || r.Status.CompletionTime == nil {
		t.Errorf("the finished run is %+v", r.Status)
	}
	second := w.begin("t")
	if second == first {
		t.Error("the call after a handoff belongs to the finished run")
	}
	if len(w.allRuns()) != 2 || len(w.allHandoffs()) != 1 {
		t.Errorf("%d runs, %d handoffs", len(w.allRuns()), len(w.allHandoffs()))
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	_, err := w.handOff("t", "11111111-1111-4111-8111-111111111111", "early")
	w.refused(err, v1alpha1.ReasonRunConflict)
	w.must(w.start("t", "named", "Named"))
	w.refused(w.start("t", "other", ""), v1alpha1.ReasonRunActive)
	_, err = w.handOff("t", "other", "op")
	w.refused(err, v1alpha1.ReasonRunConflict)
	_, err = w.handOff("t", "named", "op")
	w.must(err)
	_, err = w.handOff("t", "named", "op2")
	w.refused(err, v1alpha1.ReasonRunFinished)
	_, err = w.handOff("t", "", "op3")
	w.refused(err, v1alpha1.ReasonRunFinished)

	busy := errors.New("calls are under way")
	err = w.runs.Start(t.Context(), &v1alpha1.Run{ObjectMeta: named("never"), Spec: v1alpha1.RunSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"}}}, func() error { return busy })
	if !errors.Is(err, busy) {
		t.Errorf("a call that was not admitted: %v", err)
	}
	w.must(w.start("t", "next", ""))
	err = w.runs.HandOff(t.Context(), handoffOf("t", "", "op4"), "spare", func() error { return busy })
	if !errors.Is(err, busy) {
		t.Errorf("a handoff that was not admitted: %v", err)
	}
	if len(w.allRuns()) != 2 || len(w.allHandoffs()) != 1 || w.run("next").Status.Phase != v1alpha1.RunWorking {
		t.Errorf("refused calls left something: %d runs, %d handoffs", len(w.allRuns()), len(w.allHandoffs()))
	}
}

// A handoff without a run makes one and finishes it.
func TestHandoffWithoutRun(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	h, err := w.handOff("t", "", "op")
	w.must(err)
	r := w.run(v1alpha1.RunName("op"))
	if h.Spec.RunRef.Name != r.Name || r.Status.Phase != v1alpha1.RunNeedsInput || r.Spec.Title != "About t" || r.Status.StartTime == nil {
		t.Errorf("the run is %+v %+v", r.Spec, r.Status)
	}
}

// Whatever is repeated with the same names changes nothing.
func TestRepetitions(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.must(w.start("t", "r", "Title"))
	w.must(w.start("t", "r", "Title"))
	_, err := w.handOff("t", "", "op")
	w.must(err)
	before := w.run("r")
	w.must(w.runs.Finish(t.Context(), &w.allHandoffs()[0]))
	w.must(w.start("t", "r", "Title"))
	next := w.begin("t")
	w.must(w.start("t", "r", "Title")) // it was made, and another has followed
	if after := w.run("r"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a repetition changed %+v into %+v", before.Status, after.Status)
	}
	if w.begin("t") != next || len(w.allRuns()) != 2 {
		t.Errorf("a repetition moved the thread to another run; %d runs", len(w.allRuns()))
	}
}

func TestEarlierLife(t *testing.T) {
	w := newWorld(t)
	w.open("p", "a")
	w.open("p", "b")
	w.open("p", "c")
	first, finished, handed := w.begin("a"), w.begin("b"), w.begin("c")
	_, err := w.handOff("b", "", "op")
	w.must(err)
	// The daemon died after the handoff was made and before its run was finished.
	h := handoffOf("c", handed, "op2")
	h.Name = v1alpha1.HandoffName(handed)
	w.must(w.client.Create(t.Context(), h))
	w.restart()

	if r := w.run(first); r.Status.Phase != v1alpha1.RunInterrupted || r.Status.CompletionTime != nil {
		t.Errorf("a run of an earlier life is %+v", r.Status)
	}
	if r := w.run(finished); r.Status.Phase != v1alpha1.RunNeedsInput {
		t.Errorf("a finished run is %+v", r.Status)
	}
	if r := w.run(handed); r.Status.Phase != v1alpha1.RunNeedsInput || r.Status.HandoffRef == nil || r.Status.Summary != "Look at op2" {
		t.Errorf("a run whose handoff was made is %+v", r.Status)
	}
	if _, err := w.handOff("a", first, "op3"); err != nil {
		t.Errorf("an interrupted run cannot be handed off: %v", err)
	}
	if r := w.run(first); r.Status.Phase != v1alpha1.RunNeedsInput {
		t.Errorf("handed off, the interrupted run is %+v", r.Status)
	}
}

// A call after an interruption begins a new run; run_start may as well. The interrupted one stays as it is.
func TestAfterAnInterruption(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	first := w.begin("t")
	w.restart()
	second := w.begin("t")
	if second == first || w.run(first).Status.Phase != v1alpha1.RunInterrupted || w.run(second).Status.Phase != v1alpha1.RunWorking {
		t.Errorf("first %s %s, second %s %s", first, w.run(first).Status.Phase, second, w.run(second).Status.Phase)
	}
	_, err := w.handOff("t", first, "op")
	w.refused(err, v1alpha1.ReasonRunConflict)
	w.restart()
	w.must(w.start("t", "third", ""))
	if w.run(second).Status.Phase != v1alpha1.RunInterrupted || w.run("third").Status.Phase != v1alpha1.RunWorking {
		t.Error("run_start after an interruption")
	}
}

// A run_start that the daemon's end cut short goes on with the run that it made: nobody has been told of it.
func TestStartGoesOnAfterACrash(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.must(w.start("t", "r", "Title"))
	w.restart()
	w.must(w.start("t", "r", ""))
	if r := w.run("r"); r.Status.Phase != v1alpha1.RunWorking || r.Spec.Title != "Title" || w.begin("t") != "r" {
		t.Errorf("the run is %+v", r)
	}
}

func TestWorkspaceCloses(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.open("p", "u")
	first, other := w.begin("t"), w.begin("u")
	w.must(w.runs.Interrupt(t.Context(), v1alpha1.Namespace, "t"))
	w.must(w.runs.Interrupt(t.Context(), v1alpha1.Namespace, "t"))
	if r := w.run(first); r.Status.Phase != v1alpha1.RunInterrupted {
		t.Errorf("the run of a closed workspace is %s", r.Status.Phase)
	}
	// A workspace that goes without a word leaves no run working either.
	w.close("u")
	w.eventually("the run is interrupted", func() bool { return w.run(other).Status.Phase == v1alpha1.RunInterrupted })
	w.must(w.runs.Interrupt(t.Context(), v1alpha1.Namespace, "no-such-thread"))
}

func TestManyFirstCallsShareARun(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.open("p", fmt.Sprint("t", i))
	}
	var mu sync.Mutex
	seen := map[string]map[string]bool{}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			threadName := fmt.Sprint("t", i%4)
			name, err := w.runs.Begin(t.Context(), v1alpha1.Namespace, threadName)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[threadName] == nil {
				seen[threadName] = map[string]bool{}
			}
			seen[threadName][name] = true
		})
	}
	wg.Wait()
	for threadName, names := range seen {
		if len(names) != 1 {
			t.Errorf("the calls of %s belong to %d runs", threadName, len(names))
		}
	}
	if len(w.allRuns()) != 4 {
		t.Errorf("%d runs for 4 threads", len(w.allRuns()))
	}
}

// Handoffs that race end a run once; the others are told so.
func TestHandoffsRace(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.begin("t")
	results := make(chan error, 16)
	for i := range cap(results) {
		go func() {
			_, err := w.handOff("t", "", fmt.Sprint("op", i))
			results <- err
		}()
	}
	done := 0
	for range cap(results) {
		if err := <-results; err == nil {
			done++
		} else {
			w.refused(err, v1alpha1.ReasonRunFinished)
		}
	}
	if done != 1 || len(w.allHandoffs()) != 1 || len(w.allRuns()) != 1 {
		t.Errorf("%d handoffs were accepted, %d made", done, len(w.allHandoffs()))
	}
}

// A thread names its last runs, the latest first, and the cache holds those that are working.
func TestRunsAreNamed(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	var want []v1alpha1.LocalReference
	for i := range 25 {
		want = append([]v1alpha1.LocalReference{{Name: w.begin("t")}}, want...)
		_, err := w.handOff("t", "", fmt.Sprint("op", i))
		w.must(err)
	}
	th := &v1alpha1.Thread{}
	w.get("t", th)
	if !slices.Equal(th.Status.Runs, want[:20]) {
		t.Errorf("the thread names %v, want %v", th.Status.Runs, want[:20])
	}
	w.eventually("nothing is working in the cache", func() bool {
		cached := &v1alpha1.RunList{}
		w.must(w.cached.List(t.Context(), cached, client.InNamespace(v1alpha1.Namespace)))
		return len(cached.Items) == 0
	})
	w.restart()
	if _, err := w.handOff("t", want[0].Name, "late"); err == nil || len(w.allRuns()) != 25 {
		t.Errorf("after a restart the latest run is not known: %v", err)
	}
}

// A run that was named and not made is passed over.
func TestNamedButNotMade(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	first := w.begin("t")
	w.restart()
	th := &v1alpha1.Thread{}
	w.get("t", th)
	th.Status.Runs = append([]v1alpha1.LocalReference{{Name: "never-made"}}, th.Status.Runs...)
	err := w.client.Status().Update(t.Context(), th)
	for apierrors.IsConflict(err) {
		w.get("t", th)
		th.Status.Runs = append([]v1alpha1.LocalReference{{Name: "never-made"}}, th.Status.Runs...)
		err = w.client.Status().Update(t.Context(), th)
	}
	w.must(err)
	w.restart()
	h, err := w.handOff("t", "", "op")
	w.must(err)
	if h.Spec.RunRef.Name != first {
		t.Errorf("the handoff ended %s, want %s", h.Spec.RunRef.Name, first)
	}
}

// The first call of a run does not wait for the disk.
func TestBeginDoesNotWait(t *testing.T) {
	w := &world{t: t, dir: t.TempDir()}
	asked := make(chan string, 16)
	release := make(chan struct{})
	w.durable = func(_ context.Context, rv string) error {
		asked <- rv
		<-release
		return nil
	}
	w.live()
	defer w.stop()
	defer close(release)
	w.open("p", "t")
	first := w.begin("t") // returns although the disk does not
	w.begin("t")
	if rv := <-asked; rv != w.run(first).ResourceVersion {
		t.Errorf("in the background the disk is waited for up to %s, the run is at %s", rv, w.run(first).ResourceVersion)
	}
	select {
	case rv := <-asked:
		t.Errorf("a call of a run that works waits for the disk up to %s", rv)
	default:
	}
}

// A clock that is set back does not make an older run the latest.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.begin("t")
	w.must(w.runs.Interrupt(t.Context(), v1alpha1.Namespace, "t"))
	w.pass(-time.Hour)
	second := w.begin("t")
	w.must(w.runs.Interrupt(t.Context(), v1alpha1.Namespace, "t"))
	w.restart()
	h, err := w.handOff("t", "", "op")
	w.must(err)
	if h.Spec.RunRef.Name != second {
		t.Error("the handoff ended an older run")
	}
	if r := w.run(second); r.Status.CompletionTime.Before(r.Status.StartTime) {
		t.Errorf("it ended at %v before it began at %v", r.Status.CompletionTime, r.Status.StartTime)
	}
}

func TestRunThatIsDeletedIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	first := w.begin("t")
	w.must(w.client.Delete(t.Context(), w.run(first)))
	w.eventually("the next call begins a run", func() bool { return w.begin("t") != first })
	if all := w.allRuns(); len(all) != 1 || all[0].Status.Phase != v1alpha1.RunWorking {
		t.Errorf("the runs are %+v", all)
	}
}

// A title that somebody edits meanwhile is no hindrance.
func TestEditedRun(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	first := w.begin("t")
	r := w.run(first)
	r.Spec.Title = "Renamed"
	w.must(w.client.Update(t.Context(), r))
	_, err := w.handOff("t", first, "op")
	w.must(err)
	if r := w.run(first); r.Spec.Title != "Renamed" || r.Status.Phase != v1alpha1.RunNeedsInput {
		t.Errorf("the run is %+v %+v", r.Spec, r.Status)
	}
}

func TestThreadsAndProjectsFollow(t *testing.T) {
	w := newWorld(t)
	w.open("p", "a")
	w.open("p", "b")
	w.open("q", "c")
	state := func(name string) func() v1alpha1.ThreadState {
		return func() v1alpha1.ThreadState {
			th := &v1alpha1.Thread{}
			w.get(name, th)
			return th.Status.State
		}
	}
	is := func(name string, want v1alpha1.ThreadState) {
		t.Helper()
		w.eventually(name+" is "+string(want), func() bool { return state(name)() == want })
	}
	is("a", v1alpha1.ThreadIdle)
	first := w.begin("a")
	is("a", v1alpha1.ThreadWorking)
	th := &v1alpha1.Thread{}
	w.get("a", th)
	if th.Status.CurrentRunRef == nil || th.Status.CurrentRunRef.Name != first || th.Status.LastUsedTime == nil {
		t.Errorf("the thread's status is %+v", th.Status)
	}
	w.pass(thread.Quiet)
	w.must(w.client.Patch(t.Context(), &v1alpha1.Thread{ObjectMeta: named("a")}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"title":"Looked at again"}}`))))
	is("a", v1alpha1.ThreadAwaitingHandoff)
	h, err := w.handOff("a", "", "op")
	w.must(err)
	is("a", v1alpha1.ThreadYourTurn)
	w.begin("b")
	w.must(w.runs.Interrupt(t.Context(), v1alpha1.Namespace, "b"))
	is("b", v1alpha1.ThreadInterrupted)

	counts := func(name string, threads, unread int32) {
		t.Helper()
		w.eventually(fmt.Sprintf("%s has %d threads and %d unread", name, threads, unread), func() bool {
			p := &v1alpha1.Project{}
			w.get(name, p)
			return p.Status.Threads == threads && p.Status.UnreadHandoffs == unread && p.Status.LastUsedTime != nil
		})
	}
	counts("p", 2, 1)
	counts("q", 1, 0)
	w.acknowledge(h.Name)
	counts("p", 2, 0)
}

func (w *world) acknowledge(name string) {
	w.t.Helper()
	w.must(w.client.Patch(context.Background(), &v1alpha1.Handoff{ObjectMeta: named(name)}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"acknowledged":true}}`))))
}

func TestHandoffIsRead(t *testing.T) {
	w := newWorld(t)
	w.open("p", "t")
	w.begin("t")
	made, err := w.handOff("t", "", "op")
	w.must(err)
	h := &v1alpha1.Handoff{}
	w.eventually("delivery is settled", func() bool {
		w.get(made.Name, h)
		return h.Status.Delivery.Phase == v1alpha1.DeliveryDisabled
	})
	if h.Status.ReadTime != nil || !h.Active() {
		t.Errorf("nobody has read it: %+v", h.Status)
	}
	w.acknowledge(made.Name)
	w.eventually("the time is noted", func() bool {
		w.get(made.Name, h)
		return h.Status.ReadTime != nil
	})
	first := h.Status.ReadTime.DeepCopy()
	w.pass(time.Hour)
	w.acknowledge(made.Name)
	w.restart()
	w.get(made.Name, h)
	if !h.Status.ReadTime.Equal(first) || h.Active() {
		t.Errorf("read first at %v, now %v", first, h.Status.ReadTime)
	}
	cached := &v1alpha1.HandoffList{}
	w.must(w.cached.List(t.Context(), cached, client.InNamespace(v1alpha1.Namespace)))
	if len(cached.Items) != 0 {
		t.Errorf("the cache still holds %d handoffs that were read", len(cached.Items))
	}
}
