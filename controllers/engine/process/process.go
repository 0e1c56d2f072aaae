package process

import (
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

	began  uint64 // in the kernel's own unit
	zombie bool
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

// Members lists the processes of the family that run now, the leader first, in order of their start. It walks
// the process table.
func (f *Family) Members() []Info {
	all := processes(f.id.began)
	held := f.holdsNumber(all)
	member := map[int]bool{}
	for _, p := range all {
		if held && (p.PGID == f.pgid || p.SID == f.pgid) || marked(p.PID, f.id.marker) {
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
	delete(member, os.Getpid())
	list := slices.DeleteFunc(all, func(p Info) bool { return !member[p.PID] })
	slices.SortFunc(list, func(a, b Info) int {
		if a.began != b.began {
			return int(a.began) - int(b.began)
		}
		return a.PID - b.PID
	})
	if len(list) == 0 {
		f.vanished()
	}
	return list
}

// holdsNumber says whether the family's number cannot have been given to another group: we started the leader
// and something of it has run ever since, or the leader itself exists, or a marked process is in the group
// (the kernel does not reuse a number that is in use as a group or a session).
func (f *Family) holdsNumber(all []Info) bool {
	if f.pgid <= 1 {
		return false
	}
	if f.ours {
		return true
	}
	if leader, ok := inspect(f.pgid); ok {
		return leader.began == f.id.began
	}
	for _, p := range all {
		if (p.PGID == f.pgid || p.SID == f.pgid) && marked(p.PID, f.id.marker) {
			return true
		}
	}
	return false
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
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		list := f.Members()
		if len(list) == 0 {
			return true, nil
		}
		signalNew(list, signalled, sig)
		for ; anyRuns(list); pause = min(2*pause, 50*time.Millisecond) {
			select {
			case <-ctx.Done():
				return false, fmt.Errorf("stop process group %d: %w", f.pgid, ctx.Err())
			case <-over.C:
				return false, nil
			case <-time.After(pause):
			}
			f.reapMembers()
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
