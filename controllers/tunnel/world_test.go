package tunnel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/server"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
	"github.com/rigbridge/rigbridge/controllers/runner"
)

func init() { ctrl.SetLogger(logr.Discard()) }

// The secrets of a world. They must be nowhere but in their files.
const (
	theKey   = "sk-marker-0123456789abcdef"
	theToken = "marker-token-0123456789abcdef0123456789abcdef"
)

// standIn builds the stand-in client once.
var standIn = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tunnelclient-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, Program)
	out, err := exec.Command("go", "build", "-o", path, "../../hack/e2e/tunnelclient").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the stand-in: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := standIn(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// world is the real store and real processes, with a clock, a control plane and routes that tests turn.
type world struct {
	*Reconciler
	t      testing.TB
	api    *server.Client
	bin    string // the folder of the stand-in
	key    client.ObjectKey
	routes *turnedRoutes

	mu     sync.Mutex
	ahead  time.Duration
	cutOff bool
	dialed []string
}

type turnedRoutes struct {
	mu      sync.Mutex
	current string
}

func (r *turnedRoutes) Current() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

func (r *turnedRoutes) turn(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = to
}

func (*turnedRoutes) Watched() bool                       { return true }
func (*turnedRoutes) Watch(ctx context.Context, _ func()) { <-ctx.Done() }

func newWorld(t testing.TB) *world {
	t.Helper()
	program, err := standIn()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &world{t: t, bin: UserBin(filepath.Join(dir, "home")), key: server.Key("chatgpt"), routes: &turnedRoutes{current: "a"}}
	db, err := storage.Open(storage.Options{Dir: filepath.Join(dir, "store"), MaxObjectBytes: 96 << 10})
	w.must(err)
	api, err := server.New(server.Options{DB: db, Exchange: exchange.New(), Version: "test"})
	w.must(err)
	w.api = api.Client
	w.must(errors.Join(os.MkdirAll(w.bin, 0o755), os.Mkdir(filepath.Join(dir, "tunnels"), 0o700)))
	b, err := os.ReadFile(program)
	w.must(err)
	w.must(os.WriteFile(filepath.Join(w.bin, Program), b, 0o755))
	write(t, filepath.Join(dir, "token"), "Bearer "+theToken+"\n", 0o600)
	write(t, filepath.Join(dir, "key"), theKey+"\n", 0o600)
	w.Reconciler = &Reconciler{
		Client: w.api, Live: w.api, Runner: runner.New(), Now: w.now, Log: logr.Discard(), Dir: filepath.Join(dir, "tunnels"),
		ServerURL: func() string { return "http://127.0.0.1:1/mcp" }, TokenFile: filepath.Join(dir, "token"),
		Environ: func(context.Context) []string { return []string{"PATH=/usr/bin:/bin"} }, Home: filepath.Join(dir, "home"),
		Routes: w.routes, Dial: w.dial,
	}
	t.Cleanup(func() {
		w.must(w.Halt(context.Background()))
		api.Close()
		w.must(db.Close())
		if b, err := os.ReadFile(filepath.Join(w.bin, "violations")); err == nil {
			t.Errorf("two clients were alive at once: %s", b)
		}
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
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

func (w *world) dial(_ context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialed = append(w.dialed, address)
	if w.cutOff {
		return nil, errors.New("cut off")
	}
	ours, theirs := net.Pipe()
	return ours, theirs.Close()
}

func (w *world) reachable(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutOff = !yes
}

// behave says how the client behaves from now on.
func (w *world) behave(how ...string) {
	write(w.t, filepath.Join(w.bin, "behaviour"), strings.Join(how, "\n"), 0o644)
}

// heal has the client work, by the clock that tests turn.
func (w *world) heal() { w.behave("poll=" + time.Until(w.now()).Round(time.Second).String()) }

// lives are the clients that were started so far.
func (w *world) lives() (n int) {
	b, _ := os.ReadFile(filepath.Join(w.bin, "lives")) // none yet
	return bytes.Count(b, []byte("\n"))
}

func (w *world) life(i int) (l struct {
	PID       int
	Args, Env []string
}) {
	b, err := os.ReadFile(filepath.Join(w.bin, "lives"))
	w.must(err)
	w.must(json.Unmarshal(bytes.Split(b, []byte("\n"))[i], &l))
	return l
}

// create makes the tunnel.
func (w *world) create(change ...func(*v1alpha1.Tunnel)) *v1alpha1.Tunnel {
	w.t.Helper()
	t := &v1alpha1.Tunnel{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}, Spec: v1alpha1.TunnelSpec{
		TunnelID: "tunnel_0123456789abcdef0123456789abcdef", Credential: v1alpha1.CredentialReference{File: filepath.Join(filepath.Dir(w.Dir), "key")}}}
	for _, c := range change {
		c(t)
	}
	w.must(w.api.Create(w.t.Context(), t))
	return t
}

func (w *world) change(f func(*v1alpha1.Tunnel)) {
	w.t.Helper()
	t := w.get()
	f(t)
	w.must(w.api.Update(w.t.Context(), t))
}

// get returns the tunnel, nil if it is gone.
func (w *world) get() *v1alpha1.Tunnel {
	w.t.Helper()
	t := &v1alpha1.Tunnel{}
	if err := w.api.Get(w.t.Context(), w.key, t); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// turn looks at the tunnel again and again until it is as wanted. It fails after a minute.
func (w *world) turn(what string, wanted func(*v1alpha1.Tunnel) bool) *v1alpha1.Tunnel {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: w.key}); err != nil {
			w.t.Fatal(err)
		}
		t := w.get()
		if wanted(t) {
			return t
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("still not: %s: %+v", what, t)
		}
	}
}

// settle looks until nothing is under way and nothing is to be done at this time.
func (w *world) quiet() *v1alpha1.Tunnel {
	w.t.Helper()
	return w.turn("quiet", func(*v1alpha1.Tunnel) bool {
		w.Reconciler.mu.Lock()
		s := w.tunnels[w.key]
		w.Reconciler.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		d := decide(w.observe(s))
		return !s.busy && (s.child == nil || s.child.running()) && (d.do == wait || d.do == rest)
	})
}

func ready(t *v1alpha1.Tunnel) metav1.Condition {
	if t == nil {
		return metav1.Condition{}
	}
	if c := apimeta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func isReady(t *v1alpha1.Tunnel) bool { return ready(t).Status == metav1.ConditionTrue }

func because(reason string) func(*v1alpha1.Tunnel) bool {
	return func(t *v1alpha1.Tunnel) bool { return ready(t).Reason == reason }
}

// running are the clients of the tunnel that run, by the mark that they carry.
func running(t *v1alpha1.Tunnel) int {
	_, _, list := process.Marked(string(t.UID))
	return len(list)
}
