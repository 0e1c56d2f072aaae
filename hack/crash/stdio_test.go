package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestF4ClientOfStdioGoes: with a command running, the client of a stdio server closes its end, or the server is killed
// from outside. The process is gone in time, and so is the command.
func TestF4ClientOfStdioGoes(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name string
		goes func(t *testing.T, server *exec.Cmd, stdin *os.File)
	}{
		{"closes stdin", func(t *testing.T, _ *exec.Cmd, stdin *os.File) {
			if err := stdin.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"killed", func(t *testing.T, server *exec.Cmd, stdin *os.File) {
			if err := server.Process.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			_ = stdin.Close() // nobody reads it
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			c := h.begin(t)
			dir := realDir(t)
			workspace := c.Open(t, dir)
			server, stdin := stdioServer(t, h)
			ask(t, stdin, "bash", daemon.Args{"workspace_id": workspace, "request_key": "k1", "command": "echo $$ >> pids; sleep 120"})
			eventually(t, "the command runs", func() bool { return len(lines(t, filepath.Join(dir, "pids"))) == 1 })
			way.goes(t, server, stdin)
			ended := make(chan error, 1)
			go func() { ended <- server.Wait() }()
			select {
			case <-ended:
			case <-time.After(15 * time.Second): // the case says 5, the machine may be busy
				t.Error("the stdio server lives on")
			}
			r := c.Must(t, "operation_wait", daemon.Args{"workspace_id": workspace, "request_key": "k1", "wait_seconds": 30})
			if r.String("status") != "failed" || r.String("reason") != "Cancelled" {
				t.Errorf("the receipt: %s", r.Raw)
			}
			for pid := range lines(t, filepath.Join(dir, "pids")) {
				if running(t, pid) {
					t.Errorf("the command lives on as process %s", pid)
					kill(t, pid)
				}
			}
		})
	}
}

// stdioServer starts a stdio server on the house's daemon.
func stdioServer(t *testing.T, h *house) (*exec.Cmd, *os.File) {
	t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "stdio", "--state-dir", h.state)
	cmd.Env = append(os.Environ(), "HOME="+h.home)
	cmd.Stdin = in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close() // the server has its own
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended unless the test failed
		_ = stdin.Close()
	})
	return cmd, stdin
}

// ask sends a call over stdio.
func ask(t *testing.T, stdin *os.File, tool string, args daemon.Args) {
	t.Helper()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(stdin, "%s\n", message); err != nil {
		t.Fatal(err)
	}
}
