package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestModel makes random sequences of calls, repetitions, cancels, closes, stops and kills, and compares every
// answer and the world after every step with a small model of the contract. The seed is printed; what fails is
// shrunk.
func TestModel(t *testing.T) {
	seed := rand.Uint64() | 1
	t.Logf("seed %d", seed)
	for name, value := range map[string]any{"rapid.seed": seed, "rapid.checks": length(2, 8, 200), "rapid.steps": 20, "rapid.nofailfile": true, "rapid.shrinktime": "60s"} {
		f := flag.Lookup(name)
		if given(name) { // by whoever looks for a fault
			continue
		}
		old := f.Value.String()
		if err := f.Value.Set(fmt.Sprint(value)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(old) }) // it was valid
	}
	h := newHouse(t)
	h.begin(t)
	root := realDir(t)
	sequences, steps := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		sequences++
		m := newModel(rt, t, h, filepath.Join(root, fmt.Sprint(sequences)))
		rt.Repeat(map[string]func(*rapid.T){
			"write": m.write, "edit": m.edit, "command": m.command, "read": m.read,
			"repeat": m.repeat, "conflict": m.conflict, "cancel what is over": m.cancelOver, "cancel what runs": m.cancelRunning,
			"close": m.close, "stop": m.stop, "kill": m.kill, "die in a call": m.interrupted,
			"": func(rt *rapid.T) { steps++; m.compare(rt) },
		})
	})
	t.Logf("%d sequences, %d steps", sequences, steps)
}

func given(name string) (is bool) {
	flag.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}

// model is what the contract says the world looks like.
type model struct {
	t         *testing.T
	h         *house
	c         *daemon.Client
	dir       string
	workspace string
	files     map[string]string // content; a missing file is not there
	log       map[string]int    // lines that commands appended
	perhaps   map[string]bool   // lines of uncertain commands
	past      []*past
	keys      int
}

// past is a call that is over.
type past struct {
	tool    string
	args    daemon.Args
	code    string // of its failure; "" is success
	forgets bool   // its full result was in the memory of an earlier life
}

func newModel(rt *rapid.T, t *testing.T, h *house, dir string) *model {
	if err := mkdir(dir); err != nil {
		rt.Fatal(err)
	}
	m := &model{t: t, h: h, c: h.daemon.Client(), dir: dir, files: map[string]string{}, log: map[string]int{}, perhaps: map[string]bool{}}
	m.open(rt)
	return m
}

func (m *model) open(rt *rapid.T) {
	m.workspace = m.call(rt, "workspace_open", daemon.Args{"cwd": m.dir}).String("workspace_id")
	if m.workspace == "" {
		rt.Fatal("no workspace")
	}
}

// call makes a call that must be answered.
func (m *model) call(rt *rapid.T, tool string, args daemon.Args) daemon.Result {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := m.c.Call(ctx, tool, args)
	if err != nil {
		rt.Fatalf("%s %v: %v", tool, args, err)
	}
	return r
}

func (m *model) keyed(more daemon.Args) daemon.Args {
	m.keys++
	return with(daemon.Args{"workspace_id": m.workspace, "request_key": fmt.Sprintf("k%d", m.keys)}, more)
}

// over notes a call that was answered, after comparing its code.
func (m *model) over(rt *rapid.T, tool string, args daemon.Args, r daemon.Result, code string) {
	if r.IsError != (code != "") || code != "" && r.Code() != code {
		rt.Fatalf("%s %v: want code %q: %s", tool, args, code, r.Raw)
	}
	if r.Replayed() {
		rt.Fatalf("%s %v: a first call is no replay: %s", tool, args, r.Raw)
	}
	m.past = append(m.past, &past{tool: tool, args: args, code: code})
}

func (m *model) write(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "file")
	stale := rapid.Bool().Draw(rt, "stale")
	args := m.keyed(daemon.Args{"path": name, "content": fmt.Sprintf("line %d\n", m.keys), "expected_revision": revision(m.t, filepath.Join(m.dir, name))})
	code := ""
	if stale {
		args["expected_revision"], code = "sha256:"+strings.Repeat("0", 64), "REVISION_CONFLICT"
	}
	r := m.call(rt, "write", args)
	m.over(rt, "write", args, r, code)
	if code == "" {
		m.files[name] = args["content"].(string)
	}
}

