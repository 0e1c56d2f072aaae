package operation

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/runner"
)

// IndexWorkspace is the cache index of active operations by the name of their workspace.
const IndexWorkspace = "spec.workspaceRef.name"

// lockWait is how long a call waits for a file that another call holds.
const lockWait = 10 * time.Second

// Reconciler drives operations. All fields but Environ and the unexported are required.
type Reconciler struct {
	// Client reads active operations from the cache and writes to the API; Live reads from the API.
	Client client.Client
	Live   client.Reader
	// Durable waits until everything up to a resourceVersion is on disk.
	Durable func(ctx context.Context, resourceVersion string) error
	// Exchange has the arguments and takes the results.
	Exchange *exchange.Exchange
	// Runner runs tools outside of the workers.
	Runner *runner.Runner
	// Locks exclude calls that change the same file.
	Locks *runner.Locks
	// Env is the account's environment; the working directory comes from the workspace.
	Env engine.Env
	// Environ gives a command its environment. It may wait for what is not known yet at a start. Nil stands for
	// this process's own.
	Environ func(ctx context.Context) []string
	// Now is the clock of the times in status.
	Now func() time.Time
	// NewID makes the ids of attempts.
	NewID func() string
	// Runs keeps the runs that calls belong to.
	Runs Runs
	// Used is told which workspace a call used.
	Used func(workspace string)
	// Events tells people what happened.
	Events record.EventRecorder

	tasks    tasks
	sweeps   sweeps
	expiry   expiry
	known    known
	draining atomic.Bool
}

// SetupWithManager has the manager run the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, m ctrl.Manager) error {
	byWorkspace := func(o client.Object) []string {
		if op := o.(*v1alpha1.Operation); !op.Over() {
			return []string{op.Spec.WorkspaceRef.Name}
		}
		return nil
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &v1alpha1.Operation{}, IndexWorkspace, byWorkspace); err != nil {
		return fmt.Errorf("index operations by workspace: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(r.expireByAge)); err != nil {
		return fmt.Errorf("look for old operations: %w", err)
	}
	return ctrl.NewControllerManagedBy(m).
		Named("operation").
		For(&v1alpha1.Operation{}).
		WatchesRawSource(r.Runner.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16, RateLimiter: retries()}).
		Complete(r)
}

// retries says when to try again after the store has refused a write. Somebody waits for each operation, so
// the pauses stay short however long the disk was full.
func retries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](5*time.Millisecond, time.Second)
}

// Reconcile looks at one operation and takes the next step.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
	op := &v1alpha1.Operation{}
	if err := r.Client.Get(ctx, req.NamespacedName, op); err != nil {
		if apierrors.IsNotFound(err) { // over, or deleted: nothing is left to do for it
			r.forget(req.Name)
			return res, nil
		}
		return res, err
	}
	failpoint.Hit(failpoint.Reconciling)
	s := newScope(op, r.tasks.of(op))
	switch decide(observe(s, r.draining.Load())) {
	case actAdmit:
		return res, r.admit(ctx, s)
	case actStart:
		return res, r.start(ctx, s)
	case actStop:
		s.task.stop(cancelledBy(s.op))
		return res, nil
	case actNoteWait:
		return res, r.noteWait(ctx, s)
	case actNoteProcess:
		return res, r.noteProcess(ctx, s)
	case actRecord:
		return res, r.record(ctx, s)
	case actCancel:
		return res, r.settle(ctx, s, cancelledBeforeStart(cancelledBy(s.op), r.draining.Load()))
	case actRecover:
		return res, r.recover(ctx, s)
	case actSweep:
		return r.sweep(ctx, s)
	case actTend:
		return r.tend(ctx, s)
	}
	return res, nil
}

// scope is one operation in one reconcile. op is the reconcile's own copy.
type scope struct {
	op   *v1alpha1.Operation
	task *task // nil: nothing was started in this life of the daemon
}

// newScope copies the operation. The cache may be behind what this reconciler wrote last; status has no other
// writer, so the newer of the two holds.
func newScope(cached *v1alpha1.Operation, t *task) *scope {
	s := &scope{op: cached.DeepCopy(), task: t}
	if t == nil {
		return s
	}
	t.place(s.op)
	if w := t.written; w != nil {
		s.op.Status = *w.Status.DeepCopy()
		if newer, err := resourceversion.CompareResourceVersion(w.ResourceVersion, cached.ResourceVersion); err == nil && newer > 0 {
			s.op.ResourceVersion = w.ResourceVersion
		}
	}
	return s
}

// Drain stops everything that runs and waits until every outcome is recorded, or ctx is done. Operations that
// arrive meanwhile are cancelled without effect.
func (r *Reconciler) Drain(ctx context.Context) error {
	r.draining.Store(true)
	for {
		active := r.tasks.active()
		for _, t := range active {
			if t.stop(byShutdown) {
				r.Runner.Wake(t.object)
			}
		}
		if len(active) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d operations are not over: %w", len(active), context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Active returns the number of operations that run.
func (r *Reconciler) Active() int { return len(r.tasks.active()) }

// writeStatus stores the status of the scope's operation. Status has one writer, so a conflict means that the
// spec or the metadata moved on: the status is written on top of that.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	if s.task != nil {
		s.task.place(s.op)
	}
	want := s.op.Status
	err := r.Client.Status().Update(ctx, s.op)
	if apierrors.IsConflict(err) {
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.op), s.op); err != nil {
				return err
			}
			s.op.Status = want
			return r.Client.Status().Update(ctx, s.op)
		})
	}
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if s.task != nil {
		s.task.written = s.op
	}
	return nil
}
