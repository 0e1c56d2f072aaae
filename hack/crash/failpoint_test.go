package crash

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// fate is what the crash table promises for a call that is repeated after the daemon has died.
type fate string

const (
	runsNow   fate = "runs now"            // nothing had happened: the repetition does it
	recovered fate = "RecoveredAfterCrash" // the file proves the effect
	uncertain fate = "OUTCOME_UNCERTAIN"   // a command may have run; it is not run again
	recorded  fate = "RECORDED_OUTCOME"    // the outcome was recorded
)

// promise says for each step what becomes of a change of a file and of a command; empty: the tool does not pass
// the step.
type promise struct {
	step            string
	change, command fate
	started         bool // the shell was started
}

var promises = []promise{
	{step: failpoint.BeforeClaim, change: runsNow, command: runsNow},
	{step: failpoint.Claimed, change: runsNow, command: runsNow},
	{step: failpoint.BeforeRunning, change: runsNow, command: runsNow},
	{step: failpoint.Running, change: runsNow, command: uncertain},
	{step: failpoint.RunningDurable, change: runsNow, command: uncertain},
	{step: failpoint.BeforeEffect, change: runsNow, command: uncertain},
	{step: failpoint.TempWritten, change: runsNow},
	{step: failpoint.BeforeRename, change: runsNow},
	{step: failpoint.Renamed, change: recovered},
	{step: failpoint.CommandStarted, command: uncertain, started: true},
	{step: failpoint.CommandEnded, command: uncertain, started: true},
	{step: failpoint.BeforeTerminal, change: recovered, command: uncertain, started: true},
	{step: failpoint.Terminal, change: recorded, command: recorded, started: true},
	{step: failpoint.BeforeAnswer, change: recorded, command: recorded, started: true},
}

// subject is a tool under test: how it is called, and how its effects are counted.
type subject struct {
	name, tool string
	file       string // in which the effect shows
	before     string // its content before; "" means that it is missing
	args       daemon.Args
}

var subjects = []subject{
	{name: "write new", tool: "write", file: "new.txt", args: daemon.Args{"content": "fresh\n"}},
	{name: "write over", tool: "write", file: "old.txt", before: "stale\n", args: daemon.Args{"content": "fresh\n"}},
	{name: "edit", tool: "edit", file: "list.txt", before: "a\nstale\nb\n",
		args: daemon.Args{"edits": []daemon.Args{{"oldText": "stale", "newText": "stale\nfresh"}}}},
	{name: "bash", tool: "bash", file: "log", args: daemon.Args{"command": "echo fresh >> log"}},
}

// TestDieAtEachStep kills the daemon at each step of each tool, repeats the call after a restart, and asserts what
// the crash table says. Effects are counted in the world.
func TestDieAtEachStep(t *testing.T) {
	var table strings.Builder
	var mu sync.Mutex
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	t.Run("tools", func(t *testing.T) {
		for _, s := range subjects {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				rows := s.dieAtEachStep(t)
				mu.Lock()
				defer mu.Unlock()
				for _, row := range rows {
					fmt.Fprintln(columns, row)
				}
			})
		}
	})
	_ = columns.Flush() // to memory
	t.Logf("tool, died at, effects before and after the repetition, what it was told:\n%s", table.String())
}

func (s subject) dieAtEachStep(t *testing.T) (rows []string) {
	h := newHouse(t)
	root := realDir(t)
	var cells []*cell
	client := h.begin(t)
	for _, p := range promises {
		want := p.change
		if s.tool == "bash" {
			want = p.command
		}
		if want == "" {
			continue
		}
		dir := filepath.Join(root, p.step)
		if err := mkdir(dir); err != nil {
			t.Fatal(err)
		}
		cells = append(cells, &cell{subject: s, promise: p, want: want, dir: dir, renames: watchRenames(t, dir), workspace: client.Open(t, dir)})
	}
	h.kill(t) // workspaces live on, so each call under test is the only one that passes the steps
	for _, c := range cells {
		rows = append(rows, c.run(t, h))
		if t.Failed() {
			break
		}
	}
	return rows
}

// cell is one step of one tool.
type cell struct {
	subject
	promise
	want      fate
	dir       string
	workspace string
	renames   *renames
}