func (m *model) edit(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "file")
	old, there := m.files[name]
	if !there {
		rt.Skip("nothing to edit")
	}
	absent := rapid.Bool().Draw(rt, "absent")
	args := m.keyed(daemon.Args{"path": name, "expected_revision": revision(m.t, filepath.Join(m.dir, name))})
	find, code := strings.TrimSuffix(old, "\n"), ""
	if absent {
		find, code = "nobody wrote this", "EXECUTION_FAILED"
	}
	now := fmt.Sprintf("edited %d", m.keys)
	args["edits"] = []daemon.Args{{"oldText": find, "newText": now}}
	m.over(rt, "edit", args, m.call(rt, "edit", args), code)
	if code == "" {
		m.files[name] = now + "\n"
	}
}

func (m *model) command(rt *rapid.T) {
	exit := rapid.SampledFrom([]int{0, 3}).Draw(rt, "exit")
	args := m.keyed(nil)
	key := m.line(args)
	args["command"] = fmt.Sprintf("echo %s >> log; exit %d", key, exit)
	code := ""
	if exit != 0 {
		code = "COMMAND_FAILED"
	}
	m.over(rt, "bash", args, m.call(rt, "bash", args), code)
	m.log[key] = 1
}

// line is what a command appends: keys are of a workspace, the log is of all.
func (m *model) line(args daemon.Args) string {
	return args["workspace_id"].(string)[:8] + "-" + args["request_key"].(string)
}

func (m *model) read(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "file")
	content, there := m.files[name]
	r := m.call(rt, "read", daemon.Args{"workspace_id": m.workspace, "path": name})
	if r.IsError == there || there && (strings.TrimSuffix(r.Text(), "\n") != strings.TrimSuffix(content, "\n") || r.String("revision") != revision(m.t, filepath.Join(m.dir, name))) {
		rt.Fatalf("read %s: want %q: %s", name, content, r.Raw)
	}
}

func (m *model) pick(rt *rapid.T) *past {
	if len(m.past) == 0 {
		rt.Skip("nothing was called yet")
	}
	return rapid.SampledFrom(m.past).Draw(rt, "call")
}

// repeat makes a call again with the same key and arguments, perhaps after its workspace was closed.
func (m *model) repeat(rt *rapid.T) {
	p := m.pick(rt)
	r := m.call(rt, p.tool, p.args)
	code := p.code
	if p.forgets && code != "OUTCOME_UNCERTAIN" {
		code = "RECORDED_OUTCOME"
	}
	if !r.Replayed() || r.IsError != (p.code != "") || r.Code() != code {
		rt.Fatalf("%s %v again: want code %q: %s", p.tool, p.args, code, r.Raw)
	}
	if p.forgets && p.code != "" && r.String("original_code") != p.code {
		rt.Fatalf("%s %v again: the original code was %q: %s", p.tool, p.args, p.code, r.Raw)
	}
}

// conflict uses the key of a call for another one.
func (m *model) conflict(rt *rapid.T) {
	p := m.pick(rt)
	other := with(p.args, daemon.Args{"command": "echo stolen >> log"})
	delete(other, "path")
	delete(other, "content")
	delete(other, "edits")
	delete(other, "expected_revision")
	if r := m.call(rt, "bash", other); r.Code() != "REQUEST_KEY_CONFLICT" {
		rt.Fatalf("the key of %s %v for another call: %s", p.tool, p.args, r.Raw)
	}
}

// cancelOver cancels what is over: that changes nothing.
func (m *model) cancelOver(rt *rapid.T) {
	p := m.pick(rt)
	r := m.call(rt, "operation_cancel", daemon.Args{"workspace_id": p.args["workspace_id"], "request_key": p.args["request_key"]})
	want := "completed"
	switch p.code {
	case "":
	case "OUTCOME_UNCERTAIN":
		want = "uncertain"
	default:
		want = "failed"
	}
	if r.IsError || r.String("status") != want || r.String("code") != p.code {
		rt.Fatalf("cancel of %s %v, which is over: want %s and code %q: %s", p.tool, p.args, want, p.code, r.Raw)
	}
}

