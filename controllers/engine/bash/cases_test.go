package bash_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// slack is what a busy machine may add to a time that is asserted.
const slack = 3 * time.Second

func testEnv(t *testing.T) engine.Env {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := engine.Env{Cwd: filepath.Join(dir, "cwd"), Home: filepath.Join(dir, "home"), OutputDir: filepath.Join(dir, "out")}
	for _, d := range []string{env.Cwd, env.Home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env.Environ = append(os.Environ(), "HOME="+env.Home)
	return env
}

func start(t *testing.T, env engine.Env, command string, timeout time.Duration) *bash.Command {
	t.Helper()
	cmd, err := bash.Start(env, bash.Args{Command: command, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopFamily(t, cmd) })
	return cmd
}

func run(t *testing.T, env engine.Env, command string, timeout time.Duration) *bash.Outcome {
	t.Helper()
	cmd := start(t, env, command, timeout)
	<-cmd.Done()
	return cmd.Outcome()
}

func wantExit(t *testing.T, o *bash.Outcome, code int) {
	t.Helper()
	if o.ExitCode == nil || *o.ExitCode != code || (o.Err == nil) != (code == 0) {
		t.Errorf("exit code %v, error %v, want exit code %d; text: %q", o.ExitCode, o.Err, code, o.Result.Text)
	}
}

func wantGone(t *testing.T, cmd *bash.Command) {
	t.Helper()
	if left, alive := process.Group(cmd.PGID(), cmd.StartTime()); alive {
		t.Errorf("still running: %+v", left)
	}
}

// eventually waits for a state of the world that has no event.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5*time.Second + slack); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestD1ChattyBackgroundChild(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	cmd := start(t, env, "(while true; do echo t; sleep .2; done) & sleep 1; echo FG", 60*time.Second)
	<-cmd.Done()
	o := cmd.Outcome()
	wantExit(t, o, 0)
	if o.Elapsed > 1*time.Second+2*time.Second+slack {
		t.Errorf("took %v; the shell ended after 1 s", o.Elapsed)
	}
	if !strings.Contains(o.Result.Text, "FG\n") || !strings.Contains(o.Result.Text, "[Still running: pid ") {
		t.Errorf("text: %q", o.Result.Text)
	}
	if len(o.Leftovers) == 0 {
		t.Fatal("no leftovers")
	}
	before := cmd.Output().Discarded()
	eventually(t, "the child writes on and does not die of a closed pipe", func() bool { return cmd.Output().Discarded() >= before+4 })
	if !process.Alive(cmd.PGID(), cmd.StartTime()) {
		t.Error("the child died")
	}
	if err := process.Stop(context.Background(), cmd.PGID(), cmd.StartTime()); err != nil {
		t.Error(err)
	}
	wantGone(t, cmd)
}

func TestD3TimeoutReachesTheWholeGroup(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "mkfifo f; (while :; do echo x; sleep .1; done > f) & cat f", 2*time.Second)
	<-cmd.Done()
	o := cmd.Outcome()
	if !o.TimedOut || o.Err == nil || o.Err.Reason != engine.TimedOut || o.ExitCode != nil {
		t.Errorf("outcome: %+v", o)
	}
	if o.Elapsed < 2*time.Second || o.Elapsed > 3*time.Second+slack {
		t.Errorf("took %v, the timeout was 2 s", o.Elapsed)
	}
	if !strings.HasSuffix(o.Result.Text, "x\n\n\nCommand timed out after 2 seconds") {
		t.Errorf("text: %q", o.Result.Text)
	}
	wantGone(t, cmd)
}

