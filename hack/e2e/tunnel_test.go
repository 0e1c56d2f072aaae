package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// markerKey is a key that must be nowhere but in its file.
const markerKey = "sk-marker-3f9c1d7e5b2a48069cde"

// tunnelClient builds the stand-in for OpenAI's tunnel-client once.
var tunnelClient = sync.OnceValues(func() ([]byte, error) {
	path := filepath.Join(daemon.Root(), ".tools", "bin", "tunnelclient-"+strconv.Itoa(os.Getpid()))
	defer os.Remove(path)
	cmd := exec.Command("go", "build", "-o", path, "./hack/e2e/tunnelclient")
	cmd.Dir = daemon.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the stand-in: %w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// tunnelBed is a daemon with a control plane that tests open and close.
type tunnelBed struct {
	testing.TB
	d     *daemon.Daemon
	plane string // address
	mu    sync.Mutex
	open  net.Listener // nil while closed
}

func newTunnelBed(t testing.TB) *tunnelBed {
	t.Helper()
	return newTunnelBedOn(t, daemon.Options{})
}

func newTunnelBedOn(t testing.TB, o daemon.Options) *tunnelBed {
	t.Helper()
	o.Env = append(o.Env, "CONTROL_PLANE_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
	b := &tunnelBed{TB: t, d: daemon.Start(t, o)}
	port, err := daemon.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	b.plane = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	b.reachable(true)
	t.Cleanup(func() { b.reachable(false) })
	return b
}

// reachable opens or closes the control plane, which accepts connections and says nothing.
func (b *tunnelBed) reachable(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case yes && b.open == nil:
		l, err := net.Listen("tcp4", b.plane)
		if err != nil {
			b.Fatal(err)
		}
		b.open = l
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
	case !yes && b.open != nil:
		_ = b.open.Close()
		b.open = nil
	}
}

// standIn is one folder with a client, which notes in it what becomes of it.
type standIn struct {
	testing.TB
	dir string
}

func newStandIn(t testing.TB, dir string, behaviour ...string) *standIn {
	t.Helper()
	program, err := tunnelClient()
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{TB: t, dir: dir}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(s.path(), program, 0o755)); err != nil {
		t.Fatal(err)
	}
	s.behave(behaviour...)
	t.Cleanup(func() {
		if exists(filepath.Join(dir, "violations")) {
			t.Errorf("two clients were alive at once: %s", text(t, filepath.Join(dir, "violations")))
		}
	})
	return s
}

func (s *standIn) path() string { return filepath.Join(s.dir, "tunnel-client") }

func (s *standIn) behave(how ...string) {
	put(s, filepath.Join(s.dir, "behaviour.new"), strings.Join(how, "\n"))
	if err := os.Rename(filepath.Join(s.dir, "behaviour.new"), filepath.Join(s.dir, "behaviour")); err != nil {
		s.Fatal(err)
	}
}

// pids are the clients that were started so far.
func (s *standIn) pids() (pids []int) {
	b, _ := os.ReadFile(filepath.Join(s.dir, "lives")) // none yet
	for line := range bytes.Lines(b) {
		var l struct{ PID int }
		if err := json.Unmarshal(line, &l); err == nil { // not half written
			pids = append(pids, l.PID)
		}
	}
	return pids
}

// alive counts the clients of the folder that run, in the whole process table.
func (s *standIn) alive() (n int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil && exe == s.path() {
			n++
		}
	}
	return n
}

// tunnelObject is what the tests read of a Tunnel.
type tunnelObject struct {
	Metadata struct{ UID string }
	Status   struct {
		Phase, LogFile string
		Restarts       int
		Process        *struct{ PID int }
		LastPollTime   *time.Time
		Conditions     []struct {
			Type, Status, Reason, Message string
			LastTransitionTime            time.Time
		}
	}
}

