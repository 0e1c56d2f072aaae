package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// succeeded checks that a command ended with code 0 and returns how long it took by its own account.
func (k *room) succeeded(r daemon.Result) time.Duration {
	k.Helper()
	if r.IsError || r.Structured["exit_code"] != 0.0 {
		k.Fatalf("%.500s", r.Raw)
	}
	elapsed, _ := r.Structured["elapsed_ms"].(float64)
	return time.Duration(elapsed) * time.Millisecond
}

// leftovers are the names of the processes that an answer says still run; they are stopped as it advises.
func (k *room) leftovers(r daemon.Result) (names []string) {
	k.Helper()
	running, _ := r.Structured["still_running"].([]any)
	for _, p := range running {
		fields, _ := p.(map[string]any)
		name, _ := fields["command"].(string)
		if fields["pid"] == nil || fields["age_seconds"] == nil || !strings.Contains(r.Text(), fmt.Sprintf("pid %v (%s)", fields["pid"], name)) {
			k.Errorf("%v is not told in %q", fields, r.Text())
		}
		names = append(names, name)
	}
	if advice := regexp.MustCompile(`Stop with bash: (kill -- -\d+)\]`).FindStringSubmatch(r.Text()); advice != nil {
		k.prints("(no output)", advice[1])
	}
	return names
}

func chattyBackgroundChild(k *room) {
	began := time.Now()
	r := k.bash("echo $$ > pid; (while true; do echo t; sleep .2; done) & sleep 1; echo FG", 60)
	k.within(3*time.Second, began)
	k.succeeded(r)
	if !strings.Contains(r.Text(), "FG\n") || len(k.leftovers(r)) == 0 {
		k.Errorf("%s", r.Raw)
	}
	k.gone(k.group())
}

func timeoutReachesTheGroup(k *room) {
	began := time.Now()
	r := k.bash("echo $$ > pid; mkfifo f; (while :; do echo x; sleep .1; done > f) & cat f", 2)
	k.within(3*time.Second, began)
	if took := time.Since(began); took < 2*time.Second || r.Code() != "COMMAND_TIMEOUT" || !strings.HasSuffix(r.Text(), "x\n\n\nCommand timed out after 2 seconds") {
		k.Errorf("after %v: %s", took, r.Raw)
	}
	k.gone(k.group())
}

func noEditorOpens(k *room) {
	k.succeeded(k.bash(`git init -q . && git config user.name n && git config user.email e@example.invalid && git config core.editor vi &&
echo a > f && git add f && git commit -qm one && git checkout -qb side && echo b > f && git commit -qam two &&
git checkout -q - && echo c > f && git commit -qam three && git checkout -q side && ! git rebase @{-1} && echo d > f && git add f`, 60))
	r := k.bash("git rebase --continue; git log --format=%s", 60)
	k.succeeded(r)
	if names := k.leftovers(r); len(names) > 0 || !strings.HasSuffix(r.Text(), "two\nthree\none\n") {
		k.Errorf("%q, still running: %v", r.Text(), names)
	}
}

func inputIsAtItsEnd(k *room) {
	k.prints("0\nend\n", `if command -v python3 > /dev/null; then python3 -c 'import sys; print(len(sys.stdin.read()))'; else wc -c; fi
cat; read -r x || echo end`)
}

func hungCommandBlocksNoRead(k *room) {
	k.put("a", "alpha\n")
	other := k.client.Open(k, k.dir)
	hung := make(chan daemon.Result, 1)
	go func() {
		r, err := k.client.Call(bounded(k, time.Minute), "bash", daemon.Args{"workspace_id": k.workspace, "request_key": daemon.Key(),
			"command": "touch hangs; while [ ! -e enough ]; do sleep 0.05; done; echo over"})
		if err != nil {
			k.Error(err)
		}
		hung <- r
	}()
	eventually(k, "the command runs", func() bool { return exists(k.path("hangs")) })
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			r, err := k.client.Call(bounded(k, 30*time.Second), "read", daemon.Args{"workspace_id": []string{k.workspace, other}[n%2], "path": "a"})
			if err != nil || r.Text() != "alpha\n" {
				k.Errorf("read: %v %s", err, r.Raw)
			}
		})
	}
	wg.Wait()
	k.put("enough", "")
	if r := <-hung; r.IsError || r.Text() != "over\n" {
		k.Errorf("the command: %s", r.Raw)
	}
}

