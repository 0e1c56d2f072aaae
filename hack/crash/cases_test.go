package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// The names of these tests are the letters of the bug log: faults that other tools of this kind had.

// TestA1StaleWrite: of two who read the same revision, the second to write is refused and told the current one.
func TestA1StaleWrite(t *testing.T) {
	t.Parallel()
	c := newHouse(t).begin(t)
	dir := realDir(t)
	file := filepath.Join(dir, "notes.md")
	put(t, file, "plan\n")
	a, b := c.Open(t, dir), c.Open(t, dir)
	read := c.OK(t, "read", daemon.Args{"workspace_id": a, "path": "notes.md"}).String("revision")
	if again := c.OK(t, "read", daemon.Args{"workspace_id": b, "path": "notes.md"}).String("revision"); again != read {
		t.Fatalf("one file, two revisions: %s and %s", read, again)
	}
	args := daemon.Args{"request_key": "k1", "path": "notes.md", "expected_revision": read}
	c.OK(t, "write", with(args, daemon.Args{"workspace_id": a, "content": "plan of A\n"}))
	r := c.Fails(t, "REVISION_CONFLICT", "write", with(args, daemon.Args{"workspace_id": b, "content": "plan of B\n"}))
	if got := text(t, file); got != "plan of A\n" {
		t.Errorf("the file holds %q", got)
	}
	if r.String("current_revision") != revision(t, file) || !strings.Contains(r.Text(), revision(t, file)) {
		t.Errorf("the conflict does not carry the current revision: %s", r.Raw)
	}
	if r.Structured["effects_may_have_occurred"] != false {
		t.Errorf("a conflict has no effects: %s", r.Raw)
	}
}

// TestA4AnswerLost: the answer of a command is lost; the same call on a new connection gets the stored result.
func TestA4AnswerLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.begin(t)
	dir := realDir(t)
	args := daemon.Args{"workspace_id": c.Open(t, dir), "request_key": "k1", "command": "echo x >> log; echo said"}
	p := newLossy(t, strings.TrimPrefix(h.daemon.Base(), "http://"))
	p.accepted.Store(5) // the sixth answer is read from the server and thrown away
	if _, err := p.client(h.daemon).Call(t.Context(), "bash", args); err == nil {
		t.Fatal("the answer was not lost")
	}
	eventually(t, "the server has answered", func() bool { return len(lines(t, filepath.Join(dir, "log"))) == 1 })
	time.Sleep(200 * time.Millisecond) // and its record is made, else the repetition gets the original
	r := c.OK(t, "bash", args)
	if !r.Replayed() || r.Text() != "said\n" {
		t.Errorf("not the stored result: %s", r.Raw)
	}
	if got := text(t, filepath.Join(dir, "log")); got != "x\n" {
		t.Errorf("the log is %q", got)
	}
}

