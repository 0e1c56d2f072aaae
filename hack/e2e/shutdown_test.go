package e2e

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestStop ends the daemon with SIGTERM while a command runs: the command's own trap runs, the daemon
// ends in time with code 0, and the receipt is final.
func TestStop(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := realDir(t)
	args := daemon.Args{"workspace_id": client.Open(t, dir), "request_key": daemon.Key(),
		"command": "trap 'echo bye > trapped; exit 1' TERM; touch started; for i in $(seq 600); do sleep 0.1; done; touch never"}
	type answer struct {
		r   daemon.Result
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		r, err := client.Call(context.Background(), "bash", args)
		answers <- answer{r, err}
	}()
	eventually(t, "the command has started", func() bool { return exists(filepath.Join(dir, "started")) })
	began := time.Now()
	code, err := d.Stop()
	if err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if took := time.Since(began); took > 9*time.Second { // the contract says 8
		t.Errorf("stopping took %v", took)
	}
	if a := <-answers; a.err == nil && a.r.Code() != "COMMAND_CANCELLED" && a.r.Code() != "BRIDGE_STOPPED" {
		t.Errorf("the waiting client was told %s: %s", a.r.Code(), a.r.Text())
	}
	if !exists(filepath.Join(dir, "trapped")) {
		t.Error("the command had no time for its trap")
	}
	d.Revive(t)
	r := client.Must(t, "bash", args)
	if !r.IsError || !r.Replayed() || r.Code() != "RECORDED_OUTCOME" || r.String("status") != "failed" || r.String("tool") != "bash" {
		t.Errorf("the receipt is not final: %s", r.Raw)
	}
	if exists(filepath.Join(dir, "never")) {
		t.Error("the command went on")
	}
}

// TestStopTwice sends the second signal while the first is being obeyed.
func TestStopTwice(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := d.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if code, err := d.Wait(bounded(t, daemon.StopTimeout)); err != nil || code < 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
}

// TestSecondDaemon starts another daemon on a state directory in use: it says so in one line and leaves
// the first alone, running command included.
func TestSecondDaemon(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := realDir(t)
	workspace := client.Open(t, dir)
	client.OK(t, "run_start", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key()})
	finished := make(chan daemon.Result, 1)
	go func() {
		r, err := client.Call(context.Background(), "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(),
			"command": "touch started; while [ ! -e go ]; do sleep 0.1; done; echo unharmed"})
		if err != nil {
			t.Error(err)
		}
		finished <- r
	}()
	eventually(t, "the command has started", func() bool { return exists(filepath.Join(dir, "started")) })
	refused(t, daemon.Options{StateDir: d.StateDir()}, strconv.Itoa(d.Pid()))
	put(t, filepath.Join(dir, "go"), "")
	if r := <-finished; r.IsError || r.Text() != "unharmed\n" {
		t.Errorf("the running command was harmed: %s", r.Text())
	}
	if list := client.OK(t, "workspace_list", nil); bytes.Contains(list.Raw, []byte("interrupted")) {
		t.Errorf("the run was interrupted: %s", list.Raw)
	}
}

// TestBusyPort starts the daemon on a port that somebody else has.
func TestBusyPort(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	refused(t, daemon.Options{Port: port}, strconv.Itoa(port))
}

// TestBadTokenFile starts the daemon with token files that must not be trusted.
func TestBadTokenFile(t *testing.T) {
	dir := realDir(t)
	put(t, filepath.Join(dir, "open"), "Bearer "+strings.Repeat("a", 43)+"\n") // readable by others
	put(t, filepath.Join(dir, "short"), "Bearer abc\n")
	if err := exec.Command("chmod", "600", filepath.Join(dir, "short")).Run(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "short", "missing"} {
		t.Run(name, func(t *testing.T) {
			refused(t, daemon.Options{Args: []string{"--token-file", filepath.Join(dir, name)}}, filepath.Join(dir, name))
		})
	}
}

// refused starts a daemon that must give up by itself, with one clear line that names the obstacle.
func refused(t *testing.T, opts daemon.Options, names string) {
	t.Helper()
	cmd, cleanup, err := daemon.Command(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cleanup(); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = nil // it ends by itself
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() <= 0 {
		t.Errorf("it did not refuse: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], names) {
		t.Errorf("want one line that names %s, got:\n%s", names, out.String())
	}
	if strings.Contains(out.String(), "goroutine ") {
		t.Error("a stack trace is no explanation")
	}
}
