package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

const (
	kills        = 100
	crashClients = 6
	oldReceipts  = 10_000
	startLimit   = 15 * time.Second // the aim is one second; other work shares the machine
)

// TestKill ends the daemon with SIGKILL again and again while several clients write, edit and run
// commands. After each restart the clients send what was not answered again, as an assistant would. At
// the end each mutation has happened exactly once (a command at most once, and then its receipt says
// uncertain), and no file is torn.
func TestKill(t *testing.T) {
	rounds, receipts := kills, oldReceipts
	if testing.Short() {
		rounds, receipts = 10, 500
	}
	d := daemon.Start(t, daemon.Options{})
	writers := make([]*writer, crashClients)
	for i := range writers {
		writers[i] = newWriter(t, d)
	}
	writers[0].fillReceipts(t, receipts)
	var starts []time.Duration
	for round := range rounds {
		crash(t, d, writers, time.Duration(rand.IntN(300))*time.Millisecond)
		d.Revive(t)
		starts = append(starts, d.StartupTime())
		eachWriter(writers, func(w *writer) { w.settle(t, round) })
		if t.Failed() {
			t.FailNow()
		}
	}
	done := 0
	for _, w := range writers {
		w.checkWorld(t)
		done += len(w.done)
	}
	slices.Sort(starts)
	t.Logf("%d kills, %d mutations, %d of them sent again, %d uncertain commands, %d receipts beforehand; start-up: median %v, longest %v",
		rounds, done, total(writers, func(w *writer) int { return w.resent }), total(writers, func(w *writer) int { return len(w.uncertain) }),
		receipts, starts[len(starts)/2], starts[len(starts)-1])
	if longest := starts[len(starts)-1]; longest > startLimit {
		t.Errorf("a start took %v", longest)
	}
	if done == 0 {
		t.Error("no mutation was answered: the test proved nothing")
	}
}

// crash lets the writers work for a while, kills the daemon and waits until they have noticed.
func crash(t *testing.T, d *daemon.Daemon, writers []*writer, after time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var working sync.WaitGroup
	for _, w := range writers {
		working.Go(func() {
			for alive := true; alive; {
				alive = ctx.Err() == nil && w.step(ctx, t)
			}
		})
	}
	time.Sleep(after)
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	working.Wait()
}

func eachWriter(writers []*writer, f func(*writer)) {
	var wg sync.WaitGroup
	for _, w := range writers {
		wg.Go(func() { f(w) })
	}
	wg.Wait()
}

func total(writers []*writer, f func(*writer) int) (n int) {
	for _, w := range writers {
		n += f(w)
	}
	return n
}

// mutation is one call with a key.
type mutation struct {
	tool string
	args daemon.Args
	key  string
}

// writer is one client with a directory of its own, so that nobody else changes its files.
type writer struct {
	client    *daemon.Client
	dir       string
	workspace string
	random    *rand.Rand
	listed    []string // keys that the list file must hold, in order

	pending   *mutation       // sent, not answered
	fresh     []mutation      // answered since the last restart
	done      []mutation      // all answered
	uncertain map[string]bool // keys of commands that may or may not have run
	resent    int
}

const listEnd = "END\n"

func newWriter(t *testing.T, d *daemon.Daemon) *writer {
	w := &writer{client: d.Client(), dir: realDir(t), random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), uncertain: map[string]bool{}}
	put(t, filepath.Join(w.dir, "list.txt"), listEnd)
	w.workspace = w.client.Open(t, w.dir)
	return w
}

// fillReceipts makes finished receipts without touching files: writes that conflict.
func (w *writer) fillReceipts(t *testing.T, n int) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range n / 16 {
				r, err := w.client.Call(t.Context(), "write", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(),
					"path": "list.txt", "content": "never", "expected_revision": "missing"})
				if err != nil || r.Code() != "REVISION_CONFLICT" {
					t.Errorf("a write that must conflict: %v %s", err, r.Text())
					return
				}
			}
		})
	}
	wg.Wait()
}

// step sends the next mutation. It returns false when the daemon is gone.
func (w *writer) step(ctx context.Context, t *testing.T) bool {
	m := w.next(t)
	w.pending = &m
	r, err := w.client.Call(ctx, m.tool, m.args)
	if err != nil {
		return false
	}
	if r.IsError {
		t.Errorf("%s %s: %s: %s", m.tool, m.key, r.Code(), r.Text())
		return false
	}
	w.answered(m)
	return true
}

func (w *writer) answered(m mutation) {
	w.pending = nil
	w.fresh = append(w.fresh, m)
	w.done = append(w.done, m)
	if m.tool == "edit" {
		w.listed = append(w.listed, m.key)
	}
}

func (w *writer) next(t *testing.T) mutation {
	key := daemon.Key()
	m := mutation{key: key, args: daemon.Args{"workspace_id": w.workspace, "request_key": key}}
	switch w.random.IntN(3) {
	case 0:
		m.tool = "write"
		m.args["path"], m.args["content"], m.args["expected_revision"] = key+".txt", content(key), "missing"
	case 1:
		m.tool = "edit"
		m.args["path"], m.args["expected_revision"] = "list.txt", revision(t, filepath.Join(w.dir, "list.txt"))
		m.args["edits"] = []daemon.Args{{"oldText": listEnd, "newText": key + "\n" + listEnd}}
	default:
		m.tool = "bash"
		m.args["command"] = "echo " + key + " >> ran.log"
	}
	return m
}