func TestD5NoEditorOpens(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	env.Environ = append(env.Environ, "EDITOR=vi", "VISUAL=vi", "GIT_EDITOR=vi", "GIT_CONFIG_GLOBAL=/dev/null")
	setup := run(t, env, `git init -q . && git config user.name n && git config user.email e@example.org && git config core.editor vi &&
echo a > f && git add f && git commit -qm one && git checkout -qb side && echo b > f && git commit -qam two &&
git checkout -q - && echo c > f && git commit -qam three && git checkout -q side && ! git rebase @{-1} && echo d > f && git add f`, time.Minute)
	wantExit(t, setup, 0)
	o := run(t, env, "git rebase --continue", 30*time.Second)
	wantExit(t, o, 0)
	if len(o.Leftovers) > 0 {
		t.Errorf("leftovers: %+v", o.Leftovers)
	}
	o = run(t, env, "git log --format=%s; (git commit --allow-empty < /dev/tty) 2>&1; exec 2>&1; test -t 0 || echo no terminal", 30*time.Second)
	if !strings.HasPrefix(o.Result.Text, "two\nthree\none\n") || !strings.Contains(o.Result.Text, "no terminal") {
		t.Errorf("text: %q", o.Result.Text)
	}
}

func TestD13StandardInputIsAtItsEnd(t *testing.T) {
	t.Parallel()
	o := run(t, testEnv(t), "python3 -c 'import sys; print(len(sys.stdin.read()))'; cat; read -r x || echo end", 30*time.Second)
	if o.Result.Text != "0\nend\n" {
		t.Errorf("text: %q", o.Result.Text)
	}
}

func TestE5KillAfterGrace(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "trap '' TERM; (while :; do sleep 1; done) & (exec sleep 60) & echo up; while :; do sleep 1; done", time.Second)
	<-cmd.Done()
	o := cmd.Outcome()
	if !o.TimedOut || o.Signal != "SIGKILL" || len(o.Leftovers) > 0 {
		t.Errorf("outcome: %+v", o)
	}
	if least := time.Second + process.Grace; o.Elapsed < least || o.Elapsed > least+slack {
		t.Errorf("took %v, want about %v", o.Elapsed, least)
	}
	if o.Result.Text != "up\n\n\nCommand timed out after 1 seconds" {
		t.Errorf("text: %q", o.Result.Text)
	}
	wantGone(t, cmd)
}

// TestTermTrapRuns is CONTRACT C12: a command may clean up.
func TestTermTrapRuns(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "trap 'echo cleaned; exit 0' TERM; echo up; sleep 30 & wait", 0)
	if err := cmd.Output().Wait(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	cmd.Cancel(bash.Cancelled)
	cmd.Cancel(bash.Shutdown)
	<-cmd.Done()
	o := cmd.Outcome()
	if o.Cancelled != bash.Cancelled || o.TimedOut || o.Signal != "" || o.ExitCode != nil || o.Err.Reason != engine.Cancelled {
		t.Errorf("outcome: %+v", o)
	}
	if o.Result.Text != "up\ncleaned\n\n\nCommand aborted" {
		t.Errorf("text: %q", o.Result.Text)
	}
	if o.Elapsed > process.Grace+slack {
		t.Errorf("took %v", o.Elapsed)
	}
}

// TestStoppedProcessesEnd: a stopped process acts on SIGTERM only when it is continued.
func TestStoppedProcessesEnd(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "trap 'echo cleaned; exit' TERM; echo up; kill -STOP $$", 0)
	cmd.Output().Wait(context.Background(), 0) //nolint:errcheck // no deadline
	eventually(t, "the shell is stopped", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.PGID()))
		return strings.Contains(string(b), ") T ")
	})
	cmd.Cancel(bash.Closed)
	<-cmd.Done()
	if text := cmd.Outcome().Result.Text; text != "up\ncleaned\n\n\nCommand aborted" {
		t.Errorf("text: %q", text)
	}
}

func TestE8QuickFailureKeepsItsMessage(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	for i := range 20 {
		o := run(t, env, "python3 -c 'import no_such_module'", 30*time.Second)
		wantExit(t, o, 1)
		if !strings.Contains(o.Result.Text, "No module named 'no_such_module'") {
			t.Fatalf("run %d: %q", i, o.Result.Text)
		}
	}
}