func (c *cell) run(t *testing.T, h *house) string {
	if c.before != "" {
		put(t, filepath.Join(c.dir, c.file), c.before)
	}
	args := with(c.args, daemon.Args{"workspace_id": c.workspace, "request_key": "k1"})
	if c.tool != "bash" {
		args["path"], args["expected_revision"] = c.file, revision(t, filepath.Join(c.dir, c.file))
	}
	client := h.begin(t, "RIG_BRIDGE_FAILPOINT="+c.step)
	if r, err := client.Call(t.Context(), c.tool, args); err == nil {
		t.Fatalf("%s: the daemon did not die at %s: %s", c.name, c.step, r.Raw)
	}
	h.dies(t)
	if c.step == failpoint.CommandStarted { // the shell goes on without the daemon
		eventually(t, "the orphaned command has run", func() bool { return c.effects(t) > 0 })
	}
	before := c.effects(t)
	client = h.begin(t)
	first := client.Must(t, c.tool, args)
	after := c.effects(t)
	again := client.Must(t, c.tool, args)
	h.kill(t)
	c.check(t, first, before, after)
	c.checkAgain(t, first, again, after)
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%s\t%s", c.name, c.step, before, after, c.want, told(first))
}

// effects counts what has happened in the world.
func (c *cell) effects(t *testing.T) int {
	if c.tool == "bash" {
		return lines(t, filepath.Join(c.dir, c.file))["fresh"]
	}
	return c.renames.of(t, c.file)
}

// check compares the first answer after the crash with the promise.
func (c *cell) check(t *testing.T, r daemon.Result, before, after int) {
	t.Helper()
	effects := 1
	if c.want == uncertain && !c.started {
		effects = 0
	}
	if after != effects {
		t.Errorf("%s at %s: %d effects, want %d", c.name, c.step, after, effects)
	}
	if c.want == runsNow && before != 0 || c.want != runsNow && before != after {
		t.Errorf("%s at %s: %d effects before the repetition, %d after", c.name, c.step, before, after)
	}
	if got := fateOf(r); got != c.want {
		t.Errorf("%s at %s: the answer is %s, want %s: %s", c.name, c.step, got, c.want, r.Raw)
	}
	if r.IsError != (c.want == uncertain) {
		t.Errorf("%s at %s: isError is %v: %s", c.name, c.step, r.IsError, r.Raw)
	}
	if c.want == uncertain {
		c.checkUncertain(t, r)
	}
	if c.tool != "bash" && !strings.Contains(text(t, filepath.Join(c.dir, c.file)), "fresh") {
		t.Errorf("%s at %s: the change is not in the file", c.name, c.step)
	}
	noTemporary(t, c.dir)
}

// checkUncertain makes sure that the caller is told what to inspect.
func (c *cell) checkUncertain(t *testing.T, r daemon.Result) {
	t.Helper()
	if !strings.Contains(r.Text(), c.dir) || r.String("cwd") != c.dir || r.String("operation_id") == "" ||
		r.String("tool") != "bash" || r.String("status") != "uncertain" || !r.Replayed() || r.Structured["effects_may_have_occurred"] != true {
		t.Errorf("%s at %s: the answer does not say what to inspect: %s", c.name, c.step, r.Raw)
	}
}

// checkAgain repeats a call whose outcome is known by now: it is told again and nothing happens.
func (c *cell) checkAgain(t *testing.T, first, again daemon.Result, effects int) {
	t.Helper()
	if got := c.effects(t); got != effects {
		t.Errorf("%s at %s: another repetition had an effect", c.name, c.step)
	}
	if !again.Replayed() || again.IsError != first.IsError {
		t.Errorf("%s at %s: another repetition is told something else: %s after %s", c.name, c.step, again.Raw, first.Raw)
	}
}

// fateOf reads the answer.
func fateOf(r daemon.Result) fate {
	switch {
	case r.Code() == "OUTCOME_UNCERTAIN":
		return uncertain
	case r.Code() == "RECORDED_OUTCOME" && r.Replayed():
		return recorded
	case r.String("reason") == "RecoveredAfterCrash":
		return recovered
	case !r.IsError && !r.Replayed():
		return runsNow
	}
	return fate(fmt.Sprintf("code %q reason %q replayed %v", r.Code(), r.String("reason"), r.Replayed()))
}

func told(r daemon.Result) string {
	sentence, _, _ := strings.Cut(r.Text(), "\n")
	return sentence
}
