package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// worker is a client of a simulated day. It works in a directory of its own, one call after the other.
type worker struct {
	s         *server
	number    int
	dir       string
	random    *rand.Rand
	workspace string
	thread    string
	revisions [30]string    // of the files that it changes
	last      []daemon.Args // its last writes, for repetitions
	operation string        // its last command
}

// kind is a kind of call, and how many of 1,000 calls are of it.
type kind struct {
	name  string
	share int
	do    func(*worker, context.Context) error
}

// dayMix is what an assistant does all day: it looks more than it changes, repeats what it had no answer to, and
// now and then ends a turn.
var dayMix = []kind{
	{"read", 380, func(w *worker, _ context.Context) error { return w.ask("read", daemon.Args{"path": "small.txt"}) }},
	{"ls", 80, func(w *worker, _ context.Context) error { return w.ask("ls", daemon.Args{"path": "src"}) }},
	{"find", 60, func(w *worker, _ context.Context) error { return w.ask("find", daemon.Args{"pattern": "*.txt"}) }},
	{"grep", 60, func(w *worker, _ context.Context) error { return w.ask("grep", daemon.Args{"pattern": "needle"}) }},
	{"skill_info", 10, func(w *worker, _ context.Context) error { return w.ask("skill_info", nil) }},
	{"write", 110, (*worker).write},
	{"edit", 100, (*worker).edit},
	{"bash", 80, (*worker).bash},
	{"long output", 3, (*worker).longOutput},
	{"replay", 70, (*worker).replay},
	{"operation_wait", 20, (*worker).wait},
	{"reopen", 10, (*worker).reopen},
	{"new thread", 2, (*worker).newThread},
	{"handoff", 10, (*worker).handoff},
	{"cancel", 5, (*worker).cancel},
}