func (o *tunnelObject) ready() (status, reason, message string, since time.Time) {
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status, c.Reason, c.Message, c.LastTransitionTime
		}
	}
	return "", "", "", time.Time{}
}

func (o *tunnelObject) isReady() bool {
	status, _, _, _ := o.ready()
	return status == "True"
}

const tunnelsPath = "/apis/rigbridge.dev/v1alpha1/namespaces/default/tunnels"

// overSocket asks a daemon's API through its socket.
func overSocket(t testing.TB, stateDir, method, path string, body any) (int, []byte) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(stateDir, "rig-bridge.sock"))
	}}}
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(bounded(t, time.Minute), method, "http://rig-bridge"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", map[string]string{http.MethodPatch: "application/merge-patch+json"}[method])
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func (b *tunnelBed) get(name string) *tunnelObject {
	b.Helper()
	return getTunnel(b, b.d.StateDir(), name)
}

// getTunnel reads a tunnel; nil if it is gone.
func getTunnel(t testing.TB, stateDir, name string) *tunnelObject {
	t.Helper()
	status, body := overSocket(t, stateDir, http.MethodGet, tunnelsPath+"/"+name, nil)
	if status == http.StatusNotFound {
		return nil
	}
	o := &tunnelObject{}
	if err := json.Unmarshal(body, o); status != http.StatusOK || err != nil {
		t.Fatalf("%d: %s", status, body)
	}
	return o
}

// create makes a tunnel with a short watchdog and the client of a folder.
func (b *tunnelBed) create(name string, s *standIn) {
	b.Helper()
	createTunnel(b, b.d.StateDir(), name, s, "http://"+b.plane)
}

func createTunnel(t testing.TB, stateDir, name string, s *standIn, plane string) {
	t.Helper()
	key := filepath.Join(s.dir, "key")
	if err := os.WriteFile(key, []byte(markerKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status, body := overSocket(t, stateDir, http.MethodPost, tunnelsPath, map[string]any{
		"apiVersion": "rigbridge.dev/v1alpha1", "kind": "Tunnel", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"tunnelID": "tunnel_0123456789abcdef0123456789abcdef", "credential": map[string]any{"file": key},
			"clientPath": s.path(), "controlPlaneURL": plane, "watchdog": map[string]any{"intervalSeconds": 1, "pollTimeoutSeconds": 10}}})
	if status != http.StatusCreated {
		t.Fatalf("%d: %s", status, body)
	}
}

func (b *tunnelBed) remove(name string) {
	b.Helper()
	if status, body := overSocket(b, b.d.StateDir(), http.MethodDelete, tunnelsPath+"/"+name, nil); status != http.StatusOK {
		b.Fatalf("%d: %s", status, body)
	}
	eventually(b, name+" is gone", func() bool { return b.get(name) == nil })
}

// bridge runs a rig-bridge command for the daemon's account.
func (b *tunnelBed) bridge(env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(bounded(b, time.Minute), b.d.Binary(), args...)
	cmd.Env = append([]string{"HOME=" + b.d.Home(), "PATH=/usr/bin:/bin", "RIG_BRIDGE_STATE_DIR=" + b.d.StateDir()}, env...)
	return cmd
}

// run runs it to its end.
func (b *tunnelBed) run(env []string, args ...string) (out string, code int) {
	b.Helper()
	cmd := b.bridge(env, args...)
	o, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	return string(o), cmd.ProcessState.ExitCode()
}

// rigctl returns what rigctl says, whatever its exit code.
func (b *tunnelBed) rigctl(args ...string) string {
	b.Helper()
	path, err := daemon.Build("rigctl")
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(bounded(b, time.Minute), path, append(args, "--state-dir", b.d.StateDir())...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.Fatal(err)
	}
	return string(out)
}

// TestTunnelCommands takes the way of the README, from nothing to a tunnel that is up, and looks for the key
// everywhere.
func TestTunnelCommands(t *testing.T) {
	b := newTunnelBed(t)
	key, id := "CONTROL_PLANE_API_KEY="+markerKey, "CONTROL_PLANE_TUNNEL_ID=tunnel_0123456789abcdef0123456789abcdef"
	fails := func(says string, env []string, args ...string) {
		t.Helper()
		if out, code := b.run(env, args...); code != 1 || !strings.Contains(out, says) || strings.Contains(out, markerKey) || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: code %d, want one line with %q: %s", args, code, says, out)
		}
	}
	fails("there is no tunnel chatgpt", nil, "tunnel", "status")
	fails("rig-bridge tunnel install", []string{key, id}, "tunnel", "start")
	s := newStandIn(t, filepath.Join(b.d.Home(), ".local", "bin"), "leak")
	fails("set CONTROL_PLANE_TUNNEL_ID", []string{key}, "tunnel", "start")
	fails("set CONTROL_PLANE_API_KEY", []string{id}, "tunnel", "start")
	fails("spec.tunnelID", []string{key, "CONTROL_PLANE_TUNNEL_ID=a b"}, "tunnel", "start")
	open := filepath.Join(t.TempDir(), "key")
	put(t, open, markerKey)
	fails("chmod 600", []string{id}, "tunnel", "start", "--api-key-file", open)
	put(t, open, key+"\n"+id+"\n")
	fails("chmod 600", nil, "tunnel", "start", "--env-file", open)
	fails("no rig-bridge runs on", []string{key, id}, "tunnel", "start", "--state-dir", t.TempDir())

	file := filepath.Join(b.d.Home(), ".config", "rig-bridge", "tunnel.env")
	put(t, file, "# the tunnel\nexport "+id+"\nCONTROL_PLANE_API_KEY=\""+markerKey+"\"\nCONTROL_PLANE_BASE_URL=http://"+b.plane+"\n")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := b.run(nil, "tunnel", "start"); code != 0 || !strings.Contains(out, "rig-bridge tunnel status") {
		t.Fatalf("code %d: %s", code, out)
	}
	eventually(t, "ready", func() bool { return b.get("chatgpt").isReady() })
	if out, code := b.run(nil, "tunnel", "status"); code != 0 || !strings.Contains(out, "ready since ") || !strings.Contains(out, "restarts   0") {
		t.Errorf("code %d: %s", code, out)
	}
	if got := b.rigctl("get", "tunnels"); !strings.HasPrefix(got, "NAME ") || !strings.Contains(got, "True") || !strings.Contains(got, "Connected") {
		t.Errorf("rigctl get tunnels: %s", got)
	}
	if got := b.rigctl("describe", "tunnel", "chatgpt"); !strings.Contains(got, "Connected: The client polls") || strings.Contains(got, markerKey) {
		t.Errorf("rigctl describe: %s", got)
	}
	for _, command := range []string{"status", "doctor"} {
		if got := b.rigctl(command); !strings.Contains(strings.ToLower(got), "tunnel chatgpt") {
			t.Errorf("rigctl %s says nothing of the tunnel: %s", command, got)
		}
	}
	kept := filepath.Join(b.d.StateDir(), "tunnels", "chatgpt.key")
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 || text(t, kept) != markerKey+"\n" {
		t.Errorf("the kept key: %v, %v", info, err)
	}
	b.nowhere(markerKey, kept)
	b.nowhere(strings.TrimPrefix(b.d.Authorization(), "Bearer "), b.d.TokenFile())

	if out, code := b.run(nil, "tunnel", "stop"); code != 0 || s.alive() != 0 {
		t.Errorf("code %d, %d alive: %s", code, s.alive(), out)
	}
	if out, code := b.run(nil, "tunnel", "status"); code != 1 || !strings.Contains(out, "suspended since ") {
		t.Errorf("code %d: %s", code, out)
	}
	b.foreground(s)
	b.remove("chatgpt")
	if exists(kept) || s.alive() != 0 {
		t.Errorf("after deletion: the key is there: %v, %d alive", exists(kept), s.alive())
	}
}

// foreground runs the tunnel until interrupted.
func (b *tunnelBed) foreground(s *standIn) {
	b.Helper()
	cmd := b.bridge(nil, "tunnel", "run")
	var out syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	eventually(b, "tunnel run says that it is ready", func() bool { return strings.Contains(out.String(), "chatgpt Ready: ") })
	if s.alive() != 1 {
		b.Errorf("%d alive", s.alive())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || s.alive() != 0 || b.get("chatgpt").Status.Phase != "Suspended" {
		b.Errorf("%v, %d alive: %s", err, s.alive(), out.String())
	}
}

// syncBuffer may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// nowhere looks for a secret in the command lines and environments of all processes, in the daemon's log and in
// all files of the state directory and of the account but the given one and the person's own.
func (b *tunnelBed) nowhere(secret, but string) {
	b.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/proc/[0-9]*/environ"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if c, err := os.ReadFile(file); err == nil && bytes.Contains(c, []byte(secret)) {
				b.Errorf("the secret is in %s", file)
			}
		}
	}
	if strings.Contains(b.d.Log(), secret) {
		b.Error("the secret is in the daemon's log")
	}
	err := filepath.WalkDir(b.d.StateDir(), func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || path == but {
			return err
		}
		c, err := os.ReadFile(path)
		if bytes.Contains(c, []byte(secret)) {
			b.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.Error(err)
	}
}

