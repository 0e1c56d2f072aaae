package operation

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
)

// admit checks that a new operation can run and begins it.
func (r *Reconciler) admit(ctx context.Context, s *scope) error {
	if s.op.Spec.Tool == v1alpha1.ToolWorkspaceOpen {
		return r.open(ctx, s)
	}
	ws, err := r.workspace(ctx, s.op)
	if err != nil {
		return err
	}
	if ws == nil {
		return r.settle(ctx, s, refused(v1alpha1.ReasonWorkspaceExpired,
			"The workspace is closed or unknown. Open it again with workspace_open; nothing was done."))
	}
	r.Used(ws.Name)
	if s.op.Spec.Tool.ManagesWork() {
		return r.manage(ctx, s, ws.Spec.Cwd)
	}
	arguments, ok := r.Exchange.Arguments(s.op.Spec.PayloadRef)
	if !ok {
		return r.settle(ctx, s, refused(v1alpha1.ReasonNotStarted,
			"The arguments of this call are gone, by a restart of Rig Bridge; nothing was done. Call again with the same request_key."))
	}
	run, err := r.Runs.Begin(ctx, s.op.Namespace, ws.Spec.ThreadRef.Name)
	if apierrors.IsServiceUnavailable(err) && !s.op.Spec.Tool.Keyed() {
		run, err = "", nil // on a full disk a run cannot begin; reading goes on without
	}
	if err != nil {
		return fmt.Errorf("begin a run: %w", err)
	}
	env := r.Env
	env.Cwd = ws.Spec.Cwd
	s.task = newTask(s.op, env.Cwd)
	s.task.run = run
	r.tasks.put(s.task)
	tool := s.op.Spec.Tool
	if run, ok := lookups[tool]; ok {
		r.look(s.task, env, run, arguments)
		return nil
	}
	if p, ok := preparations[tool]; ok {
		r.prepare(s.task, env, p, arguments)
		return nil
	}
	if tool == v1alpha1.ToolBash {
		return r.startCommand(ctx, s, env, arguments)
	}
	s.task.finish(refused(v1alpha1.ReasonInternalError, fmt.Sprintf("This daemon cannot run %s.", tool)))
	return r.record(ctx, s)
}

// workspace returns the operation's workspace if it admits calls, and nil if it does not.
func (r *Reconciler) workspace(ctx context.Context, op *v1alpha1.Operation) (*v1alpha1.Workspace, error) {
	ws := &v1alpha1.Workspace{}
	key := types.NamespacedName{Namespace: op.Namespace, Name: op.Spec.WorkspaceRef.Name}
	err := r.Client.Get(ctx, key, ws)
	if apierrors.IsNotFound(err) || err == nil && !ws.Ready() { // the cache may be behind
		err = r.Live.Get(ctx, key, ws)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !ws.DeletionTimestamp.IsZero():
		return nil, nil
	}
	return ws, nil
}

// look runs a read-only tool in the background.
func (r *Reconciler) look(t *task, env engine.Env, run lookup, arguments []byte) {
	r.Runner.Go(t.object, func() {
		failpoint.Hit(failpoint.Working)
		begun := time.Now()
		res, fields, err := run(t.ctx, env, arguments)
		failpoint.Hit(failpoint.Worked)
		if err != nil {
			t.finish(elapsed(failed(err, t.stoppedBy()), begun))
			return
		}
		r.known.learn(t.object, res, nil)
		t.finish(elapsed(succeeded(res, fields), begun))
	})
}

// prepare locks the file and makes the plan of a change in the background.
func (r *Reconciler) prepare(t *task, env engine.Env, p preparation, arguments []byte) {
	r.Runner.Go(t.object, func() {
		failpoint.Hit(failpoint.Working)
		release, err := r.lock(t, env, p, arguments)
		if err != nil {
			t.finish(failed(err, t.stoppedBy()))
			return
		}
		plan, err := p.prepare(t.ctx, env, arguments)
		if err != nil {
			release()
			t.finish(failed(r.known.explain(t.object, err), t.stoppedBy()))
			return
		}
		t.prepared(plan, release)
		failpoint.Hit(failpoint.Prepared)
	})
}

var errBusy = errors.New("the wait for the file is over")

