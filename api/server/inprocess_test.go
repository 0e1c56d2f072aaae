package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	apistorage "k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func startCache(t *testing.T, e *env) cache.Cache {
	t.Helper()
	c, err := e.NewCache()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the cache ended: %v", err)
		}
	})
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not fill")
	}
	return c
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("still not: %s", what)
}

// The cache holds what controllers work on: finished operations are kept by the hundred thousand.
func TestCacheHoldsActiveOperationsOnly(t *testing.T) {
	e := newEnv(t)
	before := newOperation("ws", "before", v1alpha1.ToolBash)
	create(t, e.Client, before)
	finish(t, e.Client, before)
	c := startCache(t, e)
	count := func() int {
		var list v1alpha1.OperationList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if n := count(); n != 0 {
		t.Errorf("the cache begins with %d operations that are over", n)
	}
	o, read := newOperation("ws", "key", v1alpha1.ToolBash), newRead("ws", "reading")
	create(t, e.Client, o, read)
	eventually(t, "both are cached", func() bool { return count() == 2 })
	cached := NewCachedClient(e.Client, c)
	if err := cached.Get(t.Context(), client.ObjectKeyFromObject(o), &v1alpha1.Operation{}); err != nil {
		t.Error(err)
	}
	finish(t, cached, o)
	eventually(t, "the finished one is dropped", func() bool { return count() == 1 })
	if err := cached.Get(t.Context(), client.ObjectKeyFromObject(o), &v1alpha1.Operation{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cache still has what is over: %v", err)
	}
	reread(t, e.Client, o) // the store has it
}

// Watchers read what others read at the same time: each sees every change, in order and as it was made. With the
// race detector this also tells whether anybody writes to an object that somebody else has.
func TestWatchersSeeEveryChange(t *testing.T) {
	e := newEnv(t)
	const watchers, changes = 4, 20
	var watches []watch.Interface
	for range watchers {
		w, err := e.Client.Watch(t.Context(), &v1alpha1.ProjectList{}, client.InNamespace(v1alpha1.Namespace))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		watches = append(watches, w)
	}
	p := newProject("shared")
	create(t, e.Client, p)
	for i := range changes {
		p.Spec.DisplayName = fmt.Sprint(i) // the writer's own object stays the writer's
		if err := e.Client.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	seen := make([][]*v1alpha1.Project, watchers)
	var all sync.WaitGroup
	for i, w := range watches {
		all.Go(func() {
			for len(seen[i]) < changes+1 {
				e, ok := <-w.ResultChan()
				if !ok {
					return
				}
				if got, ok := e.Object.(*v1alpha1.Project); ok && e.Type != watch.Bookmark {
					_ = got.DeepCopy()
					seen[i] = append(seen[i], got)
				}
			}
		})
	}
	all.Wait()
	for i := range seen {
		if len(seen[i]) != changes+1 {
			t.Fatalf("watcher %d saw %d of %d events", i, len(seen[i]), changes+1)
		}
		for j, got := range seen[i] {
			if got == p {
				t.Errorf("event %d is the writer's own object", j)
			}
			if want := fmt.Sprint(j - 1); j > 0 && got.Spec.DisplayName != want {
				t.Errorf("event %d of watcher %d says %q, want %q", j, i, got.Spec.DisplayName, want)
			}
		}
	}
}

// What Get and List hand out is the caller's: changing it changes nothing for others.
func TestReadObjectsAreTheCallers(t *testing.T) {
	e := newEnv(t)
	p := newProject("mine")
	p.Labels = map[string]string{"a": "b"}
	create(t, e.Client, p)
	p.Labels["a"] = "written to what was created"
	var got v1alpha1.Project
	if err := e.Client.Get(t.Context(), Key("mine"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Labels["a"] != "b" {
		t.Errorf("the store has %q", got.Labels["a"])
	}
	got.Labels["a"] = "written to what was read"
	var list v1alpha1.ProjectList
	if err := e.Client.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d, %v", len(list.Items), err)
	}
	if list.Items[0].Labels["a"] != "b" {
		t.Errorf("the store has %q", list.Items[0].Labels["a"])
	}
}

func TestNotOfferedInProcess(t *testing.T) {
	c := newEnv(t).Client
	p := newProject("p")
	create(t, c, p)
	for what, err := range map[string]error{
		"a subresource but status": c.SubResource("scale").Update(t.Context(), p),
		"reading a subresource":    c.SubResource("status").Get(t.Context(), p, p),
		"creating a subresource":   c.Status().Create(t.Context(), p, p),
		"apply":                    c.Apply(t.Context(), nil),
	} {
		if !errors.Is(err, errNotInProcess) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Creating is the atomic claim of a request key: of many at once, one succeeds.
func TestOneClaimWins(t *testing.T) {
	e := newEnv(t)
	const callers = 16
	results := make([]error, callers)
	var all sync.WaitGroup
	for i := range results {
		all.Go(func() { results[i] = e.Client.Create(t.Context(), newOperation("ws", "key", v1alpha1.ToolBash)) })
	}
	all.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d callers claimed the key", won, callers)
	}
}

func TestWaitDurable(t *testing.T) {
	e := newEnv(t)
	p := newProject("durable")
	create(t, e.Client, p)
	if err := e.WaitDurable(t.Context(), p.ResourceVersion); err != nil {
		t.Error(err)
	}
	if err := e.WaitDurable(t.Context(), "not a version"); err == nil {
		t.Error("what is no resourceVersion was waited for")
	}
	if err := e.WaitDurable(t.Context(), "999999999"); !apistorage.IsTooLargeResourceVersion(err) {
		t.Errorf("waiting for a version that nobody wrote: %v", err)
	}
}