// TestA6EditSentAgain: an edit that is sent again is not applied to its own result.
func TestA6EditSentAgain(t *testing.T) {
	t.Parallel()
	c := newHouse(t).begin(t)
	dir := realDir(t)
	file := filepath.Join(dir, "list")
	put(t, file, "list:\nend\n")
	args := daemon.Args{"workspace_id": c.Open(t, dir), "request_key": "k1", "path": "list", "expected_revision": revision(t, file),
		"edits": []daemon.Args{{"oldText": "list:", "newText": "list:\n- a"}}}
	first := c.OK(t, "edit", args)
	again := c.OK(t, "edit", args)
	if !again.Replayed() || again.String("revision") != first.String("revision") {
		t.Errorf("the same key: %s", again.Raw)
	}
	c.Fails(t, "REVISION_CONFLICT", "edit", with(args, daemon.Args{"request_key": "k2"}))
	if got := text(t, file); got != "list:\n- a\nend\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestA8ReplayByTheLibrary: a key with other arguments is a conflict and nothing runs; other order of members and
// a default that is given or left out make no other request.
func TestA8ReplayByTheLibrary(t *testing.T) {
	t.Parallel()
	c := newHouse(t).begin(t)
	dir := realDir(t)
	workspace := c.Open(t, dir)
	post := func(arguments string) daemon.Result {
		t.Helper()
		r, err := c.CallWith(t.Context(), map[string]any{"name": "bash", "arguments": json.RawMessage(arguments)})
		if err != nil {
			t.Fatalf("%s: %v", arguments, err)
		}
		return r
	}
	first := post(`{"workspace_id":"` + workspace + `","request_key":"k1","command":"echo x >> log"}`)
	if first.IsError || first.Replayed() {
		t.Fatal(string(first.Raw))
	}
	for _, same := range []string{
		`{"command":"echo x >> log","request_key":"k1","workspace_id":"` + workspace + `"}`,
		`{"timeout":120,"command":"echo x >> log","workspace_id":"` + workspace + `","request_key":"k1"}`,
		`{"timeout":120.0,"wait_seconds":null,"command":"echo \u0078 >> log","workspace_id":"` + workspace + `","request_key":"k1"}`,
	} {
		if r := post(same); r.IsError || !r.Replayed() {
			t.Errorf("%s is not the same request: %s", same, r.Raw)
		}
	}
	for _, other := range []string{
		`{"workspace_id":"` + workspace + `","request_key":"k1","command":"echo y >> log"}`,
		`{"workspace_id":"` + workspace + `","request_key":"k1","command":"echo x >> log","timeout":121}`,
	} {
		if r := post(other); r.Code() != "REQUEST_KEY_CONFLICT" {
			t.Errorf("%s: %s", other, r.Raw)
		}
	}
	if got := text(t, filepath.Join(dir, "log")); got != "x\n" {
		t.Errorf("the log is %q", got)
	}
}

// TestD10HungCommand: a command that does not end keeps nobody else waiting.
func TestD10HungCommand(t *testing.T) {
	t.Parallel()
	c := newHouse(t).begin(t)
	dir := realDir(t)
	put(t, filepath.Join(dir, "a"), "alpha\n")
	same, other := c.Open(t, dir), c.Open(t, dir)
	hung := make(chan daemon.Result, 1)
	go func() {
		r, _ := c.Call(context.Background(), "bash", daemon.Args{"workspace_id": same, "request_key": "k1",
			"command": "touch hangs; while [ ! -e enough ]; do sleep 0.1; done; echo over"})
		hung <- r
	}()
	eventually(t, "the command runs", func() bool { return exists(filepath.Join(dir, "hangs")) })
	var wg sync.WaitGroup
	for n := range 20 {
		workspace := []string{same, other}[n%2]
		wg.Go(func() {
			r, err := c.Call(bounded(t, 30*time.Second), "read", daemon.Args{"workspace_id": workspace, "path": "a"})
			if err != nil || r.IsError {
				t.Errorf("read: %v %s", err, r.Raw)
			}
		})
	}
	wg.Wait()
	select {
	case r := <-hung:
		t.Errorf("the command ended before it was told to: %s", r.Raw)
	default:
	}
	put(t, filepath.Join(dir, "enough"), "")
	if r := <-hung; r.IsError || r.Text() != "over\n" {
		t.Errorf("the command: %s", r.Raw)
	}
}

// TestE1ClientCutsEarly: a client drops each request after 2 s, a job takes 8 s. It runs once, and its output and
// exit code are had by key in the end.
func TestE1ClientCutsEarly(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.begin(t)
	if _, err := c.Initialize(t.Context(), "2025-06-18"); err != nil {
		t.Fatal(err)
	}
	dir := realDir(t)
	args := daemon.Args{"workspace_id": c.Open(t, dir), "request_key": "k1", "command": "echo begin; sleep 8; echo once >> log; echo end; exit 7"}
	cuts := 0
	for {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		r, err := c.Call(ctx, "bash", args)
		stop()
		if err == nil {
			if r.Code() != "COMMAND_FAILED" || r.Structured["exit_code"] != 7.0 || !strings.HasPrefix(r.Text(), "begin\nend\n") {
				t.Errorf("the outcome: %s", r.Raw)
			}
			break
		}
		if cuts++; cuts > 60 {
			t.Fatal("the job never ends")
		}
	}
	if got := text(t, filepath.Join(dir, "log")); got != "once\n" || cuts < 2 {
		t.Errorf("the log is %q after %d cuts", got, cuts)
	}
	r := c.Must(t, "operation_wait", daemon.Args{"workspace_id": args["workspace_id"], "request_key": "k1"})
	if r.Structured["exit_code"] != 7.0 || r.String("status") != "failed" {
		t.Errorf("by operation_wait: %s", r.Raw)
	}
}

// TestE3ClientGivesUp: the client closes the connection in the middle of a command and never asks again. Before
// 2026-07-28 the command goes on and its receipt becomes final by itself; since then it is cancelled.
func TestE3ClientGivesUp(t *testing.T) {
	t.Parallel()
	for _, era := range []struct {
		version, status, reason string
		finishes                bool
	}{
		{"2025-06-18", "completed", "Succeeded", true},
		{"2026-07-28", "failed", "Cancelled", false},
	} {
		t.Run(era.version, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			c := h.begin(t)
			dir := realDir(t)
			workspace := c.Open(t, dir)
			params := map[string]any{"name": "bash", "arguments": daemon.Args{"workspace_id": workspace, "request_key": "k1",
				"command": "touch begun; sleep 3; echo end >> log"}}
			leaving := h.daemon.Client()
			leaving.Header = http.Header{"Mcp-Protocol-Version": {era.version}}
			if !era.finishes { // the newer era says in each request who asks
				leaving.Header.Set("Mcp-Method", "tools/call")
				leaving.Header.Set("Mcp-Name", "bash")
				params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": era.version,
					"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "leaving", "version": "1"},
					"io.modelcontextprotocol/clientCapabilities": map[string]any{}}
			}
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, err := leaving.CallWith(ctx, params)
				gone <- err
			}()
			eventually(t, "the command has begun", func() bool { return exists(filepath.Join(dir, "begun")) })
			leave()
			if err := <-gone; err == nil || ctx.Err() == nil {
				t.Fatalf("the client did not leave: %v", err)
			}
			r := c.Must(t, "operation_wait", daemon.Args{"workspace_id": workspace, "request_key": "k1", "wait_seconds": 30})
			if r.String("status") != era.status || r.String("reason") != era.reason {
				t.Errorf("the receipt: %s", r.Raw)
			}
			if got := exists(filepath.Join(dir, "log")); got != era.finishes {
				t.Errorf("the command finished: %v", got)
			}
		})
	}
}