func endOfTheOutputIsShown(k *room) {
	r := k.bash("seq 1 20000; echo 'ERROR last'; exit 1", 60)
	want := regexp.MustCompile(`\n20000\nERROR last\n\n\[Showing lines 18002-20001 of 20001\. Full output: (/\S+)\]\n\nCommand exited with code 1$`)
	m := want.FindStringSubmatch(r.Text())
	if !r.IsError || r.Structured["exit_code"] != 1.0 || m == nil {
		k.Fatalf("%.100s … %s", r.Raw, r.Raw[max(0, len(r.Raw)-500):])
	}
	if got := text(k, m[1]); strings.Count(got, "\n") != 20001 || !strings.HasPrefix(got, "1\n2\n") {
		k.Errorf("the full output has %d lines", strings.Count(got, "\n"))
	}
}

// meanwhile calls ls again and again while something runs and returns how much memory the daemon took more
// than before, in MB.
func meanwhile(k *room, run func()) (grown int) {
	k.Helper()
	before := residentMB(k, k.d.Pid())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	for calls := 0; ; calls++ {
		select {
		case <-done:
			if calls == 0 {
				k.Error("no other call was answered")
			}
			return grown
		default:
		}
		began := time.Now()
		k.ok("ls", nil)
		k.within(time.Second, began)
		grown = max(grown, residentMB(k, k.d.Pid())-before)
		time.Sleep(5 * time.Millisecond) // leaves the machine to what is measured
	}
}

func talkativeCommandIsBounded(k *room) {
	grown := meanwhile(k, func() {
		r, err := k.client.Call(bounded(k, time.Minute), "bash", daemon.Args{"workspace_id": k.workspace, "request_key": daemon.Key(), "command": "timeout 2 yes; echo code $?"})
		if err != nil || r.IsError || !strings.Contains(r.Text(), "\ncode 124\n") {
			k.Errorf("%v %.100s", err, r.Raw)
		}
	})
	if grown >= 64 {
		k.Errorf("resident memory grew by %d MB", grown)
	}
}

func singleBytes(k *room) {
	began := time.Now()
	r := k.bash(`echo $$ > pid; perl -e 'while (1) { syswrite(STDOUT, "x") }'`, 2)
	k.within(3*time.Second, began)
	if r.Code() != "COMMAND_TIMEOUT" {
		k.Errorf("%.300s", r.Raw)
	}
	k.gone(k.group())
}

func splitCharacters(k *room) {
	r := k.bash(`perl -e 'binmode STDOUT; binmode STDERR; srand(7);
sub out { my ($h, $s) = @_; my $i = 0; while ($i < length $s) { my $n = 1 + int rand 50; syswrite($h, substr($s, $i, $n)); $i += $n; } }
my $s = "\xe4\xbd\xa0" x 50000;
if (fork) { out(\*STDOUT, $s); wait } else { out(\*STDERR, $s) }'`, 60)
	k.succeeded(r)
	if strings.Contains(r.Text(), "\uFFFD") || strings.Contains(r.String("output_head"), "\uFFFD") {
		k.Error("a character was split")
	}
	if got := text(k, r.String("full_output_path")); len(got) != 2*3*50_000 {
		k.Errorf("%d bytes in all", len(got))
	}
}

// hugeOutputAndStop has a daemon of its own: it is stopped.
func hugeOutputAndStop(k *room) {
	d := daemon.Start(k, daemon.Options{})
	in := newRoomOn(k, d)
	grown := meanwhile(in, func() {
		r, err := in.client.Call(bounded(k, 2*time.Minute), "bash", daemon.Args{"workspace_id": in.workspace, "request_key": daemon.Key(),
			"command": "yes abcdefghij | head -c 200000000", "wait_seconds": 120})
		if err != nil || r.IsError || !strings.Contains(r.Text(), "of 18181819") {
			k.Errorf("%v %.300s", err, r.Raw)
		}
	})
	if grown >= 64 {
		k.Errorf("resident memory grew by %d MB", grown)
	}
	began := time.Now()
	in.ok("ls", nil)
	in.within(time.Second, began)
	if code, err := d.Stop(); code != 0 || err != nil {
		k.Errorf("stop: code %d, %v", code, err)
	}
}

