package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// past is what a store holds of earlier work. Each run was handed off; of the handoffs every so many is unread.
type past struct{ threads, runs, unreadEvery int }

// fill makes the store of a state directory as years of work would leave it. The threads' directories exist.
func (p past) fill(t testing.TB, stateDir, home string) (threads []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(stateDir, "store")
	must(os.MkdirAll(dir, 0o700))
	db, err := storage.Open(storage.Options{Dir: dir, MaxObjectBytes: maxObject})
	must(err)
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "test"})
	must(err)
	var projects []*v1alpha1.Project
	for i := range 5 {
		root := filepath.Join(home, fmt.Sprint("project-", i))
		must(os.MkdirAll(root, 0o700))
		projects = append(projects, &v1alpha1.Project{ObjectMeta: object(fmt.Sprint("p-", i)), Spec: v1alpha1.ProjectSpec{Root: root, Identity: "directory:" + root}})
		must(api.Client.Create(t.Context(), projects[i]))
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for i := range p.threads {
		project := projects[i%len(projects)]
		threads = append(threads, fmt.Sprintf("t-%04d", i))
		group.Go(func() error { return p.thread(ctx, api.Client, project, threads[i], i) })
	}
	must(group.Wait())
	api.Close()
	must(db.Close())
	return threads
}

func object(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name, OwnerReferences: owners}
}

// thread makes one with its runs and their handoffs.
func (p past) thread(ctx context.Context, c *server.Client, project *v1alpha1.Project, name string, n int) error {
	const summary = "The parser takes nested lists now, all tests pass; the documentation of the format is still to be written."
	used := metav1.NewMicroTime(time.Now().Add(-time.Duration(n) * time.Minute))
	th := &v1alpha1.Thread{ObjectMeta: object(name, v1alpha1.OwnedBy(project)),
		Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: project.Name}, Cwd: project.Spec.Root, Title: "Some work on the parser"}}
	if err := c.Create(ctx, th); err != nil {
		return err
	}
	of := v1alpha1.LocalReference{Name: name}
	for i := range p.runs {
		r := &v1alpha1.Run{ObjectMeta: object(fmt.Sprintf("%s-%d", name, i), v1alpha1.OwnedBy(th)), Spec: v1alpha1.RunSpec{ThreadRef: of, Title: th.Spec.Title}}
		h := &v1alpha1.Handoff{ObjectMeta: object(v1alpha1.HandoffName(r.Name), v1alpha1.OwnedBy(th)),
			Spec: v1alpha1.HandoffSpec{ThreadRef: of, RunRef: v1alpha1.LocalReference{Name: r.Name}, Reason: v1alpha1.HandoffCompleted, Summary: summary}}
		h.Spec.Acknowledged = (n*p.runs+i)%p.unreadEvery != 0
		if err := c.Create(ctx, r); err != nil {
			return err
		}
		r.Status = v1alpha1.RunStatus{Phase: v1alpha1.RunCompleted, StartTime: &used, CompletionTime: &used, Summary: summary, HandoffRef: &v1alpha1.LocalReference{Name: h.Name}}
		if err := c.Status().Update(ctx, r); err != nil {
			return err
		}
		if err := c.Create(ctx, h); err != nil {
			return err
		}
		h.Status = v1alpha1.HandoffStatus{ObservedGeneration: 1, Delivery: v1alpha1.HandoffDelivery{Phase: v1alpha1.DeliverySent}}
		if h.Spec.Acknowledged {
			h.Status.ReadTime = &used
		}
		if err := c.Status().Update(ctx, h); err != nil {
			return err
		}
		th.Status.Runs = append(th.Status.Runs, v1alpha1.LocalReference{Name: r.Name})
	}
	th.Status.ObservedGeneration, th.Status.State, th.Status.LastUsedTime = th.Generation, v1alpha1.ThreadYourTurn, &used
	th.Status.CurrentRunRef = &th.Status.Runs[0]
	return c.Status().Update(ctx, th)
}

// TestOpenDoesNotGrow opens, lists and closes with few threads and with many: what all that costs in memory, with what
// the reconcilers do afterwards, stays the same. The few fill a page of workspace_list already.
func TestOpenDoesNotGrow(t *testing.T) {
	few, many := costOfOpening(t, 150), costOfOpening(t, 2000)
	if 4*many > 5*few {
		t.Errorf("a round allocates %d KB with 150 threads and %d KB with 2,000", few>>10, many>>10)
	}
	t.Logf("a round allocates %d KB with 150 threads and %d KB with 2,000", few>>10, many>>10)
}

// costOfOpening is what a round allocates, in bytes.
func costOfOpening(t *testing.T, threads int) uint64 {
	t.Helper()
	state, dir := t.TempDir(), t.TempDir()
	past{threads, 1, 2}.fill(t, state, dir)
	_, c := running(t, &settings{StateDir: state})
	old := 0
	round := func() {
		for _, args := range []e2e.Args{{"cwd": dir}, {"thread_id": fmt.Sprintf("t-%04d", old)}} {
			opened := call(t, c, "workspace_open", args)
			if opened.IsError {
				t.Fatal(opened.Text())
			}
			call(t, c, "workspace_list", nil)
			call(t, c, "workspace_close", e2e.Args{"workspace_id": opened.String("workspace_id")})
		}
		old++
		time.Sleep(1200 * time.Millisecond) // what is done a moment later is part of it
	}
	round() // whatever is made once, and what the start still does
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const rounds = 4
	for range rounds {
		round()
	}
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) / rounds
}

