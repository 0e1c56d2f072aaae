package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sleeper starts a family of one process that is reaped at the end of the test.
func sleeper(t *testing.T, name string, arg ...string) *Family {
	t.Helper()
	cmd := exec.Command(name, arg...)
	f, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		f.Await()
		f.Reap() //nolint:errcheck // how it ended does not matter
		close(ended)
	}()
	t.Cleanup(func() {
		if err := f.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return f
}

// forget makes Group and Stop see the family as a later daemon would.
func forget(f *Family) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	delete(registry.byStart, f.StartTime())
}

// TestWrongIdentityMatchesNothing is case N5 for process groups: a number alone never gets a signal.
func TestWrongIdentityMatchesNothing(t *testing.T) {
	f := sleeper(t, "sleep", "60")
	forget(f)
	right := f.StartTime()
	other := f.id
	other.boot = "another"
	rebooted := other.String()
	other = f.id
	other.began--
	other.marker = newMarker()
	reused := other.String()
	for name, start := range map[string]string{"another boot": rebooted, "number reused": reused, "empty": "", "garbage": "a:b:c:d"} {
		if list, alive := Group(f.PGID(), start); alive || len(list) > 0 {
			t.Errorf("%s: %+v", name, list)
		}
		if err := Stop(context.Background(), f.PGID(), start); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, alive := Group(f.PGID(), right); !alive || len(list) != 1 || list[0].PID != f.PGID() {
		t.Errorf("the sleeper was hit: %+v", list)
	}
	if len(right) > 96 {
		t.Errorf("%d bytes: %s", len(right), right)
	}
}

// TestLeaderlessGroupNeedsItsMarker: without its leader and without a mark a group may be somebody else's.
func TestLeaderlessGroupNeedsItsMarker(t *testing.T) {
	for command, want := range map[string]int{"sleep 60 &": 1, "exec env -i sleep 60 &": 0} {
		cmd := exec.Command("sh", "-c", command)
		f, err := Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		f.Await()
		if _, err := f.Reap(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(5 * time.Second)
		for len(f.Survivors()) != 1 || f.Survivors()[0].Command != "sleep" {
			if time.Now().After(deadline) {
				t.Fatalf("%s: survivors %+v", command, f.Survivors())
			}
			time.Sleep(time.Millisecond)
		}
		if list, _ := Group(f.PGID(), f.StartTime()); len(list) != 1 {
			t.Errorf("%s: this daemon knows its own: %+v", command, list)
		}
		forget(f)
		if list, _ := Group(f.PGID(), f.StartTime()); len(list) != want {
			t.Errorf("%s: a later daemon finds %+v, want %d", command, list, want)
		}
		if err := f.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestDescendants(t *testing.T) {
	f := sleeper(t, "sh", "-c", "setsid sh -c 'env -i sleep 60; true' & wait")
	deadline := time.Now().Add(5 * time.Second)
	names := ""
	for want := "sh sh sleep"; names != want; time.Sleep(time.Millisecond) {
		names = ""
		for _, p := range Descendants(f.id.marker) {
			names = strings.TrimSpace(names + " " + p.Command)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q, want %q", names, want)
		}
	}
	if list := Descendants(""); len(list) > 0 {
		t.Errorf("no marker: %+v", list)
	}
	pgid, start, list := Marked(f.id.marker)
	if pgid != f.PGID() || len(list) != 3 {
		t.Errorf("by the marker alone: group %d of %+v", pgid, list)
	}
	forget(f) // as a later daemon, which has only that
	if list, _ := Group(pgid, start); len(list) != 3 {
		t.Errorf("the marked family: %+v", list)
	}
	if !Exists(list[0].PID, list[0].StartTime) || Exists(list[0].PID, "") || Exists(1<<30, list[0].StartTime) {
		t.Errorf("which of them exist")
	}
	if err := Stop(t.Context(), pgid, start); err != nil {
		t.Error(err)
	}
	if Exists(list[2].PID, list[2].StartTime) {
		t.Errorf("%+v was stopped", list[2])
	}
	if pgid, _, list := Marked(f.id.marker); pgid != 0 || len(list) > 0 {
		t.Errorf("after its end: group %d of %+v", pgid, list)
	}
	if list := Descendants(newMarker()); len(list) > 0 {
		t.Errorf("nobody's marker: %+v", list)
	}
}

func TestStopHonoursTheContext(t *testing.T) {
	f := sleeper(t, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	time.Sleep(100 * time.Millisecond) // let it set the trap
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := f.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error: %v", err)
	}
	if !Alive(f.PGID(), f.StartTime()) {
		t.Error("killed though the context was done")
	}
}

// TestStopReachesNewcomers: a group that keeps making processes in new sessions is ended too.
func TestStopReachesNewcomers(t *testing.T) {
	f := sleeper(t, "sh", "-c", "trap '' TERM; while :; do setsid sleep 60 & sleep .05; done")
	time.Sleep(200 * time.Millisecond)
	if err := f.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	if list := f.Members(); len(list) > 0 {
		t.Errorf("left: %+v", list)
	}
}

func TestParseStat(t *testing.T) {
	const line = "4242 (a) b (c)) S 17 4200 4100 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 1234 99 5 18446744073709551615 0\n"
	p, ok := parseStat([]byte(line))
	if !ok || p.PID != 4242 || p.PPID != 17 || p.PGID != 4200 || p.SID != 4100 || p.Command != "a) b (c)" || p.began != 1234 || p.zombie {
		t.Errorf("%v %+v", ok, p)
	}
	for _, bad := range []string{"", "1", "1 (x", "1 (x) S 1 2", ") ("} {
		if p, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, p)
		}
	}
}

func TestHasEntry(t *testing.T) {
	entry := []byte(MarkerVariable + "=abc")
	for env, want := range map[string]bool{
		"":                                       false,
		"A=b\x00RIG_BRIDGE_OPERATION=abc\x00C=d": true,
		"RIG_BRIDGE_OPERATION=abcd\x00":          false,
		"XRIG_BRIDGE_OPERATION=abc\x00":          false,
		"X=RIG_BRIDGE_OPERATION=abc":             false,
		"RIG_BRIDGE_OPERATION=abc":               true,
	} {
		if got := hasEntry([]byte(env), entry); got != want {
			t.Errorf("%q: %v", env, got)
		}
	}
}

// TestReaperTakesOnlyOrphans drives the reaper's pass with a clock of its own.
func TestReaperTakesOnlyOrphans(t *testing.T) {
	led := exec.Command("sh", "-c", "exit 3")
	f, err := Start(led)
	if err != nil {
		t.Fatal(err)
	}
	ordinary := exec.Command("sh", "-c", "exit 4")
	if err := ordinary.Start(); err != nil {
		t.Fatal(err)
	}
	foreign := exec.Command("true") // as an adopted child would be: in another session and unknown
	foreign.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{f.PGID(), ordinary.Process.Pid, foreign.Process.Pid} {
		awaitExit(pid)
	}
	now, unclaimed := time.Now(), map[int]time.Time{}
	reapOnce(unclaimed, now)
	reapOnce(unclaimed, now.Add(unclaimedAt-time.Second))
	if _, exists := inspect(foreign.Process.Pid); exists {
		t.Error("the orphan was not reaped")
	}
	if p, exists := inspect(ordinary.Process.Pid); !exists || !p.zombie {
		t.Error("a child of our session was stolen")
	}
	state, err := f.Reap()
	if err != nil || state.ExitCode() != 3 {
		t.Errorf("leader: %v, %v", state, err)
	}
	reapOnce(unclaimed, now.Add(unclaimedAt))
	if _, exists := inspect(ordinary.Process.Pid); exists {
		t.Error("nobody waits for it, and it stays for ever")
	}
}

func ExampleFamily_StartTime() {
	fmt.Println(identity{boot: "00000000-0000-0000-0000-000000000000", began: 12345, marker: "0123456789abcdef01234567"})
	// Output: 00000000-0000-0000-0000-000000000000:12345:0123456789abcdef01234567
}

// TestNumberIsNotTrustedForEver: once all that was seen of a group is gone, its number is somebody else's, even
// for the process that started it.
func TestNumberIsNotTrustedForEver(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & exit")
	f, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	f.Await()
	if _, err := f.Reap(); err != nil {
		t.Fatal(err)
	}
	seen := f.last
	if len(seen) != 1 {
		t.Fatalf("survivors: %+v", seen)
	}
	f.id.marker = newMarker() // as if the group were another family's
	if list := f.Members(); len(list) != 1 {
		t.Errorf("who was seen counts: %+v", list)
	}
	f.last = nil
	if list := f.Members(); len(list) != 0 {
		t.Errorf("strangers in the group: %+v", list)
	}
	syscall.Kill(seen[0].PID, syscall.SIGKILL) //nolint:errcheck // it is ours
}

// TestSweepForgetsWhatEnded: leftovers that end by themselves leave nothing in memory.
func TestSweepForgetsWhatEnded(t *testing.T) {
	f, err := Start(exec.Command("sh", "-c", "sleep .2 & exit"))
	if err != nil {
		t.Fatal(err)
	}
	f.Await()
	if _, err := f.Reap(); err != nil {
		t.Fatal(err)
	}
	registry.sweep()
	if registry.family(f.StartTime()) == nil {
		t.Fatal("forgotten while a process runs")
	}
	for deadline := time.Now().Add(10 * time.Second); registry.family(f.StartTime()) != nil; time.Sleep(10 * time.Millisecond) {
		registry.sweep()
		if time.Now().After(deadline) {
			t.Fatalf("still known: %+v", f.Survivors())
		}
	}
	if Alive(f.PGID(), f.StartTime()) {
		t.Error("alive")
	}
}
