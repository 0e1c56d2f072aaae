package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	goclient "github.com/mark3labs/mcp-go/client"
	gotransport "github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rigbridge/rigbridge/mcpserver"
	"github.com/rigbridge/rigbridge/mcpserver/tools"
	"github.com/rigbridge/rigbridge/mcpserver/transport"
	"github.com/rigbridge/rigbridge/mcpserver/transport/security"
)

const bearer = "Bearer 0123456789abcdefghijABCDEFGHIJ0123456789_-XYZ"

// endpoint is the whole way in: listener, guard, transport, server.
type endpoint struct {
	url     string
	mcp     *transport.Handler
	started chan struct{}
	causes  chan transport.Cause
	log     *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) add(prefix, args string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(&s.b, prefix, args)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newEndpoint serves nine tools. bash reports progress and, asked to hold, runs
// until it is cancelled; grep fails; the others echo.
func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{started: make(chan struct{}, 100), causes: make(chan transport.Cause, 100), log: new(syncBuffer)}
	log := funcr.New(e.log.add, funcr.Options{Verbosity: 10})
	server := mcpserver.New(mcpserver.Options{Version: "1.2.3", CheckOutputs: true, Log: log})
	for _, name := range []string{"workspace_open", "workspace_close", "read", "ls", "find", "grep", "write", "edit", "bash"} {
		if err := server.Register(name, e.handle); err != nil {
			t.Fatal(err)
		}
	}
	ts := httptest.NewUnstartedServer(nil)
	e.mcp = transport.New(transport.Options{
		Server: server.MCP(), Call: server.Call, Info: server.Info(), SessionKey: bytes.Repeat([]byte("k"), 32), Log: log,
		ProgressInterval: time.Nanosecond,
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", security.Guard(e.mcp, security.GuardOptions{
		Port: ts.Listener.Addr().(*net.TCPAddr).Port, RefuseOrigin: true, Token: security.NewToken(bearer),
	}))
	ts.Config.Handler = security.WellKnown(mux)
	ts.Start()
	e.url = ts.URL + "/mcp"
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.mcp.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		ts.Close()
		for _, form := range []string{bearer, bearer[7:]} {
			if strings.Contains(e.log.String(), form) {
				t.Error("the token is in the log")
			}
		}
	})
	return e
}

func (e *endpoint) handle(ctx context.Context, tool string, args json.RawMessage) *mcp.CallToolResult {
	structured := map[string]any{"workspace_id": "w", "cwd": "/", "details": map[string]any{"tool": tool}}
	switch tool {
	case "grep":
		return mcpserver.Failure("EXECUTION_FAILED", "FileNotFound", "There is no such file; use find.", map[string]any{"workspace_id": "w"})
	case "bash":
		if report := transport.Progress(ctx); report != nil {
			for i := range 20 {
				report(float64(i+1), 20, "line")
			}
		}
		if bytes.Contains(args, []byte("hold")) {
			e.started <- struct{}{}
			<-ctx.Done()
			e.causes <- transport.CancelCause(ctx)
			return mcpserver.Failure("COMMAND_CANCELLED", "", "Command aborted", nil)
		}
		structured["elapsed_ms"], structured["exit_code"] = 1, 0
	case "read":
		structured["path"], structured["revision"] = "/p", "sha256:0"
	}
	return mcpserver.Success(string(args), nil, structured)
}

// bearing adds the bearer to each request.
type bearing struct{ agent string }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", bearer)
	r.Header.Set("User-Agent", b.agent)
	return http.DefaultTransport.RoundTrip(r)
}

func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

func TestOfficialGoSDK(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			e := newEndpoint(t)
			progress := make(chan float64, 100)
			client := sdk.NewClient(&sdk.Implementation{Name: "sdk", Version: "1.8"}, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
				Endpoint: e.url, HTTPClient: &http.Client{Transport: bearing{"sdk/1.8"}}, MaxRetries: -1,
			}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := session.InitializeResult(); got.Instructions != tools.Instructions() || got.ProtocolVersion != version || got.ServerInfo == nil || got.ServerInfo.Name != "rig-bridge" {
				t.Errorf("initialize result %+v", got)
			} else if c := got.Capabilities; c.Tools == nil || c.Tools.ListChanged || c.Resources != nil || c.Prompts != nil || c.Completions != nil {
				t.Errorf("capabilities %+v", c)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 9 || list.NextCursor != "" {
				t.Fatalf("list: %v %+v", err, list)
			}
			sdkCalls(t, session, progress)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-e.started
				cancel()
			}()
			if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "bash", Arguments: map[string]any{"workspace_id": "w", "request_key": "k", "command": "hold"}}); err == nil {
				t.Error("the cancelled call succeeded")
			}
			want := transport.CauseClient
			if version == "2026-07-28" {
				want = transport.CauseDisconnect
			}
			if got := await(t, e.causes, "the cancelled call"); got != want {
				t.Errorf("call ended by %q", got)
			}
			if clients := e.mcp.Clients(); !slices.ContainsFunc(clients, func(c transport.ClientInfo) bool { return c.Name == "sdk" && c.LastTool == "bash" }) {
				t.Errorf("clients %+v", clients)
			}
		})
	}
}

