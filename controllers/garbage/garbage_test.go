package garbage_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/garbage"
)

func init() { ctrl.SetLogger(logr.Discard()) }

// world is the real store; collect starts the collector on it.
type world struct {
	*testing.T
	api *server.Server
}

func newWorld(t *testing.T) world {
	t.Helper()
	db, err := storage.Open(storage.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		api.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return world{t, api}
}

// collect runs the collector until the test ends.
func (w world) collect(lookAfter time.Duration) { w.collectBehind(lookAfter, nil) }

// behind is a client whose cache shows something else than there is.
type behind struct {
	client.Client
	change func(client.ObjectList)
}

func (b behind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := b.Client.List(ctx, list, options...)
	if b.change != nil {
		b.change(list)
	}
	return err
}

// collectBehind runs the collector with a cache that is behind.
func (w world) collectBehind(lookAfter time.Duration, change func(client.ObjectList)) {
	w.Helper()
	skip := true
	m, err := ctrl.NewManager(&rest.Config{Host: "in-process"}, ctrl.Options{
		Scheme:         w.api.Scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return w.api.Mapper, nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return w.api.NewCache() },
		NewClient: func(_ *rest.Config, o client.Options) (client.Client, error) {
			return server.NewCachedClient(w.api.Client, o.Cache.Reader), nil
		},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	w.must(err)
	w.must((&garbage.Reconciler{Client: behind{m.GetClient(), change}, Live: w.api.Client, LookAfter: lookAfter}).SetupWithManager(m))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
	if !m.GetCache().WaitForCacheSync(ctx) {
		w.Fatal("the cache did not come up")
	}
	// It is at work once it has removed something; before that it may miss what is deleted.
	nobody := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Project", Name: "none", UID: "none"}
	w.must(w.api.Client.Create(ctx, &v1alpha1.Thread{ObjectMeta: named("t-first", nobody), Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: "none"}, Cwd: "/none", Title: "none"}}))
	w.becomes("first", counts{})
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func named(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name, OwnerReferences: owners}
}

// family makes a project with one thread, its workspace, and runs that were handed off, beside a receipt.
func (w world) family(name string, runs int) {
	w.Helper()
	ctx := context.Background()
	p := &v1alpha1.Project{ObjectMeta: named("p-" + name), Spec: v1alpha1.ProjectSpec{Root: "/" + name, Identity: "directory:/" + name}}
	w.must(w.api.Client.Create(ctx, p))
	t := &v1alpha1.Thread{ObjectMeta: named("t-"+name, v1alpha1.OwnedBy(p)), Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: p.Name}, Cwd: "/" + name, Title: name}}
	w.must(w.api.Client.Create(ctx, t))
	of := v1alpha1.LocalReference{Name: t.Name}
	ws := &v1alpha1.Workspace{ObjectMeta: named("w-"+name, v1alpha1.OwnedBy(t)), Spec: v1alpha1.WorkspaceSpec{ThreadRef: of, Cwd: "/" + name}}
	w.must(w.api.Client.Create(ctx, ws))
	ws.Finalizers = nil // its own reconciler would see to it
	w.must(w.api.Client.Update(ctx, ws))
	for i := range runs {
		run := &v1alpha1.Run{ObjectMeta: named(fmt.Sprintf("r-%s-%d", name, i), v1alpha1.OwnedBy(t)), Spec: v1alpha1.RunSpec{ThreadRef: of, Title: "x"}}
		w.must(w.api.Client.Create(ctx, run))
		run.Status = v1alpha1.RunStatus{Phase: v1alpha1.RunInterrupted}
		w.must(w.api.Client.Status().Update(ctx, run))
		w.must(w.api.Client.Create(ctx, &v1alpha1.Handoff{ObjectMeta: named(v1alpha1.HandoffName(run.Name), v1alpha1.OwnedBy(t)),
			Spec: v1alpha1.HandoffSpec{ThreadRef: of, RunRef: v1alpha1.LocalReference{Name: run.Name}, Reason: v1alpha1.HandoffCompleted, Summary: "x"}}))
		t.Status.Runs = append([]v1alpha1.LocalReference{{Name: run.Name}}, t.Status.Runs[:min(len(t.Status.Runs), 19)]...)
	}
	w.must(w.api.Client.Status().Update(ctx, t))
	op := &v1alpha1.Operation{ObjectMeta: named(v1alpha1.OperationName(ws.Name, "key")), Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: ws.Name},
		ThreadRef: &of, Tool: v1alpha1.ToolBash, RequestKey: "key", ArgumentsDigest: "hmac-sha256:" + fmt.Sprintf("%064d", 0)}}
	w.must(w.api.Client.Create(ctx, op))
}

