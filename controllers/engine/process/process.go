package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// MarkerVariable is the environment variable by which descendants of a command are known.
const MarkerVariable = "RIG_BRIDGE_OPERATION"

// Grace is the time between the request to end (SIGTERM) and the end (SIGKILL).
const Grace = 2 * time.Second

// killWait is how long a killed process may take to go; one that is stuck in the kernel takes longer.
const killWait = time.Second

// Info describes one process. It holds the command's name and never its arguments.
type Info struct {
	PID, PPID, PGID, SID int
	// StartTime is the opaque start of this process, as Family.StartTime is for a leader.
	StartTime string
	// Command is the kernel's name of the command, at most 15 bytes.
	Command string
	// Age is how long the process has existed.
	Age time.Duration

	began    uint64 // in the kernel's own unit
	zombie   bool
	runnable bool
}

// identity is what Family.StartTime encodes.
type identity struct {
	boot   string
	began  uint64 // the kernel's start time of the leader, in its own unit
	marker string // empty when unknown
}

func (id identity) String() string {
	return id.boot + ":" + strconv.FormatUint(id.began, 10) + ":" + id.marker
}

// parse reads an identity; one of another boot is refused, as none of its processes can exist.
func parse(start string) (identity, bool) {
	part := strings.Split(start, ":")
	if len(part) != 3 || part[0] != bootID() {
		return identity{}, false
	}
	began, err := strconv.ParseUint(part[1], 10, 64)
	return identity{boot: part[0], began: began, marker: part[2]}, err == nil
}

func newMarker() string {
	var b [12]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand never fails
	return hex.EncodeToString(b[:])
}

// Group lists the processes that still run of the family whose leader was pgid and began at start, with
// whether there are any. It walks the process table.
func Group(pgid int, start string) ([]Info, bool) {
	f := find(pgid, start)
	if f == nil {
		return nil, false
	}
	list := f.Members()
	return list, len(list) > 0
}

// Alive says whether any process of the family still runs.
func Alive(pgid int, start string) bool {
	_, alive := Group(pgid, start)
	return alive
}

// Stop ends the family as Family.Stop does. A family that is gone is no error.
func Stop(ctx context.Context, pgid int, start string) error {
	f := find(pgid, start)
	if f == nil {
		return nil
	}
	return f.Stop(ctx)
}

// Descendants lists the running processes that carry the marker, and their descendants.
func Descendants(marker string) []Info {
	if marker == "" {
		return nil
	}
	f := &Family{id: identity{boot: bootID(), marker: marker}}
	return f.Members()
}

// Marked finds a family whose group was not stored by the marker that its members carry. It returns what Group
// and Stop need, and the members; none if nothing of it runs.
func Marked(marker string) (pgid int, start string, list []Info) {
	list = Descendants(marker)
	if len(list) == 0 {
		return 0, "", nil
	}
	oldest := list[0]
	return oldest.SID, identity{boot: bootID(), began: oldest.began, marker: marker}.String(), list
}

// Exists says whether the process that had this number and this Info.StartTime still runs. It costs one look.
func Exists(pid int, start string) bool {
	p, ok := inspect(pid)
	return ok && !p.zombie && p.StartTime == start
}

// find returns the family of a stored group, or nil if it cannot run any more.
func find(pgid int, start string) *Family {
	id, ok := parse(start)
	if !ok || pgid <= 1 {
		return nil
	}
	if f := registry.family(start); f != nil {
		return f
	}
	return &Family{pgid: pgid, id: id}
}

// looks is how often an empty family is looked for: a walk through the process table takes time, in which one
// process may make another, unseen, and end before it is seen itself.
const looks = 3

// Members lists the processes of the family that run now, the leader first, in order of their start. It walks
// the process table.
func (f *Family) Members() []Info {
	f.looking.Lock()
	defer f.looking.Unlock()
	reaped := f.reaped.Load()
	trusted := f.ours && (!reaped || !f.looked)
	f.looked = reaped
	var list []Info
	for range looks {
		all := processes(f.id.began)
		if list = f.choose(all, trusted || f.holdsNumber(all)); len(list) > 0 {
			break
		}
	}
	slices.SortFunc(list, func(a, b Info) int {
		switch f.pgid {
		case a.PID:
			return -1
		case b.PID:
			return 1
		}
		return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.PID, b.PID))
	})
	f.last = list
	if len(list) == 0 && reaped {
		f.vanished()
	}
	return list
}

