package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rigbridge/rigbridge/mcpserver"
	"github.com/rigbridge/rigbridge/mcpserver/tools"
)

// echo answers with its arguments in the shape of a read.
func echo(_ context.Context, _ string, args json.RawMessage) *mcp.CallToolResult {
	return mcpserver.Success(string(args), nil, map[string]any{
		"workspace_id": "w", "cwd": "/", "path": "/p", "revision": "sha256:0", "details": nil,
	})
}

func newServer(t *testing.T, handlers map[string]mcpserver.Handler) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New(mcpserver.Options{Version: "1.2.3", MaxCalls: 2, CheckOutputs: true})
	for name, h := range handlers {
		if err := s.Register(name, h); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func fields(t *testing.T, r *mcp.CallToolResult) map[string]any {
	t.Helper()
	f, ok := r.StructuredContent.(map[string]any)
	if !ok {
		t.Fatalf("structured content %T", r.StructuredContent)
	}
	if text := r.Content[0].(mcp.TextContent).Text; text != f["output"] {
		t.Errorf("text %q and output %q differ", text, f["output"])
	}
	return f
}

// call makes a call; it has no error by contract.
func call(t *testing.T, s *mcpserver.Server, tool, args string) *mcp.CallToolResult {
	t.Helper()
	r, err := s.Call(t.Context(), tool, json.RawMessage(args))
	if err != nil {
		t.Errorf("%s: %v", tool, err)
	}
	return r
}

func TestCallPassesCanonicalArguments(t *testing.T) {
	s := newServer(t, map[string]mcpserver.Handler{"read": echo})
	r := call(t, s, "read", `{"path":"p","workspace_id":"w","limit":null}`)
	if f := fields(t, r); r.IsError || f["output"] != `{"offset":1,"path":"p","workspace_id":"w"}` {
		t.Errorf("%+v", f)
	}
}

func TestRefusedCallsAreResults(t *testing.T) {
	s := newServer(t, map[string]mcpserver.Handler{"read": echo})
	for name, c := range map[string]struct{ tool, args, code, says string }{
		"unknown tool":           {"no_such", "{}", "UNKNOWN_TOOL", "no_such"},
		"defined but not live":   {"bash", "{}", "UNKNOWN_TOOL", "The tools are read."},
		"name of another length": {strings.Repeat("ü", 5000), "{}", "UNKNOWN_TOOL", "…"},
		"wrong arguments":        {"read", `{"path":"p","workspace_id":"w","limit":5000}`, "INVALID_ARGUMENTS", "limit: 5000 is above the maximum 2000"},
	} {
		r := call(t, s, c.tool, c.args)
		f := fields(t, r)
		if !r.IsError || f["code"] != c.code || !strings.Contains(f["message"].(string), c.says) || len(f["message"].(string)) > 1000 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestLimitOfCalls(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s := newServer(t, map[string]mcpserver.Handler{
		"ls": func(ctx context.Context, tool string, args json.RawMessage) *mcp.CallToolResult {
			started <- struct{}{}
			<-release
			return echo(ctx, tool, args)
		},
		"read": echo,
	})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { call(t, s, "ls", `{"workspace_id":"w"}`) })
		<-started
	}
	const args = `{"workspace_id":"w","path":"p"}`
	if r := call(t, s, "read", args); !r.IsError || !strings.Contains(fields(t, r)["message"].(string), "retry") {
		t.Errorf("call beyond the limit: %+v", r)
	}
	close(release)
	wg.Wait()
	if r := call(t, s, "read", args); r.IsError {
		t.Errorf("call afterwards: %+v", r)
	}
}

func TestHandlersThatFailTheirContract(t *testing.T) {
	s := newServer(t, map[string]mcpserver.Handler{
		"read": func(context.Context, string, json.RawMessage) *mcp.CallToolResult { panic("secret") },
		"bash": func(context.Context, string, json.RawMessage) *mcp.CallToolResult { return nil },
		"ls": func(context.Context, string, json.RawMessage) *mcp.CallToolResult {
			return mcpserver.Success("x", nil, map[string]any{"workspace_id": 7})
		},
		"find": func(context.Context, string, json.RawMessage) *mcp.CallToolResult {
			return mcpserver.Failure("WORKSPACE_EXPIRED", "", "gone", nil) // what a success returns is not asked of a failure
		},
		"write": func(context.Context, string, json.RawMessage) *mcp.CallToolResult {
			return mcpserver.Failure("RECORDED_OUTCOME", "", "was done", map[string]any{"replayed": "yes"})
		},
		"skill_info": func(context.Context, string, json.RawMessage) *mcp.CallToolResult {
			r := mcpserver.Success("x", nil, map[string]any{"workspace_id": "w"})
			r.Content = append(r.Content, mcp.NewTextContent("only in content"))
			return r
		},
	})
	for tool, c := range map[string]struct {
		args, code, reason string
		effects            any
	}{
		"read":       {`{"workspace_id":"w","path":"p"}`, "EXECUTION_FAILED", "InternalError", false},
		"bash":       {`{"workspace_id":"w","request_key":"k","command":"c"}`, "EXECUTION_FAILED", "InternalError", true},
		"ls":         {`{"workspace_id":"w"}`, "EXECUTION_FAILED", "OutputNonconforming", nil},
		"find":       {`{"workspace_id":"w","pattern":"p"}`, "WORKSPACE_EXPIRED", "", nil},
		"write":      {`{"workspace_id":"w","request_key":"k","path":"p","content":"c","expected_revision":"missing"}`, "EXECUTION_FAILED", "OutputNonconforming", nil},
		"skill_info": {`{"workspace_id":"w"}`, "EXECUTION_FAILED", "OutputNonconforming", nil},
	} {
		r := call(t, s, tool, c.args)
		f := fields(t, r)
		reason, _ := f["reason"].(string)
		if !r.IsError || f["code"] != c.code || reason != c.reason || f["effects_may_have_occurred"] != c.effects || strings.Contains(f["message"].(string), "secret") {
			t.Errorf("%s: %+v", tool, f)
		}
	}
}

func TestRegister(t *testing.T) {
	s := newServer(t, map[string]mcpserver.Handler{"grep": echo, "read": echo})
	if err := s.Register("read", echo); err == nil {
		t.Error("a second handler is taken")
	}
	if err := s.Register("no_such", echo); err == nil {
		t.Error("an undefined tool is taken")
	}
	if got := strings.Join(s.Live(), " "); got != "read grep" {
		t.Errorf("live: %s", got)
	}
}

func TestRenderedResults(t *testing.T) {
	given := map[string]any{"path": "/p"}
	r := mcpserver.Success("text", []mcpserver.Image{{Data: []byte{0xff}, MIMEType: "image/png"}}, given)
	if len(r.Content) != 2 || r.Content[1].(mcp.ImageContent).Data != "/w==" || r.IsError {
		t.Errorf("%+v", r)
	}
	if f := fields(t, r); f["path"] != "/p" || len(given) != 1 {
		t.Errorf("%+v, given %+v", f, given)
	}
	r = mcpserver.FailureWithOutput("COMMAND_FAILED", "", "Command exited with code 3", "hi\n\nCommand exited with code 3", map[string]any{"exit_code": 3, "code": "X", "reason": "Y", "message": "Z"})
	f := fields(t, r)
	if _, has := f["reason"]; has || !r.IsError || f["code"] != "COMMAND_FAILED" || f["message"] != "Command exited with code 3" || f["exit_code"] != 3 {
		t.Errorf("%+v", f)
	}
}

func TestListedToolsAreTheLiveOnes(t *testing.T) {
	s := newServer(t, map[string]mcpserver.Handler{"grep": echo, "read": echo})
	reply := s.MCP().HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	raw, err := json.Marshal(reply)
	if err != nil {
		t.Fatal(err)
	}
	var out struct {
		Result struct {
			Tools []struct {
				Name         string
				OutputSchema map[string]any
			}
			NextCursor *string
		}
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Result.Tools) != 2 || out.Result.Tools[0].OutputSchema == nil || out.Result.NextCursor != nil {
		t.Errorf("%s", raw)
	}
	if len(tools.All()) != 15 {
		t.Errorf("%d tools are defined", len(tools.All()))
	}
}

func TestToolsAreTheOnlyCapability(t *testing.T) {
	s := newServer(t, map[string]mcpserver.Handler{"read": echo})
	for _, request := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
	} {
		raw, err := json.Marshal(s.MCP().HandleMessage(t.Context(), json.RawMessage(request)))
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Result struct {
				Capabilities map[string]map[string]any
				Instructions string
			}
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		c := out.Result.Capabilities
		if tool, ok := c["tools"]; len(c) != 1 || !ok || tool["listChanged"] == true || out.Result.Instructions != tools.Instructions() {
			t.Errorf("%s", raw)
		}
	}
}