func newWorker(ctx context.Context, s *server, number int) (*worker, error) {
	w := &worker{s: s, number: number, dir: filepath.Join(s.dir, fmt.Sprint("client-", number)), random: rand.New(rand.NewPCG(uint64(number), 7))}
	for i := range 60 {
		text := strings.Repeat("Some text to look through, line by line.\n", 30)
		if i%10 == 3 {
			text += "a needle\n"
		}
		path := filepath.Join(w.dir, "src", fmt.Sprintf("part-%d", i/20), fmt.Sprintf("file-%d.txt", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("make a client's directory: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("make a client's directory: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.dir, "small.txt"), []byte(strings.Repeat("sixteen letters\n", kilobyte/16)), 0o644); err != nil {
		return nil, fmt.Errorf("make a client's directory: %w", err)
	}
	r, err := s.fire(ctx, "workspace_open", daemon.Args{"cwd": w.dir})
	if err != nil {
		return nil, err
	}
	w.workspace, w.thread = r.String("workspace_id"), r.String("thread_id")
	for i := range w.revisions {
		w.revisions[i] = "missing"
	}
	for range 2 {
		if err := w.write(ctx); err != nil {
			return nil, err
		}
	}
	return w, w.bash(ctx)
}

func (w *worker) choose() kind {
	total := 0
	for _, k := range dayMix {
		total += k.share
	}
	n := w.random.IntN(total)
	for _, k := range dayMix {
		if n -= k.share; n < 0 {
			return k
		}
	}
	return dayMix[0]
}

// call makes a call on the worker's connection and checks that it succeeds with some text.
func (w *worker) call(tool string, args daemon.Args) (result daemon.Result, err error) {
	one, err := w.s.shoot(w.number, tool, args, func(r daemon.Result) error {
		result = r
		if r.Text() == "" {
			return errors.New("the answer has no text")
		}
		return nil
	})
	if err != nil {
		return result, err
	}
	if err := one.fire(); err != nil {
		return result, err
	}
	return result, one.after()
}

func (w *worker) ask(tool string, args daemon.Args) error {
	_, err := w.call(tool, with(args, w.workspace))
	return err
}

// change makes a keyed call that gives a file a new revision.
func (w *worker) change(tool string, file int, args daemon.Args) error {
	args["path"] = fmt.Sprintf("changed/file-%d", file)
	args["expected_revision"] = w.revisions[file]
	args = withKey(args, w.workspace)
	r, err := w.call(tool, args)
	if err != nil {
		return err
	}
	w.revisions[file] = r.String("revision")
	if w.last = append(w.last, args); len(w.last) > 20 {
		w.last = w.last[1:]
	}
	return nil
}

func (w *worker) write(context.Context) error {
	content := fmt.Sprintf("first line %d\nsecond line\n%s", w.random.Int64(), strings.Repeat("more text\n", w.random.IntN(200)))
	return w.change("write", w.random.IntN(len(w.revisions)), daemon.Args{"content": content})
}

func (w *worker) edit(ctx context.Context) error {
	file := w.random.IntN(len(w.revisions))
	path := filepath.Join(w.dir, fmt.Sprintf("changed/file-%d", file))
	b, err := os.ReadFile(path)
	if err != nil {
		return w.write(ctx) // it is not there yet
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return w.change("edit", file, daemon.Args{"edits": []daemon.Args{{"oldText": first, "newText": fmt.Sprintf("first line %d", w.random.Int64())}}})
}

func (w *worker) bash(context.Context) error {
	r, err := w.call("bash", withKey(daemon.Args{"command": "echo done; echo more"}, w.workspace))
	w.operation = r.String("operation_id")
	return err
}

func (w *worker) longOutput(context.Context) error {
	_, err := w.call("bash", withKey(daemon.Args{"command": "yes abcdefghijklmno | head -c 200000"}, w.workspace))
	return err
}

func (w *worker) replay(context.Context) error {
	args := w.last[w.random.IntN(len(w.last))]
	tool := "write"
	if _, ok := args["edits"]; ok {
		tool = "edit"
	}
	r, err := w.call(tool, args)
	if err == nil && !r.Replayed() {
		err = errors.New("a repetition does not say so")
	}
	return err
}

func (w *worker) wait(context.Context) error {
	return w.ask("operation_wait", daemon.Args{"operation_id": w.operation, "wait_seconds": 0})
}

// reopen closes the workspace and opens its thread again. Keys belong to a workspace, so what was made in the old
// one cannot be repeated.
func (w *worker) reopen(ctx context.Context) error {
	if err := w.ask("workspace_close", nil); err != nil {
		return err
	}
	r, err := w.call("workspace_open", daemon.Args{"thread_id": w.thread})
	if err != nil {
		return err
	}
	w.workspace, w.last = r.String("workspace_id"), nil
	if err := w.write(ctx); err != nil {
		return err
	}
	return w.bash(ctx)
}

func (w *worker) newThread(context.Context) error {
	r, err := w.call("workspace_open", daemon.Args{"cwd": w.dir, "title": "Something else"})
	if err != nil {
		return err
	}
	_, err = w.call("workspace_close", daemon.Args{"workspace_id": r.String("workspace_id")})
	return err
}

// handoff ends the turn, and the next one begins.
func (w *worker) handoff(ctx context.Context) error {
	if _, err := w.call("work_handoff", withKey(daemon.Args{"reason": "completed", "summary": "All is done, the tests pass."}, w.workspace)); err != nil {
		return err
	}
	return w.bash(ctx)
}

// cancel starts a command and stops it at once.
func (w *worker) cancel(ctx context.Context) error {
	args := withKey(daemon.Args{"command": "sleep 60"}, w.workspace)
	ended := make(chan error, 1)
	go func() {
		r, err := w.s.client.Call(ctx, "bash", args)
		if err == nil && r.Code() != "COMMAND_CANCELLED" {
			err = fmt.Errorf("a cancelled command ends with %q: %s", r.Code(), r.Text())
		}
		ended <- err
	}()
	stop := daemon.Args{"workspace_id": w.workspace, "request_key": args["request_key"]}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		r, err := w.s.client.Call(ctx, "operation_cancel", stop)
		if err != nil {
			return err
		}
		if !r.IsError {
			return <-ended
		}
		if r.Code() != "RECEIPT_NOT_FOUND" || time.Since(began) > time.Minute {
			return fmt.Errorf("operation_cancel: %s: %s", r.Code(), r.Text())
		}
	}
}
