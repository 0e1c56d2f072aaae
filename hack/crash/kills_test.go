package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestRandomKills kills the daemon at random moments under the load of 16 clients that write, edit, run commands
// and read. After each start every client repeats what was not answered, as an assistant would, and asks again for
// what was. At the end no effect is there twice, none that was answered is lost, and no temporary file is left.
func TestRandomKills(t *testing.T) {
	const clients = 16
	rounds := length(30, 60, 300)
	h := newHouse(t)
	h.begin(t)
	root := realDir(t)
	workers := make([]*worker, clients)
	for i := range workers {
		workers[i] = newWorker(t, h, filepath.Join(root, fmt.Sprint(i)))
	}
	var starts []time.Duration
	for round := range rounds {
		underLoad(t, h, workers, time.Duration(rand.IntN(250))*time.Millisecond)
		h.daemon.Revive(t)
		starts = append(starts, h.daemon.StartupTime())
		each(workers, func(w *worker) { w.settle(t, round) })
		if t.Failed() {
			t.FailNow()
		}
	}
	var total tally
	for _, w := range workers {
		w.check(t)
		total.add(w.tally)
	}
	slices.Sort(starts)
	t.Logf("%d kills of a daemon with %d clients: %+v; start-up median %v, longest %v", rounds, clients, total, starts[len(starts)/2], starts[len(starts)-1])
	if total.answered == 0 || total.repeated == 0 {
		t.Error("nothing was answered or nothing was interrupted: the test proved nothing")
	}
}

// underLoad lets the workers work, kills the daemon after a while and returns when all have noticed.
func underLoad(t *testing.T, h *house, workers []*worker, after time.Duration) {
	t.Helper()
	ctx := bounded(t, 2*time.Minute)
	var working sync.WaitGroup
	for _, w := range workers {
		working.Go(func() {
			for w.step(ctx, t) {
			}
		})
	}
	time.Sleep(after)
	h.kill(t)
	working.Wait()
}

func each(workers []*worker, f func(*worker)) {
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() { f(w) })
	}
	wg.Wait()
}

// tally counts what happened to calls.
type tally struct{ answered, repeated, recovered, uncertain, replayed int }

func (t *tally) add(o tally) {
	t.answered += o.answered
	t.repeated += o.repeated
	t.recovered += o.recovered
	t.uncertain += o.uncertain
	t.replayed += o.replayed
}

// keyed is one call with a key.
type keyed struct {
	tool, key string
	args      daemon.Args
}

// worker is one client with a folder that nobody else changes.
type worker struct {
	tally
	client    *daemon.Client
	dir       string
	workspace string
	renamed   *renames
	calls     int

	open    *keyed          // sent, not answered
	fresh   []keyed         // answered since the last start
	done    []keyed         // all answered
	edited  []string        // keys of edits, in order
	perhaps map[string]bool // keys of commands that may have run
}

func newWorker(t *testing.T, h *house, dir string) *worker {
	t.Helper()
	if err := mkdir(dir); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "list"), "END\n")
	c := h.daemon.Client()
	return &worker{client: c, dir: dir, workspace: c.Open(t, dir), renamed: watchRenames(t, dir), perhaps: map[string]bool{}}
}

// next makes the next call: a large write, an edit, a command, by turns and at random.
func (w *worker) next(t *testing.T) keyed {
	w.calls++
	k := keyed{key: fmt.Sprintf("c%d", w.calls)}
	k.args = daemon.Args{"workspace_id": w.workspace, "request_key": k.key}
	switch rand.IntN(3) {
	case 0:
		k.tool = "write"
		k.args["path"], k.args["content"], k.args["expected_revision"] = k.key+".txt", large(k.key), "missing"
	case 1:
		k.tool = "edit"
		k.args["path"], k.args["expected_revision"] = "list", revision(t, filepath.Join(w.dir, "list"))
		k.args["edits"] = []daemon.Args{{"oldText": "END\n", "newText": k.key + "\nEND\n"}}
	default:
		k.tool = "bash"
		k.args["command"] = fmt.Sprintf("echo %s >> log; sleep 0.0%d", k.key, rand.IntN(5))
	}
	return k
}

// large is a text known from its key and long enough to be torn.
func large(key string) string { return strings.Repeat(key+"\n", 5000) }

// step reads or sends the next mutation. It returns false when the daemon is gone.
func (w *worker) step(ctx context.Context, t *testing.T) bool {
	if rand.IntN(4) == 0 {
		_, err := w.client.Call(ctx, "read", daemon.Args{"workspace_id": w.workspace, "path": "list"})
		return err == nil
	}
	k := w.next(t)
	w.open = &k
	r, err := w.client.Call(ctx, k.tool, k.args)
	if err != nil {
		return false
	}
	if r.IsError {
		t.Errorf("%s %s: %s: %s", k.tool, k.key, r.Code(), r.Text())
		return false
	}
	w.answered(k)
	w.fresh = append(w.fresh, k)
	return true
}

func (w *worker) answered(k keyed) {
	w.open = nil
	w.tally.answered++
	w.done = append(w.done, k)
	if k.tool == "edit" {
		w.edited = append(w.edited, k.key)
	}
}

// settle repeats what was answered, which must be remembered, and what was not, which must come to an end.
func (w *worker) settle(t *testing.T, round int) {
	ctx := bounded(t, 2*time.Minute)
	for _, k := range w.fresh {
		r, err := w.client.Call(ctx, k.tool, k.args)
		if err != nil || r.IsError || !r.Replayed() {
			t.Errorf("round %d: %s %s was answered before the kill, and now: %v %s", round, k.tool, k.key, err, r.Raw)
		}
		w.replayed++
	}
	w.fresh = nil
	if w.open == nil {
		return
	}
	k := *w.open
	w.repeated++
	r, err := w.client.Call(ctx, k.tool, k.args)
	switch {
	case err == nil && !r.IsError:
		if r.String("reason") == "RecoveredAfterCrash" {
			w.recovered++
		}
		w.answered(k)
	case err == nil && k.tool == "bash" && r.Code() == "OUTCOME_UNCERTAIN":
		w.perhaps[k.key], w.open = true, nil
		w.tally.uncertain++
	default:
		t.Errorf("round %d: %s %s sent again: %v %s", round, k.tool, k.key, err, r.Raw)
	}
}

// check compares the folder with what was answered.
func (w *worker) check(t *testing.T) {
	t.Helper()
	ran := lines(t, filepath.Join(w.dir, "log"))
	for _, k := range w.done {
		switch k.tool {
		case "write":
			if n := w.renamed.of(t, k.key+".txt"); n != 1 {
				t.Errorf("write %s happened %d times", k.key, n)
			}
			if text(t, filepath.Join(w.dir, k.key+".txt")) != large(k.key) {
				t.Errorf("write %s: the file is torn", k.key)
			}
		case "bash":
			if ran[k.key] != 1 {
				t.Errorf("command %s ran %d times", k.key, ran[k.key])
			}
		}
	}
	for key := range w.perhaps {
		if ran[key] > 1 {
			t.Errorf("uncertain command %s ran %d times", key, ran[key])
		}
	}
	if got, want := text(t, filepath.Join(w.dir, "list")), strings.Join(append(w.edited, "END\n"), "\n"); got != want {
		t.Errorf("%s: the edited list differs: %d bytes, want %d", w.dir, len(got), len(want))
	}
	if n := w.renamed.of(t, "list"); n != len(w.edited) {
		t.Errorf("%s: %d renames for %d edits", w.dir, n, len(w.edited))
	}
	noTemporary(t, w.dir)
}
