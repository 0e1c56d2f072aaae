package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
)

// Family is a command that was started here, with all its descendants.
type Family struct {
	pgid int
	id   identity
	cmd  *exec.Cmd // nil unless ours
	// ours is set for a family that this process started.
	ours   bool
	reaped atomic.Bool
	gone   atomic.Bool

	looking sync.Mutex
	looked  bool   // somebody has looked since the leader was reaped
	last    []Info // the members at the last look
}

// families holds what this process started, so that the reaper leaves leaders to their owner and Group knows
// leftovers that cleared their environment.
type families struct {
	// starting is held shared from before a fork until the child is registered.
	starting sync.RWMutex
	mu       sync.Mutex
	leaders  map[int]bool
	byStart  map[string]*Family
}

var registry = families{leaders: map[int]bool{}, byStart: map[string]*Family{}}

func (r *families) family(start string) *Family {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byStart[start]
}

func (r *families) leads(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaders[pid]
}

func (r *families) add(f *Family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaders[f.pgid] = true
	r.byStart[f.StartTime()] = f
}

// sweep forgets families whose leftovers have ended by themselves.
func (r *families) sweep() {
	r.mu.Lock()
	var ended []*Family
	for _, f := range r.byStart {
		if f.reaped.Load() {
			ended = append(ended, f)
		}
	}
	r.mu.Unlock()
	for _, f := range ended {
		f.Survivors()
	}
}

// Start starts cmd as the leader of a session and process group of its own, with a random marker in its
// environment. Its output should go to files: otherwise Reap also waits for whoever holds the pipes. The caller
// must call Await and then Reap.
func Start(cmd *exec.Cmd) (*Family, error) { return StartMarked(cmd, newMarker()) }

// StartMarked is Start with a marker of the caller's, by which Marked finds the family: at most 36 bytes without
// a colon, and nobody else's.
func StartMarked(cmd *exec.Cmd, marker string) (*Family, error) {
	f := &Family{cmd: cmd, ours: true, id: identity{boot: bootID(), marker: marker}}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], MarkerVariable+"="+f.id.marker)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	registry.starting.RLock()
	defer registry.starting.RUnlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f.pgid = cmd.Process.Pid
	if leader, ok := inspect(f.pgid); ok { // also of a zombie, and it is one at most until Reap
		f.id.began = leader.began
	}
	registry.add(f)
	return f, nil
}

// PGID returns the number of the leader, of its group and of its session.
func (f *Family) PGID() int { return f.pgid }

// StartTime returns the opaque text by which Group, Alive and Stop know the family again, also in a later
// process. It holds no secret and is at most 96 bytes long.
func (f *Family) StartTime() string { return f.id.String() }

// Await returns when the leader has ended. Its number stays reserved until Reap.
func (f *Family) Await() { awaitExit(f.pgid) }

// Ended says whether the leader has ended, reaped or not.
func (f *Family) Ended() bool {
	leader, ok := inspect(f.pgid)
	return f.reaped.Load() || !ok || leader.zombie
}

// Reap waits for the leader and returns how it ended. From then on the number is the family's only as long as
// some member goes on using it.
func (f *Family) Reap() (*os.ProcessState, error) {
	err := f.cmd.Wait()
	registry.mu.Lock()
	delete(registry.leaders, f.pgid)
	registry.mu.Unlock()
	f.reaped.Store(true)
	f.Survivors() // at once, while the number is unused or still ours
	if f.cmd.ProcessState == nil {
		return nil, fmt.Errorf("wait for pid %d: %w", f.pgid, err)
	}
	return f.cmd.ProcessState, nil
}

// Survivors lists what still runs of the family. After Reap it costs a few system calls when nothing does, if
// this process is a subreaper.
func (f *Family) Survivors() []Info {
	if f.gone.Load() {
		return nil
	}
	f.reapMembers()
	if subreaper.Load() && syscall.Kill(-f.pgid, 0) == syscall.ESRCH && !adoptedSince(f.id.began) {
		f.vanished()
		return nil
	}
	return f.Members()
}

// vanished forgets a family that has no member left, its leader included, and so can never have one again.
func (f *Family) vanished() {
	f.gone.Store(true)
	registry.mu.Lock()
	delete(registry.byStart, f.StartTime())
	registry.mu.Unlock()
}

// reapMembers collects members of the group that became our children. The leader is left to Reap.
func (f *Family) reapMembers() {
	if f.reaped.Load() {
		reapGroup(f.pgid)
	}
}

var subreaper atomic.Bool
