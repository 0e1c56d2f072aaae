package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Runs is what operations need of the runs of threads; package run keeps them. A refusal is an error with a
// Reason method; nothing was changed then. The admit functions are called under the thread's lock, with
// everything decided and nothing done.
type Runs interface {
	// Begin returns the name of the thread's working run, and makes one if there is none.
	Begin(ctx context.Context, namespace, thread string) (run string, err error)
	// Start makes a run of the given name, thread and title.
	Start(ctx context.Context, want *v1alpha1.Run, admit func() error) error
	// HandOff ends the thread's latest run, or one that it makes under the name spare, and fills in the
	// handoff's name and run.
	HandOff(ctx context.Context, want *v1alpha1.Handoff, spare string, admit func() error) error
	// Finish brings the run of a handoff that exists to its end.
	Finish(ctx context.Context, h *v1alpha1.Handoff) error
}

// manage carries out run_start or work_handoff, or carries on with what an earlier life of the daemon began. The
// effect is a few objects of ours, so it happens here and not in the runner. Their names follow from the operation
// and from the run, so every step can be repeated; no step waits for the disk, because the store's log keeps the
// order and the answer waits for the last record.
func (r *Reconciler) manage(ctx context.Context, s *scope, cwd string) error {
	s.task = newTask(s.op, cwd)
	r.tasks.put(s.task)
	o, err := r.managed(ctx, s)
	if err != nil {
		r.tasks.take(s.op.Name) // the next reconcile goes on from what is stored
		return err
	}
	if o == nil {
		s.task.setStage(stageRecorded)
		return nil
	}
	s.task.finish(o)
	return r.record(ctx, s)
}

// managed returns the outcome, or nil if the operation is over already. What is stored decides, not the cache.
func (r *Reconciler) managed(ctx context.Context, s *scope) (*outcome, error) {
	stored := &v1alpha1.Operation{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.op), stored); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if stored.UID != s.op.UID || stored.Over() {
		return nil, nil
	}
	s.op.Status, s.op.ResourceVersion = stored.Status, stored.ResourceVersion
	if s.op.Spec.ThreadRef == nil {
		return refused(v1alpha1.ReasonInternalError, "The operation names no thread; nothing was done."), nil
	}
	var err error
	if s.op.Spec.Tool == v1alpha1.ToolRunStart {
		err = r.startRun(ctx, s)
	} else {
		err = r.handOff(ctx, s)
	}
	var refusal interface {
		error
		Reason() string
	}
	switch {
	case errors.As(err, &refusal):
		s.op.Status.RunRef, s.op.Status.HandoffRef = nil, nil
		return refused(refusal.Reason(), refusal.Error()), nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.op.Spec.Tool, err)
	}
	return &outcome{reason: v1alpha1.ReasonSucceeded, message: "The call did what it was asked.", answer: &exchange.Result{}}, nil
}

// startRun makes the run that run_start asks for.
func (r *Reconciler) startRun(ctx context.Context, s *scope) error {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.op.Namespace, Name: v1alpha1.RunName(string(s.op.UID))},
		Spec: v1alpha1.RunSpec{ThreadRef: *s.op.Spec.ThreadRef}}
	var a struct {
		Title string `json:"title"`
	}
	if err := r.argumentsOf(s.op, &a); err != nil {
		found, gerr := r.stored(ctx, run.DeepCopy())
		if gerr != nil {
			return gerr
		}
		if !found {
			return err
		}
	}
	run.Spec.Title = strings.TrimSpace(a.Title)
	return r.Runs.Start(ctx, run, func() error { return r.intend(ctx, s, run.Name, "") })
}