// TestE5IgnoresTheTimeout: a command that traps SIGTERM, and its two children, are gone after the timeout and the
// grace period.
func TestE5IgnoresTheTimeout(t *testing.T) {
	t.Parallel()
	c := newHouse(t).begin(t)
	dir := realDir(t)
	const timeout, grace, slack = 3 * time.Second, 2 * time.Second, 10 * time.Second // the machine may be busy
	began := time.Now()
	r := c.Fails(t, "COMMAND_TIMEOUT", "bash", daemon.Args{"workspace_id": c.Open(t, dir), "request_key": "k1", "timeout": timeout.Seconds(),
		"command": `trap '' TERM; for n in 1 2; do (trap '' TERM; echo $BASHPID >> pids; while :; do sleep 0.2; done) & done; echo $$ >> pids; while :; do sleep 0.2; done`})
	took := time.Since(began)
	if took < timeout || took > timeout+grace+slack {
		t.Errorf("it took %v", took)
	}
	pids := lines(t, filepath.Join(dir, "pids"))
	if len(pids) != 3 {
		t.Fatalf("pids: %v", pids)
	}
	for pid := range pids {
		if running(t, pid) {
			t.Errorf("process %s lives on; the answer was %s", pid, r.Raw)
		}
	}
}

// running says whether a process exists and is no zombie.
func running(t testing.TB, pid string) bool {
	t.Helper()
	return exists(filepath.Join("/proc", pid)) && state(t, pid) != "Z"
}

