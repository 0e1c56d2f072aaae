package run_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/rigbridge/rigbridge/controllers/event"
	"github.com/rigbridge/rigbridge/controllers/handoff"
	"github.com/rigbridge/rigbridge/controllers/project"
	"github.com/rigbridge/rigbridge/controllers/run"
	"github.com/rigbridge/rigbridge/controllers/thread"
)

func init() { ctrl.SetLogger(logr.Discard()) }

// world is the real store with the reconcilers of work on it, in lives that follow each other.
type world struct {
	t    testing.TB
	dir  string
	stop func() // ends the present life

	client  *server.Client
	cached  client.Client
	runs    *run.Reconciler
	threads *thread.Reconciler
	durable func(ctx context.Context, resourceVersion string) error // nil: the store's own
	desktop desktop

	mu    sync.Mutex
	ahead time.Duration // of the clock
}

// desktop is a person's desktop.
type desktop struct {
	mu    sync.Mutex
	shown []handoff.Notification
	err   error         // of the next notifications
	gate  chan struct{} // if set, each waits for it
}

func (d *desktop) Notify(_ context.Context, n handoff.Notification) error {
	d.mu.Lock()
	d.shown = append(d.shown, n)
	err, gate := d.err, d.gate
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return err
}

func (d *desktop) seen() []handoff.Notification {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.shown)
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, dir: t.TempDir()}
	w.live()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// live begins a life of the daemon, up to where it would admit calls.
func (w *world) live() {
	w.t.Helper()
	db, err := storage.Open(storage.Options{Dir: filepath.Join(w.dir, "store"), MaxObjectBytes: 96 << 10})
	w.must(err)
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "test"})
	w.must(err)
	skip := true
	m, err := ctrl.NewManager(&rest.Config{Host: "in-process"}, ctrl.Options{
		Scheme:         api.Scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return api.Mapper, nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return api.NewCache() },
		NewClient: func(_ *rest.Config, o client.Options) (client.Client, error) {
			return server.NewCachedClient(api.Client, o.Cache.Reader), nil
		},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	w.client, w.cached = api.Client, m.GetClient()
	durable := w.durable
	if durable == nil {
		durable = api.WaitDurable
	}
	events, quiet := event.NewRecorder(api.Client, logr.Discard())
	w.threads = &thread.Reconciler{Client: m.GetClient(), Live: api.Client, Now: w.now}
	w.runs = &run.Reconciler{Client: m.GetClient(), Live: api.Client, Durable: durable, Now: w.now, NewID: uuid.NewString, Used: w.threads.Used, Events: events}
	w.must(errors.Join(w.runs.SetupWithManager(ctx, m), w.threads.SetupWithManager(ctx, m),
		(&event.Reconciler{Client: m.GetClient(), Now: w.now}).SetupWithManager(m),
		(&project.Reconciler{Client: m.GetClient()}).SetupWithManager(m),
		(&handoff.Reconciler{Client: m.GetClient(), Durable: durable, Notifier: &w.desktop, Link: func(thread string) string { return "http://127.0.0.1/#thread=" + thread }, Open: func(thread string) string { return "http://127.0.0.1/login#code=once&thread=" + thread }, Now: w.now, Events: events}).SetupWithManager(m)))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		quiet()
		api.Close()
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}
	if !m.GetCache().WaitForCacheSync(ctx) {
		w.t.Fatal("the cache did not come up")
	}
	w.must(w.runs.Adopt(ctx))
}

// restart ends this life and begins the next.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.live()
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name}
}

// open makes a project, if new, a thread in it and a workspace on that; the last two have the same name.
func (w *world) open(projectName, threadName string) {
	w.t.Helper()
	ctx := context.Background()
	err := w.client.Create(ctx, &v1alpha1.Project{ObjectMeta: named(projectName), Spec: v1alpha1.ProjectSpec{Root: "/" + projectName, Identity: "directory:/" + projectName}})
	if client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
	w.must(w.client.Create(ctx, &v1alpha1.Thread{ObjectMeta: named(threadName),
		Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: projectName}, Cwd: "/" + projectName, Title: "About " + threadName}}))
	w.must(w.client.Create(ctx, &v1alpha1.Workspace{ObjectMeta: named(threadName), Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: threadName}, Cwd: "/" + projectName}}))
	w.eventually("the cache shows the workspace", func() bool {
		return w.cached.Get(ctx, client.ObjectKey{Namespace: v1alpha1.Namespace, Name: threadName}, &v1alpha1.Workspace{}) == nil
	})
}

// close lets a workspace go, as its own reconciler would.
func (w *world) close(name string) {
	w.t.Helper()
	ws := &v1alpha1.Workspace{}
	w.get(name, ws)
	ws.Finalizers = nil
	w.must(w.client.Update(context.Background(), ws))
	w.must(w.client.Delete(context.Background(), ws))
}

func (w *world) get(name string, obj client.Object) {
	w.t.Helper()
	w.must(w.client.Get(context.Background(), client.ObjectKey{Namespace: v1alpha1.Namespace, Name: name}, obj))
}

func (w *world) run(name string) *v1alpha1.Run {
	w.t.Helper()
	r := &v1alpha1.Run{}
	w.get(name, r)
	return r
}

func (w *world) allRuns() []v1alpha1.Run {
	w.t.Helper()
	all := &v1alpha1.RunList{}
	w.must(w.client.List(context.Background(), all, client.InNamespace(v1alpha1.Namespace)))
	return all.Items
}

func (w *world) allHandoffs() []v1alpha1.Handoff {
	w.t.Helper()
	all := &v1alpha1.HandoffList{}
	w.must(w.client.List(context.Background(), all, client.InNamespace(v1alpha1.Namespace)))
	return all.Items
}

func (w *world) begin(threadName string) string {
	w.t.Helper()
	name, err := w.runs.Begin(context.Background(), v1alpha1.Namespace, threadName)
	w.must(err)
	return name
}

func admit() error { return nil }

func (w *world) start(threadName, name, title string) error {
	return w.runs.Start(context.Background(), &v1alpha1.Run{ObjectMeta: named(name),
		Spec: v1alpha1.RunSpec{ThreadRef: v1alpha1.LocalReference{Name: threadName}, Title: title}}, admit)
}

func handoffOf(threadName, runName, operation string) *v1alpha1.Handoff {
	h := &v1alpha1.Handoff{ObjectMeta: named(""), Spec: v1alpha1.HandoffSpec{ThreadRef: v1alpha1.LocalReference{Name: threadName},
		RunRef: v1alpha1.LocalReference{Name: runName}, Reason: v1alpha1.HandoffNeedsInput, Summary: "Look at " + operation}}
	h.Annotations = map[string]string{v1alpha1.AnnotationOperation: operation}
	return h
}

func (w *world) handOff(threadName, runName, operation string) (*v1alpha1.Handoff, error) {
	h := handoffOf(threadName, runName, operation)
	return h, w.runs.HandOff(context.Background(), h, v1alpha1.RunName(operation), admit)
}

func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if condition() {
			return
		}
	}
	w.t.Fatalf("still not: %s", what)
}

// refused fails the test unless the error is a refusal with the reason.
func (w *world) refused(err error, reason string) {
	w.t.Helper()
	var refusal *run.Refusal
	if !errors.As(err, &refusal) || refusal.Reason() != reason || refusal.Error() == "" {
		w.t.Errorf("got %v, want a refusal because of %s", err, reason)
	}
}
