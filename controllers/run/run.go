package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Reconciler keeps the runs of threads. All fields but the unexported are required.
type Reconciler struct {
	// Client reads from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.Reader
	// Durable waits until everything up to a resourceVersion is on disk.
	Durable func(ctx context.Context, resourceVersion string) error
	// Now is the clock of the times in status.
	Now func() time.Time
	// NewID makes the names of runs that begin by themselves.
	NewID func() string
	// Used is told which thread a call used.
	Used func(thread string)
	// Events tells people what happened.
	Events record.EventRecorder

	mu    sync.Mutex
	lines map[string]*line
}

// line is the end of one thread's row of runs. It is read once; after that it is what is stored, because nobody
// else writes the status of runs.
type line struct {
	mu     sync.Mutex
	loaded bool
	latest *v1alpha1.Run // nil: the thread has none
	own    bool          // this life of the daemon began it
}

// working says whether calls belong to the line's latest run.
func (l *line) working() bool { return l.latest != nil && l.own && l.latest.Working() }

// Refusal says why a run was not begun or not handed off. Nothing was changed.
type Refusal struct{ reason, message string }

// Error tells the assistant what to do next.
func (r *Refusal) Error() string { return r.message }

// Reason is one of the reasons of the API.
func (r *Refusal) Reason() string { return r.reason }

// Begin returns the name of the thread's working run, and makes one if there is none.
func (r *Reconciler) Begin(ctx context.Context, namespace, thread string) (string, error) {
	r.Used(thread)
	l, err := r.lock(ctx, namespace, thread)
	if err != nil {
		return "", err
	}
	defer l.mu.Unlock()
	if l.working() && l.latest.Status.Phase != "" {
		gone, err := r.gone(ctx, l.latest)
		if err != nil || !gone {
			return l.latest.Name, err
		}
		if err := r.load(ctx, l, namespace, thread); err != nil {
			return "", err
		}
	}
	if !l.working() {
		if err := r.create(ctx, l, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.NewID()},
			Spec: v1alpha1.RunSpec{ThreadRef: v1alpha1.LocalReference{Name: thread}}}); err != nil {
			return "", err
		}
	}
	if err := r.work(ctx, l); err != nil {
		return "", err
	}
	r.settle(l.latest.ResourceVersion)
	return l.latest.Name, nil
}

// gone says whether a run that should be there was deleted. The cache may not show it yet.
func (r *Reconciler) gone(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	key := client.ObjectKeyFromObject(run)
	err := r.Client.Get(ctx, key, &v1alpha1.Run{})
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, &v1alpha1.Run{})
	}
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// settleAfter is how long a run that began by itself may stay off the disk. Most are brought there meanwhile by a
// call that waits for its own record.
const settleAfter = 2 * time.Second

// settle brings a run to the disk a moment later. A failure shows where somebody waits for the disk.
func (r *Reconciler) settle(resourceVersion string) {
	time.AfterFunc(settleAfter, func() { _ = r.Durable(context.Background(), resourceVersion) })
}

// Start makes the run that run_start asks for; want has its name, thread and title. admit is asked under the
// thread's lock, after the refusals of this package and before the effect. It is harmless to repeat: a run of
// that name that is still the latest goes on.
func (r *Reconciler) Start(ctx context.Context, want *v1alpha1.Run, admit func() error) error {
	l, err := r.lock(ctx, want.Namespace, want.Spec.ThreadRef.Name)
	if err != nil {
		return err
	}
	defer l.mu.Unlock()
	if l.latest == nil || l.latest.Name != want.Name {
		done, err := r.exists(ctx, want)
		if done || err != nil { // and has been followed by another
			return err
		}
		if l.working() {
			return &Refusal{v1alpha1.ReasonRunActive, fmt.Sprintf("The run %s (%q) of this thread is working. Hand it off with work_handoff before you start another, or simply go on in it.",
				l.latest.Name, l.latest.Spec.Title)}
		}
		if err := admit(); err != nil {
			return err
		}
		if err := r.create(ctx, l, want.DeepCopy()); err != nil {
			return err
		}
	}
	if l.latest.HandedOff() {
		return nil
	}
	failpoint.Hit(failpoint.RunMade)
	l.own = true
	return r.work(ctx, l)
}

func (r *Reconciler) exists(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(run), &v1alpha1.Run{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look for run %s: %w", run.Name, err)
	}
	return err == nil, nil
}

