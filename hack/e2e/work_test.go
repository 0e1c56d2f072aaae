package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// The shapes of workspace_list, as the contract has them.
type (
	listedRun struct {
		ID, ThreadID, Title, Status string
		StartedAt                   int64
		CompletedAt                 *int64
		Summary                     *string
	}
	listedThread struct {
		ID, ProjectID, Title, Cwd string
		CreatedAt, LastUsed       int64
		Run                       *listedRun
		Runs                      []listedRun
	}
	listedProject struct {
		ID, Identity, Name, Root string
		CreatedAt, LastUsed      int64
		DesktopNotifications     *bool
		Threads                  []listedThread
	}
	listedCall struct {
		ID, Tool, Description, Error                  string
		StartedAt, ElapsedMs, CompletedAt, DurationMs int64
		Success                                       bool
	}
	listedHandle struct {
		ID, ProjectID, ThreadID, Cwd   string
		CreatedAt, LastUsed            int64
		ActiveCommands, RecentCommands []listedCall
		LastCommand                    *listedCall
	}
	listed struct {
		Projects   []listedProject
		Handles    []listedHandle
		NextCursor string `json:"next_cursor"`
	}
)

func list(t testing.TB, client *daemon.Client, args daemon.Args) (l listed) {
	t.Helper()
	decodeInto(t, client.OK(t, "workspace_list", args).Structured, &l)
	return l
}