// content is the text of a file, known from its key and long enough to be torn.
func content(key string) string { return strings.Repeat(key+"\n", 10_000) }

// settle does what an assistant does after a lost connection: the same calls again. The one without an
// answer must come to an end; the answered ones must be remembered.
func (w *writer) settle(t *testing.T, round int) {
	for _, m := range w.fresh {
		r, err := w.client.Call(t.Context(), m.tool, m.args)
		if err != nil || r.IsError || !r.Replayed() {
			t.Errorf("round %d: %s %s was answered before the kill, but now: %v isError %v replayed %v: %s", round, m.tool, m.key, err, r.IsError, r.Replayed(), r.Text())
		}
	}
	w.fresh = nil
	if w.pending == nil {
		return
	}
	m := *w.pending
	w.resent++
	r, err := w.client.Call(t.Context(), m.tool, m.args)
	switch {
	case err == nil && !r.IsError:
		w.answered(m)
		w.fresh = nil
	case err == nil && m.tool == "bash" && r.Code() == "OUTCOME_UNCERTAIN":
		w.uncertain[m.key] = true
		w.pending = nil
	default:
		t.Errorf("round %d: %s %s sent again: %v %s: %s", round, m.tool, m.key, err, r.Code(), r.Text())
	}
}

// checkWorld compares the directory with what was answered.
func (w *writer) checkWorld(t *testing.T) {
	t.Helper()
	ran := map[string]int{}
	if exists(filepath.Join(w.dir, "ran.log")) {
		for _, key := range strings.Fields(text(t, filepath.Join(w.dir, "ran.log"))) {
			ran[key]++
		}
	}
	known := map[string]bool{"list.txt": true, "ran.log": true}
	for _, m := range w.done {
		switch m.tool {
		case "write":
			known[m.key+".txt"] = true
			if text(t, filepath.Join(w.dir, m.key+".txt")) != content(m.key) {
				t.Errorf("write %s: the file is torn", m.key)
			}
		case "bash":
			if ran[m.key] != 1 {
				t.Errorf("bash %s ran %d times", m.key, ran[m.key])
			}
		}
	}
	for key, n := range ran {
		if w.uncertain[key] && n > 1 {
			t.Errorf("uncertain bash %s ran %d times", key, n)
		}
	}
	if got, want := text(t, filepath.Join(w.dir, "list.txt")), strings.Join(append(w.listed, listEnd), "\n"); got != want {
		t.Errorf("the edited list differs: %d bytes, want %d", len(got), len(want))
	}
	eventually(t, "no temporary file is left in "+w.dir, func() bool { return len(unknownFiles(t, w.dir, known)) == 0 })
}

func unknownFiles(t *testing.T, dir string, known map[string]bool) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestUncertainCommand kills the daemon while a command runs: the command is never run again, and its
// receipt says so.
func TestUncertainCommand(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := realDir(t)
	args := daemon.Args{"workspace_id": client.Open(t, dir), "request_key": daemon.Key(), "command": "echo start >> log; sleep 3; echo end >> log"}
	gone := make(chan error, 1)
	go func() {
		_, err := client.Call(context.Background(), "bash", args)
		gone <- err
	}()
	eventually(t, "the command has started", func() bool { return exists(filepath.Join(dir, "log")) })
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err == nil {
		t.Error("a killed daemon answered")
	}
	d.Revive(t)
	for range 2 {
		r := client.Fails(t, "OUTCOME_UNCERTAIN", "bash", args)
		if !r.Replayed() || r.String("tool") != "bash" || r.String("status") != "uncertain" || r.String("cwd") != dir {
			t.Errorf("the receipt says too little: %s", r.Raw)
		}
	}
	client.Fails(t, "REQUEST_KEY_CONFLICT", "bash", copyArgs(args, daemon.Args{"command": "true"}))
	if got := strings.Count(text(t, filepath.Join(dir, "log")), "start"); got != 1 {
		t.Errorf("the command was started %d times", got)
	}
	client.OK(t, "bash", copyArgs(args, daemon.Args{"request_key": daemon.Key(), "command": "true"})) // the workspace lives
}

// TestDamagedLog cuts the newest log of the store, as a power cut may: the daemon starts, and what was
// answered well before is still known.
func TestDamagedLog(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	workspace := client.Open(t, realDir(t))
	first := daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "true"}
	client.OK(t, "bash", first)
	for i := range 50 {
		client.OK(t, "bash", daemon.Args{"workspace_id": workspace, "request_key": fmt.Sprint("later", i), "command": "true"})
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	cutNewestLog(t, d.StateDir(), 1000)
	d.Revive(t)
	if r := client.OK(t, "bash", first); !r.Replayed() {
		t.Errorf("an old receipt was lost: %s", r.Raw)
	}
}

// cutNewestLog removes bytes before the zeros that pad the memory table's log.
func cutNewestLog(t *testing.T, state string, cut int) {
	t.Helper()
	var newest string
	var changed time.Time
	err := filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".mem" {
			return err
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(changed) {
			newest, changed = path, info.ModTime()
		}
		return err
	})
	if err != nil || newest == "" {
		t.Fatalf("no log of a memory table below %s: %v", state, err)
	}
	b := []byte(text(t, newest))
	end := len(strings.TrimRight(string(b), "\x00"))
	if end < cut {
		t.Fatalf("%s holds only %d bytes", newest, end)
	}
	clear(b[end-cut:])
	if err := os.WriteFile(newest, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
