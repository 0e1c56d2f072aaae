package server

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// patience is how long a test waits for what must come; the machine may be busy.
const patience = 30 * time.Second

// env is the API on a store of its own, over HTTP and in process.
type env struct {
	*Server
	exchange *exchange.Exchange
	config   *rest.Config
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvWith(t, storage.Options{})
}

func newEnvWith(t *testing.T, o storage.Options) *env {
	t.Helper()
	o.Dir, o.Logger = t.TempDir(), testr.New(t)
	db, err := storage.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	x := exchange.New()
	s, err := New(Options{DB: db, Exchange: x, Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	over := httptest.NewServer(s.Handler)
	t.Cleanup(func() {
		over.CloseClientConnections()
		over.Close()
		s.Close()
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return &env{Server: s, exchange: x, config: &rest.Config{Host: over.URL, QPS: -1}}
}

// remote returns a client over HTTP.
func (e *env) remote(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(e.config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bothWaysIn runs a test over HTTP and in process, each on a fresh store: what holds for one must hold for the other.
func bothWaysIn(t *testing.T, test func(t *testing.T, c client.WithWatch)) {
	t.Run("HTTP", func(t *testing.T) { test(t, newEnv(t).remote(t)) })
	t.Run("InProcess", func(t *testing.T) { test(t, newEnv(t).Client) })
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name}
}

func newProject(name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: named(name), Spec: v1alpha1.ProjectSpec{Root: "/srv/demo", Identity: "directory:/srv/demo"}}
}

func newWorkspace(name string) *v1alpha1.Workspace {
	return &v1alpha1.Workspace{ObjectMeta: named(name),
		Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: "thread"}, Cwd: "/srv/demo"}}
}

// newOperation returns a durable operation of a tool that is called with a key.
func newOperation(workspace, key string, tool v1alpha1.Tool) *v1alpha1.Operation {
	return &v1alpha1.Operation{ObjectMeta: named(v1alpha1.OperationName(workspace, key)),
		Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: workspace}, Tool: tool, RequestKey: key,
			ArgumentsDigest: "hmac-sha256:" + strings.Repeat("0", 64)}}
}

// newRead returns a volatile operation.
func newRead(workspace, name string) *v1alpha1.Operation {
	return &v1alpha1.Operation{ObjectMeta: named(name),
		Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: workspace}, Tool: v1alpha1.ToolRead}}
}

// finish writes an operation's outcome.
func finish(t *testing.T, c client.Client, o *v1alpha1.Operation) {
	t.Helper()
	apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded})
	o.Status.Phase = v1alpha1.OperationSucceeded
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// gone fails the test if the object is still there.
func gone(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
		t.Errorf("%T %s is still there: %v", o, o.GetName(), err)
	}
}

func reread(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
}

// next returns the next event that is no bookmark.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	for {
		if e := nextOfAny(t, w); e.Type != watch.Bookmark {
			return e
		}
	}
}

func nextOfAny(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		return e
	case <-ctx.Done():
		t.Fatal("no event came")
	}
	return watch.Event{}
}

func nameOf(t *testing.T, e watch.Event) string {
	t.Helper()
	m, err := apimeta.Accessor(e.Object)
	if err != nil {
		t.Fatalf("%s event with %T: %v", e.Type, e.Object, err)
	}
	return m.GetName()
}