// cancelRunning starts a command and cancels it.
func (m *model) cancelRunning(rt *rapid.T) {
	args := m.keyed(nil)
	key := m.line(args)
	args["command"] = "echo " + key + " >> log; sleep 60"
	answered := make(chan daemon.Result, 1)
	go func() {
		r, _ := m.c.Call(context.Background(), "bash", args) // an empty result is compared below
		answered <- r
	}()
	eventually(m.t, "the command runs", func() bool { return lines(m.t, filepath.Join(m.dir, "log"))[key] > 0 })
	if r := m.call(rt, "operation_cancel", daemon.Args{"workspace_id": m.workspace, "request_key": args["request_key"]}); r.String("code") != "COMMAND_CANCELLED" {
		rt.Fatalf("cancel: %s", r.Raw)
	}
	m.over(rt, "bash", args, <-answered, "COMMAND_CANCELLED")
	m.log[key] = 1
}

// close closes the workspace; new calls in it are refused. Another one goes on in the folder.
func (m *model) close(rt *rapid.T) {
	if r := m.call(rt, "workspace_close", daemon.Args{"workspace_id": m.workspace}); r.IsError {
		rt.Fatalf("close: %s", r.Raw)
	}
	if r := m.call(rt, "bash", m.keyed(daemon.Args{"command": "echo closed >> log"})); r.Code() != "WORKSPACE_EXPIRED" {
		rt.Fatalf("a call in a closed workspace: %s", r.Raw)
	}
	m.open(rt)
}

func (m *model) stop(rt *rapid.T) {
	if code, err := m.h.daemon.Stop(); err != nil || code != 0 {
		rt.Fatalf("stop: %d, %v", code, err)
	}
	m.revive(rt)
}

func (m *model) kill(rt *rapid.T) {
	if err := m.h.daemon.Kill(); err != nil {
		rt.Fatal(err)
	}
	m.revive(rt)
}

func (m *model) revive(rt *rapid.T) {
	if err := m.h.daemon.Restart(); err != nil {
		rt.Fatal(err)
	}
	for _, p := range m.past {
		p.forgets = true
	}
}

// interrupted kills the daemon while it works on a call, and repeats the call after a restart.
func (m *model) interrupted(rt *rapid.T) {
	tool := rapid.SampledFrom([]string{"bash", "write"}).Draw(rt, "tool")
	after := time.Duration(rapid.IntRange(0, 30).Draw(rt, "milliseconds")) * time.Millisecond
	args := m.keyed(nil)
	key := m.line(args)
	if tool == "bash" {
		args["command"] = "echo " + key + " >> log"
	} else {
		args["path"], args["content"], args["expected_revision"] = "a", key+"\n", revision(m.t, filepath.Join(m.dir, "a"))
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = m.c.Call(context.Background(), tool, args) // answered or not: the repetition is compared
	}()
	time.Sleep(after)
	if err := m.h.daemon.Signal(syscall.SIGKILL); err != nil {
		rt.Fatal(err)
	}
	m.kill(rt)
	<-gone
	r := m.call(rt, tool, args)
	p := &past{tool: tool, args: args, forgets: r.Code() == "RECORDED_OUTCOME"}
	m.past = append(m.past, p)
	switch {
	case !r.IsError && tool == "bash":
		m.log[key] = 1
	case !r.IsError:
		m.files["a"] = key + "\n"
	case tool == "bash" && r.Code() == "OUTCOME_UNCERTAIN":
		p.code, m.perhaps[key] = r.Code(), true
	default:
		rt.Fatalf("%s %v after a kill: %s", tool, args, r.Raw)
	}
}

// compare looks at the world.
func (m *model) compare(rt *rapid.T) {
	for _, name := range []string{"a", "b"} {
		content, there := m.files[name]
		if path := filepath.Join(m.dir, name); exists(path) != there || text(m.t, path) != content {
			rt.Fatalf("%s holds %q, want %q", name, text(m.t, path), content)
		}
	}
	got := lines(m.t, filepath.Join(m.dir, "log"))
	for key, n := range got {
		if n != m.log[key] && !(m.perhaps[key] && n == 1) {
			rt.Fatalf("the log has %d lines %s, want %d", n, key, m.log[key])
		}
	}
	for key, n := range m.log {
		if got[key] != n {
			rt.Fatalf("the log has %d lines %s, want %d", got[key], key, n)
		}
	}
	if left := temporary(m.t, m.dir); len(left) > 0 {
		rt.Fatalf("temporary files: %v", left)
	}
}
