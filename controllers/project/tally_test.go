package project

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Whatever comes first and however often, the counts are those of what is there.
func TestTally(t *testing.T) {
	var all tally
	thread := func(name, project string, used int64) *v1alpha1.Thread {
		th := &v1alpha1.Thread{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: project}}}
		if used > 0 {
			at := metav1.NewMicroTime(time.Unix(used, 0))
			th.Status.LastUsedTime = &at
		}
		return th
	}
	handoff := func(name, thread string, read bool) *v1alpha1.Handoff {
		return &v1alpha1.Handoff{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.HandoffSpec{ThreadRef: v1alpha1.LocalReference{Name: thread}, Acknowledged: read}}
	}
	is := func(step, project string, threads, unread int32, used int64) {
		t.Helper()
		st := all.status(project)
		got := int64(0)
		if st.LastUsedTime != nil {
			got = st.LastUsedTime.Unix()
		}
		if st.Threads != threads || st.UnreadHandoffs != unread || got != used {
			t.Errorf("%s: project %s has %d threads, %d unread, last used at %d; want %d, %d, %d", step, project, st.Threads, st.UnreadHandoffs, got, threads, unread, used)
		}
	}
	is("at first", "p", 0, 0, 0)
	all.handoff(handoff("h1", "a", false)) // before its thread
	is("a handoff without its thread", "p", 0, 0, 0)
	if all.projectOf("a") != "" {
		t.Error("the project of an unknown thread")
	}
	all.thread(thread("a", "p", 0))
	is("a new thread", "p", 1, 1, 0)
	for range 2 {
		all.thread(thread("a", "p", 100))
		all.thread(thread("b", "p", 50))
		all.thread(thread("c", "q", 70))
		all.handoff(handoff("h1", "a", false))
		all.handoff(handoff("h2", "b", false))
	}
	is("two threads", "p", 2, 2, 100)
	is("another project", "q", 1, 0, 70)
	all.handoff(handoff("h2", "b", true))
	is("one is read", "p", 2, 1, 100)
	all.withoutHandoff(handoff("h2", "b", true))
	all.withoutHandoff(handoff("h1", "a", true))
	all.withoutHandoff(handoff("h9", "z", true))
	is("all are read", "p", 2, 0, 100)
	all.withoutThread("a")
	all.withoutThread("a")
	is("a thread is gone", "p", 1, 0, 100)
	all.withoutThread("b")
	all.forget("p")
	all.forget("q")
	is("a project is gone", "p", 0, 0, 0)
	is("one that still has threads", "q", 1, 0, 70)
	all.withoutThread("c")
	all.forget("q")
	if n := len(all.projects) + len(all.of) + len(all.unread); n > 0 {
		t.Errorf("%d entries are left", n)
	}
}

// What a count costs does not grow with the threads.
func TestTallyDoesNotGrow(t *testing.T) {
	cost := func(threads int) float64 {
		var all tally
		for i := range threads {
			at := metav1.NewMicroTime(time.Unix(int64(i), 0))
			all.thread(&v1alpha1.Thread{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: "p"}}, Status: v1alpha1.ThreadStatus{LastUsedTime: &at}})
		}
		return testing.AllocsPerRun(10, func() { all.status("p") })
	}
	if few, many := cost(10), cost(5000); many > few {
		t.Errorf("%v allocations with ten threads, %v with 5,000", few, many)
	}
}