// state is the letter of a process's state; empty when there is none.
func state(t testing.TB, pid string) string {
	t.Helper()
	fields := stat(pid)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

// stat returns the fields of a process after its name: state, parent and so on.
func stat(pid string) []string {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// TestF1BackgroundJobs: jobs that a command leaves in the background are told of, with pid and age; what outlives
// the workspace stays in the receipt.
func TestF1BackgroundJobs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.begin(t)
	dir := realDir(t)
	workspace := c.Open(t, dir)
	r := c.OK(t, "bash", daemon.Args{"workspace_id": workspace, "request_key": "k1",
		"command": `for n in 1 2 3 4 5 6 7 8 9 10; do (echo $BASHPID >> pids; while :; do sleep 0.3; done) >/dev/null 2>&1 & done; while [ "$(wc -l < pids)" -lt 10 ]; do sleep 0.05; done`})
	pids := lines(t, filepath.Join(dir, "pids"))
	t.Cleanup(func() {
		for pid := range pids {
			kill(t, pid)
		}
	})
	listed := map[string]bool{}
	left, _ := r.Structured["still_running"].([]any)
	for _, l := range left {
		p, _ := l.(map[string]any)
		pid, _ := p["pid"].(float64)
		if _, ok := p["age_seconds"].(float64); !ok || p["command"] == "" {
			t.Errorf("a leftover without age or name: %v", p)
		}
		listed[strconv.Itoa(int(pid))] = true
	}
	for pid := range pids {
		if !listed[pid] {
			t.Errorf("process %s runs on and the answer does not list it: %s", pid, r.Raw)
		}
	}
	c.OK(t, "workspace_close", daemon.Args{"workspace_id": workspace})
	receipt := operation(t, h, r.String("operation_id"))
	for pid := range pids {
		if running(t, pid) && !slices.ContainsFunc(receipt.Status.Leftovers, func(p process) bool { return strconv.Itoa(p.PID) == pid && p.StartTime != "" && p.Command != "" }) {
			t.Errorf("process %s outlives its workspace and nobody can see it: %+v", pid, receipt)
		}
	}
	stopLeftovers(t, c, daemon.Args{"workspace_id": workspace, "request_key": "k1"}, pids)
}

// stopLeftovers ends with one call what a command left running.
func stopLeftovers(t *testing.T, c *daemon.Client, named daemon.Args, pids map[string]int) {
	t.Helper()
	for range 2 { // harmless to repeat
		r := c.Must(t, "operation_cancel", named)
		if r.IsError || r.Structured["still_running"] != nil {
			t.Errorf("stop what is left: %s", r.Raw)
		}
	}
	for pid := range pids {
		if running(t, pid) {
			t.Errorf("process %s was to be stopped", pid)
		}
	}
}

// TestLeftoversOfACrash: a command outlives a daemon that was killed. After the restart its receipt says that it
// may have run and that it still does, and one call stops it.
func TestLeftoversOfACrash(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.begin(t)
	dir := realDir(t)
	args := daemon.Args{"workspace_id": c.Open(t, dir), "request_key": "k1", "wait_seconds": 1,
		"command": "seq 3000; trap '' TERM; (echo $BASHPID >> pids; while :; do sleep 0.3; done) & echo $$ >> pids; while :; do sleep 0.3; done"}
	if r := c.OK(t, "bash", args); r.String("status") != "running" { // so its process group is recorded
		t.Fatalf("the command: %s", r.Raw)
	}
	pids := lines(t, filepath.Join(dir, "pids"))
	t.Cleanup(func() {
		for pid := range pids {
			kill(t, pid)
		}
	})
	if len(pids) != 2 {
		t.Fatalf("pids: %v", pids)
	}
	h.kill(t)
	h.daemon.Revive(t)
	r := c.Fails(t, "OUTCOME_UNCERTAIN", "bash", args)
	left, _ := r.Structured["still_running"].([]any)
	group, _ := r.Structured["process_group"].(float64)
	if len(left) < len(pids) || pids[strconv.Itoa(int(group))] != 1 || r.Structured["process_group_alive"] != true || !strings.Contains(r.Text(), "still running") {
		t.Errorf("the receipt does not tell of what still runs: %s", r.Raw)
	}
	output := r.String("full_output_path")
	if printed := lines(t, output); output == "" || !strings.Contains(r.Text(), output) || printed["1"] != 1 || printed["3000"] != 1 {
		t.Errorf("the receipt does not tell where the output is (%d lines in %q): %s", len(printed), output, r.Raw)
	}
	stopLeftovers(t, c, daemon.Args{"workspace_id": args["workspace_id"], "request_key": "k1"}, pids)
	if r := c.Fails(t, "OUTCOME_UNCERTAIN", "bash", args); !r.Replayed() || r.Structured["still_running"] != nil || r.Structured["process_group_alive"] != false {
		t.Errorf("after that: %s", r.Raw)
	}
}

// TestLeftoversNobodyNoted: the daemon dies in the moment in which it has started a command, before it could note
// its process group. What runs is found all the same, and no longer told of when it has ended by itself.
func TestLeftoversNobodyNoted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	dir := realDir(t)
	workspace := h.begin(t).Open(t, dir)
	h.kill(t)
	args := daemon.Args{"workspace_id": workspace, "request_key": "k1", "command": "echo $$ > pid; while [ ! -e over ]; do sleep 0.05; done"}
	c := h.begin(t, "RIG_BRIDGE_FAILPOINT="+failpoint.CommandStarted)
	if r, err := c.Call(t.Context(), "bash", args); err == nil {
		t.Fatalf("the daemon did not die: %s", r.Raw)
	}
	h.dies(t)
	eventually(t, "the orphaned command runs", func() bool { return len(lines(t, filepath.Join(dir, "pid"))) == 1 })
	c = h.begin(t)
	r := c.Fails(t, "OUTCOME_UNCERTAIN", "bash", args)
	group, _ := r.Structured["process_group"].(float64)
	if lines(t, filepath.Join(dir, "pid"))[strconv.Itoa(int(group))] != 1 || r.Structured["process_group_alive"] != true || r.Structured["full_output_path"] != nil {
		t.Errorf("the receipt does not tell of what still runs: %s", r.Raw)
	}
	put(t, filepath.Join(dir, "over"), "")
	eventually(t, "the receipt tells of nothing that runs", func() bool {
		return len(operation(t, h, r.String("operation_id")).Status.Leftovers) == 0
	})
	if r := c.Fails(t, "OUTCOME_UNCERTAIN", "bash", args); r.Structured["still_running"] != nil || r.Structured["process_group_alive"] != false {
		t.Errorf("after its end: %s", r.Raw)
	}
}