// HandOff ends the thread's latest run, or one that it makes for the purpose under the name spare. want has the
// thread, the reason, the summary, the operation that asks and, if the caller named one, the run; name and run
// are filled in before admit is asked, under the thread's lock.
func (r *Reconciler) HandOff(ctx context.Context, want *v1alpha1.Handoff, spare string, admit func() error) error {
	l, err := r.lock(ctx, want.Namespace, want.Spec.ThreadRef.Name)
	if err != nil {
		return err
	}
	defer l.mu.Unlock()
	switch named := want.Spec.RunRef.Name; {
	case l.latest == nil && named != "":
		return &Refusal{v1alpha1.ReasonRunConflict, "This thread has no run yet. Leave run_id out to have one made and finished."}
	case named != "" && named != l.latest.Name:
		return &Refusal{v1alpha1.ReasonRunConflict, fmt.Sprintf("The run to hand off is not the latest run of this thread, which is %s. Leave run_id out, or give that one.", l.latest.Name)}
	case l.latest != nil && l.latest.HandedOff():
		return &Refusal{v1alpha1.ReasonRunFinished, fmt.Sprintf("The run %s was already handed off. The next call or run_start begins a new run.", l.latest.Name)}
	}
	run := spare
	if l.latest != nil {
		run = l.latest.Name
	}
	thread := &v1alpha1.Thread{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: want.Namespace, Name: want.Spec.ThreadRef.Name}, thread); err != nil {
		return fmt.Errorf("read thread %s: %w", want.Spec.ThreadRef.Name, err)
	}
	want.OwnerReferences = []metav1.OwnerReference{v1alpha1.OwnedBy(thread)}
	want.Name, want.Spec.RunRef.Name = v1alpha1.HandoffName(run), run
	if err := admit(); err != nil {
		return err
	}
	asker := want.Annotations[v1alpha1.AnnotationOperation]
	err = r.Client.Create(ctx, want)
	if apierrors.IsAlreadyExists(err) {
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(want), want)
	}
	if err != nil {
		return fmt.Errorf("make handoff %s: %w", want.Name, err)
	}
	failpoint.Hit(failpoint.HandoffMade)
	if err := r.finish(ctx, l, want); err != nil {
		return err
	}
	failpoint.Hit(failpoint.RunFinished)
	if want.Annotations[v1alpha1.AnnotationOperation] != asker {
		return &Refusal{v1alpha1.ReasonRunFinished, fmt.Sprintf("The run %s was handed off by another call. The next call or run_start begins a new run.", run)}
	}
	return nil
}

// Finish brings a handoff's run to its end. It is harmless to repeat.
func (r *Reconciler) Finish(ctx context.Context, h *v1alpha1.Handoff) error {
	l, err := r.lock(ctx, h.Namespace, h.Spec.ThreadRef.Name)
	if err != nil {
		return err
	}
	defer l.mu.Unlock()
	return r.finish(ctx, l, h)
}

// Interrupt ends the work on a thread without a handoff, because its workspace is going.
func (r *Reconciler) Interrupt(ctx context.Context, namespace, thread string) error {
	l, err := r.lock(ctx, namespace, thread)
	if err != nil {
		return err
	}
	defer l.mu.Unlock()
	if !l.working() {
		return nil
	}
	err = r.write(ctx, l.latest, interrupted)
	if apierrors.IsNotFound(err) { // deleted, with its thread perhaps
		l.loaded = false
		return nil
	}
	return err
}

// lock returns the thread's line, locked and up to date.
func (r *Reconciler) lock(ctx context.Context, namespace, thread string) (*line, error) {
	r.mu.Lock()
	if r.lines == nil {
		r.lines = map[string]*line{}
	}
	l := r.lines[thread]
	if l == nil {
		l = &line{}
		r.lines[thread] = l
	}
	r.mu.Unlock()
	l.mu.Lock()
	if l.loaded {
		return l, nil
	}
	if err := r.load(ctx, l, namespace, thread); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	return l, nil
}

// load reads the thread's latest run. What an earlier life of the daemon left working is brought to its end.
func (r *Reconciler) load(ctx context.Context, l *line, namespace, thread string) error {
	t := &v1alpha1.Thread{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: thread}, t)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read thread %s: %w", thread, err)
	}
	l.latest, l.own = nil, false
	for _, ref := range t.Status.Runs {
		run := &v1alpha1.Run{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, run)
		if apierrors.IsNotFound(err) { // not made, or deleted
			continue
		}
		if err == nil {
			err = r.close(ctx, run)
		}
		if err != nil {
			return fmt.Errorf("read the runs of thread %s: %w", thread, err)
		}
		l.latest = run
		break
	}
	l.loaded = true
	return nil
}

// close brings a run that nobody works on to its end: the handoff's if there is one, else an interruption.
func (r *Reconciler) close(ctx context.Context, run *v1alpha1.Run) error {
	if run.HandedOff() {
		return nil
	}
	h := &v1alpha1.Handoff{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: v1alpha1.HandoffName(run.Name)}, h)
	switch {
	case err == nil:
		return r.finishRun(ctx, run, h)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("look for the handoff of run %s: %w", run.Name, err)
	case !run.Working():
		return nil
	}
	return r.write(ctx, run, interrupted)
}

// create makes the line's next run. Its title is the thread's if it has none of its own.
func (r *Reconciler) create(ctx context.Context, l *line, run *v1alpha1.Run) error {
	if err := r.belong(ctx, run); err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(run)
	err := r.Client.Create(ctx, run)
	if apierrors.IsAlreadyExists(err) {
		err = r.Live.Get(ctx, name, run)
	}
	if err != nil {
		return fmt.Errorf("make run %s: %w", name.Name, err)
	}
	l.latest, l.own = run, true
	return nil
}

