package process

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// Times of the reaper: it lets waiters go first, looks again without a signal, and takes a zombie of our own
// session only if nobody has asked for it this long.
const (
	reapDelay   = 20 * time.Millisecond
	reapTick    = 20 * time.Second
	unclaimedAt = time.Minute
)

// BecomeSubreaper makes this process the parent of every descendant that loses its own. ReapOrphans must run
// from then on. Process 1 is one anyway.
func BecomeSubreaper() error {
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("become a subreaper: %w", err)
		}
	}
	subreaper.Store(true)
	return nil
}

// ReapOrphans collects adopted children that ended, until the context is done. It leaves every child to its
// owner that was started by Start or, in our own session, by os/exec; one of the latter that nobody has waited
// for in a minute is taken for adopted. So a child that is given a session of its own must come from Start.
func ReapOrphans(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	tick := time.NewTicker(reapTick)
	defer tick.Stop()
	unclaimed := map[int]time.Time{}
	for {
		reapOnce(unclaimed, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			registry.sweep()
		case <-ended:
			select {
			case <-ctx.Done():
				return
			case <-time.After(reapDelay):
			}
		}
	}
}

// reapOnce looks at our zombies. unclaimed holds since when those of our own session have been seen.
func reapOnce(unclaimed map[int]time.Time, now time.Time) {
	if !anyZombie() {
		clear(unclaimed)
		return
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return
	}
	seen := map[int]bool{}
	for _, pid := range allChildren() {
		switch orphaned, known := classify(pid, session); {
		case orphaned:
			reapPID(pid)
		case known:
			seen[pid] = true
			if first, ok := unclaimed[pid]; !ok {
				unclaimed[pid] = now
			} else if now.Sub(first) >= unclaimedAt {
				reapPID(pid)
			}
		}
	}
	for pid := range unclaimed {
		if !seen[pid] {
			delete(unclaimed, pid)
		}
	}
}

// classify tells a zombie of another session than ours, which only an adopted child can have unless Start made
// it, from one of our session, whose parent may still ask for it. Neither is set for anything else.
func classify(pid, session int) (orphaned, known bool) {
	registry.starting.Lock() // no child is between its fork and its registration
	defer registry.starting.Unlock()
	if registry.leads(pid) {
		return false, false
	}
	p, ok := inspect(pid)
	if !ok || !p.zombie {
		return false, false
	}
	return p.SID != session, p.SID == session
}

// anyZombie says whether some child of ours has ended and was not waited for.
func anyZombie() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

func reapPID(pid int) {
	unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG, nil) //nolint:errcheck // somebody else was faster
}

// reapGroup collects the ended children of ours in a group.
func reapGroup(pgid int) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PGID, pgid, &info, unix.WEXITED|unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo == 0 {
			return
		}
	}
}

// awaitExit returns when the child has ended, and leaves it a zombie.
func awaitExit(pid int) {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}