func (r *Reconciler) lock(t *task, env engine.Env, p preparation, arguments []byte) (release func(), err error) {
	arg, err := p.target(arguments)
	if err != nil {
		return nil, err
	}
	path, err := env.ResolvePath(arg)
	if err != nil {
		return nil, err
	}
	if path, err = engine.Canonical(path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(t.ctx, lockWait, errBusy)
	defer cancel()
	go r.tellWait(ctx, t, path)
	release, heldBy, err := r.Locks.Acquire(ctx, path, t.object.Name)
	switch {
	case errors.Is(err, errBusy):
		return nil, &engine.Error{Reason: v1alpha1.ReasonFileBusy, Path: path, Err: err,
			Message: fmt.Sprintf("Another call (%s) has held %s for more than %d seconds; nothing was changed. Wait for it and call again with a new request_key.", heldBy, path, lockWait/time.Second)}
	case err != nil:
		return nil, engine.SystemError("lock", path, err)
	}
	return release, nil
}

// tellWait has status say for whom the task waits, for those that look, until ctx is done.
func (r *Reconciler) tellWait(ctx context.Context, t *task, path string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tellWaitEvery):
		}
		holder := r.Locks.Holder(path)
		if holder == "" || holder == t.object.Name {
			continue
		}
		if t.waits(fmt.Sprintf("Waits for %s, which operation %s is changing.", clip(path), holder)) && ctx.Err() == nil {
			r.Runner.Wake(t.object)
		}
	}
}

// tellWaitEvery is how often a wait for a file is looked at; most are over before.
const tellWaitEvery = 200 * time.Millisecond

// noteWait records for whom the operation waits.
func (r *Reconciler) noteWait(ctx context.Context, s *scope) error {
	judgeWaiting(s.op, s.task.waitsFor())
	return r.writeStatus(ctx, s)
}

// start records the attempt of a prepared change and lets it happen once the record is durable.
func (r *Reconciler) start(ctx context.Context, s *scope) error {
	t := s.task
	attempt := v1alpha1.OperationAttempt{ID: r.NewID(), Number: 1, Path: t.plan.Path,
		PlannedRevision: t.plan.After, ExpectedRevision: t.plan.Before}
	rv, err := r.recordAttempt(ctx, s, attempt)
	if err != nil {
		return err
	}
	plan := t.plan
	plan.Reached = failpoint.Hit
	r.Runner.Go(t.object, func() {
		failpoint.Hit(failpoint.Working)
		begun := time.Now()
		if err := r.Durable(t.ctx, rv); err != nil {
			t.finish(r.notDurable(t, err))
			return
		}
		failpoint.Hit(failpoint.RunningDurable)
		failpoint.Hit(failpoint.BeforeEffect)
		res, err := plan.Commit(t.ctx, attempt.ID)
		if err != nil {
			t.finish(elapsed(failed(r.known.explain(t.object, err), t.stoppedBy()), begun))
			return
		}
		r.known.learn(t.object, res, plan.Content())
		t.finish(elapsed(succeeded(res, nil), begun))
	})
	return nil
}

// startCommand records the attempt of a command and starts it once the record is durable.
func (r *Reconciler) startCommand(ctx context.Context, s *scope, env engine.Env, arguments []byte) error {
	t := s.task
	args, err := command(arguments)
	if err != nil {
		t.finish(failed(err, ""))
		return r.record(ctx, s)
	}
	args.ID = r.NewID()
	rv, err := r.recordAttempt(ctx, s, v1alpha1.OperationAttempt{ID: args.ID, Number: 1})
	if err != nil {
		r.tasks.take(s.op.Name) // admitted again by the next reconcile
		return err
	}
	r.Runner.Go(t.object, func() {
		failpoint.Hit(failpoint.Working)
		if err := r.Durable(t.ctx, rv); err != nil {
			t.finish(r.notDurable(t, err))
			return
		}
		failpoint.Hit(failpoint.RunningDurable)
		r.run(t, env, args)
	})
	return nil
}

// run starts the command and waits for it.
func (r *Reconciler) run(t *task, env engine.Env, args bash.Args) {
	if r.Environ != nil {
		env.Environ = r.Environ(t.ctx)
	}
	if by := t.stoppedBy(); by != "" {
		t.finish(cancelledBeforeStart(by, r.draining.Load()))
		return
	}
	failpoint.Hit(failpoint.BeforeEffect)
	c, err := bash.Start(env, args)
	if err != nil {
		t.finish(failed(err, t.stoppedBy()))
		return
	}
	failpoint.Hit(failpoint.CommandStarted)
	r.Exchange.PutOutput(t.object.UID, c.Output())
	t.running(c)
	select { // a command that is over at once needs no record of its process
	case <-c.Done():
	case <-time.After(noteAfter):
		r.Runner.Wake(t.object)
		<-c.Done()
	}
	failpoint.Hit(failpoint.CommandEnded)
	t.finish(commandOutcome(c.Outcome(), t.stoppedBy()))
}

// noteAfter is how long a command runs before its process group is recorded.
const noteAfter = 20 * time.Millisecond

