package operation

import (
	"context"
	"sync"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
)

// stage is how far this life of the daemon has come with an operation.
type stage int

const (
	stageNone      stage = iota // not begun
	stagePreparing              // waits for the lock, or reads
	stagePrepared               // the plan is made
	stageRunning                // the attempt is recorded, the effect may happen
	stageFinished               // the outcome is known
	stageRecorded               // the outcome is in status
)

// task is an operation under way in this life of the daemon. The reconciler and one goroutine of the runner
// share it.
type task struct {
	object *v1alpha1.Operation // as admitted; identity and spec only
	cwd    string              // the workspace's directory
	run    string              // the run that the call belongs to, if any
	ctx    context.Context
	cancel context.CancelCauseFunc

	written *v1alpha1.Operation // as last stored; the reconciler's alone

	mu      sync.Mutex
	stage   stage
	stopped string // who asked it to end
	wait    string // which file it waits for and who holds that, as status says it
	plan    *replace.Plan
	release func() // frees the path
	command *bash.Command
	outcome *outcome
}

// stopError is the cause of a cancelled task.
type stopError struct{ by string }

func (e stopError) Error() string        { return "cancelled by " + e.by }
func (e stopError) Is(target error) bool { return target == context.Canceled }

func newTask(op *v1alpha1.Operation, cwd string) *task {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &task{object: op, cwd: cwd, ctx: ctx, cancel: cancel, stage: stagePreparing}
}

// place notes in status where the call works.
func (t *task) place(op *v1alpha1.Operation) {
	op.Status.Cwd = t.cwd
	if t.run != "" {
		op.Status.RunRef = &v1alpha1.LocalReference{Name: t.run}
	}
}

func (t *task) look() (s stage, stopping, process bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage, t.stopped != "", t.command != nil
}

// stop asks the task to end; what it has done by then stays done. It returns at once, and says whether nobody had
// asked before.
func (t *task) stop(by string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped != "" || t.stage >= stageFinished {
		return false
	}
	t.stopped = by
	t.cancel(stopError{by})
	if t.command != nil {
		t.command.Cancel(bashCause(by))
	}
	return true
}

func bashCause(by string) bash.Cause {
	switch by {
	case byShutdown:
		return bash.Shutdown
	case "workspace_close":
		return bash.Closed
	}
	return bash.Cancelled
}

// stoppedBy returns who asked the task to end, or the empty string.
func (t *task) stoppedBy() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// waits notes for which file the task waits and whether that is news.
func (t *task) waits(wait string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := t.wait != wait
	t.wait = wait
	return news
}

func (t *task) waitsFor() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait
}

// prepared hands over the plan of a change; the path stays locked until the task has finished.
func (t *task) prepared(plan *replace.Plan, release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plan, t.release, t.stage = plan, release, stagePrepared
}

func (t *task) setStage(s stage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage = s
	if s == stageRecorded { // a task may stay as long as what its command left running
		t.outcome, t.command = nil, nil
	}
}

// running publishes the task's command. A stop that came before it is passed on.
func (t *task) running(c *bash.Command) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.command = c
	if t.stopped != "" {
		c.Cancel(bashCause(t.stopped))
	}
}

// finish notes the outcome and frees what the task held.
func (t *task) finish(o *outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcome, t.stage = o, stageFinished
	t.plan = nil
	if t.release != nil {
		t.release()
		t.release = nil
	}
	t.cancel(nil)
}

// tasks are the operations of this life, by name. A task stays until the cache no longer shows its operation as
// active, so that an old picture of the operation is never taken for one of an earlier life.
type tasks struct {
	mu     sync.Mutex
	byName map[string]*task
}

// of returns the task of an operation. One with the same name and another UID is a predecessor's.
func (ts *tasks) of(op *v1alpha1.Operation) *task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[op.Name]
	if t == nil || t.object.UID != op.UID {
		return nil
	}
	return t
}

func (ts *tasks) put(t *task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.byName == nil {
		ts.byName = map[string]*task{}
	}
	ts.byName[t.object.Name] = t
}

func (ts *tasks) take(name string) *task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byName[name]
	delete(ts.byName, name)
	return t
}

// active returns the tasks whose outcome is not recorded.
func (ts *tasks) active() []*task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var all []*task
	for _, t := range ts.byName {
		if s, _, _ := t.look(); s != stageRecorded {
			all = append(all, t)
		}
	}
	return all
}
