package process

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// States of <sys/proc.h>.
const (
	stateRunnable = 2 // SRUN
	stateZombie   = 5 // SZOMB
)

// bootID names this boot of the machine.
var bootID = sync.OnceValue(func() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(id)
})

// inspect reads one process, zombies too. Start times are microseconds since 1970.
func inspect(pid int) (Info, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return Info{}, false
	}
	return describe(k), true
}

func describe(k *unix.KinfoProc) Info {
	began := time.Unix(k.Proc.P_starttime.Sec, int64(k.Proc.P_starttime.Usec)*1000)
	p := Info{PID: int(k.Proc.P_pid), PPID: int(k.Eproc.Ppid), PGID: int(k.Eproc.Pgid),
		Command: unix.ByteSliceToString(k.Proc.P_comm[:]), Age: time.Since(began),
		began: uint64(began.UnixMicro()), zombie: k.Proc.P_stat == stateZombie, runnable: k.Proc.P_stat == stateRunnable}
	p.SID, _ = unix.Getsid(p.PID)
	p.StartTime = identity{boot: bootID(), began: p.began}.String()
	return p
}

// processes lists what runs, zombies aside, and began no earlier than the given start time.
func processes(began uint64) []Info {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var list []Info
	for i := range all {
		if p := describe(&all[i]); !p.zombie && p.began >= began {
			list = append(list, p)
		}
	}
	return list
}

// marked says whether the process carries the marker in the environment it was started with. The kernel gives
// the count of arguments, the arguments and then the environment; only the latter is compared.
func marked(pid int, marker string) bool {
	if marker == "" {
		return false
	}
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil {
		return false
	}
	return strings.Contains("\x00"+string(b), "\x00"+MarkerVariable+"="+marker+"\x00")
}

// adoptedSince is asked only of a subreaper, which does not exist here.
func adoptedSince(uint64) bool { return true }

// BecomeSubreaper fails: this system has no subreapers; orphans go to process 1 and are found by their group,
// session and marker.
func BecomeSubreaper() error {
	return errors.New("become a subreaper: this system has none")
}

// ReapOrphans waits for the context: process 1 collects orphans here.
func ReapOrphans(ctx context.Context) { <-ctx.Done() }

func reapGroup(int) {}

// awaitExit returns when the child has ended, and leaves it a zombie.
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(kq)
	ask := []unix.Kevent_t{{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	for {
		if _, err := unix.Kevent(kq, ask, make([]unix.Kevent_t, 1), nil); err != unix.EINTR {
			return // ended, or a zombie already
		}
	}
}
