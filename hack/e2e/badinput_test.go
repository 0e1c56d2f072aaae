package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestBadArguments sends calls that a confused assistant might send. Each gets the contract's code and
// names what is wrong, and the next good call is answered.
func TestBadArguments(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := gitProject(t)
	workspace := client.Open(t, dir)
	nowhere := "00000000-0000-4000-8000-000000000000"
	in := func(args daemon.Args) daemon.Args { return copyArgs(args, daemon.Args{"workspace_id": workspace}) }
	for name, c := range map[string]struct {
		tool string
		args daemon.Args
		code string
		says []string
	}{
		"unknown tool":          {"reed", daemon.Args{}, "UNKNOWN_TOOL", []string{"reed"}},
		"missing argument":      {"read", in(nil), "INVALID_ARGUMENTS", []string{"path"}},
		"surplus argument":      {"read", in(daemon.Args{"path": "README.md", "colour": "red"}), "INVALID_ARGUMENTS", []string{"colour"}},
		"wrong type":            {"read", in(daemon.Args{"path": 7}), "INVALID_ARGUMENTS", []string{"path"}},
		"above the maximum":     {"read", in(daemon.Args{"path": "README.md", "limit": 5000}), "INVALID_ARGUMENTS", []string{"limit: 5000 is above the maximum 2000"}},
		"below the minimum":     {"read", in(daemon.Args{"path": "README.md", "offset": 0}), "INVALID_ARGUMENTS", []string{"offset", "0"}},
		"a fraction":            {"read", in(daemon.Args{"path": "README.md", "limit": 1.5}), "INVALID_ARGUMENTS", []string{"limit"}},
		"empty text":            {"grep", in(daemon.Args{"pattern": ""}), "INVALID_ARGUMENTS", []string{"pattern"}},
		"text too long":         {"run_start", in(daemon.Args{"request_key": "k", "title": strings.Repeat("x", 201)}), "INVALID_ARGUMENTS", []string{"title", "200"}},
		"null is absent":        {"read", in(daemon.Args{"path": nil}), "INVALID_ARGUMENTS", []string{"path"}},
		"no edits":              {"edit", in(daemon.Args{"request_key": "k", "path": "README.md", "expected_revision": "missing", "edits": []any{}}), "INVALID_ARGUMENTS", []string{"edits"}},
		"key of an edit":        {"edit", in(daemon.Args{"request_key": "k", "path": "README.md", "expected_revision": "missing", "edits": []any{daemon.Args{"oldText": "a", "newText": "b", "all": true}}}), "INVALID_ARGUMENTS", []string{"all"}},
		"a reason of its own":   {"work_handoff", in(daemon.Args{"request_key": "k", "reason": "tired", "summary": "s"}), "INVALID_ARGUMENTS", []string{"reason", "needs_input"}},
		"each fault is named":   {"read", daemon.Args{"limit": "many", "colour": "red"}, "INVALID_ARGUMENTS", []string{"limit", "colour", "path", "workspace_id"}},
		"unknown workspace":     {"read", daemon.Args{"workspace_id": nowhere, "path": "README.md"}, "WORKSPACE_EXPIRED", []string{"workspace_open"}},
		"a workspace's path":    {"ls", daemon.Args{"workspace_id": "../../etc"}, "WORKSPACE_EXPIRED", nil},
		"missing directory":     {"workspace_open", daemon.Args{"cwd": filepath.Join(dir, "none")}, "INVALID_WORKSPACE", nil},
		"file as a directory":   {"workspace_open", daemon.Args{"cwd": filepath.Join(dir, "README.md")}, "INVALID_WORKSPACE", nil},
		"outside project_root":  {"workspace_open", daemon.Args{"cwd": dir, "project_root": filepath.Join(dir, "src")}, "INVALID_PROJECT_ROOT", nil},
		"unknown project":       {"workspace_open", daemon.Args{"cwd": dir, "project_id": nowhere}, "PROJECT_NOT_FOUND", nil},
		"unknown thread":        {"workspace_open", daemon.Args{"thread_id": nowhere}, "THREAD_NOT_FOUND", nil},
		"NUL in a path":         {"read", in(daemon.Args{"path": "a\x00b"}), "INVALID_PATH", nil},
		"reading a directory":   {"read", in(daemon.Args{"path": "src"}), "UNSUPPORTED_FILE", nil},
		"reading what is not":   {"read", in(daemon.Args{"path": "none.txt"}), "EXECUTION_FAILED", []string{"none.txt"}},
		"unknown operation":     {"operation_wait", in(daemon.Args{"operation_id": nowhere}), "", nil},
		"no operation named":    {"operation_wait", in(nil), "INVALID_ARGUMENTS", []string{"operation_id", "request_key"}},
		"write without reading": {"write", in(daemon.Args{"request_key": daemon.Key(), "path": "README.md", "content": "x", "expected_revision": "missing"}), "REVISION_CONFLICT", []string{"sha256:"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := client.Must(t, c.tool, c.args)
			if !r.IsError || (c.code != "" && r.Code() != c.code) || r.Code() == "" {
				t.Errorf("isError %v, code %q, want %s; text: %s", r.IsError, r.Code(), c.code, r.Text())
			}
			for _, s := range c.says {
				if !strings.Contains(r.Text(), s) {
					t.Errorf("the text does not say %q: %s", s, r.Text())
				}
			}
			if r.Text() == "" || r.String("message") == "" || r.String("output") != r.Text() {
				t.Errorf("an error has text, message and output: %s", r.Raw)
			}
			if r.Structured["effects_may_have_occurred"] == true {
				t.Error("nothing can have happened, but the answer says that it may have")
			}
			client.OK(t, "read", in(daemon.Args{"path": "README.md", "limit": nil}))
		})
	}
	if got := text(t, filepath.Join(dir, "README.md")); got != "# Demo\n" {
		t.Errorf("README.md was changed: %q", got)
	}
}

