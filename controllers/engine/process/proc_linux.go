package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockTick is the unit of start times in /proc: USER_HZ, which is 100 on every architecture of Go's.
const clockTick = 10 * time.Millisecond

// environLimit bounds how much of another process's environment is searched for the marker.
const environLimit = 2 << 20

// execTries is how often an empty environment is read again: a process that is executing a program has none
// for a moment.
const execTries = 3

// bootID names this boot of the machine.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
})

// inspect reads one process, zombies too.
func inspect(pid int) (Info, bool) {
	var buf [1024]byte
	n := readProc("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	return parseStat(buf[:max(n, 0)])
}

// parseStat reads a line of /proc/PID/stat; the command's name may hold blanks and parentheses.
func parseStat(line []byte) (Info, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return Info{}, false
	}
	field := bytes.Fields(line[end+1:])
	if len(field) < 20 {
		return Info{}, false
	}
	number := func(b []byte) int {
		n, _ := strconv.Atoi(string(b))
		return n
	}
	p := Info{PID: number(bytes.TrimSpace(line[:open])), PPID: number(field[1]), PGID: number(field[2]), SID: number(field[3]),
		Command: string(line[open+1 : end])}
	p.zombie = field[0][0] == 'Z' || field[0][0] == 'X'
	p.runnable = field[0][0] == 'R'
	p.began, _ = strconv.ParseUint(string(field[19]), 10, 64)
	p.StartTime = identity{boot: bootID(), began: p.began}.String()
	if age := sinceBoot() - time.Duration(p.began)*clockTick; age > 0 {
		p.Age = age
	}
	return p, true
}

func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// readProc fills buf from a file of /proc and returns how much there was, -1 if it cannot be opened.
func readProc(path string, buf []byte) int {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	defer unix.Close(fd)
	total := 0
	for total < len(buf) {
		n, err := unix.Read(fd, buf[total:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		total += n
	}
	return total
}

// processes lists what runs, zombies aside, and began no earlier than the given start time.
func processes(began uint64) []Info {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []Info
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := inspect(pid); ok && !p.zombie && p.began >= began {
			list = append(list, p)
		}
	}
	return list
}

// marked says whether the process carries the marker in the environment it was started with.
func marked(pid int, marker string) bool {
	if marker == "" {
		return false
	}
	entry := []byte(MarkerVariable + "=" + marker)
	path := "/proc/" + strconv.Itoa(pid) + "/environ"
	for size := 16 << 10; ; size *= 4 {
		env := make([]byte, size)
		n := readProc(path, env)
		for try := 0; n == 0 && try < execTries; try++ {
			time.Sleep(time.Millisecond)
			n = readProc(path, env)
		}
		if n > 0 && hasEntry(env[:n], entry) {
			return true
		}
		if n < size || size >= environLimit {
			return false
		}
	}
}

// hasEntry says whether entry is one of the NUL-separated entries of env.
func hasEntry(env, entry []byte) bool {
	for len(env) > 0 {
		one, rest, _ := bytes.Cut(env, []byte{0})
		if bytes.Equal(one, entry) {
			return true
		}
		env = rest
	}
	return false
}

// adoptedSince says whether a process that we did not start became our child and began no earlier than the
// given start time. One that has ended counts: its own children may be about to become ours. The kernel gives
// orphans to the main thread of a subreaper.
func adoptedSince(began uint64) bool {
	for range 2 { // the kernel may leave out one when another ends just now
		list, ok := children(os.Getpid())
		if !ok {
			return true // not told: look everywhere
		}
		for _, pid := range list {
			if registry.leads(pid) {
				continue
			}
			if p, ok := inspect(pid); !ok || p.began >= began {
				return true
			}
		}
	}
	return false
}

// children lists the children of one of our threads.
func children(thread int) ([]int, bool) {
	path := "/proc/self/task/" + strconv.Itoa(thread) + "/children"
	for size := 4 << 10; ; size *= 4 {
		buf := make([]byte, size)
		n := readProc(path, buf)
		if n == size {
			continue
		}
		if n < 0 {
			return nil, false
		}
		var list []int
		for _, field := range bytes.Fields(buf[:n]) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				list = append(list, pid)
			}
		}
		return list, true
	}
}

// allChildren lists the children of every thread of ours.
func allChildren() []int {
	threads, _ := filepath.Glob("/proc/self/task/[0-9]*")
	var list []int
	for _, t := range threads {
		thread, err := strconv.Atoi(filepath.Base(t))
		if err != nil {
			continue
		}
		more, _ := children(thread)
		list = append(list, more...)
	}
	return list
}
