package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

// tool is one kind of call to measure.
type tool struct {
	name    string
	callers []int // numbers of callers to measure at; nil: all of the plan
	bounds  []bound
	process func(context.Context) *exec.Cmd // of boundRun
	// prepare opens what the callers need and returns the call.
	prepare func(ctx context.Context, s *server, callers int) (shooter, error)
}

var (
	asking   = []bound{boundHTTP}
	changing = []bound{boundHTTP, boundFlush, boundFile}
	running  = []bound{boundHTTP, boundFlush, boundRun}
	some     = []int{1, 8} // for what is heavy
)

const print10MB = "yes abcdefghijklmno | head -c 10000000"

// tools are all that the benchmark calls.
func tools(f *fixtures) []tool {
	all := []tool{
		{name: "read 1 KB", bounds: asking, prepare: same("read", daemon.Args{"path": "small.txt"}, text(kilobyte, kilobyte))},
		{name: "read of a 1 MB file", bounds: asking, prepare: same("read", daemon.Args{"path": "large.txt"}, text(40*kilobyte, 60*kilobyte))},
		{name: "ls of 1,000 entries", bounds: asking, prepare: same("ls", daemon.Args{"path": "entries", "limit": 2000}, lines(1000))},
		f.searching("find", query{Tool: "find", Pattern: "*99.go"}),
		f.searching("grep", query{Tool: "grep", Pattern: "foldReceipt|sealLedger|dropLease"}),
		{name: "write 1 KB", bounds: changing, prepare: writing},
		{name: "edit", bounds: changing, prepare: editing},
		{name: "bash true", bounds: running, process: shell("true"), prepare: keyed("bash", daemon.Args{"command": "true"}, text(1, kilobyte))},
		{name: "bash printing 10 MB", callers: some, bounds: running, process: shell(print10MB),
			prepare: keyed("bash", daemon.Args{"command": print10MB}, text(30*kilobyte, 60*kilobyte))},
		{name: "replay of a write", bounds: asking, prepare: replaying},
		{name: "skill_info", bounds: asking, prepare: same("skill_info", nil, skills)},
		{name: "operation_wait", bounds: asking, prepare: waiting},
	}
	if f.git != "" {
		all = append(all, tool{name: "workspace_open", callers: some, bounds: asking, prepare: opening(f.git)})
	}
	return all
}

// searching is find or grep in the large tree, against the program that does the same as a process, if there is one.
func (f *fixtures) searching(name string, q query) tool {
	t := tool{name: fmt.Sprintf("%s in %d files", name, f.files), callers: some, bounds: asking,
		prepare: func(ctx context.Context, s *server, _ int) (shooter, error) {
			workspace, err := s.workspace(ctx, f.tree)
			return func(_ context.Context, caller int) (shot, error) {
				return s.shoot(caller, q.Tool, q.args(workspace), found)
			}, err
		}}
	if rival := f.rivals.of(q.Tool); rival != nil {
		t.bounds = []bound{boundHTTP, boundRun}
		t.process = func(ctx context.Context) *exec.Cmd { return rival.command(ctx, q, f.tree) }
	}
	return t
}

// same makes all callers send the same call.
func same(name string, args daemon.Args, check func(daemon.Result) error) func(context.Context, *server, int) (shooter, error) {
	return func(ctx context.Context, s *server, _ int) (shooter, error) {
		workspace, err := s.workspace(ctx, s.files)
		return func(_ context.Context, caller int) (shot, error) {
			return s.shoot(caller, name, with(args, workspace), check)
		}, err
	}
}

// keyed gives each call a key of its own.
func keyed(name string, args daemon.Args, check func(daemon.Result) error) func(context.Context, *server, int) (shooter, error) {
	return func(ctx context.Context, s *server, _ int) (shooter, error) {
		workspace, err := s.workspace(ctx, s.files)
		return func(_ context.Context, caller int) (shot, error) {
			return s.shoot(caller, name, withKey(args, workspace), check)
		}, err
	}
}

// newFile is a write that makes a file.
func newFile(workspace, path string) daemon.Args {
	return withKey(daemon.Args{"path": path, "content": strings.Repeat("a line of text.\n", kilobyte/16), "expected_revision": "missing"}, workspace)
}

// writing makes a new file with each call.
func writing(ctx context.Context, s *server, _ int) (shooter, error) {
	workspace, err := s.workspace(ctx, s.files)
	return func(_ context.Context, caller int) (shot, error) {
		return s.shoot(caller, "write", newFile(workspace, fmt.Sprintf("written/%d/%s", caller, rand.Text())), revised)
	}, err
}