// TestTunnelMisbehaves has one client misbehave in each way, all under one daemon.
func TestTunnelMisbehaves(t *testing.T) {
	b := newTunnelBed(t)
	for name, c := range map[string]struct {
		behaviour, reason string
		ready             bool // it may be, for a while
	}{
		"exits at once":  {"exit=3", "ClientExited", false},
		"exits later":    {"exit-after=1500ms", "ClientExited", true},
		"hangs":          {"hang", "ClientUnresponsive", false},
		"writes no file": {"no-url", "ClientUnresponsive", false},
		"says garbage":   {"poll=garbage", "ClientUnresponsive", false},
		"never polls":    {"poll=never", "PollStale", false},
		"is not let in":  {"ready=auth", "ClientNotReady", false},
		"refuses to end": {"refuse-term\npoll=never\nchild", "PollStale", false},
		"answers nobody": {"silent", "ClientUnresponsive", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStandIn(t, filepath.Join(realDir(t), "bin"), c.behaviour)
			own := &tunnelBed{TB: t, d: b.d, plane: b.plane}
			object := strings.ReplaceAll(name, " ", "-")
			own.create(object, s)
			eventually(t, "its second life", func() bool {
				o := own.get(object)
				if o.isReady() && !c.ready {
					t.Fatalf("said to be ready: %+v", o.Status)
				}
				return len(s.pids()) >= 2 && o.Status.Restarts >= 1
			})
			eventually(t, "the reason", func() bool {
				o := own.get(object)
				_, reason, message, since := o.ready()
				return reason == c.reason && message != "" && !since.IsZero() && o.Status.Phase == "Degraded"
			})
			own.remove(object)
			if n := s.alive(); n != 0 {
				t.Errorf("%d go on", n)
			}
		})
	}
}

