package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/browser"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

func TestMain(m *testing.M) {
	code := m.Run()
	browser.Shut()
	os.Exit(code)
}

// env is a daemon, an assistant's client, and perhaps a browser that is logged in.
type env struct {
	*daemon.Daemon
	assistant *daemon.Client
	dir       string // the assistant's project
	browser   *browser.Browser
}

// newEnv starts a daemon whose port stays the same when it is started again.
func newEnv(t *testing.T) *env {
	t.Helper()
	port, err := daemon.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Options{Port: port})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &env{Daemon: d, assistant: d.Client(), dir: dir}
}

// opened starts a daemon and a browser with a tab that was logged in by a link.
func opened(t *testing.T, fragment string) (*env, *browser.Tab) {
	t.Helper()
	b := browser.Start(t)
	e := newEnv(t)
	e.browser = b
	return e, e.open(t, fragment)
}

// open opens a tab by a new link and waits until it shows the present.
func (e *env) open(t *testing.T, fragment string) *browser.Tab {
	t.Helper()
	tab := e.browser.Open(t, e.link(t, fragment))
	tab.Shows(t, "Live")
	return tab
}

// rigctl runs rigctl and returns what it prints.
func (e *env) rigctl(t *testing.T, args ...string) string {
	t.Helper()
	path, err := daemon.Build("rigctl")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--state-dir", e.StateDir()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("rigctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

var linkForm = regexp.MustCompile(`^http://127\.0\.0\.1:\d+/login#code=([A-Z2-7]{26})(&\S+)?\n$`)

// link asks for a login link. With a fragment it shows something.
func (e *env) link(t *testing.T, fragment string) string {
	t.Helper()
	args := []string{"dashboard", "--print"}
	if fragment != "" {
		args = append(args, "--show", fragment)
	}
	out := e.rigctl(t, args...)
	if !linkForm.MatchString(out) {
		t.Fatal("rigctl dashboard printed something else than a link")
	}
	return strings.TrimSpace(out)
}

// work is one thread that an assistant works in.
type work struct{ workspace, project, thread string }

// begin opens a workspace on a new thread.
func (e *env) begin(t *testing.T, title string) work {
	t.Helper()
	r := e.assistant.OK(t, "workspace_open", daemon.Args{"cwd": e.dir, "title": title})
	return work{r.String("workspace_id"), r.String("project_id"), r.String("thread_id")}
}

// command starts a command that goes on after the answer, and returns its operation.
func (e *env) command(t *testing.T, w work, command string) string {
	t.Helper()
	r := e.assistant.OK(t, "bash", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(), "command": command, "wait_seconds": 1, "timeout": 3600})
	id := r.String("operation_id")
	if r.String("status") != "running" || id == "" {
		t.Fatalf("the command does not run: %s", r.Text())
	}
	return id
}

// run runs a command to its end.
func (e *env) run(t *testing.T, w work, command string) daemon.Result {
	t.Helper()
	return e.assistant.Must(t, "bash", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(), "command": command})
}

// handOff says that it is the person's turn and returns the handoff's id.
func (e *env) handOff(t *testing.T, w work, reason, summary string) string {
	t.Helper()
	return e.assistant.OK(t, "work_handoff", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(), "reason": reason, "summary": summary}).String("handoff_id")
}

// pipe makes a named pipe, by which a test makes a command go on: a command that reads it waits for tell.
func (e *env) pipe(t *testing.T, name string) {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(e.dir, name), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tell writes into a pipe that a command reads.
func (e *env) tell(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// axe is the source of axe-core, or the test is skipped.
func axe(t *testing.T) []byte {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(daemon.Root(), "hack/e2e/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Skip("needs the npm package axe-core: hack/test installs it")
	}
	return source
}

// eventually waits until a condition of the daemon's side holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(browser.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("still not: %s", what)
}

// status reads the status document with the bearer.
func (e *env) status(t *testing.T) (s struct {
	UnreadCount, ActiveCommandsCount int
	Clients                          []struct{ Name, LastMethod, LastTool string }
	Workspaces                       []struct {
		ID          string
		LastCommand *struct {
			Description string
			Success     bool
		}
	}
}) {
	t.Helper()
	resp := e.ask(t, http.MethodGet, "/api/status", "", http.Header{"Authorization": {e.Authorization()}})
	if err := json.Unmarshal([]byte(resp.body), &s); err != nil || resp.status != http.StatusOK {
		t.Fatalf("%d %s", resp.status, resp.body)
	}
	return s
}

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	body   string
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
