package operation

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	left []v1alpha1.Process // what could not be stopped
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

func (ss *sweeps) end(op *v1alpha1.Operation, left []v1alpha1.Process) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.byName[op.Name] = &swept{uid: op.UID, over: true, left: left}
}

func (ss *sweeps) forget(name string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byName[name]; s != nil && s.over {
		delete(ss.byName, name)
	}
}

// sweep stops what the command of a finished operation left running, in the background, and then records what is
// left of that.
func (r *Reconciler) sweep(ctx context.Context, s *scope) error {
	op := s.op
	if op.Status.Attempt == nil || op.Status.Attempt.Process == nil {
		return nil // recorded by a version that kept no family; nothing can be told from its members' numbers
	}
	was, begun := r.sweeps.begin(op)
	switch {
	case begun:
		family := *op.Status.Attempt.Process
		r.Runner.Go(op, func() { r.sweeps.end(op, stopFamily(family)) })
		return nil
	case !was.over || len(was.left) == len(op.Status.Leftovers):
		return nil
	}
	op.Status.Leftovers, op.Status.ObservedGeneration = was.left, op.Generation
	return r.writeStatus(ctx, s)
}

// stopFamily ends a family of processes and returns what is left of it.
func stopFamily(p v1alpha1.Process) []v1alpha1.Process {
	ctx, cancel := context.WithTimeout(context.Background(), sweepWait)
	defer cancel()
	_ = process.Stop(ctx, int(p.PID), p.StartTime) // what it could not do shows in what is left
	left, _ := process.Group(int(p.PID), p.StartTime)
	return processes(left)
}
