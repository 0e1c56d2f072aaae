package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestTypeScriptClients tells the story of clients/story.mjs through the official clients.
func TestTypeScriptClients(t *testing.T) {
	for kind, pkg := range map[string]string{
		"v1":              "@modelcontextprotocol/sdk",
		"v1-stdio":        "@modelcontextprotocol/sdk",
		"v2":              "@modelcontextprotocol/client",
		"v2-modern":       "@modelcontextprotocol/client",
		"v2-modern-stdio": "@modelcontextprotocol/client",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			npmPackage(t, pkg)
			runtime := node(t)
			d := daemon.Start(t, daemon.Options{})
			stdio, err := json.Marshal([]string{d.Binary(), "stdio", "--state-dir", d.StateDir()})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(bounded(t, 3*time.Minute), runtime, "clients/story.mjs", kind)
			cmd.Env = append(os.Environ(), "MCP_URL="+d.URL(), "MCP_AUTHORIZATION="+d.Authorization(),
				"MCP_DIR="+gitProject(t), "MCP_COMMAND="+string(stdio), "HOME="+d.Home())
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "the story is complete\n") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestInspector drives the daemon with the Inspector's command line, over HTTP and standard input and output,
// in both eras of the protocol. Each call is a client of its own.
func TestInspector(t *testing.T) {
	pkg := npmPackage(t, "@modelcontextprotocol/inspector")
	i := inspector{node: node(t), script: inspectorScript(t, pkg), d: daemon.Start(t, daemon.Options{})}
	dir := gitProject(t)
	for _, way := range []string{"http legacy", "http modern", "stdio legacy", "stdio modern"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var list struct {
				Tools []struct{ Name, Description string }
			}
			i.run(t, way, &list, "--method", "tools/list")
			if len(list.Tools) != 15 {
				t.Errorf("%d tools, want 15", len(list.Tools))
			}
			var opened, read callResult
			i.run(t, way, &opened, "--method", "tools/call", "--tool-name", "workspace_open", "--tool-args-json", encode(t, daemon.Args{"cwd": dir}))
			i.run(t, way, &read, "--method", "tools/call", "--tool-name", "read", "--tool-args-json",
				encode(t, daemon.Args{"workspace_id": opened.Structured["workspace_id"], "path": "README.md"}))
			if got := read.Structured["output"]; got != "# Demo\n" {
				t.Errorf("read answered %q", got)
			}
		})
	}
}

type callResult struct {
	Structured map[string]any `json:"structuredContent"`
}

type inspector struct {
	node, script string
	d            *daemon.Daemon
}

// run makes one call and decodes the result.
func (i inspector) run(t *testing.T, way string, into any, args ...string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "servers.json")
	transport, era, _ := strings.Cut(way, " ")
	server := map[string]any{
		"type": "streamable-http", "url": i.d.URL(), "protocolEra": era,
		"headers": map[string]string{"Authorization": i.d.Authorization()},
	}
	if transport == "stdio" {
		server = map[string]any{"command": i.d.Binary(), "args": []string{"stdio", "--state-dir", i.d.StateDir()}, "protocolEra": era}
	}
	put(t, config, encode(t, map[string]any{"mcpServers": map[string]any{"rig": server}}))
	args = append([]string{i.script, "--cli", "--config", config, "--server", "rig", "--stored-auth-only", "--format", "json"}, args...)
	cmd := exec.CommandContext(bounded(t, 2*time.Minute), i.node, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspector: %v\n%s%s", err, out, stderr.String())
	}
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("inspector: %v\n%s", err, out)
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		t.Fatalf("inspector: %v\n%s", err, out)
	}
}

// inspectorScript finds the program that the package registers as mcp-inspector.
func inspectorScript(t *testing.T, pkg string) string {
	t.Helper()
	var manifest struct{ Bin map[string]string }
	if err := json.Unmarshal([]byte(text(t, filepath.Join(pkg, "package.json"))), &manifest); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(pkg, manifest.Bin["mcp-inspector"])
}

func encode(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