// Busy says whether some process of the family has the processor or waits for it, rather than for time or
// data to come.
func (f *Family) Busy() bool {
	return slices.ContainsFunc(f.Members(), func(p Info) bool { return p.runnable })
}

// choose picks the family out of all processes. held says whether the number of its group is still its own.
func (f *Family) choose(all []Info, held bool) []Info {
	member, self := map[int]bool{}, os.Getpid()
	for _, p := range all {
		if p.PID != self && (held && f.inGroup(p) || marked(p.PID, f.id.marker)) {
			member[p.PID] = true
		}
	}
	for grown := len(member) > 0; grown; {
		grown = false
		for _, p := range all {
			if !member[p.PID] && member[p.PPID] {
				member[p.PID], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p Info) bool { return !member[p.PID] })
}

// inGroup says whether the process keeps the family's number in use.
func (f *Family) inGroup(p Info) bool { return p.PGID == f.pgid || p.SID == f.pgid }

// holdsNumber says whether the number of the group cannot have been given to anybody else. The kernel does not
// reuse a number that is in use as a process, a group or a session; so it is enough that the leader exists, or
// that somebody in the group was there at the last look, or bears the mark. A leader that was reaped just now
// is trusted without that.
func (f *Family) holdsNumber(all []Info) bool {
	if f.pgid <= 1 {
		return false
	}
	if leader, ok := inspect(f.pgid); ok {
		return leader.began == f.id.began
	}
	for _, p := range all {
		if f.inGroup(p) && (f.wasThere(p) || marked(p.PID, f.id.marker)) {
			return true
		}
	}
	return false
}

func (f *Family) wasThere(p Info) bool {
	return slices.ContainsFunc(f.last, func(old Info) bool { return old.PID == p.PID && old.began == p.began && f.inGroup(old) })
}

// Stop asks the family to end, kills after Grace what is left, and returns when nothing runs any more. Stopped
// processes are continued, so that they can end. It returns an error if something could not be killed, or the
// context's, in which case the rest of the family runs on.
func (f *Family) Stop(ctx context.Context) error {
	if f.gone.Load() {
		return nil
	}
	gone, err := f.end(ctx, syscall.SIGTERM, Grace)
	if gone || err != nil {
		return err
	}
	gone, err = f.end(ctx, syscall.SIGKILL, killWait)
	if gone || err != nil {
		return err
	}
	list := f.Members()
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("stop process group %d: %d processes remain, the first is pid %d (%s): %w",
		f.pgid, len(list), list[0].PID, list[0].Command, errUnstoppable)
}

var errUnstoppable = errors.New("they did not end when killed; they may belong to another account or be stuck in the system")

// end signals the family, newcomers too, until it is gone or the time is over.
func (f *Family) end(ctx context.Context, sig syscall.Signal, limit time.Duration) (gone bool, err error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	signalled := map[int]uint64{}
	for pause := 2 * time.Millisecond; ; {
		list := f.Members()
		if len(list) == 0 {
			return true, nil
		}
		signalNew(list, signalled, sig)
		for running := true; running; running = anyRuns(list) {
			select {
			case <-ctx.Done():
				return false, fmt.Errorf("stop process group %d: %w", f.pgid, ctx.Err())
			case <-over.C:
				return false, nil
			case <-time.After(pause):
			}
			f.reapMembers()
			pause = min(2*pause, 50*time.Millisecond)
		}
	}
}

// signalNew sends sig once to the groups of the processes in list that had none yet. A group of the family holds
// nobody else, because it lies in a session that the family made.
func signalNew(list []Info, signalled map[int]uint64, sig syscall.Signal) {
	own := syscall.Getpgrp()
	done := map[int]bool{}
	for _, p := range list {
		if began, ok := signalled[p.PID]; ok && began == p.began {
			continue
		}
		signalled[p.PID] = p.began
		target := -p.PGID
		if p.PGID <= 1 || p.PGID == own {
			target = p.PID
		}
		if done[target] {
			continue
		}
		done[target] = true
		syscall.Kill(target, sig)             //nolint:errcheck // gone already, or another account's: both are seen later
		syscall.Kill(target, syscall.SIGCONT) //nolint:errcheck // as above
	}
}

// anyRuns says whether one of the processes still runs.
func anyRuns(list []Info) bool {
	for _, p := range list {
		if now, ok := inspect(p.PID); ok && now.began == p.began && !now.zombie {
			return true
		}
	}
	return false
}