// shown is the number of runs that a thread names.
const shown = 20

// belong names a new run in its thread and ties it to that. It comes before the run is made, so that no run is
// lost from sight.
func (r *Reconciler) belong(ctx context.Context, run *v1alpha1.Run) error {
	thread := &v1alpha1.Thread{}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.ThreadRef.Name}, thread); err != nil {
			return err
		}
		ref := v1alpha1.LocalReference{Name: run.Name}
		others := slices.DeleteFunc(slices.Clone(thread.Status.Runs), func(o v1alpha1.LocalReference) bool { return o == ref })
		thread.Status.Runs = append([]v1alpha1.LocalReference{ref}, others[:min(len(others), shown-1)]...)
		return r.Client.Status().Update(ctx, thread)
	})
	if err != nil {
		return fmt.Errorf("name run %s in thread %s: %w", run.Name, run.Spec.ThreadRef.Name, err)
	}
	if run.Spec.Title == "" {
		run.Spec.Title = thread.Spec.Title
	}
	run.OwnerReferences = []metav1.OwnerReference{v1alpha1.OwnedBy(thread)}
	return nil
}

// work says that the line's latest run is working.
func (r *Reconciler) work(ctx context.Context, l *line) error {
	if l.latest.Status.Phase == v1alpha1.RunWorking {
		return nil
	}
	begun := metav1.NewMicroTime(r.Now())
	if l.latest.Status.StartTime != nil {
		begun = *l.latest.Status.StartTime
	}
	return r.write(ctx, l.latest, func(st *v1alpha1.RunStatus) {
		st.Phase, st.StartTime = v1alpha1.RunWorking, &begun
	})
}

// finish brings a handoff's run to its end, and makes the run if the handoff was made for one that was to come.
func (r *Reconciler) finish(ctx context.Context, l *line, h *v1alpha1.Handoff) error {
	if l.latest != nil && l.latest.Name == h.Spec.RunRef.Name {
		return r.finishRun(ctx, l.latest, h)
	}
	run := &v1alpha1.Run{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: h.Spec.RunRef.Name}, run)
	if err == nil {
		return r.finishRun(ctx, run, h)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read run %s: %w", h.Spec.RunRef.Name, err)
	}
	run = &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Spec.RunRef.Name},
		Spec: v1alpha1.RunSpec{ThreadRef: h.Spec.ThreadRef}}
	if err := r.create(ctx, l, run); err != nil {
		return err
	}
	return r.finishRun(ctx, l.latest, h)
}

func (r *Reconciler) finishRun(ctx context.Context, run *v1alpha1.Run, h *v1alpha1.Handoff) error {
	if run.Status.HandoffRef != nil {
		return nil
	}
	now := metav1.NewMicroTime(r.Now())
	begun := run.Status.StartTime
	if begun == nil {
		begun = &now
	}
	if now.Before(begun) {
		now = *begun
	}
	return r.write(ctx, run, func(st *v1alpha1.RunStatus) {
		st.Phase, st.Summary = v1alpha1.RunPhase(h.Spec.Reason), h.Spec.Summary
		st.StartTime, st.CompletionTime = begun, &now
		st.HandoffRef = &v1alpha1.LocalReference{Name: h.Name}
	})
}

func interrupted(st *v1alpha1.RunStatus) { st.Phase = v1alpha1.RunInterrupted }

// write changes the run's status. It has no other writer, so a conflict means that somebody changed the rest.
func (r *Reconciler) write(ctx context.Context, run *v1alpha1.Run, change func(*v1alpha1.RunStatus)) error {
	want := run.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		change(&want.Status)
		want.Status.ObservedGeneration = want.Generation
		err := r.Client.Status().Update(ctx, want)
		if apierrors.IsConflict(err) {
			if gerr := r.Live.Get(ctx, client.ObjectKeyFromObject(run), want); gerr != nil {
				return gerr
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write the status of run %s: %w", run.Name, err)
	}
	if run.Status.Phase != want.Status.Phase {
		r.tell(want)
	}
	*run = *want
	return nil
}

// tell records what became of a run. The assistant's own words stay in the handoff.
func (r *Reconciler) tell(run *v1alpha1.Run) {
	switch {
	case run.HandedOff():
		r.Events.Eventf(run, corev1.EventTypeNormal, v1alpha1.EventHandedOff, "It is your turn: the assistant handed off with the reason %s.", run.Status.Phase)
	case run.Working():
		r.Events.Event(run, corev1.EventTypeNormal, v1alpha1.EventStarted, "The assistant works.")
	default:
		r.Events.Event(run, corev1.EventTypeWarning, v1alpha1.EventInterrupted, "The work ended without a handoff: its workspace was closed or Rig Bridge was restarted. The next call goes on in a new run.")
	}
}