var stillRunning = regexp.MustCompile(`\n\n\[Still running: (pid \d+ \([^)]+\), \d+ s(?:; )?)+\. Stop with bash: kill --( -\d+)+\]$`)

func TestE10DetachedChildrenAreNamed(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	if err := os.WriteFile(filepath.Join(env.Cwd, "worker"), []byte("#!/bin/sh\necho here >> begun\nsleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, env, "touch begun; nohup ./worker >log 2>&1 & nohup ./worker >log 2>&1 & until [ $(wc -l < begun) = 2 ]; do sleep 0.01; done", time.Minute)
	<-cmd.Done()
	o := cmd.Outcome()
	wantExit(t, o, 0)
	workers := 0
	for _, p := range o.Leftovers {
		if p.PGID != cmd.PGID() || p.SID != cmd.PGID() || p.StartTime == "" || p.Age < 0 || p.Age > slack {
			t.Errorf("leftover: %+v", p)
		}
		if p.Command == "worker" && p.PPID == os.Getpid() { // not one about to run sleep
			workers++
		}
		if !strings.Contains(o.Result.Text, fmt.Sprintf("pid %d (%s)", p.PID, p.Command)) {
			t.Errorf("not named: %+v", p)
		}
	}
	if workers != 2 || !strings.HasPrefix(o.Result.Text, "(no output)\n\n[Still running") || !stillRunning.MatchString(o.Result.Text) {
		t.Errorf("%d workers; text: %q", workers, o.Result.Text)
	}
	hint := regexp.MustCompile(`kill -- [-0-9 ]+`).FindString(o.Result.Text)
	wantExit(t, run(t, env, hint, time.Minute), 0)
	eventually(t, "the hint stops them", func() bool { return !process.Alive(cmd.PGID(), cmd.StartTime()) })
}

// TestE10Escapees: children that leave the session and the group, with and without their pipe, are named too.
func TestE10Escapees(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "(setsid sleep 61 >/dev/null 2>&1 &); set -m; sleep 62 >/dev/null 2>&1 & echo x", time.Minute)
	<-cmd.Done()
	o := cmd.Outcome()
	if len(o.Leftovers) != 2 {
		t.Errorf("leftovers: %+v; text: %q", o.Leftovers, o.Result.Text)
	}
	cmd.Cancel(bash.Closed)
	eventually(t, "Cancel after Done stops them", func() bool { return !process.Alive(cmd.PGID(), cmd.StartTime()) })
	if o := cmd.Outcome(); o.Cancelled != "" || o.Err != nil {
		t.Errorf("the outcome changed: %+v", o)
	}
}

func TestF1TenLoops(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "for i in 1 2 3 4 5 6 7 8 9 10; do while :; do sleep .05; done & done", time.Minute)
	<-cmd.Done()
	shells := func(list []process.Info) (n int) {
		for _, p := range list {
			if p.Command == "bash" && p.PPID == os.Getpid() { // adopted; not one about to run sleep
				n++
			}
		}
		return n
	}
	if n := shells(cmd.Outcome().Leftovers); n != 10 {
		t.Errorf("%d loops listed: %+v", n, cmd.Outcome().Leftovers)
	}
	left, _ := process.Group(cmd.PGID(), cmd.StartTime())
	if shells(left) != 10 || left[0].Age <= 0 {
		t.Errorf("found later: %+v", left)
	}
	if err := process.Stop(context.Background(), cmd.PGID(), cmd.StartTime()); err != nil {
		t.Error(err)
	}
	wantGone(t, cmd)
}

