package operation

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// sweepWait bounds the time in which leftovers are asked to end, killed, and looked for again.
const sweepWait = 10 * time.Second

// sweeps are finished operations whose leftovers are being stopped, by name. Each is tried once in a life of the
// daemon; what belongs to another account stays, and stays listed.
type sweeps struct {
	mu     sync.Mutex
	byName map[string]*swept
}

// swept is one of them.
type swept struct {
	uid  types.UID
	over bool
}

// begin returns the sweep of an operation, and whether it was begun just now.
func (ss *sweeps) begin(op *v1alpha1.Operation) (s swept, begun bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if old := ss.byName[op.Name]; old != nil && old.uid == op.UID {
		return *old, false
	}
	if ss.byName == nil {
		ss.byName = map[string]*swept{}
	}
	ss.byName[op.Name] = &swept{uid: op.UID}
	return swept{}, true
}

func (ss *sweeps) end(op *v1alpha1.Operation) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.byName[op.Name] = &swept{uid: op.UID, over: true}
}

func (ss *sweeps) forget(name string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byName[name]; s != nil && s.over {
		delete(ss.byName, name)
	}
}

// sweep stops what the command of a finished operation left running, in the background. What is left after that is
// tended.
func (r *Reconciler) sweep(ctx context.Context, s *scope) (ctrl.Result, error) {
	was, begun := r.sweeps.begin(s.op)
	switch {
	case begun:
		op := s.op.DeepCopy()
		r.Runner.Go(op, func() {
			stopFamily(op)
			r.sweeps.end(op)
		})
		return ctrl.Result{}, nil
	case !was.over:
		return ctrl.Result{}, nil
	}
	return r.tend(ctx, s)
}

// stopFamily ends the family of processes that an operation's command left.
func stopFamily(op *v1alpha1.Operation) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepWait)
	defer cancel()
	if a := op.Status.Attempt; a != nil && a.Process != nil {
		_ = process.Stop(ctx, int(a.Process.PID), a.Process.StartTime) // what it could not do shows in what is left
	}
}

// tendEvery is how often what commands left running is looked at.
const tendEvery = time.Second

// tend looks whether what the command of a finished operation left still runs, and records what has ended.
func (r *Reconciler) tend(ctx context.Context, s *scope) (ctrl.Result, error) {
	op := s.op
	if !slices.ContainsFunc(op.Status.Leftovers, gone) {
		return ctrl.Result{RequeueAfter: tendEvery}, nil
	}
	op.Status.Leftovers, op.Status.ObservedGeneration = processes(lasting(survivors(op), op.Status.Leftovers)), op.Generation
	return ctrl.Result{RequeueAfter: tendEvery}, r.writeStatus(ctx, s)
}

func gone(p v1alpha1.Process) bool { return !process.Exists(int(p.PID), p.StartTime) }

// survivors are the processes of an operation's command that run now.
func survivors(op *v1alpha1.Operation) []process.Info {
	a := op.Status.Attempt
	if a == nil || a.Process == nil {
		return nil
	}
	left, _ := process.Group(int(a.Process.PID), a.Process.StartTime)
	return left
}

// lastingAge is the age from which a process that came later is listed.
const lastingAge = 5 * time.Second

// lasting leaves out processes that are not listed and may be gone in a moment, so that a loop which starts a
// program each second does not change the record each second; unless there are no others.
func lasting(left []process.Info, listed []v1alpha1.Process) []process.Info {
	steady := slices.DeleteFunc(slices.Clone(left), func(i process.Info) bool {
		return i.Age < lastingAge && !slices.ContainsFunc(listed, func(p v1alpha1.Process) bool { return int(p.PID) == i.PID && p.StartTime == i.StartTime })
	})
	if len(steady) == 0 {
		return left
	}
	return steady
}