func decodeInto(t testing.TB, from, into any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func (l listed) thread(t testing.TB, id string) listedThread {
	t.Helper()
	for _, p := range l.Projects {
		for _, th := range p.Threads {
			if th.ID == id {
				if th.ProjectID != p.ID {
					t.Errorf("thread %s is listed below another project", id)
				}
				return th
			}
		}
	}
	t.Fatalf("thread %s is not listed", id)
	return listedThread{}
}

// desk is one assistant at work in a thread.
type desk struct {
	*daemon.Client
	workspace, project, thread, dir string
}

func sitDown(t testing.TB, client *daemon.Client, args daemon.Args) *desk {
	t.Helper()
	r := client.OK(t, "workspace_open", args)
	return &desk{client, r.String("workspace_id"), r.String("project_id"), r.String("thread_id"), r.String("cwd")}
}

func (d *desk) with(args daemon.Args) daemon.Args {
	return copyArgs(args, daemon.Args{"workspace_id": d.workspace})
}

// keyed adds a fresh key.
func (d *desk) keyed(args daemon.Args) daemon.Args {
	return copyArgs(d.with(args), daemon.Args{"request_key": daemon.Key()})
}

func (d *desk) handOff(reason, summary string) daemon.Args {
	return d.keyed(daemon.Args{"reason": reason, "summary": summary})
}

// mine fails the test unless a result names this desk's ids.
func (d *desk) mine(t testing.TB, r daemon.Result) {
	t.Helper()
	if r.String("workspace_id") != d.workspace || r.String("project_id") != d.project || r.String("thread_id") != d.thread {
		t.Errorf("the ids are not those of the workspace: %s", r.Raw)
	}
}

// TestRunsOfAThread follows one thread: its first call begins a run, all execution tools name it, a handoff ends it.
func TestRunsOfAThread(t *testing.T) {
	d := sitDown(t, daemon.Start(t, daemon.Options{}).Client(), daemon.Args{"cwd": realDir(t), "title": "Fix the parser"})
	if th := list(t, d.Client, nil).thread(t, d.thread); th.Run != nil || len(th.Runs) != 0 || th.Title != "Fix the parser" {
		t.Errorf("a thread without calls is listed as %+v", th)
	}
	put(t, filepath.Join(d.dir, "a.txt"), "one\n")
	run := ""
	for _, c := range []struct {
		tool string
		args daemon.Args
		ok   bool
	}{
		{"ls", d.with(nil), true},
		{"read", d.with(daemon.Args{"path": "a.txt"}), true},
		{"read", d.with(daemon.Args{"path": "none.txt"}), false},
		{"find", d.with(daemon.Args{"pattern": "*"}), true},
		{"grep", d.with(daemon.Args{"pattern": "one"}), true},
		{"skill_info", d.with(nil), true},
		{"edit", d.keyed(daemon.Args{"path": "a.txt", "expected_revision": revision(t, filepath.Join(d.dir, "a.txt")), "edits": []daemon.Args{{"oldText": "one", "newText": "two"}}}), true},
		{"write", d.keyed(daemon.Args{"path": "b.txt", "content": "b", "expected_revision": "missing"}), true},
		{"bash", d.keyed(daemon.Args{"command": "exit 3"}), false},
	} {
		r := d.Must(t, c.tool, c.args)
		if r.IsError == c.ok {
			t.Errorf("%s: %s", c.tool, r.Raw)
		}
		if run == "" {
			run = r.String("run_id")
		}
		if d.mine(t, r); run == "" || r.String("run_id") != run {
			t.Errorf("%s belongs to run %q, want %q", c.tool, r.String("run_id"), run)
		}
	}
	l := list(t, d.Client, nil)
	th := l.thread(t, d.thread)
	if th.Run == nil || th.Run.ID != run || th.Run.Status != "working" || th.Run.Title != "Fix the parser" || th.Run.CompletedAt != nil || th.Run.Summary != nil || len(th.Runs) != 1 {
		t.Errorf("the thread is listed as %+v", th)
	}
	h := l.Handles[0]
	if h.ID != d.workspace || h.ThreadID != d.thread || h.ProjectID != d.project || h.Cwd != d.dir || len(h.RecentCommands) != 9 || len(h.ActiveCommands) != 0 {
		t.Errorf("the workspace is listed as %+v", h)
	}
	if last := h.LastCommand; last == nil || last.Tool != "bash" || last.Description != "exit 3" || last.Success || last.Error == "" || last.CompletedAt < last.StartedAt {
		t.Errorf("the last call is listed as %+v", last)
	}
	r := d.OK(t, "work_handoff", d.handOff("needs_input", "Which parser?"))
	d.mine(t, r)
	var made struct {
		ID, ProjectID, ThreadID, RunID, Reason, Summary, DesktopDelivery string
		CreatedAt                                                        int64
		ReadAt                                                           *int64
		DeliveryError                                                    *string
	}
	decodeInto(t, r.Structured["handoff"], &made)
	if made.ID == "" || made.ID != r.String("handoff_id") || made.RunID != run || r.String("run_id") != run || made.ProjectID != d.project || made.ThreadID != d.thread ||
		made.Reason != "needs_input" || made.Summary != "Which parser?" || made.DesktopDelivery != "disabled" || made.CreatedAt == 0 || made.ReadAt != nil {
		t.Errorf("the handoff is %s", r.Raw)
	}
	th = list(t, d.Client, nil).thread(t, d.thread)
	if th.Run.Status != "needs_input" || th.Run.CompletedAt == nil || th.Run.Summary == nil || *th.Run.Summary != "Which parser?" {
		t.Errorf("after the handoff the run is %+v", th.Run)
	}
	if next := d.OK(t, "ls", d.with(nil)).String("run_id"); next == run || next == "" {
		t.Errorf("the call after the handoff belongs to %q", next)
	}
	if th = list(t, d.Client, nil).thread(t, d.thread); len(th.Runs) != 2 || th.Runs[1].ID != run || *th.Run != th.Runs[0] {
		t.Errorf("the runs are %+v", th.Runs)
	}
}

// TestWorkIsRefused has every code of run_start and work_handoff; a refused call leaves its key free.
func TestWorkIsRefused(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	d := sitDown(t, client, daemon.Args{"cwd": realDir(t)})
	reasons := map[string]string{"RUN_ACTIVE": "RunActive", "RUN_CONFLICT": "RunConflict", "RUN_FINISHED": "RunFinished", "WORK_ACTIVE": "WorkActive", "WORKSPACE_EXPIRED": "WorkspaceExpired"}
	refused := func(code, tool string, args daemon.Args) {
		t.Helper()
		r := d.Fails(t, code, tool, args)
		if r.String("reason") != reasons[code] || r.Replayed() || r.Structured["effects_may_have_occurred"] == true {
			t.Errorf("%s: %s", code, r.Raw)
		}
	}
	free := d.keyed(nil)["request_key"]
	handOff := func(more daemon.Args) daemon.Args {
		return copyArgs(d.with(daemon.Args{"request_key": free, "reason": "completed", "summary": "Done"}), more)
	}
	refused("RUN_CONFLICT", "work_handoff", handOff(daemon.Args{"run_id": "none"}))
	started := d.OK(t, "run_start", d.with(daemon.Args{"request_key": free, "title": "One"})) // the key is free again
	run := started.String("run_id")
	if s, _ := started.Structured["run"].(map[string]any); s["id"] != run || s["title"] != "One" || s["status"] != "working" || s["threadId"] != d.thread || s["completedAt"] != nil || s["summary"] != nil {
		t.Errorf("the run is %s", started.Raw)
	}
	refused("RUN_ACTIVE", "run_start", d.keyed(nil))
	free = d.keyed(nil)["request_key"]
	refused("RUN_CONFLICT", "work_handoff", handOff(daemon.Args{"run_id": "none"}))

	command := d.keyed(daemon.Args{"command": "sleep 300", "wait_seconds": 1})
	if r := d.OK(t, "bash", command); r.String("status") != "running" || r.String("run_id") != run {
		t.Fatalf("the command is not running in the run: %s", r.Raw)
	}
	refused("WORK_ACTIVE", "work_handoff", handOff(nil))
	refused("RUN_ACTIVE", "run_start", handOffToStart(d, free))
	if h := list(t, client, nil).Handles[0]; len(h.ActiveCommands) != 1 || h.ActiveCommands[0].Description != "sleep 300" || h.ActiveCommands[0].Tool != "bash" || h.ActiveCommands[0].ElapsedMs < 1000 {
		t.Errorf("the running command is listed as %+v", h)
	}
	d.OK(t, "operation_cancel", d.with(daemon.Args{"request_key": command["request_key"]}))
	first := d.OK(t, "work_handoff", handOff(nil)) // at last, under the same key
	if first.Replayed() || first.String("run_id") != run {
		t.Errorf("the handoff is %s", first.Raw)
	}
	refused("RUN_FINISHED", "work_handoff", d.handOff("completed", "Again"))
	if again := d.OK(t, "work_handoff", handOff(nil)); !again.Replayed() || !sameWork(first, again) {
		t.Errorf("repeated: %s\nfirst: %s", again.Raw, first.Raw)
	}
	d.Fails(t, "REQUEST_KEY_CONFLICT", "work_handoff", handOff(daemon.Args{"summary": "Other"}))
	d.Fails(t, "REQUEST_KEY_CONFLICT", "run_start", handOffToStart(d, free))
	d.Fails(t, "REQUEST_KEY_CONFLICT", "work_handoff", d.with(daemon.Args{"request_key": command["request_key"], "reason": "completed", "summary": "x"}))
	d.Fails(t, "INVALID_ARGUMENTS", "work_handoff", d.handOff("bored", "x"))

	// Without any run, a handoff makes one.
	other := sitDown(t, client, daemon.Args{"cwd": realDir(t), "title": "Nothing done"})
	r := other.OK(t, "work_handoff", other.handOff("blocked", "No access"))
	if th := list(t, client, nil).thread(t, other.thread); th.Run == nil || th.Run.ID != r.String("run_id") || th.Run.Status != "blocked" || th.Run.Title != "Nothing done" {
		t.Errorf("the thread is listed as %+v", th)
	}
	d.OK(t, "workspace_close", d.with(nil))
	refused("WORKSPACE_EXPIRED", "work_handoff", d.handOff("completed", "x"))
	refused("WORKSPACE_EXPIRED", "run_start", d.keyed(nil))
	if again := d.OK(t, "work_handoff", handOff(nil)); !again.Replayed() || !sameWork(first, again) {
		t.Errorf("repeated after the close: %s", again.Raw)
	}
}

func handOffToStart(d *desk, key any) daemon.Args { return d.with(daemon.Args{"request_key": key}) }

// sameWork compares two answers but for their text and the mark of a repetition.
func sameWork(a, b daemon.Result) bool {
	for _, field := range []string{"workspace_id", "project_id", "thread_id", "run_id", "run", "handoff_id", "handoff"} {
		if !reflect.DeepEqual(a.Structured[field], b.Structured[field]) {
			return false
		}
	}
	return true
}

// TestInterrupted has what ends a run without a handoff: the workspace closes, the daemon dies.
func TestInterrupted(t *testing.T) {
	server := daemon.Start(t, daemon.Options{})
	d := sitDown(t, server.Client(), daemon.Args{"cwd": realDir(t), "title": "T"})
	first := d.OK(t, "ls", d.with(nil)).String("run_id")
	d.OK(t, "workspace_close", d.with(nil))
	if run := list(t, d.Client, nil).thread(t, d.thread).Run; run.ID != first || run.Status != "interrupted" || run.CompletedAt != nil {
		t.Errorf("closed, the run is %+v", run)
	}
	d = sitDown(t, d.Client, daemon.Args{"thread_id": d.thread})
	if r := d.OK(t, "work_handoff", d.handOff("failed", "Gave up")); r.String("run_id") != first {
		t.Errorf("an interrupted run that is handed off: %s", r.Raw)
	}
	start := d.keyed(daemon.Args{"title": "Second"})
	started := d.OK(t, "run_start", start)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	server.Revive(t)
	if run := list(t, d.Client, nil).thread(t, d.thread).Run; run.ID != started.String("run_id") || run.Status != "interrupted" || run.CompletedAt != nil {
		t.Errorf("after the kill the run is %+v", run)
	}
	if again := d.OK(t, "run_start", start); !again.Replayed() || !sameWork(started, again) {
		t.Errorf("repeated: %s\nfirst: %s", again.Raw, started.Raw)
	}
	third := d.OK(t, "ls", d.with(nil)).String("run_id") // the workspace survives
	if third == started.String("run_id") {
		t.Error("a call after the kill belongs to the interrupted run")
	}
	d.Fails(t, "RUN_CONFLICT", "work_handoff", copyArgs(d.handOff("completed", "x"), daemon.Args{"run_id": started.String("run_id")}))
	args := d.handOff("completed", "All done")
	handed := d.OK(t, "work_handoff", args)
	if code, err := server.Stop(); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	server.Revive(t)
	if again := d.OK(t, "work_handoff", args); !again.Replayed() || !sameWork(handed, again) {
		t.Errorf("repeated: %s\nfirst: %s", again.Raw, handed.Raw)
	}
	var statuses []string
	for _, run := range list(t, d.Client, nil).thread(t, d.thread).Runs {
		statuses = append(statuses, run.Status)
	}
	if want := []string{"completed", "interrupted", "failed"}; !reflect.DeepEqual(statuses, want) {
		t.Errorf("the runs are %v, want %v", statuses, want)
	}
}

// TestTwoAssistantsThreeWorktrees interleaves two clients on one project: threads, runs and handoffs never mix.
func TestTwoAssistantsThreeWorktrees(t *testing.T) {
	server := daemon.Start(t, daemon.Options{})
	main := gitProject(t)
	trees := []string{main}
	for _, name := range []string{"left", "right"} {
		dir := filepath.Join(realDir(t), name)
		cmd := exec.Command("git", "worktree", "add", "--quiet", "-b", name, dir)
		cmd.Dir = main
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git worktree add: %v\n%s", err, out)
		}
		trees = append(trees, dir)
	}
	const rounds = 4
	desks := make([]*desk, 2*len(trees))
	runs := make([][]string, len(desks)) // of each desk, in order
	for i := range desks {
		desks[i] = sitDown(t, server.Client(), daemon.Args{"cwd": trees[i%len(trees)], "title": fmt.Sprint("desk ", i)})
	}
	var wg sync.WaitGroup
	for i, d := range desks {
		wg.Go(func() {
			for round := range rounds {
				mark := fmt.Sprintf("desk %d round %d", i, round)
				run := d.OK(t, "bash", d.keyed(daemon.Args{"command": "pwd"})).String("run_id")
				r := d.OK(t, "read", d.with(daemon.Args{"path": "README.md"}))
				if d.mine(t, r); r.String("run_id") != run {
					t.Errorf("%s: two calls of one run belong to %s and %s", mark, run, r.String("run_id"))
				}
				h := d.OK(t, "work_handoff", copyArgs(d.handOff("completed", mark), daemon.Args{"run_id": run}))
				if d.mine(t, h); h.String("run_id") != run {
					t.Errorf("%s: another run was handed off: %s", mark, h.Raw)
				}
				runs[i] = append(runs[i], run)
			}
		})
	}
	wg.Wait()
	l := list(t, server.Client(), nil)
	if len(l.Projects) != 1 || len(l.Projects[0].Threads) != len(desks) || len(l.Handles) != len(desks) {
		t.Fatalf("%d projects, %d threads, %d workspaces", len(l.Projects), len(l.Projects[0].Threads), len(l.Handles))
	}
	for i, d := range desks {
		th := l.thread(t, d.thread)
		if th.Cwd != trees[i%len(trees)] || th.Title != fmt.Sprint("desk ", i) || len(th.Runs) != rounds {
			t.Errorf("desk %d is listed as %+v", i, th)
			continue
		}
		for round := range rounds {
			run := th.Runs[rounds-1-round]
			if run.ID != runs[i][round] || run.Status != "completed" || *run.Summary != fmt.Sprintf("desk %d round %d", i, round) {
				t.Errorf("desk %d round %d is listed as %+v", i, round, run)
			}
		}
	}
}