func TestG1TheEndIsShown(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	cmd, err := bash.Start(env, bash.Args{ID: "call", Command: "seq 1 20000; echo 'ERROR last'; exit 1", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	<-cmd.Done()
	o := cmd.Outcome()
	wantExit(t, o, 1)
	want := regexp.MustCompile(`\n20000\nERROR last\n\n\[Showing lines 18002-20001 of 20001\. Full output: (/\S+)\]\n\nCommand exited with code 1$`)
	m := want.FindStringSubmatch(o.Result.Text)
	if m == nil || m[1] != o.FullOutputPath || m[1] != bash.FullOutputPath(env.OutputDir, "call") {
		t.Fatalf("text ends with %q", o.Result.Text[max(0, len(o.Result.Text)-300):])
	}
	if !strings.HasPrefix(o.HeadText, "1\n2\n3\n") || len(o.HeadText) != bash.HeadBytes {
		t.Errorf("head: %d bytes, %q", len(o.HeadText), o.HeadText[:min(20, len(o.HeadText))])
	}
	b, err := os.ReadFile(o.FullOutputPath)
	if err != nil || strings.Count(string(b), "\n") != 20001 {
		t.Errorf("full output: %v, %d lines", err, strings.Count(string(b), "\n"))
	}
}

// TestG4TalkativeCommand runs alone: it measures the memory of the process.
func TestG4TalkativeCommand(t *testing.T) {
	env := testEnv(t)
	before := heap()
	cmd := start(t, env, "timeout 2 yes; echo code $?", time.Minute)
	worst, answers := time.Duration(0), 0
	var peak uint64
	for cmd.Outcome() == nil {
		began := time.Now()
		if o := run(t, env, "echo other", time.Minute); o.Result.Text != "other\n" {
			t.Errorf("other call: %q", o.Result.Text)
		}
		worst, answers, peak = max(worst, time.Since(began)), answers+1, max(peak, heap())
	}
	o := cmd.Outcome()
	wantExit(t, o, 0)
	size, _ := cmd.Output().Size()
	if !strings.Contains(o.Result.Text, "\ncode 124\n") {
		t.Errorf("text ends with %q", o.Result.Text[len(o.Result.Text)-200:])
	}
	if grown := int64(peak) - int64(before); grown > 64<<20 {
		t.Errorf("the process grew by %d MiB", grown>>20)
	}
	if worst > slack {
		t.Errorf("another call took %v", worst)
	}
	t.Logf("%d MiB read, heap grew by %d KiB, %d other calls, the slowest %v", size>>20, (int64(peak)-int64(before))>>10, answers, worst)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func TestG6SingleBytesDoNotStarveTheTimeout(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), `perl -e 'while (1) { syswrite(STDOUT, "x") }'`, 2*time.Second)
	<-cmd.Done()
	o := cmd.Outcome()
	if !o.TimedOut || o.Elapsed < 2*time.Second || o.Elapsed > 3*time.Second+slack {
		t.Errorf("timed out %v after %v", o.TimedOut, o.Elapsed)
	}
	wantGone(t, cmd)
}

func TestG7SplitCharacters(t *testing.T) {
	t.Parallel()
	const script = `perl -e 'binmode STDOUT; binmode STDERR; srand(7);
sub out { my ($h, $s) = @_; my $i = 0; while ($i < length $s) { my $n = 1 + int rand 50; syswrite($h, substr($s, $i, $n)); $i += $n; } }
my $s = "\xe4\xbd\xa0" x 50000;
if (fork) { out(\*STDOUT, $s); wait } else { out(\*STDERR, $s) }'`
	cmd := start(t, testEnv(t), script, time.Minute)
	<-cmd.Done()
	o := cmd.Outcome()
	wantExit(t, o, 0)
	size, lines := cmd.Output().Size()
	if size != 2*3*50000 || lines != 1 {
		t.Errorf("%d bytes in %d lines, want %d in 1", size, lines, 2*3*50000)
	}
	if strings.Contains(o.Result.Text+o.HeadText, "\uFFFD") {
		t.Error("a character was split")
	}
	if st, err := os.Stat(o.FullOutputPath); err != nil || st.Size() != size {
		t.Errorf("full output: %v", err)
	}
}

func TestO4LongCommands(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	descriptors := strings.TrimSpace(run(t, env, "echo $(ls /proc/self/fd | wc -l)", time.Minute).Result.Text)
	body := strings.Repeat("0123456789abcde\n", 150*1024/16)
	o := run(t, env, "cat > f <<'EOF'\n"+body+"EOF\nwc -c < f; echo $0 $#; [ $(ls /proc/self/fd | wc -l) = "+descriptors+" ]; echo $?; cat; nosuch", time.Minute)
	wantExit(t, o, 127)
	line := strings.Count(body, "\n") + 3
	if want := fmt.Sprintf("%d\n/bin/bash 0\n0\n/bin/bash: line %d: nosuch: command not found\n\n\nCommand exited with code 127", len(body), line); o.Result.Text != want {
		t.Errorf("text: %q\nwant: %q", o.Result.Text, want)
	}
	longest := "echo " + strings.Repeat("\U0001F600", 199_990) + " | wc -m; kill -INT $$"
	o = run(t, env, longest, time.Minute)
	if o.Signal != "SIGINT" || o.Result.Text != "199991\n\n\nCommand killed by signal SIGINT" {
		t.Errorf("signal %q, text: %q", o.Signal, o.Result.Text)
	}
	for _, n := range []int{128<<10 - 1, 128 << 10} { // the last argument that fits and the first that does not
		prefix := "echo ok; : "
		wantExit(t, run(t, env, prefix+strings.Repeat("x", n-len(prefix)), time.Minute), 0)
	}
}

// TestQ1HugeOutput runs alone: it measures the processor time of the process.
func TestQ1HugeOutput(t *testing.T) {
	env := testEnv(t)
	before := cpu(t)
	cmd := start(t, env, "yes abcdefghij | head -c 200000000", time.Minute)
	run(t, env, "ls", time.Minute)
	<-cmd.Done()
	spent := cpu(t) - before
	o := cmd.Outcome()
	wantExit(t, o, 0)
	size, lines := cmd.Output().Size()
	if size != 200_000_000 || lines != 200_000_000/11+1 {
		t.Errorf("%d bytes, %d lines", size, lines)
	}
	if st, err := os.Stat(o.FullOutputPath); err != nil || st.Size() != size {
		t.Errorf("full output: %v", err)
	}
	t.Logf("200 MB in %v, our processor time %v", o.Elapsed, spent)
	if spent > 10*time.Second {
		t.Errorf("processor time %v", spent)
	}
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestQ3BackgroundChildIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	o := run(t, testEnv(t), "sleep 17.31 &", time.Minute)
	wantExit(t, o, 0)
	if o.Elapsed > slack || len(o.Leftovers) != 1 || o.Leftovers[0].Command != "sleep" {
		t.Errorf("took %v, leftovers %+v", o.Elapsed, o.Leftovers)
	}
}

// TestQ3FloodingChild runs alone: a child that writes without pause must not keep us busy for ever.
func TestQ3FloodingChild(t *testing.T) {
	cmd := start(t, testEnv(t), "yes & echo hi", time.Minute)
	<-cmd.Done()
	o := cmd.Outcome()
	wantExit(t, o, 0)
	if o.Elapsed > time.Second+slack || len(o.Leftovers) != 1 {
		t.Errorf("took %v, leftovers %+v", o.Elapsed, o.Leftovers)
	}
	before, read := cpu(t), cmd.Output().Discarded()
	time.Sleep(time.Second)
	if spent := cpu(t) - before; spent > time.Second/3 {
		t.Errorf("draining costs %v a second", spent)
	}
	if cmd.Output().Discarded() == read {
		t.Error("nothing is drained")
	}
}

func TestQ12ExitCode(t *testing.T) {
	t.Parallel()
	o := run(t, testEnv(t), "echo hi; exit 3", time.Minute)
	wantExit(t, o, 3)
	if o.Result.Text != "hi\n\n\nCommand exited with code 3" || o.Err.Reason != engine.ExitedNonZero || !o.Err.EffectsMayHaveOccurred {
		t.Errorf("text %q, error %+v", o.Result.Text, o.Err)
	}
}

// TestC11OutputDoesNotDecide: texts of our own messages in the output change nothing.
func TestC11OutputDoesNotDecide(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"Command timed out after 1 seconds", "Command aborted"} {
		o := run(t, testEnv(t), "echo '"+says+"'; exit 28", time.Minute)
		wantExit(t, o, 28)
		if o.Err.Reason != engine.ExitedNonZero {
			t.Errorf("%s: reason %s", says, o.Err.Reason)
		}
	}
}

