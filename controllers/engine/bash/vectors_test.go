package bash_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// TestMain makes the test process what the daemon is: the parent of orphans, which it reaps.
func TestMain(m *testing.M) {
	if role := os.Getenv("BASH_TEST_ROLE"); role != "" {
		os.Exit(roles[role]())
	}
	if err := process.BecomeSubreaper(); err != nil && runtime.GOOS == "linux" {
		println(err.Error())
		os.Exit(1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		process.ReapOrphans(ctx)
		close(ended)
	}()
	code := m.Run()
	cancel()
	<-ended
	os.Exit(code)
}

// namesLeftovers are vectors whose reference text is silent about children that still run. Ours names them at
// the end (CONTRACT part A «Bash» and C13, cases E10, D1, F1); the rest of the text is as in the vector.
var namesLeftovers = map[string]string{
	"bash-106-bg-sleep":            "sleep runs on",
	"bash-108-bg-late":             "the subshell and its sleep run on",
	"bash-110-bg-survives-holding": "the subshell and its sleep run on",
	"bash-111-bg-setsid":           "a child in a session of its own runs on",
	"bash-113-bg-exit-code":        "sleep runs on",
}

// stopsEscapees are vectors where a child in another session survives the timeout, a fault of the reference
// (CONTRACT C13): ours stops it, so it writes no file.
var stopsEscapees = map[string]bool{"bash-112-bg-setsid-timeout": true}

func TestVectors(t *testing.T) {
	for _, c := range enginetest.Load(t, "bash") {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			w := c.Setup(t)
			if stopsEscapees[c.ID] {
				c.Expected.FilesChanged = []enginetest.Change{}
			}
			began := time.Now()
			got := answer(t, c, w)
			if limit := c.Control.MaxElapsedMS; limit > 0 && time.Since(began) > time.Duration(limit)*time.Millisecond {
				t.Errorf("took %v, the limit is %d ms", time.Since(began), limit)
			}
			if why, ok := namesLeftovers[c.ID]; ok {
				text, notice, found := strings.Cut(got.Text, "\n\n[Still running: pid ")
				if !found || !strings.HasSuffix(notice, "]") {
					t.Errorf("the text does not end with what still runs (%s): %q", why, got.Text)
				}
				got.Text = text
			} else if strings.Contains(got.Text, "[Still running") {
				t.Errorf("unexpected leftovers: %q", got.Text)
			}
			time.Sleep(time.Duration(c.Control.SettleMS) * time.Millisecond)
			c.Check(t, w, got)
		})
	}
}

// answer runs the vector and gives what a client would see.
func answer(t *testing.T, c enginetest.Case, w *enginetest.World) enginetest.Got {
	t.Helper()
	args := c.Arguments(t, w)
	a := bash.Args{Command: args["command"].(string), Timeout: 120 * time.Second, TimeoutText: "120"}
	if n, ok := args["timeout"].(float64); ok {
		var err error
		if a.Timeout, a.TimeoutText, err = bash.ParseTimeout(n); err != nil {
			return refused(t, err)
		}
	}
	cmd, err := bash.Start(worldEnv(c, w), a)
	if err != nil {
		return refused(t, err)
	}
	t.Cleanup(func() { stopFamily(t, cmd) })
	if after := c.Control.AbortAfterMS; after > 0 {
		time.Sleep(time.Duration(after) * time.Millisecond)
		cmd.Cancel(bash.Cancelled)
	}
	<-cmd.Done()
	o := cmd.Outcome()
	got := enginetest.Got{IsError: o.Err != nil, Text: o.Result.Text, FullOutputPath: o.FullOutputPath,
		Structured: map[string]any{"exit_code": o.ExitCode, "details": o.Result.Details}}
	if o.Err != nil {
		got.Structured["code"] = codes[o.Err.Reason]
		if o.Err.Message != o.Result.Text {
			t.Errorf("the message differs from the text: %q", o.Err.Message)
		}
	}
	return got
}

// codes are the contract's codes of the reasons; the real table is the API's.
var codes = map[engine.Reason]string{engine.ExitedNonZero: "COMMAND_FAILED", engine.KilledBySignal: "COMMAND_FAILED",
	engine.SpawnFailed: "COMMAND_FAILED", engine.TimedOut: "COMMAND_TIMEOUT", engine.Cancelled: "COMMAND_CANCELLED"}

func refused(t *testing.T, err error) enginetest.Got {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) {
		t.Fatalf("not an engine error: %v", err)
	}
	return enginetest.Got{IsError: true, Text: e.Message, Structured: map[string]any{"code": codes[e.Reason]}}
}

func worldEnv(c enginetest.Case, w *enginetest.World) engine.Env {
	env := engine.Env{Cwd: c.WorkDir(w), Home: w.Home, ConfigHome: filepath.Join(w.Home, ".config"), OutputDir: w.Tmp}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "LC_") && !strings.HasPrefix(entry, "LANG") {
			env.Environ = append(env.Environ, entry)
		}
	}
	env.Environ = append(env.Environ, "HOME="+w.Home, "TMPDIR="+w.Tmp, "XDG_CONFIG_HOME="+env.ConfigHome, "LANG=C.UTF-8")
	for name, value := range c.Env {
		env.Environ = append(env.Environ, name+"="+w.Expand(value))
	}
	return env
}

// stopFamily ends what a test left running.
func stopFamily(t *testing.T, cmd *bash.Command) {
	t.Helper()
	if err := process.Stop(context.Background(), cmd.PGID(), cmd.StartTime()); err != nil {
		t.Errorf("group %s: %v", strconv.Itoa(cmd.PGID()), err)
	}
}

// roles are what the test binary does when it is started again as another process.
var roles = map[string]func() int{}