// TestTunnelFloods has a client that talks without end: it works all the same, and what is kept stays small.
func TestTunnelFloods(t *testing.T) {
	b := newTunnelBed(t)
	s := newStandIn(t, filepath.Join(realDir(t), "bin"), "flood")
	b.create("flood", s)
	eventually(t, "ready", func() bool { return b.get("flood").isReady() })
	log := b.get("flood").Status.LogFile
	eventually(t, "the count of what was left out", func() bool { return strings.Contains(text(t, log), " lines left out: too many at once]") })
	for _, file := range []string{log, log + ".1"} {
		if info, err := os.Stat(file); err == nil && (info.Size() > 520<<10 || info.Mode().Perm() != 0o600) {
			t.Errorf("%s: %d bytes, %v", file, info.Size(), info.Mode())
		}
	}
	if strings.Contains(b.d.Log(), "flood flood") {
		t.Error("the client's output is in the daemon's log")
	}
	b.remove("flood")
}

// TestCaseK9 has a client that runs and passes nothing on, as after connectivity came back: status says degraded
// and since when, the client is started again as soon as that can help, and nothing says ready before it is.
func TestCaseK9(t *testing.T) {
	b := newTunnelBed(t)
	s := newStandIn(t, filepath.Join(realDir(t), "bin"))
	b.create("k9", s)
	eventually(t, "ready", func() bool { return b.get("k9").isReady() })
	if out, code := b.run(nil, "tunnel", "status", "--name", "k9"); code != 0 || !strings.Contains(out, "ready since") {
		t.Errorf("%d: %s", code, out)
	}
	b.reachable(false)
	s.behave("poll=start") // from now on its last poll is the one at its start
	var since time.Time
	eventually(t, "degraded", func() bool {
		status, reason, _, at := b.get("k9").ready()
		since = at
		return status == "False" && reason == "ControlPlaneUnreachable"
	})
	if since.IsZero() || len(s.pids()) != 1 {
		t.Errorf("since %v, %d lives", since, len(s.pids()))
	}
	s.behave("poll=never")
	b.reachable(true)
	unready := func() *tunnelObject {
		o := b.get("k9")
		if status, _, _, at := o.ready(); status != "False" || !at.Equal(since) {
			t.Fatalf("neither ready nor degraded since %v: %+v", since, o.Status)
		}
		return o
	}
	eventually(t, "another life", func() bool {
		unready()
		return len(s.pids()) == 2
	})
	if out, code := b.run(nil, "tunnel", "status", "--name", "k9"); code != 1 || !strings.Contains(out, "degraded since "+since.Local().Format(time.DateTime)) || !strings.Contains(out, "PollStale") {
		t.Errorf("%d: %s", code, out)
	}
	unready()
	s.behave()
	eventually(t, "ready again", func() bool { return b.get("k9").isReady() })
	if o := b.get("k9"); o.Status.Restarts != 1 || s.alive() != 1 {
		t.Errorf("%d alive, %+v", s.alive(), o.Status)
	}
	b.remove("k9")
}