// receipt is what the API shows of an operation.
type receipt struct {
	Status struct {
		Leftovers []process `json:"leftovers"`
	} `json:"status"`
}

type process struct {
	PID       int    `json:"pid"`
	StartTime string `json:"startTime"`
	Command   string `json:"command"`
}

// operation reads an operation over the API.
func operation(t testing.TB, h *house, name string) (r receipt) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.daemon.Base()+"/apis/rigbridge.dev/v1alpha1/namespaces/default/operations/"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", h.daemon.Authorization())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("read operation %s: HTTP %d, %v", name, resp.StatusCode, err)
	}
	return r
}

func kill(t testing.TB, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		t.Fatalf("pid %q", pid)
	}
	_ = syscall.Kill(n, syscall.SIGKILL) // gone already is fine
}

// TestF6Zombies: 500 short commands, some of which fork twice, leave no zombie to the daemon.
func TestF6Zombies(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	forkMuch(t, h.begin(t))
	eventually(t, "no child of the daemon is a zombie", func() bool { return len(zombies(t, h.daemon.Pid())) == 0 })
}

// TestF6ZombiesOfProcessOne is the same for a daemon that is process 1 of a container, to which all orphans go.
func TestF6ZombiesOfProcessOne(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare of util-linux")
	}
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(realDir(t), "process-one")
	put(t, script, "#!/bin/sh\nexec "+unshare+" --user --map-root-user --pid --fork --kill-child --mount-proc "+binary+" \"$@\"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	h.daemon = daemon.Start(t, daemon.Options{Binary: script, StateDir: h.state, Home: h.home})
	t.Cleanup(func() { h.kill(t) }) // unshare passes no gentler signal on
	c := h.daemon.Client()
	one := c.OK(t, "bash", daemon.Args{"workspace_id": c.Open(t, realDir(t)), "request_key": "k1", "command": "echo $PPID"})
	if one.Text() != "1\n" {
		t.Fatalf("the daemon is not process 1 but %s", one.Text())
	}
	forkMuch(t, c)
	eventually(t, "no child of the daemon is a zombie", func() bool {
		for _, pid := range children(t, h.daemon.Pid()) {
			if len(zombies(t, pid)) > 0 {
				return false
			}
		}
		return true
	})
}