// counts are the objects of a family that are left: threads, workspaces, runs, handoffs, receipts.
type counts [5]int

func (w world) left(name string) (n counts) {
	w.Helper()
	for i, list := range []client.ObjectList{&v1alpha1.ThreadList{}, &v1alpha1.WorkspaceList{}, &v1alpha1.RunList{}, &v1alpha1.HandoffList{}, &v1alpha1.OperationList{}} {
		w.must(w.api.Client.List(context.Background(), list, client.InNamespace(v1alpha1.Namespace)))
		w.must(meta.EachListItem(list, func(o runtime.Object) error {
			if threadOf(o) == "t-"+name {
				n[i]++
			}
			return nil
		}))
	}
	return n
}

// threadOf returns the name of the thread that an object is or belongs to.
func threadOf(o runtime.Object) string {
	switch o := o.(type) {
	case *v1alpha1.Thread:
		return o.Name
	case *v1alpha1.Workspace:
		return o.Spec.ThreadRef.Name
	case *v1alpha1.Run:
		return o.Spec.ThreadRef.Name
	case *v1alpha1.Handoff:
		return o.Spec.ThreadRef.Name
	case *v1alpha1.Operation:
		return o.Spec.ThreadRef.Name
	}
	return ""
}

func (w world) becomes(name string, want counts) {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if w.left(name) == want {
			return
		}
	}
	w.Fatalf("family %s: %v are left, not %v", name, w.left(name), want)
}

func (w world) delete(o client.Object, name string, options ...client.DeleteOption) {
	w.Helper()
	o.SetNamespace(v1alpha1.Namespace)
	o.SetName(name)
	w.must(w.api.Client.Delete(context.Background(), o, options...))
}

// A project takes all with it that it owns, and nothing of others; receipts stay.
func TestDependentsGo(t *testing.T) {
	w := newWorld(t)
	w.family("a", 3)
	w.family("b", 2)
	w.family("many", 25) // more than its thread names
	w.collect(time.Hour)
	w.delete(&v1alpha1.Project{}, "p-a")
	w.becomes("a", counts{0, 0, 0, 0, 1})
	w.delete(&v1alpha1.Thread{}, "t-many")
	w.becomes("many", counts{0, 0, 0, 0, 1})
	w.becomes("b", counts{1, 1, 2, 2, 1})
	w.delete(&v1alpha1.Run{}, "r-b-0")
	w.becomes("b", counts{1, 1, 1, 1, 1})
}

// Foreground: the owner stays until what it owns is gone.
func TestForeground(t *testing.T) {
	w := newWorld(t)
	w.family("a", 25)
	w.delete(&v1alpha1.Project{}, "p-a", client.PropagationPolicy(metav1.DeletePropagationForeground))
	w.delete(&v1alpha1.Thread{}, "t-a", client.PropagationPolicy(metav1.DeletePropagationForeground))
	p := &v1alpha1.Project{}
	w.must(w.api.Client.Get(t.Context(), server.Key("p-a"), p))
	if p.DeletionTimestamp.IsZero() {
		t.Error("the project is not marked as deleted")
	}
	w.collect(time.Hour)
	w.becomes("a", counts{0, 0, 0, 0, 1})
	for deadline := time.Now().Add(time.Minute); w.api.Client.Get(t.Context(), server.Key("p-a"), p) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the project is still there")
		}
	}
}

// Orphan: what it owned stays and belongs to nobody, so that a later collection leaves it alone.
func TestOrphan(t *testing.T) {
	w := newWorld(t)
	w.family("a", 25)
	w.collect(time.Hour)
	w.delete(&v1alpha1.Thread{}, "t-a", client.PropagationPolicy(metav1.DeletePropagationOrphan))
	w.becomes("a", counts{0, 1, 25, 25, 1})
	w.delete(&v1alpha1.Project{}, "p-a")
	w.family("b", 1)
	w.delete(&v1alpha1.Project{}, "p-b")
	w.becomes("b", counts{0, 0, 0, 0, 1})
	w.becomes("a", counts{0, 1, 25, 25, 1})
}