// TestTunnelDaemonDies kills the daemon in every stage of a client's start: the next one never has two.
func TestTunnelDaemonDies(t *testing.T) {
	b := newTunnelBed(t)
	s := newStandIn(t, filepath.Join(realDir(t), "bin"), "refuse-term")
	b.create("victim", s)
	for round := range 4 {
		if round%2 == 0 {
			eventually(t, "ready", func() bool { return b.get("victim").isReady() })
		} else { // as soon as it exists, recorded or not
			eventually(t, "a life", func() bool { return len(s.pids()) > round })
		}
		if err := b.d.Kill(); err != nil {
			t.Fatal(err)
		}
		lives := len(s.pids())
		b.d.Revive(t)
		if o := b.get("victim"); o.isReady() && len(s.pids()) == lives {
			t.Errorf("what the life before said still counts: %+v", o.Status)
		}
	}
	eventually(t, "ready", func() bool { return b.get("victim").isReady() })
	if o := b.get("victim"); s.alive() != 1 || o.Status.Restarts != 0 || o.Status.Process == nil || o.Status.Process.PID != s.pids()[len(s.pids())-1] {
		t.Errorf("%d alive, %+v", s.alive(), o.Status)
	}

	if code, err := b.d.Stop(); err != nil || code != 0 || s.alive() != 0 {
		t.Errorf("an ordinary end: code %d, %v, %d alive", code, err, s.alive())
	}
	b.d.Revive(t)
	eventually(t, "ready after an ordinary end", func() bool { return b.get("victim").isReady() })
	b.remove("victim")
}