// editing gives each caller a file of 1 KB and turns one word of it back and forth.
func editing(ctx context.Context, s *server, callers int) (shooter, error) {
	workspace, err := s.workspace(ctx, s.files)
	if err != nil {
		return nil, err
	}
	words := [2]string{"ping", "pong"}
	revisions, turns := make([]string, callers), make([]int, callers)
	stem := rand.Text()
	path := func(caller int) string { return fmt.Sprintf("edited/%s-%d", stem, caller) }
	for i := range callers {
		args := newFile(workspace, path(i))
		args["content"] = args["content"].(string) + words[0] + "\n"
		r, err := s.fire(ctx, "write", args)
		if err != nil {
			return nil, err
		}
		revisions[i] = r.String("revision")
	}
	return func(_ context.Context, caller int) (shot, error) {
		from, to := words[turns[caller]%2], words[(turns[caller]+1)%2]
		args := withKey(daemon.Args{"path": path(caller), "expected_revision": revisions[caller],
			"edits": []daemon.Args{{"oldText": from, "newText": to}}}, workspace)
		return s.shoot(caller, "edit", args, func(r daemon.Result) error {
			revisions[caller] = r.String("revision")
			turns[caller]++
			return revised(r)
		})
	}, nil
}

// replaying sends a write that has been made again and again.
func replaying(ctx context.Context, s *server, _ int) (shooter, error) {
	workspace, err := s.workspace(ctx, s.files)
	if err != nil {
		return nil, err
	}
	args := newFile(workspace, "replayed/"+rand.Text())
	if _, err := s.fire(ctx, "write", args); err != nil {
		return nil, err
	}
	return func(_ context.Context, caller int) (shot, error) {
		return s.shoot(caller, "write", args, func(r daemon.Result) error {
			if !r.Replayed() {
				return errors.New("it does not say that it is a repetition")
			}
			return nil
		})
	}, nil
}

// waiting asks for a command that is over.
func waiting(ctx context.Context, s *server, _ int) (shooter, error) {
	workspace, err := s.workspace(ctx, s.files)
	if err != nil {
		return nil, err
	}
	r, err := s.fire(ctx, "bash", withKey(daemon.Args{"command": "true"}, workspace))
	if err != nil {
		return nil, err
	}
	args := with(daemon.Args{"operation_id": r.String("operation_id"), "wait_seconds": 0}, workspace)
	return func(_ context.Context, caller int) (shot, error) {
		return s.shoot(caller, "operation_wait", args, func(r daemon.Result) error {
			if got := r.String("status"); got != "completed" {
				return fmt.Errorf("its status is %q", got)
			}
			return nil
		})
	}, nil
}

// opening opens a new thread on a directory with each call; the workspace is closed again outside the measurement.
func opening(dir string) func(context.Context, *server, int) (shooter, error) {
	return func(_ context.Context, s *server, _ int) (shooter, error) {
		return func(ctx context.Context, caller int) (shot, error) {
			return s.shoot(caller, "workspace_open", daemon.Args{"cwd": dir}, func(r daemon.Result) error {
				repository, _ := r.Structured["repository"].(map[string]any)
				if head, _ := repository["head"].(string); head == "" || repository["dirty"] != false {
					return fmt.Errorf("it does not know the repository: %v", repository)
				}
				_, err := s.fire(ctx, "workspace_close", daemon.Args{"workspace_id": r.String("workspace_id")})
				return err
			})
		}, nil
	}
}

// text checks that the answer has between so many bytes of text.
func text(least, most int) func(daemon.Result) error {
	return func(r daemon.Result) error {
		if n := len(r.Text()); n < least || n > most {
			return fmt.Errorf("%d bytes of text, want %d to %d", n, least, most)
		}
		return nil
	}
}

// lines checks the number of lines.
func lines(want int) func(daemon.Result) error {
	return func(r daemon.Result) error {
		if n := strings.Count(r.Text(), "\n") + 1; n != want {
			return fmt.Errorf("%d lines, want %d", n, want)
		}
		return nil
	}
}

// found checks that a search found something, and all there is.
func found(r daemon.Result) error {
	rows, limited := answerRows(r)
	if rows == 0 || limited != "" {
		return fmt.Errorf("%d rows found, limited by %q", rows, limited)
	}
	return nil
}

func revised(r daemon.Result) error {
	if !strings.HasPrefix(r.String("revision"), "sha256:") {
		return fmt.Errorf("it names no revision: %s", r.Text())
	}
	return nil
}

func skills(r daemon.Result) error {
	all, _ := r.Structured["skills"].([]any)
	if len(all) != madeSkills {
		return fmt.Errorf("%d skills, want %d", len(all), madeSkills)
	}
	return nil
}

func with(args daemon.Args, workspace string) daemon.Args {
	out := daemon.Args{"workspace_id": workspace}
	for k, v := range args {
		out[k] = v
	}
	return out
}

func withKey(args daemon.Args, workspace string) daemon.Args {
	out := with(args, workspace)
	out["request_key"] = rand.Text()
	return out
}
