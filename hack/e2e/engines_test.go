package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// largeTreeEnv names the environment variable that sets the size of the tree of TestMemory, in MB; 5000 is
// the size that the memory limit was promised for.
const largeTreeEnv = "RIG_BRIDGE_LARGE_TREE_MB"

// mayGrow is how much resident memory one call may add, in MB.
const mayGrow = 64

// TestMemory searches a tree of large files, one of them a single line, and runs a command that writes 200 MB:
// neither adds much to the daemon's memory at any moment, and other calls are answered meanwhile.
func TestMemory(t *testing.T) {
	size := 300
	if s := os.Getenv(largeTreeEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 300 {
			t.Fatalf("%s is %q, want a number from 300", largeTreeEnv, s)
		}
		size = n
	}
	d := daemon.Start(t, daemon.Options{})
	k := newRoom(t, d)
	files := largeTree(k, size)
	k.ok("ls", nil)
	base := residentMB(t, d.Pid()) // for all calls: what one of them leaves counts for the next
	for _, c := range []struct {
		name string
		rows int
		args daemon.Args
	}{
		{"literal", files, daemon.Args{"pattern": "the needle"}},
		{"ignore case", files, daemon.Args{"pattern": "THE NEEDLE", "ignoreCase": true}},
		{"classes", files, daemon.Args{"pattern": `\bthe [a-z]{6}$`}},
		{"with context", files, daemon.Args{"pattern": "the needle", "context": 2}},
		{"no match", 0, daemon.Args{"pattern": "zzqqxx_absent"}},
	} {
		t.Run("grep "+c.name, func(t *testing.T) {
			in := *k
			in.T = t
			in.growsLittle(base, func() { in.finds(c.rows, c.args) })
		})
	}
	t.Run("bash", func(t *testing.T) {
		in := *k
		in.T = t
		in.growsLittle(base, func() {
			r, err := in.client.Call(bounded(t, 5*time.Minute), "bash", daemon.Args{"workspace_id": in.workspace, "request_key": daemon.Key(),
				"command": "yes abcdefghij | head -c 200000000; echo; echo the last line", "wait_seconds": 120})
			if err != nil || r.IsError || !strings.Contains(r.Text(), "\nthe last line\n") {
				t.Errorf("%v %.300s", err, r.Raw)
			}
		})
	})
}

// finds greps the whole tree: a row for each needle, unless the answer says that the time ran out.
func (k *room) finds(rows int, args daemon.Args) {
	r, err := k.client.Call(bounded(k, 10*time.Minute), "grep", copyArgs(args, daemon.Args{"workspace_id": k.workspace}))
	if err != nil || r.IsError {
		k.Errorf("grep: %v %.300s", err, r.Raw)
		return
	}
	if strings.Contains(r.Text(), "incomplete: ") {
		k.Logf("the search ran out of time: %s", r.Text()[strings.LastIndex(r.Text(), "\n")+1:])
		return
	}
	if got := strings.Count(r.Text(), ": "); rows == 0 && r.Text() != "No matches found" || got < rows {
		k.Errorf("%d rows, want %d: %.300s", got, rows, r.Text())
	}
}

// growsLittle runs something and checks that the daemon's resident memory stays near base at its peak.
func (k *room) growsLittle(base int, run func()) {
	k.Helper()
	pid := k.d.Pid()
	before := residentMB(k, pid)
	// Forgets the peak that the kernel remembers, so that the one read later belongs to this call.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		k.Fatal(err)
	}
	began := time.Now()
	meanwhile(k, run)
	peak, after := peakMB(k, pid), residentMB(k, pid)
	k.Logf("resident before %d MB, peak %d MB, after %d MB, in %v", before, peak, after, time.Since(began).Round(time.Millisecond))
	if peak >= base+mayGrow {
		k.Errorf("resident memory grew from %d to %d MB", base, peak)
	}
}

func peakMB(t testing.TB, pid int) int {
	t.Helper()
	for line := range strings.Lines(text(t, fmt.Sprintf("/proc/%d/status", pid))) {
		var kb int
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			return kb / 1024
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// largeTree makes files of so many MB in all and returns how many: a third of it in one file of a single line,
// the rest in files of lines. A line at the end of each holds the needle.
func largeTree(k *room, size int) (files int) {
	k.Helper()
	prose := strings.Repeat("It was a bright cold day in April, and the clocks struck.\n", 18_000) // about 1 MB
	line := strings.ReplaceAll(prose, "\n", " ")
	write := func(block string, blocks int) {
		f, err := os.Create(k.path(fmt.Sprintf("large-%d.txt", files)))
		if err != nil {
			k.Fatal(err)
		}
		defer f.Close()
		w := bufio.NewWriterSize(f, 1<<20)
		for range blocks {
			if _, err := io.WriteString(w, block); err != nil {
				k.Fatal(err)
			}
		}
		if _, err := io.WriteString(w, "\nhere is the needle\n"); err != nil {
			k.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			k.Fatal(err)
		}
		files++
	}
	write(line, size/3)
	for range 4 {
		write(prose, size/6)
	}
	return files
}
