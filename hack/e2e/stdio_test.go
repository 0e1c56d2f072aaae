package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestO5OnlyMessages calls every tool once over standard input and output, with the most talkative log, and demands
// that each line of output is a JSON-RPC message. A daemon is started on the way; it logs elsewhere.
func TestO5OnlyMessages(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	if _, err := d.Stop(); err != nil { // leaves the state directory, and stdio to start a daemon of its own
		t.Fatal(err)
	}
	dir := gitProject(t)
	cmd := exec.CommandContext(bounded(t, 2*time.Minute), d.Binary(), "stdio", "--state-dir", d.StateDir(), "--log-level", "debug")
	cmd.Env = append(os.Environ(), "HOME="+d.Home(), "RIG_BRIDGE_CHECK_OUTPUTS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &lineClient{T: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	t.Cleanup(func() { stopDaemon(t, d.StateDir()) })
	c.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "e2e", "version": "1"}})
	var opened daemon.Result
	c.decode(c.call("workspace_open", daemon.Args{"cwd": dir}), &opened)
	called := map[string]bool{"workspace_open": true}
	for _, step := range []struct {
		tool string
		args daemon.Args
	}{
		{"workspace_list", nil}, {"run_start", daemon.Args{"request_key": "1"}}, {"read", daemon.Args{"path": "README.md"}}, {"ls", nil},
		{"find", daemon.Args{"pattern": "*"}}, {"grep", daemon.Args{"pattern": "x"}}, {"write", daemon.Args{"request_key": "2", "path": "w", "content": "a\n", "expected_revision": "missing"}},
		{"edit", daemon.Args{"request_key": "3", "path": "w", "expected_revision": "missing", "edits": []daemon.Args{{"oldText": "a", "newText": "b"}}}},
		{"bash", daemon.Args{"request_key": "4", "command": "echo out; echo err >&2; cat"}}, {"operation_wait", daemon.Args{"request_key": "4"}},
		{"operation_cancel", daemon.Args{"request_key": "4"}}, {"skill_info", nil}, {"work_handoff", daemon.Args{"request_key": "5", "reason": "completed", "summary": "done"}},
		{"no_such_tool", nil}, {"workspace_close", nil},
	} {
		args := copyArgs(step.args, daemon.Args{"workspace_id": opened.String("workspace_id")})
		if step.tool == "workspace_list" {
			args = daemon.Args{}
		}
		c.call(step.tool, args)
		called[step.tool] = true
	}
	if len(called) != 16 {
		t.Errorf("%d tools were called", len(called))
	}
	c.line([]byte(`{"jsonrpc":"2.0",`)) // no JSON: answered as well, in kind
	c.next()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.out)
	if err != nil || len(rest) > 0 {
		t.Errorf("after the end of input: %q %v", rest, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// stopDaemon stops the daemon that stdio started for a state directory.
func stopDaemon(t *testing.T, stateDir string) {
	t.Helper()
	var endpoint struct{ PID int }
	if err := json.Unmarshal([]byte(text(t, filepath.Join(stateDir, "endpoint.json"))), &endpoint); err != nil || endpoint.PID <= 1 {
		t.Fatalf("find the daemon that stdio started: %v", err)
	}
	if err := syscall.Kill(endpoint.PID, syscall.SIGTERM); err != nil {
		t.Fatalf("stop the daemon that stdio started: %v", err)
	}
	eventually(t, "the daemon that stdio started ends", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", endpoint.PID))
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
}

// lineClient speaks to a server line by line and demands that each line is a message.
type lineClient struct {
	*testing.T
	in  io.Writer
	out *bufio.Reader
	ids int
}

func (c *lineClient) line(b []byte) {
	c.Helper()
	if _, err := c.in.Write(append(b, '\n')); err != nil {
		c.Fatal(err)
	}
}

// message is any JSON-RPC message.
type message struct {
	JSONRPC string           `json:"jsonrpc"`
	ID      *json.RawMessage `json:"id"`
	Method  string           `json:"method"`
	Result  json.RawMessage  `json:"result"`
	Error   json.RawMessage  `json:"error"`
}

// next reads one line.
func (c *lineClient) next() (m message) {
	c.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.Fatalf("read a line: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	if err := decoder.Decode(&m); err != nil || m.JSONRPC != "2.0" || decoder.More() || m.Result == nil && m.Error == nil && m.Method == "" {
		c.Fatalf("no message: %q (%v)", line, err)
	}
	return m
}

func (c *lineClient) request(method string, params any) json.RawMessage {
	c.Helper()
	c.ids++
	c.line([]byte(encode(c, map[string]any{"jsonrpc": "2.0", "id": c.ids, "method": method, "params": params})))
	for {
		if m := c.next(); m.ID != nil {
			if m.Error != nil {
				c.Errorf("%s: %s", method, m.Error)
			}
			return m.Result
		}
	}
}

func (c *lineClient) call(tool string, args daemon.Args) json.RawMessage {
	c.Helper()
	return c.request("tools/call", map[string]any{"name": tool, "arguments": args})
}

func (c *lineClient) decode(raw json.RawMessage, into any) {
	c.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		c.Fatal(err)
	}
}