// A crash after the owner was deleted and before the rest: the next life finds it.
func TestCrashBetween(t *testing.T) {
	w := newWorld(t)
	w.family("a", 3)
	w.delete(&v1alpha1.Project{}, "p-a")
	w.family("b", 3)
	w.delete(&v1alpha1.Thread{}, "t-b") // its workspace is in the cache, its runs and handoffs are not
	w.collect(time.Second)
	w.becomes("a", counts{0, 0, 0, 0, 1})
	w.becomes("b", counts{0, 0, 0, 0, 1})
}

// A cache that is behind still shows an owner that an object no longer has: the object stays.
func TestCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	w.family("a", 0)
	w.family("b", 0)
	before := &v1alpha1.WorkspaceList{}
	w.must(w.api.Client.List(t.Context(), before))
	for _, ws := range before.DeepCopy().Items {
		if ws.Name == "w-a" {
			ws.OwnerReferences = nil
			w.must(w.api.Client.Update(t.Context(), &ws))
		}
	}
	w.collectBehind(time.Hour, func(list client.ObjectList) {
		if ws, ok := list.(*v1alpha1.WorkspaceList); ok {
			before.DeepCopyInto(ws)
		}
	})
	w.delete(&v1alpha1.Thread{}, "t-a")
	w.delete(&v1alpha1.Thread{}, "t-b")
	w.becomes("b", counts{0, 0, 0, 0, 1})
	w.becomes("a", counts{0, 1, 0, 0, 1})
}

// A cache that is behind does not show yet what a deleted owner has: with orphan it stays all the same.
func TestOrphanOfACacheThatIsBehind(t *testing.T) {
	w := newWorld(t)
	w.family("a", 1)
	w.family("b", 1)
	w.collectBehind(time.Hour, func(list client.ObjectList) {
		switch list := list.(type) {
		case *v1alpha1.WorkspaceList:
			list.Items = nil
		case *v1alpha1.ThreadList:
			list.Items = nil
		}
	})
	w.delete(&v1alpha1.Project{}, "p-a", client.PropagationPolicy(metav1.DeletePropagationOrphan))
	w.delete(&v1alpha1.Thread{}, "t-b", client.PropagationPolicy(metav1.DeletePropagationOrphan))
	w.becomes("b", counts{0, 1, 1, 1, 1})
	for deadline := time.Now().Add(time.Minute); w.api.Client.Get(t.Context(), server.Key("p-a"), &v1alpha1.Project{}) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the project is still there")
		}
	}
	for _, o := range []struct {
		name string
		of   client.Object
	}{{"t-a", &v1alpha1.Thread{}}, {"w-b", &v1alpha1.Workspace{}}, {"r-b-0", &v1alpha1.Run{}}, {v1alpha1.HandoffName("r-b-0"), &v1alpha1.Handoff{}}} {
		w.must(w.api.Client.Get(t.Context(), server.Key(o.name), o.of))
		if owners := o.of.GetOwnerReferences(); len(owners) > 0 {
			t.Errorf("%T %s still has the owner %v", o.of, o.name, owners)
		}
	}
}

// What is made and closed costs a look at itself, and a thread that goes a look at what is open: the threads, which may
// be very many, are not gone through.
func TestThreadsAreNotListed(t *testing.T) {
	w := newWorld(t)
	w.family("a", 1)
	var lists atomic.Int32
	w.collectBehind(time.Hour, func(list client.ObjectList) {
		if _, ok := list.(*v1alpha1.ThreadList); ok {
			lists.Add(1)
		}
	})
	w.family("b", 1)
	w.delete(&v1alpha1.Workspace{}, "w-a")
	w.becomes("a", counts{1, 0, 1, 1, 1})
	w.delete(&v1alpha1.Thread{}, "t-b")
	w.becomes("b", counts{0, 0, 0, 0, 1})
	if n := lists.Load(); n > 0 {
		t.Errorf("threads were listed %d times", n)
	}
	w.delete(&v1alpha1.Project{}, "p-a")
	w.becomes("a", counts{0, 0, 0, 0, 1})
	if n := lists.Load(); n == 0 {
		t.Error("lists are not counted")
	}
}