// handOff makes the handoff that work_handoff asks for and ends its run.
func (r *Reconciler) handOff(ctx context.Context, s *scope) error {
	if ref := s.op.Status.HandoffRef; ref != nil {
		h := &v1alpha1.Handoff{ObjectMeta: metav1.ObjectMeta{Namespace: s.op.Namespace, Name: ref.Name}}
		found, err := r.stored(ctx, h)
		if err != nil {
			return err
		}
		if found && h.Annotations[v1alpha1.AnnotationOperation] == string(s.op.UID) {
			return r.Runs.Finish(ctx, h)
		}
	}
	var a struct {
		Reason, Summary string
		Run             string `json:"run_id"`
	}
	if err := r.argumentsOf(s.op, &a); err != nil {
		return err
	}
	h := &v1alpha1.Handoff{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.op.Namespace, Annotations: map[string]string{v1alpha1.AnnotationOperation: string(s.op.UID)}},
		Spec: v1alpha1.HandoffSpec{ThreadRef: *s.op.Spec.ThreadRef, RunRef: v1alpha1.LocalReference{Name: a.Run},
			Reason: handoffReasons[a.Reason], Summary: a.Summary},
	}
	return r.Runs.HandOff(ctx, h, v1alpha1.RunName(string(s.op.UID)), func() error { return r.intend(ctx, s, h.Spec.RunRef.Name, h.Name) })
}

var handoffReasons = map[string]v1alpha1.HandoffReason{
	"completed": v1alpha1.HandoffCompleted, "needs_input": v1alpha1.HandoffNeedsInput, "blocked": v1alpha1.HandoffBlocked,
	"failed": v1alpha1.HandoffFailed, "cancelled": v1alpha1.HandoffCancelled,
}

// refusal is why a call that manages work was not carried out.
type refusal struct{ reason, message string }

func (e *refusal) Error() string  { return e.message }
func (e *refusal) Reason() string { return e.reason }

// argumentsOf decodes the call's arguments. They are gone after a restart, and then nothing that needs them has
// been done.
func (r *Reconciler) argumentsOf(op *v1alpha1.Operation, into any) error {
	raw, ok := r.Exchange.Arguments(op.Spec.PayloadRef)
	if !ok {
		return &refusal{v1alpha1.ReasonNotStarted, "Rig Bridge was interrupted before anything was done. Call again with the same request_key."}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return &refusal{v1alpha1.ReasonInternalError, "The arguments could not be read; nothing was done."}
	}
	return nil
}

// stored reads an object by its name and says whether it exists.
func (r *Reconciler) stored(ctx context.Context, obj client.Object) (bool, error) {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	return err == nil, nil
}

// intend records what the operation is about to make, unless calls of its workspace are under way.
func (r *Reconciler) intend(ctx context.Context, s *scope, run, handoff string) error {
	if err := r.idle(ctx, s.op); err != nil {
		return err
	}
	s.op.Status.RunRef = &v1alpha1.LocalReference{Name: run}
	if handoff != "" {
		s.op.Status.HandoffRef = &v1alpha1.LocalReference{Name: handoff}
	}
	_, err := r.recordAttempt(ctx, s, v1alpha1.OperationAttempt{ID: r.NewID(), Number: 1})
	return err
}

// idle refuses while execution calls of the operation's workspace are under way. The cache may show calls that
// have been answered since, so each is read.
func (r *Reconciler) idle(ctx context.Context, op *v1alpha1.Operation) error {
	ops := &v1alpha1.OperationList{}
	err := r.Client.List(ctx, ops, client.InNamespace(op.Namespace), client.MatchingFields{IndexWorkspace: op.Spec.WorkspaceRef.Name})
	if err != nil {
		return fmt.Errorf("list the calls of workspace %s: %w", op.Spec.WorkspaceRef.Name, err)
	}
	var active []string
	for i := range ops.Items {
		if ops.Items[i].Spec.Tool.ManagesWork() {
			continue
		}
		other := &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Namespace: op.Namespace, Name: ops.Items[i].Name}}
		found, err := r.stored(ctx, other)
		if err != nil {
			return err
		}
		if found && !other.Over() {
			active = append(active, fmt.Sprintf("%s %s", other.Spec.Tool, other.Name))
		}
	}
	if len(active) == 0 {
		return nil
	}
	const named = 5
	return &refusal{v1alpha1.ReasonWorkActive, fmt.Sprintf("%d calls of this workspace are still under way: %s. Wait for them with operation_wait, or stop them with operation_cancel; then call again, with the same request_key if you like.",
		len(active), strings.Join(active[:min(named, len(active))], ", "))}
}