// TestScale measures what earlier work costs: the start, the memory, and workspace_open and workspace_list over
// HTTP, with ten threads and with 5,000 of 20 runs each, in turns. It asserts nothing about time; run it alone:
//
//	RIG_BRIDGE_MEASURE=1 go test ./cmd/rig-bridge -run Scale -v
func TestScale(t *testing.T) {
	if os.Getenv("RIG_BRIDGE_MEASURE") == "" {
		t.Skip("measures, and is run by hand with RIG_BRIDGE_MEASURE=1")
	}
	few, many := newScaled(t, past{10, 20, 50}), newScaled(t, past{5000, 20, 50})
	for range 3 {
		for _, s := range []*scaled{few, many} {
			s.restart(t)
		}
	}
	const rounds = 200
	for range rounds {
		for _, s := range []*scaled{few, many} {
			s.round(t)
		}
	}
	for _, s := range []*scaled{few, many} {
		t.Logf("%d threads: starts %v, of which CPU %v; resident at the start %d MB, now %d MB", s.past.threads, s.starts, s.startCPU, s.resident, residentMB(t, s.d.Pid()))
	}
	for tool := range few.spent {
		a, b := few.spent[tool], many.spent[tool]
		t.Logf("%-26s p50 %v and %v: %.2f; p95 %v and %v: %.2f; CPU each %v and %v: %.2f", tool, a.at(50), b.at(50), ratio(b.at(50), a.at(50)),
			a.at(95), b.at(95), ratio(b.at(95), a.at(95)), a.cpu/rounds, b.cpu/rounds, ratio(b.cpu, a.cpu))
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// scaled is a daemon on a store with a past.
type scaled struct {
	past     past
	threads  []string
	d        *e2e.Daemon
	c        *e2e.Client
	starts   []time.Duration
	startCPU []time.Duration
	resident int
	spent    map[string]*spent
	n        int
}

// spent is the time of the calls of a tool and the daemon's processor time for them.
type spent struct {
	all []time.Duration
	cpu time.Duration
}

func (s *spent) at(percent int) time.Duration {
	slices.Sort(s.all)
	return s.all[min(len(s.all)*percent/100, len(s.all)-1)].Round(time.Microsecond)
}

func newScaled(t *testing.T, p past) *scaled {
	t.Helper()
	s := &scaled{past: p, spent: map[string]*spent{}}
	state, home := t.TempDir(), t.TempDir()
	s.threads = p.fill(t, state, home)
	var err error
	if s.d, err = e2e.Launch(e2e.Options{StateDir: state, Home: home, Env: []string{"RIG_BRIDGE_CHECK_OUTPUTS"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.d.Close(); err != nil {
			t.Error(err)
		}
	})
	s.c = s.d.Client()
	return s
}

func (s *scaled) restart(t *testing.T) {
	t.Helper()
	if code, err := s.d.Stop(); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if err := s.d.Restart(); err != nil {
		t.Fatal(err)
	}
	s.starts, s.startCPU = append(s.starts, s.d.StartupTime().Round(time.Millisecond)), append(s.startCPU, s.cpu(t).Round(time.Millisecond))
	time.Sleep(3 * time.Second)
	s.resident = residentMB(t, s.d.Pid())
}

// round opens a new thread and an old one, and lists.
func (s *scaled) round(t *testing.T) {
	t.Helper()
	s.n++
	opened := s.timed(t, "workspace_open, new", "workspace_open", e2e.Args{"cwd": s.d.Home()})
	s.timed(t, "workspace_list", "workspace_list", nil)
	call(t, s.c, "workspace_close", e2e.Args{"workspace_id": opened.String("workspace_id")})
	s.forget(t, opened.String("thread_id"))
	again := s.timed(t, "workspace_open, an old one", "workspace_open", e2e.Args{"thread_id": s.threads[s.n%len(s.threads)]})
	s.timed(t, "workspace_list", "workspace_list", nil)
	call(t, s.c, "workspace_close", e2e.Args{"workspace_id": again.String("workspace_id")})
}

func (s *scaled) timed(t *testing.T, name, tool string, args e2e.Args) e2e.Result {
	t.Helper()
	if s.spent[name] == nil {
		s.spent[name] = &spent{}
	}
	before, begun := s.cpu(t), time.Now()
	res := call(t, s.c, tool, args)
	s.spent[name].all = append(s.spent[name].all, time.Since(begun))
	s.spent[name].cpu += s.cpu(t) - before
	if res.IsError {
		t.Fatal(res.Text())
	}
	return res
}

// forget removes a thread, so that those of the small store stay few.
func (s *scaled) forget(t *testing.T, thread string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.d.Base()+"/apis/rigbridge.dev/v1alpha1/namespaces/default/threads/"+thread, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", s.d.Authorization())
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
}

// cpu is the processor time that the daemon has used (clock_getcpuclockid(3)).
func (s *scaled) cpu(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.d.Pid()<<3|2), &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

func residentMB(t *testing.T, pid int) (mb int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &mb); err == nil {
			return mb / 1024
		}
	}
	return 0
}