// TestManyThreads pages through more threads than fit on a page: each comes once, the last used first.
func TestManyThreads(t *testing.T) {
	threads := 500
	if testing.Short() {
		threads = 130
	}
	client := daemon.Start(t, daemon.Options{}).Client()
	dirs := []string{realDir(t), realDir(t), realDir(t)}
	latest := sitDown(t, client, daemon.Args{"cwd": dirs[0], "title": "the first"})
	for i := range threads - 1 {
		sitDown(t, client, daemon.Args{"cwd": dirs[i%len(dirs)], "title": fmt.Sprint("thread ", i)})
	}
	latest = sitDown(t, client, daemon.Args{"thread_id": latest.thread})
	latest.OK(t, "ls", latest.with(nil))
	seen, pages, args := map[string]bool{}, 0, daemon.Args{}
	for {
		r := client.OK(t, "workspace_list", args)
		var l listed
		decodeInto(t, r.Structured, &l)
		pages++
		n := 0
		for _, p := range l.Projects {
			n += len(p.Threads)
			for j, th := range p.Threads {
				if seen[th.ID] {
					t.Errorf("thread %s comes twice", th.ID)
				}
				seen[th.ID] = true
				if j > 0 && th.LastUsed > p.Threads[j-1].LastUsed {
					t.Errorf("a thread that was used later comes later")
				}
			}
		}
		if pages == 1 && l.Projects[0].Threads[0].ID != latest.thread {
			t.Errorf("the list begins with %q, not with the thread used last", l.Projects[0].Threads[0].Title)
		}
		if n > 100 || len(r.Raw) > 256<<10 || n == 0 {
			t.Errorf("page %d has %d threads in %d bytes", pages, n, len(r.Raw))
		}
		if l.NextCursor == "" {
			break
		}
		args = daemon.Args{"cursor": l.NextCursor}
	}
	if len(seen) != threads || pages < 2 {
		t.Errorf("%d threads on %d pages, want %d threads", len(seen), pages, threads)
	}
	client.Fails(t, "INVALID_ARGUMENTS", "workspace_list", daemon.Args{"cursor": "!"})
}
