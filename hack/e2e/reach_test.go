package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// O1: a daemon that was started with a bare PATH finds the tools that the account's profile adds, in its order,
// from its first call on. What the daemon alone was given stays.
func TestO1BarePath(t *testing.T) {
	home := realDir(t)
	for dir, says := range map[string]string{"profile": "from the profile", "own": "from the daemon"} {
		for _, tool := range []string{"tool-of-" + dir, "both"} {
			path := filepath.Join(home, dir, tool)
			put(t, path, "#!/bin/sh\necho "+says+"\n")
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(t, filepath.Join(home, ".profile"), "echo welcome; PATH=\"$HOME/profile:$PATH:bin\"\n")
	d := daemon.Start(t, daemon.Options{Home: home, Env: []string{"SHELL=/bin/bash", "PATH=/usr/bin:/bin:" + home + "/own"}})
	c := d.Client()
	r := c.OK(t, "bash", daemon.Args{"workspace_id": c.Open(t, home), "request_key": daemon.Key(), "command": "tool-of-profile; tool-of-own; both; echo $PATH"})
	lines := strings.Split(strings.TrimSpace(r.Text()), "\n")
	if got := strings.Join(lines[:3], ", "); got != "from the profile, from the daemon, from the profile" {
		t.Errorf("the tools say %s", got)
	}
	for _, dir := range strings.Split(lines[3], ":") {
		if !filepath.IsAbs(dir) {
			t.Errorf("PATH has the relative part %q", dir)
		}
	}
}

// O1, too: a profile that never ends keeps nobody from working, and the daemon that stops leaves nothing of it.
func TestO1HangingProfile(t *testing.T) {
	home := realDir(t)
	put(t, filepath.Join(home, ".profile"), "echo $$ >> \"$HOME/shells\"; while :; do sleep 1; done\n")
	d := daemon.Start(t, daemon.Options{Home: home, Env: []string{"SHELL=/bin/bash"}})
	c := d.Client()
	c.OK(t, "ls", daemon.Args{"workspace_id": c.Open(t, home)}) // ready, and only commands wait for PATH
	r := c.OK(t, "bash", daemon.Args{"workspace_id": c.Open(t, home), "request_key": daemon.Key(), "command": "git --version; cat shells"})
	if !strings.HasPrefix(r.Text(), "git version") {
		t.Errorf("the daemon's own PATH is lost: %s", r.Text())
	}
	if !strings.Contains(d.Log(), "did not get through its profile") {
		t.Error("the log does not say why PATH is as it is")
	}
	if code, err := d.Stop(); err != nil || code != 0 {
		t.Errorf("stop: %d, %v", code, err)
	}
	for pid := range strings.FieldsSeq(text(t, filepath.Join(home, "shells"))) {
		if exists("/proc/" + pid) {
			t.Errorf("shell %s runs on", pid)
		}
	}
}

// O4: commands longer than the system lets one argument be, up to the schema's maximum; one more is refused by
// the schema.
func TestO4LongCommands(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := realDir(t)
	w := client.Open(t, dir)
	document := strings.Repeat("0123456789abcde\n", 150*1024/16)
	const max = 200_000 // characters; those here have four bytes each
	prefix, suffix := "printf '", "' | wc -c"
	longest := max - len(prefix) - len(suffix)
	for _, c := range []struct{ name, command, want string }{
		{"here-document", "cat > f <<'EOF'\n" + document + "EOF\nwc -c < f", fmt.Sprint(len(document))},
		{"maximum", prefix + strings.Repeat("\U0001F600", longest) + suffix, fmt.Sprint(4 * longest)},
	} {
		r := client.OK(t, "bash", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": c.command})
		if got := strings.TrimSpace(r.Text()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	if text(t, filepath.Join(dir, "f")) != document {
		t.Error("the document is not what was sent")
	}
	r := client.Must(t, "bash", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": strings.Repeat("x", max+1)})
	if r.Code() != "INVALID_ARGUMENTS" || !strings.Contains(r.Text(), "200000") {
		t.Errorf("one more: %s", r.Raw)
	}
}

// N5: the file that says where the daemon is names the process of somebody else, as after a reboot. The daemon
// starts, nobody who asks for it is misled, and nobody touches that process.
func TestN5StaleProcessNumber(t *testing.T) {
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		<-ended
	})
	state := realDir(t)
	stale := fmt.Sprintf(`{"url":"http://127.0.0.1:1/mcp","tokenFile":%q,"pid":%d}`, filepath.Join(state, "http-token"), sleeper.Process.Pid)
	put(t, filepath.Join(state, "endpoint.json"), stale)
	rigctl, err := daemon.Build("rigctl")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status"}, {"get", "operations"}, {"doctor"}} {
		out, err := exec.Command(rigctl, append([]string{"--state-dir", state}, args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "rig-bridge serve") {
			t.Errorf("rigctl %v: %v: %s", args, err, out)
		}
	}
	d := daemon.Start(t, daemon.Options{StateDir: state})
	var now struct{ PID int }
	if err := json.Unmarshal([]byte(text(t, filepath.Join(state, "endpoint.json"))), &now); err != nil || now.PID != d.Pid() {
		t.Errorf("the file names %d, %v", now.PID, err)
	}
	// A life that ends without a goodbye leaves the file; the number in it is given to the sleeper.
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(state, "endpoint.json"), stale)
	d.Revive(t)
	if code, err := d.Stop(); err != nil || code != 0 {
		t.Errorf("stop: %d, %v", code, err)
	}
	select {
	case err := <-ended:
		ended <- err
		t.Errorf("the other process ended: %v", err)
	default:
	}
	if exists(filepath.Join(state, "endpoint.json")) {
		t.Error("a daemon that said goodbye left its address")
	}
}

// N8: a port that another process holds, or an older self that is just ending.
func TestN8TakenPort(t *testing.T) {
	port, err := daemon.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("perl", "-MIO::Socket::INET", "-e",
		fmt.Sprintf("$s = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1:%d', ReuseAddr => 1) or die; print qq(held\\n); STDOUT->flush; <STDIN>", port))
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Skipf("needs perl: %v", err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "held\n" {
		t.Skipf("needs perl with its sockets: %q, %v", line, err)
	}
	state := realDir(t)
	refused(t, daemon.Options{Port: port, StateDir: state}, fmt.Sprintf("port %d on 127.0.0.1", port))
	if exists(filepath.Join(state, "endpoint.json")) {
		t.Error("it serves all the same")
	}
	_ = stdin.Close()
	_ = other.Wait()

	// The same port and state again and again, while connections of the old life are open: the kernel keeps them
	// for a minute (TIME_WAIT) on the side that closed first.
	d := daemon.Start(t, daemon.Options{Port: port, StateDir: state})
	for i := range 4 {
		client := &http.Client{Transport: &http.Transport{}}
		resp, err := client.Get(d.Base() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		raw, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			_, err = d.Stop()
		} else {
			err = d.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		d.Revive(t)
		if want := fmt.Sprintf("http://127.0.0.1:%d/mcp", port); d.URL() != want {
			t.Errorf("it went to %s", d.URL())
		}
		_ = raw.Close()
	}
}