func TestCancelWinsOverTimeout(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "trap '' TERM; sleep 60", 500*time.Millisecond)
	time.Sleep(time.Second) // the timeout has come, the grace has not passed
	cmd.Cancel(bash.Shutdown)
	<-cmd.Done()
	o := cmd.Outcome()
	if o.Cancelled != bash.Shutdown || o.TimedOut || o.Result.Text != "Command aborted" {
		t.Errorf("outcome: %+v", o)
	}
}

// TestEnvironment: locale kept, editors and pagers harmless, the outer marker replaced.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	env.Environ = append(env.Environ, "EDITOR=vi", "PAGER=less", "LC_TIME=C.UTF-8", "PATH=/usr/bin:/bin", "PWD=/nowhere", process.MarkerVariable+"=outer")
	o := run(t, env, `echo "$EDITOR $GIT_EDITOR $PAGER $LC_TIME"; echo "$PATH"; echo "$PWD"; [ "$RIG_BRIDGE_OPERATION" != outer ] && echo own`, time.Minute)
	if want := "true true cat C.UTF-8\n" + env.Home + "/.pi/agent/bin:/usr/bin:/bin\n" + env.Cwd + "\nown\n"; o.Result.Text != want {
		t.Errorf("text: %q\nwant: %q", o.Result.Text, want)
	}
	o = run(t, env, `EDITOR=ed; export EDITOR; sh -c 'echo $EDITOR'`, time.Minute)
	if o.Result.Text != "ed\n" {
		t.Errorf("a command cannot choose its editor: %q", o.Result.Text)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	gone := env
	gone.Cwd = filepath.Join(env.Cwd, "gone")
	for _, c := range []struct {
		name   string
		env    engine.Env
		args   bash.Args
		reason engine.Reason
		text   string
	}{
		{"directory", gone, bash.Args{Command: "true"}, engine.SpawnFailed, "Working directory does not exist: " + gone.Cwd + "\nCannot execute bash commands."},
		{"NUL", env, bash.Args{Command: "a\x00b"}, engine.SpawnFailed, "The command contains a NUL character. Remove it and try again."},
		{"timeout", env, bash.Args{Command: "true", Timeout: -1}, engine.InvalidTimeout, "Invalid timeout: must be a finite number of seconds"},
	} {
		_, err := bash.Start(c.env, c.args)
		if engine.ReasonOf(err) != c.reason || err.Error() != c.text {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestParseTimeout(t *testing.T) {
	t.Parallel()
	for seconds, text := range map[float64]string{1: "1", 10.0: "10", 1.5: "1.5", 3600: "3600", 0.001: "0.001", 2147483.647: "2147483.647"} {
		d, got, err := bash.ParseTimeout(seconds)
		if err != nil || got != text || d <= 0 || d > bash.MaxTimeout {
			t.Errorf("%v: %v, %q, %v", seconds, d, got, err)
		}
	}
}

// TestLiveOutput follows a command by its cursor.
func TestLiveOutput(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "for i in 1 2 3; do echo $i; sleep .1; done; printf 4", time.Minute)
	var all strings.Builder
	var cursor int64
	for {
		if err := cmd.Output().Wait(context.Background(), cursor); err != nil {
			t.Fatal(err)
		}
		text, next, missed := cmd.Output().Read(cursor, 1<<20)
		if text == "" {
			break // Wait returned because the command is over
		}
		all.WriteString(text)
		if missed != 0 || next != cursor+int64(len(text)) {
			t.Errorf("missed %d, cursor %d to %d", missed, cursor, next)
		}
		cursor = next
	}
	if all.String() != "1\n2\n3\n4" {
		t.Errorf("text: %q", all.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sleeper := start(t, testEnv(t), "sleep 60", time.Minute)
	if err := sleeper.Output().Wait(ctx, 0); err != context.Canceled {
		t.Errorf("Wait: %v", err)
	}
}

// TestNothingIsLeft runs alone: it counts the goroutines and descriptors of the process.
func TestNothingIsLeft(t *testing.T) {
	env := testEnv(t)
	run(t, env, "true", time.Minute)
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	for range 3 {
		run(t, env, "echo x", time.Minute)
		run(t, env, "sleep 60", 50*time.Millisecond)
		run(t, env, ": "+strings.Repeat("x", 200_000)+"; exit 2", time.Minute)
		cmd := start(t, env, "sleep 60 & yes &", time.Minute)
		<-cmd.Done()
		cmd.Cancel(bash.Closed)
	}
	eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "all descriptors are closed", func() bool { return descriptors(t) <= files })
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func BenchmarkTrue(b *testing.B) {
	dir := b.TempDir()
	env := engine.Env{Cwd: dir, Home: dir, OutputDir: dir}
	for b.Loop() {
		cmd, err := bash.Start(env, bash.Args{Command: "true", Timeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		<-cmd.Done()
	}
}

// BenchmarkBareForkExec is what BenchmarkTrue is measured against.
func BenchmarkBareForkExec(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		cmd := exec.Command("/bin/bash", "-c", "true")
		cmd.Dir = dir
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestStreamsKeepTheirOrder: what one program wrote after the other appears after it, however busy we are.
func TestStreamsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	for command, want := range map[string]string{
		"echo out; echo err >&2":                    "out\nerr\n",
		"echo err >&2; echo out":                    "err\nout\n",
		"echo out; cd /nope || true":                "out\n/bin/bash: line 1: cd: /nope: No such file or directory\n",
		"cd /nope || true; echo out":                "/bin/bash: line 1: cd: /nope: No such file or directory\nout\n",
		"seq 1 9000 | tail -n 1; echo err >&2":      "9000\nerr\n",
		"perl -e 'print STDERR \"e\"; print \"o\"'": "eo",
	} {
		for range 10 {
			if o := run(t, env, command, time.Minute); o.Result.Text != want {
				t.Errorf("%s: %q", command, o.Result.Text)
			}
		}
	}
}

// TestCancelWhileListening: the shell has ended and its child is listened to; the child is stopped at once and
// the outcome stands.
func TestCancelWhileListening(t *testing.T) {
	t.Parallel()
	cmd := start(t, testEnv(t), "(while :; do echo t; done) & exit 4", time.Minute)
	eventually(t, "the shell has ended", func() bool {
		left, _ := process.Group(cmd.PGID(), cmd.StartTime())
		return len(left) > 0 && left[0].PID != cmd.PGID()
	})
	cmd.Cancel(bash.Closed)
	<-cmd.Done()
	o := cmd.Outcome()
	wantExit(t, o, 4)
	if listened := o.Elapsed < time.Second; o.Cancelled != "" || listened && len(o.Leftovers) > 0 {
		t.Errorf("outcome: %+v", o)
	}
	eventually(t, "the child is gone", func() bool { return !process.Alive(cmd.PGID(), cmd.StartTime()) })
}
