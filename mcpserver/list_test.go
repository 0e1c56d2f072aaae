package mcpserver

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// known makes a store with a project and that many threads, and calls on it. Those used last have 20 runs each:
// more than a page shows.
func known(t testing.TB, threads int) *Calls {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db, err := storage.Open(storage.Options{})
	must(err)
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "test"})
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name}
	}
	must(api.Client.Create(ctx, &v1alpha1.Project{ObjectMeta: meta("p"), Spec: v1alpha1.ProjectSpec{Root: "/p", Identity: "directory:/p"}}))
	for i := range threads {
		th := &v1alpha1.Thread{ObjectMeta: meta(fmt.Sprintf("t-%d", i)), Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: "p"}, Cwd: "/p", Title: "Some work"}}
		must(api.Client.Create(ctx, th))
		used := metav1.NewMicroTime(time.Unix(1_700_000_000-int64(i), 0))
		th.Status.LastUsedTime = &used
		for j := range 20 {
			name := fmt.Sprintf("r-%d-%d", i, j)
			if th.Status.Runs = append(th.Status.Runs, v1alpha1.LocalReference{Name: name}); i >= 30 {
				continue
			}
			r := &v1alpha1.Run{ObjectMeta: meta(name), Spec: v1alpha1.RunSpec{ThreadRef: v1alpha1.LocalReference{Name: th.Name}, Title: "Some work"}}
			must(api.Client.Create(ctx, r))
			r.Status = v1alpha1.RunStatus{Phase: "Completed", StartTime: &used, CompletionTime: &used, Summary: "All is done", HandoffRef: &v1alpha1.LocalReference{Name: name}}
			must(api.Client.Status().Update(ctx, r))
		}
		must(api.Client.Status().Update(ctx, th))
	}
	cached, err := api.NewCache()
	must(err)
	must(cached.IndexField(ctx, &v1alpha1.Operation{}, indexWorkspace, func(o client.Object) []string { return []string{o.(*v1alpha1.Operation).Spec.WorkspaceRef.Name} }))
	ended := make(chan error, 1)
	go func() { ended <- cached.Start(ctx) }()
	for _, kind := range []client.Object{&v1alpha1.Project{}, &v1alpha1.Thread{}, &v1alpha1.Workspace{}, &v1alpha1.Operation{}} {
		_, err := cached.GetInformer(ctx, kind)
		must(err)
	}
	if !cached.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not come up")
	}
	t.Cleanup(func() {
		cancel()
		<-ended
		api.Close()
		must(db.Close())
	})
	c := &Calls{Client: api.Client, Cache: cached}
	must(c.followThreads(ctx))
	return c
}

// What a page costs does not grow with the threads that it does not show.
func TestListDoesNotGrow(t *testing.T) {
	few, many := known(t, 30), known(t, 5000)
	cost := func(c *Calls) testing.BenchmarkResult {
		return testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := c.listWorkspaces(context.Background(), "workspace_list", []byte(`{}`)); r.IsError {
					b.Fatal(r)
				}
			}
		})
	}
	a, b := cost(few), cost(many)
	if a.AllocedBytesPerOp()*5 < b.AllocedBytesPerOp()*4 || a.AllocsPerOp()*5 < b.AllocsPerOp()*4 {
		t.Errorf("of 30 threads: %s; of 5000: %s", a.MemString(), b.MemString())
	}
}

// Threads come in the order of their last use, each once, whatever has an open workspace and wherever a page begins.
func TestOrder(t *testing.T) {
	var o order
	thread := func(i int, used int64) *v1alpha1.Thread {
		at := metav1.NewMicroTime(time.UnixMicro(used))
		return &v1alpha1.Thread{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%02d", i)},
			Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: "p"}}, Status: v1alpha1.ThreadStatus{LastUsedTime: &at}}
	}
	for i := range 20 {
		o.OnAdd(thread(i, int64(1000+i%7)), true)
	}
	o.OnUpdate(nil, thread(3, 5000))
	o.OnDelete(thread(4, 1))
	o.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: thread(5, 1)})
	if u := o.of("p"); u.threads != 18 || u.last != 5000 {
		t.Errorf("the project has %+v", u)
	}
	var moved []candidate
	for name, used := range map[string]int64{"t07": 9000, "t08": 1003, "t09": 1} { // first, in the midst, last
		c, _ := o.get(name)
		c.used = used
		moved = append(moved, c)
	}
	slices.SortFunc(moved, func(a, b candidate) int { return a.compare(b.position) })
	tree, n := o.snapshot()
	all := slices.Collect(from(tree, nil, moved))
	if n != 18 || len(all) != n || all[0].name != "t07" || all[1].name != "t03" || all[17].name != "t09" || !slices.IsSortedFunc(all, func(a, b candidate) int { return a.compare(b.position) }) {
		t.Errorf("%d threads: %v", n, all)
	}
	for i := range all {
		rest := slices.Collect(from(tree, &all[i].position, moved))
		if !slices.EqualFunc(rest, all[i+1:], func(a, b candidate) bool { return a.position == b.position }) {
			t.Errorf("after %v come %v", all[i].position, rest)
		}
		if first, _ := pull(from(tree, nil, moved)); first.name != "t07" { // ending early is allowed
			t.Error(first)
		}
	}
}

func pull(s iter.Seq[candidate]) (candidate, bool) {
	for c := range s {
		return c, true
	}
	return candidate{}, false
}

func BenchmarkList(b *testing.B) {
	for _, threads := range []int{10, 5000} {
		b.Run(fmt.Sprint(threads), func(b *testing.B) {
			c := known(b, threads)
			b.ReportAllocs()
			for b.Loop() {
				if r := c.listWorkspaces(b.Context(), "workspace_list", []byte(`{}`)); r.IsError {
					b.Fatal(r)
				}
			}
		})
	}
}
