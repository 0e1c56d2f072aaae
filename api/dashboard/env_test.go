package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// patience is how long a test waits for what must come; the machine may be busy.
const patience = 30 * time.Second

// env is a dashboard on a real API and a real store, served as cmd/rig-bridge serves it but for the guard.
type env struct {
	*Dashboard
	client client.WithWatch
	url    string

	mu      sync.Mutex
	ahead   time.Duration // of the clock
	clients []status.Client
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvIn(t, t.TempDir())
}

func newEnvIn(t *testing.T, dir string) *env {
	t.Helper()
	db, err := storage.Open(storage.Options{Dir: filepath.Join(dir, "store"), Logger: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &env{client: s.Client, clients: []status.Client{}}
	e.Dashboard, err = New(ctx, Options{
		Client: s.Client, Durable: s.WaitDurable, KeyFile: filepath.Join(dir, "key"), Port: 8767, Version: "1.2.3", Account: "me", Host: "here", Home: "/home/me",
		Describe: func(op *v1alpha1.Operation) (string, bool) {
			return "about " + op.Spec.RequestKey, op.Spec.RequestKey != ""
		},
		Clients: e.heard, Log: testr.New(t), Now: e.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, routes := range []Routes{e.API(), e.Owner(), e.Page()} {
		for pattern, h := range routes {
			mux.Handle(pattern, e.Protect(h))
		}
	}
	over := httptest.NewServer(mux)
	e.url = over.URL
	t.Cleanup(func() {
		over.CloseClientConnections()
		over.Close()
		cancel()
		s.Close()
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return e
}

func (e *env) now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Add(e.ahead)
}

func (e *env) pass(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ahead += d
}

func (e *env) heard() []status.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clients
}

// send sends a request; the answer's body is the caller's to read and close.
func (e *env) send(t *testing.T, method, path, body string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// ask sends a request and returns the answer with its body read.
func (e *env) ask(t *testing.T, method, path, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	resp := e.send(t, method, path, body, header)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// code asks for a link and returns its code.
func (e *env) code(t *testing.T) string {
	t.Helper()
	resp, body := e.ask(t, "POST", "/api/login-link", `{"fragment":"thread=t1"}`, nil)
	var link struct {
		URL              string
		ExpiresInSeconds int
	}
	if err := json.Unmarshal([]byte(body), &link); err != nil || resp.StatusCode != 200 || link.ExpiresInSeconds != 60 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	code, ok := strings.CutPrefix(link.URL, "http://127.0.0.1:8767/login#code=")
	if !ok || !strings.HasSuffix(code, "&thread=t1") {
		t.Fatalf("the link is %s", link.URL)
	}
	return strings.TrimSuffix(code, "&thread=t1")
}

// cookie logs in and returns the header of a browser's requests.
func (e *env) cookie(t *testing.T) http.Header {
	t.Helper()
	resp, body := e.ask(t, "POST", "/api/login", fmt.Sprintf(`{"code":%q}`, e.code(t)), http.Header{"Origin": {e.url}})
	if resp.StatusCode != http.StatusNoContent || len(resp.Cookies()) != 1 {
		t.Fatalf("login: %d %s %v", resp.StatusCode, body, resp.Header)
	}
	c := resp.Cookies()[0]
	return http.Header{"Cookie": {c.Name + "=" + c.Value}, "Origin": {e.url}, "Sec-Fetch-Site": {"same-origin"}}
}

// told is one line of a stream.
type told struct {
	Type, Version, Description string
	Object                     struct {
		Kind       string
		APIVersion string
		Metadata   struct {
			Name, UID     string
			ManagedFields any
		}
		Spec struct{ Acknowledged, Cancel bool }
	}
	Clients []status.Client
}

// lines reads a stream in the background; its channel is closed when the stream ends.
func (e *env) lines(t *testing.T, header http.Header) <-chan told {
	t.Helper()
	resp := e.send(t, "GET", "/api/watch", "", header)
	if resp.StatusCode != 200 {
		t.Fatalf("watch: %d", resp.StatusCode)
	}
	out := make(chan told, 10_000)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		for in := bufio.NewReader(resp.Body); ; {
			b, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var l told
			if err := json.Unmarshal(b, &l); err != nil {
				t.Errorf("line %q: %v", b, err)
				return
			}
			out <- l
		}
	}()
	return out
}

// until reads lines up to one that fits, and returns them all.
func until(t *testing.T, lines <-chan told, fits func(told) bool) (seen []told) {
	t.Helper()
	guard := time.After(patience)
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended after %v", seen)
			}
			if seen = append(seen, l); fits(l) {
				return seen
			}
		case <-guard:
			t.Fatalf("never came; %d lines, the last %v", len(seen), seen[max(0, len(seen)-3):])
		}
	}
}

func ofType(name string) func(told) bool { return func(l told) bool { return l.Type == name } }

func about(kind, name string) func(told) bool {
	return func(l told) bool { return l.Object.Kind == kind && l.Object.Metadata.Name == name }
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: name}
}

func newProject(name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: named(name), Spec: v1alpha1.ProjectSpec{Root: "/srv/" + name, Identity: "directory:/srv/" + name}}
}

func newThread(name string) *v1alpha1.Thread {
	return &v1alpha1.Thread{ObjectMeta: named(name), Spec: v1alpha1.ThreadSpec{ProjectRef: v1alpha1.LocalReference{Name: "p"}, Cwd: "/srv/p", Title: name}}
}

func newWorkspace(name string) *v1alpha1.Workspace {
	return &v1alpha1.Workspace{ObjectMeta: named(name), Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"}, Cwd: "/srv/p"}}
}

func newHandoff(name string) *v1alpha1.Handoff {
	return &v1alpha1.Handoff{ObjectMeta: named(name), Spec: v1alpha1.HandoffSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"},
		RunRef: v1alpha1.LocalReference{Name: "r"}, Reason: v1alpha1.HandoffCompleted, Summary: "Done."}}
}

func newRun(name string) *v1alpha1.Run {
	return &v1alpha1.Run{ObjectMeta: named(name), Spec: v1alpha1.RunSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"}}}
}

func newCommand(workspace, key string) *v1alpha1.Operation {
	return &v1alpha1.Operation{ObjectMeta: named(v1alpha1.OperationName(workspace, key)),
		Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: workspace}, Tool: v1alpha1.ToolBash, RequestKey: key,
			ArgumentsDigest: "hmac-sha256:" + strings.Repeat("0", 64)}}
}

func (e *env) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := e.client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// over sets an operation's outcome.
func over(o *v1alpha1.Operation, at time.Time) {
	apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSucceeded})
	o.Status.Phase = v1alpha1.OperationSucceeded
	end := metav1.NewMicroTime(at)
	o.Status.CompletionTime = &end
}

// finish writes an operation's outcome.
func (e *env) finish(t *testing.T, o *v1alpha1.Operation, at time.Time) {
	t.Helper()
	over(o, at)
	if err := e.client.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