// TestGoodArguments are the shapes that are odd but right.
func TestGoodArguments(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := gitProject(t)
	workspace := client.Open(t, dir)
	body := `{"jsonrpc":"2.0","id":"a string","method":"tools/call","params":{"name":"read","arguments":` +
		`{"workspace_id":"` + workspace + `","path":"README.md","limit":10.0,"offset":null}}}`
	resp, err := client.Post(bounded(t, time.Minute), []byte(body), http.Header{"Accept": nil, "Content-Type": {"application/json; charset=utf-8"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		ID     string
		Result daemon.Result
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.ID != "a string" || answer.Result.IsError || answer.Result.Text() != "# Demo\n" {
		t.Errorf("HTTP %d, %+v", resp.StatusCode, answer)
	}

	key := daemon.Key()
	first := client.OK(t, "bash", daemon.Args{"workspace_id": workspace, "request_key": key, "command": "echo x >> log"})
	again := client.OK(t, "bash", daemon.Args{"timeout": 120, "command": "echo x >> log", "request_key": key, "workspace_id": workspace})
	if first.Replayed() || !again.Replayed() || text(t, filepath.Join(dir, "log")) != "x\n" {
		t.Errorf("a default and the same value given are one request: %s", again.Raw)
	}
}

// TestBadRequests sends requests that no MCP client would send.
func TestBadRequests(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	dir := gitProject(t)
	workspace := client.Open(t, dir)
	read := daemon.Args{"workspace_id": workspace, "path": "README.md"}
	good := encode(t, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": daemon.Args{"name": "read", "arguments": read}})
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	auth := d.Authorization()
	for name, c := range map[string]struct {
		body   string
		header http.Header
		status []int
		rpc    int // JSON-RPC code, 0 for any
	}{
		"wrong token":              {good, http.Header{"Authorization": {"Bearer " + strings.Repeat("x", 43)}}, []int{401}, 0},
		"no token":                 {good, http.Header{"Authorization": nil}, []int{401}, 0},
		"token cut short":          {good, http.Header{"Authorization": {auth[:len(auth)-1]}}, []int{401}, 0},
		"token with a tail":        {good, http.Header{"Authorization": {auth + "x"}}, []int{401}, 0},
		"two tokens":               {good, http.Header{"Authorization": {"Bearer wrong", auth}}, []int{401}, 0},
		"another scheme":           {good, http.Header{"Authorization": {"Basic " + strings.TrimPrefix(auth, "Bearer ")}}, []int{401}, 0},
		"large body, no token":     {strings.Repeat(" ", 9_000_000), http.Header{"Authorization": nil}, []int{401}, 0},
		"foreign host":             {good, http.Header{"Host": {"evil.test"}}, []int{403}, 0},
		"host of another port":     {good, http.Header{"Host": {"127.0.0.1:1"}}, []int{403}, 0},
		"host with a tail":         {good, http.Header{"Host": {"localhost.evil.test" + d.Base()[len("http://127.0.0.1"):]}}, []int{403}, 0},
		"foreign origin":           {good, http.Header{"Origin": {"https://evil.test"}}, []int{403}, 0},
		"null origin":              {good, http.Header{"Origin": {"null"}}, []int{403}, 0},
		"body too large":           {good + strings.Repeat(" ", 8_400_000), nil, []int{413}, 0},
		"bad JSON":                 {`{"jsonrpc":`, nil, []int{400}, -32700},
		"two values":               {good + good, nil, []int{400}, 0},
		"empty body":               {"", nil, []int{400}, 0},
		"a number":                 {"7", nil, []int{400}, 0},
		"not UTF-8":                {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", nil, []int{400, 404, 200}, 0},
		"deep nesting":             {strings.Repeat("[", 100_000), nil, []int{400}, 0},
		"wrong content type":       {good, http.Header{"Content-Type": {"text/plain"}}, []int{415}, 0},
		"content type in disguise": {good, http.Header{"Content-Type": {"xapplication/jsonz"}}, []int{415}, 0},
		"no content type":          {good, http.Header{"Content-Type": nil}, []int{415}, 0},
		"header too large":         {good, http.Header{"X-Filler": {strings.Repeat("x", 64<<10)}}, []int{431}, 0},
		"forged session":           {good, http.Header{"Mcp-Session-Id": {"00000000-0000-4000-8000-000000000000"}}, []int{404}, 0},
		"unknown version":          {good, http.Header{"Mcp-Protocol-Version": {"1999-01-01"}}, []int{400}, 0},
		"unknown method":           {call("tools/cull", "{}"), nil, []int{200, 404}, -32601},
		"no tool named":            {call("tools/call", "{}"), nil, []int{200, 400}, -32602},
		"params of another shape":  {call("tools/call", "[1]"), nil, []int{200, 400}, -32602},
		"no version":               {`{"id":1,"method":"tools/list"}`, nil, []int{400}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, body := post(t, client, c.body, c.header)
			if !contains(c.status, status) {
				t.Errorf("HTTP %d, want %v; %s", status, c.status, body)
			}
			if status == http.StatusUnauthorized && header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("WWW-Authenticate is %q", header.Get("WWW-Authenticate"))
			}
			var answer struct{ Error *daemon.RPCError }
			if c.rpc != 0 && (json.Unmarshal(body, &answer) != nil || answer.Error == nil || answer.Error.Code != c.rpc) {
				t.Errorf("want JSON-RPC error %d, got %s", c.rpc, body)
			}
			if bytes.Contains(body, []byte(strings.TrimPrefix(auth, "Bearer "))) || bytes.Contains(body, []byte("# Demo")) {
				t.Errorf("the answer tells too much: %s", body)
			}
			client.OK(t, "read", read)
		})
	}
}

// A batch is refused whole or answered whole; protocol versions differ in what they allow.
func TestBatch(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	status, _, body := post(t, client, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`, nil)
	var answers []json.RawMessage
	if status != http.StatusBadRequest && (json.Unmarshal(body, &answers) != nil || len(answers) != 2) {
		t.Errorf("HTTP %d: %s", status, body)
	}
	client.OK(t, "workspace_list", nil)
}

// TestBadPaths asks for what is not at the endpoint.
func TestBadPaths(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	auth := http.Header{"Authorization": {d.Authorization()}}
	for _, c := range []struct {
		method, path string
		header       http.Header
		status       int
		body         string // exact, "*" for any
	}{
		{"GET", "/mcp", auth, 405, "*"},
		{"PUT", "/mcp", auth, 405, "*"},
		{"HEAD", "/mcp", auth, 405, ""},
		{"PATCH", "/mcp", auth, 405, "*"},
		{"OPTIONS", "/mcp", auth, 405, "*"},
		{"DELETE", "/mcp", auth, 400, "*"}, // of no session
		{"GET", "/mcp", nil, 401, "*"},
		{"HEAD", "/mcp", nil, 401, ""},
		{"OPTIONS", "/mcp", nil, 401, "*"},
		{"GET", "/no/such", nil, 404, "Not found\n"},
		{"POST", "/no/such", auth, 404, "Not found\n"},
		{"HEAD", "/no/such", nil, 404, ""},
		{"POST", "/mcp/../mcp2", auth, 404, "*"},
		{"GET", "/healthz", nil, 200, "live"},
		{"HEAD", "/healthz", nil, 200, ""},
		{"GET", "/healthz?x=1", nil, 200, "live"},
		{"POST", "/healthz", nil, 405, "*"},
		{"GET", "/healthz", http.Header{"Origin": {"https://evil.test"}}, 403, "*"},
		{"GET", "/readyz", nil, 200, "ready"},
		{"GET", "/.well-known/oauth-protected-resource", nil, 404, ""},
		{"GET", "/.well-known/oauth-protected-resource/mcp", nil, 404, ""},
		{"GET", "/.well-known/oauth-authorization-server", nil, 404, ""},
		{"GET", "/.well-known/openid-configuration", nil, 404, ""},
		{"GET", "/mcp/.well-known/openid-configuration", nil, 404, ""},
		{"POST", "/.well-known/oauth-protected-resource", nil, 404, ""},
		{"HEAD", "/.well-known/oauth-protected-resource", nil, 404, ""},
		{"GET", "/metrics", nil, 401, "*"},
		{"GET", "/apis/rigbridge.dev/v1alpha1/namespaces/default/operations", nil, 401, "*"},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			status, body := request(t, c.method, d.Base()+c.path, c.header)
			if status != c.status || (c.body != "*" && body != c.body) {
				t.Errorf("HTTP %d %q, want %d %q", status, body, c.status, c.body)
			}
		})
	}
	status, _ := request(t, "POST", d.URL()+"?token="+strings.TrimPrefix(d.Authorization(), "Bearer "), nil)
	if status != 401 && status != 404 {
		t.Errorf("a token in the query string was answered with HTTP %d", status)
	}
	if strings.Contains(d.Log(), strings.TrimPrefix(d.Authorization(), "Bearer ")) {
		t.Error("the log holds the token")
	}
}

// post sends a body and reads the answer. A server that refuses to read on may reset the connection before
// a starved client has read the refusal, so it asks up to three times.
func post(t *testing.T, client *daemon.Client, body string, header http.Header) (int, http.Header, []byte) {
	t.Helper()
	var failed error
	for range 3 {
		resp, err := client.Post(bounded(t, time.Minute), []byte(body), header)
		if err != nil {
			failed = err
			continue
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil {
			return resp.StatusCode, resp.Header, b
		}
		failed = err
	}
	t.Fatal(failed)
	return 0, nil, nil
}

func request(t *testing.T, method, url string, header http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t, time.Minute), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func contains(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}