// TestTunnelInstall installs what has the right checksum, and nothing else.
func TestTunnelInstall(t *testing.T) {
	bin, err := daemon.Build("rig-bridge")
	if err != nil {
		t.Fatal(err)
	}
	program, err := tunnelClient()
	if err != nil {
		t.Fatal(err)
	}
	dir, home := t.TempDir(), t.TempDir()
	to := filepath.Join(home, ".local", "bin", "tunnel-client")
	file := func(name string, content []byte) (path, sum string) {
		path = filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path, fmt.Sprintf("%x", sha256.Sum256(content))
	}
	install := func(args ...string) (string, error) {
		cmd := exec.Command(bin, append([]string{"tunnel", "install"}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	path, sum := file("tunnel-client", program)
	other, otherSum := file("page.html", []byte("<html>"))
	for says, args := range map[string][]string{
		"name one file": {}, "--sha256 and 64": {path}, "not the file": {path, "--sha256", otherSum}, "not a program": {other, "--sha256", otherSum},
		"no such file": {filepath.Join(dir, "none"), "--sha256", sum},
	} {
		if out, err := install(args...); err == nil || !strings.Contains(out, says) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	if exists(to) {
		t.Fatal("something was installed")
	}
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	f, err := w.Create("tunnel-client-v1/tunnel-client")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packed, packedSum := file("tunnel-client.zip", z.Bytes())
	for _, args := range [][]string{{path, "--sha256", strings.ToUpper(sum)}, {packed, "--sha256", packedSum}} {
		if out, err := install(args...); err != nil || !strings.Contains(out, to) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
		if info, err := os.Stat(to); err != nil || info.Mode() != 0o755 || text(t, to) != string(program) {
			t.Errorf("%v: %v, %v", args, info, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(to), ".*")); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
}

// TestTunnelRoutes changes the default route of a network namespace in which the daemon runs.
func TestTunnelRoutes(t *testing.T) {
	for _, tool := range []string{"unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: hack/test installs it", tool)
		}
	}
	if out, err := exec.Command("unshare", "--net", "sh", "-c", "ip link add rig0 type veth peer name rig1").CombinedOutput(); err != nil {
		t.Skipf("needs the right to make network namespaces: %s", out)
	}
	bin, err := daemon.Build("rig-bridge")
	if err != nil {
		t.Fatal(err)
	}
	state, home := filepath.Join(realDir(t), "state"), realDir(t)
	cmd := exec.Command("unshare", "--net", "sh", "-ec", `ip link set lo up
		ip link add rig0 type veth peer name rig1
		ip address add 10.9.0.1/24 dev rig0
		ip address add 10.9.1.1/24 dev rig1
		ip link set rig0 up
		ip link set rig1 up
		ip route add default via 10.9.0.2 dev rig0
		exec "$0" serve --port 8767 --state-dir "$1"`, bin, state)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log syncBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it ends within 8 s
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually(t, "the daemon answers", func() bool {
		status, _ := overSocket(t, state, http.MethodGet, tunnelsPath, nil)
		return status == http.StatusOK
	})
	route := func(args ...string) {
		t.Helper()
		all := append([]string{"--net", "--target", strconv.Itoa(cmd.Process.Pid), "ip", "route"}, args...)
		if out, err := exec.Command("nsenter", all...).CombinedOutput(); err != nil {
			t.Fatalf("ip route %v: %v\n%s", args, err, out)
		}
	}
	s := newStandIn(t, filepath.Join(realDir(t), "bin"))
	createTunnel(t, state, "routed", s, "http://127.0.0.1:8767") // the daemon itself: reachable whatever the route
	get := func() *tunnelObject { return getTunnel(t, state, "routed") }
	eventually(t, "ready", func() bool { return get().isReady() })
	route("del", "default")
	route("add", "default", "via", "10.9.0.2", "dev", "rig0") // as it was
	route("add", "10.77.0.0/16", "via", "10.9.0.2", "dev", "rig0")
	route("replace", "default", "via", "10.9.1.2", "dev", "rig1")
	eventually(t, "another life", func() bool { return len(s.pids()) == 2 })
	eventually(t, "ready on the other route", func() bool { return get().isReady() })
	if o := get(); o.Status.Restarts != 1 {
		t.Errorf("%+v", o.Status)
	}
	if !strings.Contains(log.String(), `"reason":"RouteChanged"`) {
		t.Error("nothing tells of the route")
	}
}

// controlPlane stands in for the provider's: it hands out commands and takes answers.
type controlPlane struct {
	commands chan map[string]any
	answers  chan json.RawMessage
	key      string // as the client gave it
}

func (p *controlPlane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/poll"):
		select {
		case c := <-p.commands:
			c["shard_token"], c["command_type"], c["channel"], c["created_at"] = "shard", "jsonrpc", "main", time.Now().UTC().Format(time.RFC3339)
			_ = json.NewEncoder(w).Encode(map[string]any{"commands": []any{c}})
		case <-time.After(time.Second):
			w.WriteHeader(http.StatusNoContent)
		case <-r.Context().Done():
		}
	case strings.HasSuffix(r.URL.Path, "/response"):
		p.key = r.Header.Get("Authorization")
		b, _ := io.ReadAll(r.Body)
		p.answers <- b
	default:
		_, _ = io.WriteString(w, `{"id": "tunnel_0123456789abcdef0123456789abcdef", "name": "demo"}`)
	}
}

// TestTunnelRealClient calls a tool the whole way: control plane, the provider's own tunnel-client, daemon.
func TestTunnelRealClient(t *testing.T) {
	program := os.Getenv("RIG_BRIDGE_TUNNEL_CLIENT")
	if program == "" {
		found, err := exec.LookPath("tunnel-client")
		if err != nil {
			t.Skip("needs OpenAI's tunnel-client: put it into PATH or name it in RIG_BRIDGE_TUNNEL_CLIENT")
		}
		program = found
	}
	plane := &controlPlane{commands: make(chan map[string]any, 1), answers: make(chan json.RawMessage, 8)}
	server := httptest.NewServer(plane)
	defer server.CloseClientConnections()
	b := newTunnelBed(t)
	out, code := b.run([]string{"CONTROL_PLANE_API_KEY=" + markerKey, "CONTROL_PLANE_TUNNEL_ID=tunnel_0123456789abcdef0123456789abcdef"},
		"tunnel", "start", "--client", program, "--control-plane-url", server.URL)
	if code != 0 {
		t.Fatalf("code %d: %s", code, out)
	}
	eventually(t, "ready", func() bool { return b.get("chatgpt").isReady() })
	call := func(id, method string, params map[string]any) string {
		t.Helper()
		plane.commands <- map[string]any{"request_id": id, "jsonrpc": map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}}
		select {
		case answer := <-plane.answers:
			return string(answer)
		case <-time.After(time.Minute):
			t.Fatal("no answer")
			return ""
		}
	}
	hello := call("1", "initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "openai-mcp", "version": "1.0.0"}})
	if !strings.Contains(hello, `"rig-bridge"`) || plane.key != "Bearer "+markerKey {
		t.Errorf("%q: %s", plane.key, hello)
	}
	if list := call("2", "tools/call", map[string]any{"name": "workspace_open", "arguments": map[string]any{"cwd": realDir(t)}}); !strings.Contains(list, `"workspace_id"`) {
		t.Error(list)
	}
	b.nowhere(markerKey, filepath.Join(b.d.StateDir(), "tunnels", "chatgpt.key"))
	b.remove("chatgpt")
}