// forkMuch runs short commands, of which some leave children to whoever takes orphans.
func forkMuch(t *testing.T, c *daemon.Client) {
	t.Helper()
	workspace := c.Open(t, realDir(t))
	commands := length(80, 200, 500)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := w; n < commands; n += 8 {
				command := []string{"true", "(true &) ; (setsid true &)", "(sleep 0.05 >/dev/null 2>&1 &)"}[n%3]
				r, err := c.Call(bounded(t, time.Minute), "bash", daemon.Args{"workspace_id": workspace, "request_key": fmt.Sprint("k", n), "command": command})
				if err != nil || r.IsError {
					t.Errorf("%s: %v %s", command, err, r.Raw)
				}
			}
		})
	}
	wg.Wait()
}

// children are the processes whose parent is the given one.
func children(t testing.TB, parent int) (pids []int) {
	t.Helper()
	for pid, s := range processes(t) {
		if s[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processes are all processes with the fields of stat.
func processes(t testing.TB) map[int][]string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int][]string{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s := stat(e.Name()); len(s) > 1 {
				all[pid] = s
			}
		}
	}
	return all
}

// zombies are the dead children that a process has not collected.
func zombies(t testing.TB, parent int) (pids []int) {
	t.Helper()
	for pid, s := range processes(t) {
		if s[0] == "Z" && s[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestN1KillAndStart kills the daemon and starts it at once, again and again.
func TestN1KillAndStart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.begin(t)
	dir := realDir(t)
	workspace := c.Open(t, dir)
	for n := range length(20, 20, 50) {
		c.OK(t, "bash", daemon.Args{"workspace_id": workspace, "request_key": fmt.Sprint("k", n), "command": "echo x >> log"})
		h.kill(t)
		h.daemon.Revive(t)
		if r := c.OK(t, "bash", daemon.Args{"workspace_id": workspace, "request_key": fmt.Sprint("k", n), "command": "echo x >> log"}); !r.Replayed() {
			t.Errorf("start %d: %s", n, r.Raw)
		}
		if got := lines(t, filepath.Join(dir, "log"))["x"]; got != n+1 {
			t.Fatalf("%d effects after %d commands", got, n+1)
		}
	}
}

// TestN5PidOfSomebodyElse: files of an earlier life name the process of another program by now. The daemon starts,
// and nothing it does on the way touches that process.
func TestN5PidOfSomebodyElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	c := h.begin(t)
	dir := realDir(t)
	workspace := c.Open(t, dir)
	sleeper := sleep(t)
	held := make(chan struct{})
	go func() { // its group is recorded, and its number is not the sleeper's
		defer close(held)
		_, _ = c.Call(context.Background(), "bash", daemon.Args{"workspace_id": workspace, "request_key": "k1", "command": "touch runs; sleep 1"})
	}()
	eventually(t, "the command runs", func() bool { return exists(filepath.Join(dir, "runs")) })
	h.kill(t)
	<-held
	pid := strconv.Itoa(sleeper)
	put(t, filepath.Join(h.state, "endpoint.json"), `{"url":"http://127.0.0.1:1/mcp","tokenFile":"`+filepath.Join(h.state, "http-token")+`","pid":`+pid+`}`)
	put(t, filepath.Join(h.state, "store", "LOCK"), pid+"\n")
	put(t, filepath.Join(h.state, "rig-bridge.pid"), pid+"\n")
	h.daemon.Revive(t)
	c.OK(t, "bash", daemon.Args{"workspace_id": workspace, "request_key": "k2", "command": "true"})
	c.OK(t, "workspace_close", daemon.Args{"workspace_id": workspace})
	if code, err := h.daemon.Stop(); err != nil || code != 0 {
		t.Errorf("stop: %d, %v", code, err)
	}
	if !running(t, pid) {
		t.Error("the other program was ended")
	}
}

// sleep starts a harmless process in a group of its own.
func sleep(t testing.TB) int {
	t.Helper()
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}}
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "600"}, attr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill() // it may have been ended by what is under test
		_, _ = p.Wait()
	})
	return p.Pid
}
