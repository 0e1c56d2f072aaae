package crash

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// workStep is a step of run_start or work_handoff and whether what the call makes is there when the daemon dies at
// it.
type workStep struct {
	name string
	made bool
}

var (
	startSteps = []workStep{
		{failpoint.BeforeClaim, false}, {failpoint.Claimed, false}, {failpoint.BeforeRunning, false}, {failpoint.Running, false},
		{failpoint.RunMade, true}, {failpoint.BeforeTerminal, true}, {failpoint.Terminal, true}, {failpoint.BeforeAnswer, true},
	}
	handoffSteps = []workStep{
		{failpoint.BeforeClaim, false}, {failpoint.Claimed, false}, {failpoint.BeforeRunning, false}, {failpoint.Running, false},
		{failpoint.HandoffMade, true}, {failpoint.RunFinished, true}, {failpoint.BeforeTerminal, true}, {failpoint.Terminal, true},
		{failpoint.BeforeAnswer, true},
	}
	onlyHandoffs = map[string]bool{failpoint.HandoffMade: true, failpoint.RunFinished: true}
)

// workSubject is a call under test. The run that it finds was begun in the life that dies, in an earlier one, or
// not at all.
type workSubject struct {
	name, tool string
	args       daemon.Args
	steps      []workStep
	found      string // "working", "interrupted" or ""
	leaves     string // the status of the thread's latest run afterwards
}

var workSubjects = []workSubject{
	{"run_start", "run_start", daemon.Args{"title": "Second"}, startSteps, "", "working"},
	{"run_start after an interruption", "run_start", daemon.Args{}, startSteps, "interrupted", "working"},
	{"handoff of a working run", "work_handoff", daemon.Args{"reason": "needs_input", "summary": "Please look"}, handoffSteps, "working", "needs_input"},
	{"handoff of an interrupted run", "work_handoff", daemon.Args{"reason": "failed", "summary": "Gave up"}, handoffSteps, "interrupted", "failed"},
	{"handoff without a run", "work_handoff", daemon.Args{"reason": "blocked", "summary": "No access"}, handoffSteps, "", "blocked"},
}

// TestWorkDiesAtEachStep kills the daemon at each step of run_start and work_handoff. A handoff and its run change
// together or not at all, the repetition makes nothing twice, and nothing of it is uncertain.
func TestWorkDiesAtEachStep(t *testing.T) {
	for _, s := range workSubjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			client := h.begin(t)
			opened := make([]daemon.Result, len(s.steps))
			for i := range s.steps {
				opened[i] = client.OK(t, "workspace_open", daemon.Args{"cwd": realDir(t), "title": "T"})
				if s.found == "interrupted" {
					client.OK(t, "ls", daemon.Args{"workspace_id": opened[i].String("workspace_id")})
				}
			}
			h.kill(t)
			for i, step := range s.steps {
				s.die(t, h, step, opened[i])
			}
		})
	}
}

func (s workSubject) die(t *testing.T, h *house, step workStep, opened daemon.Result) {
	ws := daemon.Args{"workspace_id": opened.String("workspace_id")}
	args := with(s.args, with(ws, daemon.Args{"request_key": "k"}))
	point := step.name
	if s.found == "working" && !onlyHandoffs[step.name] {
		point += ":2" // run_start has passed it
	}
	client := h.begin(t, "RIG_BRIDGE_FAILPOINT="+point)
	before := 0
	switch s.found {
	case "working":
		client.OK(t, "run_start", with(ws, daemon.Args{"request_key": "before"}))
		before = 1
	case "interrupted":
		before = 1
	}
	if r, err := client.Call(t.Context(), s.tool, args); err == nil {
		t.Fatalf("the daemon did not die at %s: %s", step.name, r.Raw)
	}
	h.dies(t)
	client = h.begin(t)

	// The first look of anybody: together or not at all.
	runs := runsOf(t, client, opened.String("thread_id"))
	s.checkFirstLook(t, step, runs, before)
	first := client.OK(t, s.tool, args)
	// Recovery may still be under way, and who waits for it gets the first answer.
	if told := step.name == failpoint.Terminal || step.name == failpoint.BeforeAnswer; first.Replayed() != step.made && (told || !step.made) {
		t.Errorf("died at %s: replayed is %v: %s", step.name, first.Replayed(), first.Raw)
	}
	again := client.OK(t, s.tool, args)
	if !again.Replayed() || !same(t, first, again) {
		t.Errorf("died at %s: repeated: %s\nfirst: %s", step.name, again.Raw, first.Raw)
	}
	after := runsOf(t, client, opened.String("thread_id"))
	total := 1
	if s.tool == "run_start" {
		total += before
	}
	leaves := s.leaves
	if leaves == "working" && (step.name == failpoint.Terminal || step.name == failpoint.BeforeAnswer) {
		leaves = "interrupted" // the call was over when the daemon died, and nobody went on
	}
	if len(after) != total || after[0].ID != first.String("run_id") || after[0].Status != leaves {
		t.Errorf("died at %s: the runs are %+v", step.name, after)
	}
	h.kill(t)
}

func (s workSubject) checkFirstLook(t *testing.T, step workStep, runs []run, before int) {
	t.Helper()
	switch {
	case !step.made && (len(runs) != before || before == 1 && runs[0].Status != "interrupted"):
		t.Errorf("died at %s, where nothing is made: the runs are %+v", step.name, runs)
	case step.made && s.tool == "work_handoff" && len(runs) == 1 && (runs[0].Status != s.leaves || runs[0].Summary != s.args["summary"]):
		t.Errorf("died at %s: the handoff is made and its run is %+v", step.name, runs[0])
	case step.made && s.tool == "work_handoff" && len(runs) > 1, step.made && s.tool == "run_start" && len(runs) != before+1:
		t.Errorf("died at %s: the runs are %+v", step.name, runs)
	}
}

type run struct{ ID, Status, Summary string }

// runsOf lists a thread's runs, the latest first.
func runsOf(t *testing.T, client *daemon.Client, thread string) []run {
	t.Helper()
	b, err := json.Marshal(client.OK(t, "workspace_list", nil).Structured)
	if err != nil {
		t.Fatal(err)
	}
	var l struct {
		Projects []struct {
			Threads []struct {
				ID   string
				Runs []run
			}
		}
	}
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Projects {
		for _, th := range p.Threads {
			if th.ID == thread {
				return th.Runs
			}
		}
	}
	t.Fatalf("thread %s is not listed", thread)
	return nil
}

// same compares two answers but for their text and the mark of a repetition.
func same(t *testing.T, a, b daemon.Result) bool {
	t.Helper()
	for _, field := range []string{"workspace_id", "project_id", "thread_id", "run_id", "run", "handoff_id", "handoff"} {
		if fmt.Sprint(a.Structured[field]) != fmt.Sprint(b.Structured[field]) {
			return false
		}
	}
	return true
}
