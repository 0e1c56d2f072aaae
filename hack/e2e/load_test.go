package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestManyAtOnce has 200 callers at once, commands and reads mixed; each gets its own answer.
func TestManyAtOnce(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := realDir(t)
	workspace := client.Open(t, dir)
	for i := range 100 {
		put(t, filepath.Join(dir, fmt.Sprint(i)), fmt.Sprintf("file %d\n", i))
	}
	ctx := bounded(t, 3*time.Minute)
	var wg sync.WaitGroup
	call := func(want, tool string, args daemon.Args) {
		wg.Go(func() {
			r, err := client.Call(ctx, tool, args)
			if err != nil || r.IsError || r.Text() != want {
				t.Errorf("%s: %v %q, want %q", tool, err, r.Text(), want)
			}
		})
	}
	for i := range 100 {
		call(fmt.Sprintf("file %d\n", i), "read", daemon.Args{"workspace_id": workspace, "path": fmt.Sprint(i)})
		call(fmt.Sprintf("out %d\nerr %d\n", i, i), "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(),
			"command": fmt.Sprintf("sleep 0.5; echo out %d; echo err %d >&2", i, i)})
	}
	wg.Wait()
}

// TestReadsDoNotQueueBehindCommands holds commands open until all reads have been answered, in the same
// workspace and in another. If a read waited for a command, this would never end.
func TestReadsDoNotQueueBehindCommands(t *testing.T) {
	const commands, reads = 32, 64
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := gitProject(t)
	workspace, other := client.Open(t, dir), client.Open(t, gitProject(t))
	gate := openGate(t, filepath.Join(dir, "gate"))
	ctx := bounded(t, 2*time.Minute)
	var held sync.WaitGroup
	for i := range commands {
		held.Go(func() {
			r, err := client.Call(ctx, "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(),
				"command": fmt.Sprintf("exec 3< gate; touch started-%d; cat <&3; echo through %d", i, i)})
			if want := fmt.Sprintf("through %d\n", i); err != nil || r.Text() != want {
				t.Errorf("command %d: %v %q", i, err, r.Text())
			}
		})
	}
	eventually(t, "all commands have started", func() bool {
		started, _ := filepath.Glob(filepath.Join(dir, "started-*"))
		return len(started) == commands
	})
	var answered sync.WaitGroup
	for i := range reads {
		answered.Go(func() {
			in := []string{workspace, other}[i%2]
			r, err := client.Call(ctx, "read", daemon.Args{"workspace_id": in, "path": "README.md"})
			if err != nil || r.Text() != "# Demo\n" {
				t.Errorf("read: %v %s", err, r.Text())
			}
		})
	}
	answered.Wait()
	if err := gate.Close(); err != nil {
		t.Fatal(err)
	}
	held.Wait()
}

// openGate makes a FIFO and holds its writing end: whoever reads from it waits until it is closed.
func openGate(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	gate, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// TestTalkativeCommand writes 200 MB of output: the daemon's memory stays bounded, other calls are
// answered meanwhile, and the last line is shown.
func TestTalkativeCommand(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := realDir(t)
	workspace := client.Open(t, dir)
	before := residentMB(t, d.Pid())
	done := make(chan daemon.Result, 1)
	go func() {
		r, err := client.Call(bounded(t, 3*time.Minute), "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(),
			"command": "touch started; yes abcdefghij | head -c 200000000; echo; echo the last line", "wait_seconds": 120})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	eventually(t, "the command has started", func() bool { return exists(filepath.Join(dir, "started")) })
	most, meanwhile := 0, 0
	for running := true; running; {
		client.OK(t, "ls", daemon.Args{"workspace_id": workspace})
		most = max(most, residentMB(t, d.Pid()))
		select {
		case r := <-done:
			running = false
			if r.IsError || !strings.Contains(r.Text(), "\nthe last line\n") {
				t.Errorf("%s", r.Text())
			}
		default:
			meanwhile++
		}
	}
	t.Logf("resident before %d MB, at most %d MB; %d listings meanwhile", before, most, meanwhile)
	if most > before+64 {
		t.Errorf("resident memory grew from %d to %d MB", before, most)
	}
}

func residentMB(t testing.TB, pid int) int {
	t.Helper()
	for line := range strings.Lines(text(t, fmt.Sprintf("/proc/%d/status", pid))) {
		var kb int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// TestConnectionCut cuts the connection of the first caller: the command goes on, and the same key gets
// its one result.
func TestConnectionCut(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := realDir(t)
	args := daemon.Args{"workspace_id": client.Open(t, dir), "request_key": daemon.Key(), "command": "echo x >> log; sleep 1; echo y >> log; echo done"}
	ctx := bounded(t, time.Minute)
	cut, cancel := context.WithCancel(ctx)
	lost := make(chan error, 1)
	go func() {
		_, err := client.Call(cut, "bash", args)
		lost <- err
	}()
	eventually(t, "the command has started", func() bool { return exists(filepath.Join(dir, "log")) })
	cancel()
	if <-lost == nil {
		t.Error("the connection was not cut")
	}
	r := client.OK(t, "bash", args)
	if r.Text() != "done\n" || text(t, filepath.Join(dir, "log")) != "x\ny\n" {
		t.Errorf("text %q, log %q", r.Text(), text(t, filepath.Join(dir, "log")))
	}
}

// TestTwoWorkspacesOneFile: the later of two writers that read the same revision is refused.
func TestTwoWorkspacesOneFile(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := realDir(t)
	link := filepath.Join(realDir(t), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "notes.md"), "start\n")
	a, b := client.Open(t, dir), client.Open(t, link)
	seen := client.OK(t, "read", daemon.Args{"workspace_id": a, "path": "notes.md"}).String("revision")
	results := make([]daemon.Result, 2)
	var wg sync.WaitGroup
	for i, workspace := range []string{a, b} {
		wg.Go(func() {
			r, err := client.Call(bounded(t, time.Minute), "write", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "path": "notes.md",
				"content": fmt.Sprintf("writer %d\n", i), "expected_revision": seen})
			if err != nil {
				t.Error(err)
			}
			results[i] = r
		})
	}
	wg.Wait()
	winner := 0
	if results[0].IsError {
		winner = 1
	}
	loser := results[1-winner]
	now := revision(t, filepath.Join(dir, "notes.md"))
	if results[winner].IsError || loser.Code() != "REVISION_CONFLICT" || !strings.Contains(loser.Text(), now) {
		t.Errorf("winner: %s\nloser: %s", results[winner].Text(), loser.Text())
	}
	if got, want := text(t, filepath.Join(dir, "notes.md")), fmt.Sprintf("writer %d\n", winner); got != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}