// recordAttempt stores that an attempt is under way and returns the resourceVersion to wait for.
func (r *Reconciler) recordAttempt(ctx context.Context, s *scope, attempt v1alpha1.OperationAttempt) (string, error) {
	judgeRunning(s.op, attempt, metav1.NewMicroTime(r.Now()))
	failpoint.Hit(failpoint.BeforeRunning)
	if err := r.writeStatus(ctx, s); err != nil {
		return "", err
	}
	failpoint.Hit(failpoint.Running)
	s.task.setStage(stageRunning)
	return s.op.ResourceVersion, nil
}

// notDurable is the outcome when the attempt could not be brought to the disk: nothing was started.
func (r *Reconciler) notDurable(t *task, err error) *outcome {
	if by := t.stoppedBy(); by != "" {
		return cancelledBeforeStart(by, r.draining.Load())
	}
	return refused(v1alpha1.ReasonStoreUnavailable,
		"The state directory cannot be written, so nothing was started. Check its disk space and the daemon's log, then call again with a new request_key.")
}

// noteProcess records the process group of the running command.
func (r *Reconciler) noteProcess(ctx context.Context, s *scope) error {
	t := s.task
	t.mu.Lock()
	c := t.command
	t.mu.Unlock()
	s.op.Status.Attempt.Process = family(c)
	return r.writeStatus(ctx, s)
}

// family is a command's process group as status has it.
func family(c *bash.Command) *v1alpha1.Process {
	return &v1alpha1.Process{PID: int32(c.PGID()), StartTime: c.StartTime(), Command: "bash"}
}

// record stores the outcome of the scope's task.
func (r *Reconciler) record(ctx context.Context, s *scope) error {
	s.task.mu.Lock()
	o, c := s.task.outcome, s.task.command
	s.task.mu.Unlock()
	if c != nil && len(o.leftovers) > 0 { // by their family they can be found and stopped later
		s.op.Status.Attempt.Process = family(c)
	}
	if err := r.settle(ctx, s, o); err != nil {
		return err
	}
	s.task.setStage(stageRecorded)
	return nil
}

// keptArguments is the size up to which arguments are kept in memory beside the result, in bytes.
const keptArguments = 64 << 10

// settle stores an outcome. The answer is in the exchange before anybody can see that the operation is over.
func (r *Reconciler) settle(ctx context.Context, s *scope, o *outcome) error {
	uid := s.op.UID
	if out, ok := r.Exchange.Output(uid); ok {
		o.answer.Output = out
	}
	if a, ok := r.Exchange.Arguments(s.op.Spec.PayloadRef); ok && len(a) <= keptArguments {
		o.answer.Arguments = a
	}
	r.Exchange.Deliver(s.op.Spec.PayloadRef, o.answer)
	switch tool := s.op.Spec.Tool; {
	case tool.ManagesWork(): // answered from its objects
	case o.reason == v1alpha1.ReasonOutcomeUncertain: // answered from its receipt, which says what to inspect
	case tool.Keyed():
		r.Exchange.PutReplay(uid, o.answer)
	}
	judge(s.op, o, metav1.NewMicroTime(r.Now()))
	failpoint.Hit(failpoint.BeforeTerminal)
	if err := r.writeStatus(ctx, s); err != nil {
		return fmt.Errorf("record the outcome: %w", err)
	}
	failpoint.Hit(failpoint.Terminal)
	if s.op.Spec.Tool.Keyed() { // whoever waits for the answer waits for this, too, and finds it begun
		go r.Durable(context.WithoutCancel(ctx), s.op.ResourceVersion) //nolint:errcheck // the waiter has the error, too
	}
	r.tell(s.op, o)
	r.Exchange.DropOutput(uid)
	r.Exchange.DropArguments(s.op.Spec.PayloadRef)
	if !s.op.Spec.Tool.Keyed() {
		r.expire(ctx, r.expiry.add(s.op, r.Now()))
	}
	return nil
}

// tell records an event of what a person should know. What everyday calls do is in their status alone.
func (r *Reconciler) tell(op *v1alpha1.Operation, o *outcome) {
	switch o.reason {
	case v1alpha1.ReasonOutcomeUncertain:
		r.Events.Event(op, corev1.EventTypeWarning, o.reason, o.message)
	case v1alpha1.ReasonRecoveredAfterCrash:
		r.Events.Event(op, corev1.EventTypeNormal, o.reason, o.message)
	}
	if n := len(o.leftovers); n > 0 {
		r.Events.Eventf(op, corev1.EventTypeWarning, v1alpha1.EventStillRunning, "The command has ended; %d processes that it started run on.", n)
	}
}

// forget drops what is kept for an operation that is gone from the cache: it is over, or it was deleted while
// it ran and its tool has to end.
func (r *Reconciler) forget(name string) {
	if t := r.tasks.take(name); t != nil {
		t.stop("deletion")
	}
	r.sweeps.forget(name)
}