func sdkCalls(t *testing.T, session *sdk.ClientSession, progress <-chan float64) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"workspace_id": "w", "path": "<p>"}})
	if err != nil || result.IsError {
		t.Fatalf("read: %v %+v", err, result)
	}
	structured := result.StructuredContent.(map[string]any)
	if structured["output"] != result.Content[0].(*sdk.TextContent).Text || !strings.Contains(structured["output"].(string), "<p>") {
		t.Errorf("read: %+v", structured)
	}
	for name, code := range map[string]string{"grep": "EXECUTION_FAILED", "no_such": "UNKNOWN_TOOL", "edit": "INVALID_ARGUMENTS"} {
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"workspace_id": "w", "pattern": "p"}})
		if err != nil || !result.IsError || result.StructuredContent.(map[string]any)["code"] != code {
			t.Errorf("%s: %v %+v", name, err, result)
		}
	}
	params := &sdk.CallToolParams{Name: "bash", Arguments: map[string]any{"workspace_id": "w", "request_key": "k", "command": "c"}}
	params.SetProgressToken("token")
	if result, err := session.CallTool(t.Context(), params); err != nil || result.IsError {
		t.Fatalf("bash: %v %+v", err, result)
	}
	for want := 1.0; want <= 20; want++ {
		if got := await(t, progress, "progress"); got != want {
			t.Fatalf("progress %g instead of %g", got, want)
		}
	}
}

func TestGoClientOfTheLibrary(t *testing.T) {
	for _, version := range []string{"", "2025-11-25", "2025-03-26"} {
		t.Run("version "+version, func(t *testing.T) {
			e := newEndpoint(t)
			carrier, err := gotransport.NewStreamableHTTP(e.url, gotransport.WithHTTPBasicClient(&http.Client{Transport: bearing{"mcp-go/1.2"}}))
			if err != nil {
				t.Fatal(err)
			}
			var options []goclient.ClientOption
			if version != "" {
				options = append(options, goclient.WithProtocolVersion(version))
			}
			client := goclient.NewClient(carrier, options...)
			defer client.Close()
			if err := client.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			var hello mcp.InitializeRequest
			hello.Params.ClientInfo = mcp.Implementation{Name: "library", Version: "1"}
			hello.Params.ProtocolVersion = version
			got, err := client.Initialize(t.Context(), hello)
			if err != nil || got.Instructions != tools.Instructions() {
				t.Fatalf("initialize: %v %+v", err, got)
			}
			list, err := client.ListTools(t.Context(), mcp.ListToolsRequest{})
			if err != nil || len(list.Tools) != 9 {
				t.Fatalf("list: %v %+v", err, list)
			}
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					var call mcp.CallToolRequest
					call.Params.Name = "ls"
					call.Params.Arguments = map[string]any{"workspace_id": fmt.Sprint(i)}
					result, err := client.CallTool(t.Context(), call)
					if err != nil || result.IsError || !strings.Contains(result.Content[0].(mcp.TextContent).Text, fmt.Sprintf("%q", fmt.Sprint(i))) {
						t.Errorf("call %d: %v %+v", i, err, result)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestResultIsCompactAndKeepsDetailsOnTop(t *testing.T) {
	e := newEndpoint(t)
	text := strings.Repeat("line <of> text\n", 3000)
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "read", "arguments": map[string]any{"workspace_id": "w", "path": text},
	}})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: bearing{"raw"}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Result struct {
			Details           map[string]any
			StructuredContent struct{ Details map[string]any }
			IsError           *bool
		}
	}
	if err := json.Unmarshal(raw.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if out.Result.Details["tool"] != "read" || out.Result.StructuredContent.Details["tool"] != "read" || out.Result.IsError != nil {
		t.Errorf("%+v", out.Result)
	}
	if raw.Len() > len(text)*5/2 {
		t.Errorf("%d bytes for a text of %d", raw.Len(), len(text))
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	e := newEndpoint(t)
	for name, c := range map[string]struct {
		url    string
		status int
	}{
		"no token":           {e.url, 401},
		"token in the query": {e.url + "?access_token=" + bearer[7:], 401},
		"well-known":         {strings.TrimSuffix(e.url, "/mcp") + "/.well-known/oauth-protected-resource/mcp", 404},
	} {
		resp, err := http.Post(c.url, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	if got := e.mcp.Clients(); len(got) != 0 {
		t.Errorf("strangers are recorded: %+v", got)
	}
}