// newRoomOn is a room on another daemon, in the same directory; the workspace ends with the daemon.
func newRoomOn(k *room, d *daemon.Daemon) *room {
	c := d.Client()
	return &room{T: k.T, d: d, client: c, dir: k.dir, workspace: c.Open(k, k.dir)}
}

func backgroundChildren(k *room) {
	for command, name := range map[string]string{"sleep 37.31 &": "sleep", "yes & echo hi": "yes"} {
		began := time.Now()
		r := k.bash(command, 60)
		k.within(3*time.Second, began)
		k.succeeded(r)
		if names := k.leftovers(r); len(names) != 1 || names[0] != name {
			k.Errorf("%s: still running %v", command, names)
		}
	}
}

func exitCode(k *room) {
	r := k.bash("echo hi; exit 3", 60)
	if !r.IsError || r.Code() != "COMMAND_FAILED" || r.Text() != "hi\n\n\nCommand exited with code 3" || r.Structured["exit_code"] != 3.0 {
		k.Errorf("%s", r.Raw)
	}
}

// pipe is a server over standard input and output.
type pipe struct {
	k   *room
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	ids int
}

func (k *room) stdio() *pipe {
	k.Helper()
	p := &pipe{k: k, cmd: exec.CommandContext(bounded(k, time.Minute), k.d.Binary(), "stdio", "--state-dir", k.d.StateDir())}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		k.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		k.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		k.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	p.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "e2e", "version": "1"}})
	return p
}

// request sends a request and returns the result that carries its id.
func (p *pipe) request(method string, params any) (result json.RawMessage) {
	p.k.Helper()
	p.ids++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.ids, "method": method, "params": params})
	if err != nil {
		p.k.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.k.Fatal(err)
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			p.k.Fatalf("%s is not answered: %v", method, err)
		}
		var m struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			p.k.Fatalf("%q is no message: %v", line, err)
		}
		if m.ID == nil || *m.ID != p.ids {
			continue
		}
		if m.Error != nil {
			p.k.Fatalf("%s: %s", method, m.Error)
		}
		return m.Result
	}
}

// call calls a tool in the room's workspace.
func (p *pipe) call(tool string, args daemon.Args) (r daemon.Result) {
	p.k.Helper()
	raw := p.request("tools/call", map[string]any{"name": tool, "arguments": copyArgs(args, daemon.Args{"workspace_id": p.k.workspace})})
	if err := json.Unmarshal(raw, &r); err != nil {
		p.k.Fatal(err)
	}
	return r
}

// closed closes standard input; the process must end by itself, without complaint.
func (p *pipe) closed() {
	p.k.Helper()
	began := time.Now()
	if err := p.in.Close(); err != nil {
		p.k.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.k.Errorf("stdio ended with %v", err)
	}
	p.k.within(5*time.Second, began)
}

func commandCannotReadTheStream(k *room) {
	p := k.stdio()
	if r := p.call("bash", daemon.Args{"request_key": daemon.Key(), "command": "cat"}); r.IsError || r.Text() != "(no output)" {
		k.Errorf("cat: %s", r.Text())
	}
	k.put("f", "x\n")
	if r := p.call("ls", nil); r.IsError || r.Text() != "f" {
		k.Errorf("ls: %s", r.Text())
	}
	p.closed()
}

func pipeOverStdio(k *room) {
	if err := syscall.Mkfifo(filepath.Join(k.dir, "pipe"), 0o644); err != nil {
		k.Fatal(err)
	}
	p := k.stdio()
	if r := p.call("read", daemon.Args{"path": "pipe"}); !r.IsError || r.Code() != "UNSUPPORTED_FILE" {
		k.Errorf("%s", r.Text())
	}
	p.closed()
}
