package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// key proves the session ids of all test servers.
var key = bytes.Repeat([]byte("k"), 32)

// rig is a running endpoint with tools made for tests:
//
//	echo     answers with its arguments
//	progress reports args.steps times, then answers
//	hold     runs until it is cancelled or released, then tells the cause
//	deaf     ignores cancellation until it is released
//	big      answers with args.steps bytes
//	panic    panics
type rig struct {
	*transport.Handler
	url     string
	started chan string // names of hold and deaf calls that have begun
	release chan struct{}
	causes  chan transport.Cause // of hold calls that have ended
	served  chan string          // X-Mark of requests whose response is finished
}

func newRig(t testing.TB, change func(*transport.Options)) *rig {
	t.Helper()
	r := &rig{started: make(chan string, 1000), release: make(chan struct{}), causes: make(chan transport.Cause, 1000), served: make(chan string, 10)}
	srv := server.NewMCPServer("test", "1", server.WithToolCapabilities(false), server.WithInstructions("Be kind."),
		server.WithMethodCacheHints(mcp.MethodToolsList, 1000, mcp.CacheScopePrivate))
	for _, name := range []string{"echo", "progress", "hold", "deaf", "panic"} {
		srv.AddTool(mcp.NewToolWithRawSchema(name, "A test tool", json.RawMessage(`{"type":"object","properties":{}}`)),
			func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return r.call(ctx, name, req.Params.RawArguments)
			})
	}
	o := transport.Options{Server: srv, Call: r.call, Info: mcp.Implementation{Name: "test", Version: "1"}, SessionKey: key}
	if change != nil {
		change(&o)
	}
	r.Handler = transport.New(o)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = transport.HTTPServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.ServeHTTP(w, req)
		if mark := req.Header.Get("X-Mark"); mark != "" {
			r.served <- mark
		}
	}))
	ts.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		select {
		case <-r.release:
		default:
			close(r.release)
		}
		if err := r.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		ts.CloseClientConnections()
		ts.Close()
	})
	r.url = ts.URL
	return r
}

func (r *rig) call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	return r.run(ctx, tool, args), nil
}

func (r *rig) run(ctx context.Context, tool string, args json.RawMessage) *mcp.CallToolResult {
	var a struct {
		Steps int    `json:"steps"`
		Name  string `json:"name"`
	}
	_ = json.Unmarshal(args, &a) // tests send what fits
	switch tool {
	case "echo":
		return mcp.NewToolResultText(string(args))
	case "progress":
		report := transport.Progress(ctx)
		for i := range a.Steps {
			if report != nil {
				report(float64(i+1), float64(a.Steps), a.Name)
			}
		}
		return mcp.NewToolResultText(fmt.Sprintf("asked=%t", report != nil))
	case "hold":
		r.started <- a.Name
		select {
		case <-ctx.Done():
			r.causes <- transport.CancelCause(ctx)
			return mcp.NewToolResultText("cancelled by " + string(transport.CancelCause(ctx)))
		case <-r.release:
			r.causes <- transport.CauseNone
			return mcp.NewToolResultText("released")
		}
	case "deaf":
		r.started <- a.Name
		<-r.release
		return mcp.NewToolResultText("released")
	case "big":
		r.started <- a.Name
		return mcp.NewToolResultText(strings.Repeat("x", a.Steps))
	case "panic":
		panic("secret")
	}
	return mcp.NewToolResultError("UNKNOWN_TOOL")
}

// headers are pairs of names and values.
type headers []string

// do sends one request with the headers a plain client sends, changed by h; an
// empty value takes a header away.
func (r *rig) do(t testing.TB, method string, h headers, body string) *http.Response {
	t.Helper()
	resp, err := r.try(method, h, body)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (r *rig) try(method string, h headers, body string) (*http.Response, error) {
	req, err := http.NewRequest(method, r.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
		if h[i+1] == "" {
			req.Header.Del(h[i])
		}
	}
	return http.DefaultClient.Do(req)
}

// reply is any JSON-RPC answer.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Result map[string]any  `json:"result"`
	Error  *struct {
		Code    int            `json:"code"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
	} `json:"error"`
}

func (r reply) text(t *testing.T) string {
	t.Helper()
	content, _ := r.Result["content"].([]any)
	if len(content) == 0 {
		t.Fatalf("no content in %+v", r)
	}
	return content[0].(map[string]any)["text"].(string)
}

// post sends a body and expects one JSON answer.
func (r *rig) post(t testing.TB, h headers, body string) (int, reply, http.Header) {
	t.Helper()
	resp := r.do(t, http.MethodPost, h, body)
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	var out reply
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatalf("answer %q: %v", raw, err)
		}
	}
	return resp.StatusCode, out, resp.Header
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"9"}}}`

// open makes a session.
func (r *rig) open(t *testing.T) string {
	t.Helper()
	status, out, h := r.post(t, nil, initialize)
	if status != 200 || out.Result["protocolVersion"] != "2025-11-25" || h.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %d %+v %v", status, out, h)
	}
	return h.Get("Mcp-Session-Id")
}

func call(id, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

func callWithProgress(id, tool, args, token string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":%s}}}`, id, tool, args, token)
}

// modern makes a 2026-07-28 request and its headers.
func modern(id, method, name, params string) (headers, string) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"new","version":"2"}}`
	h := headers{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	if params != "" {
		params += ","
	}
	return h, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, params, meta)
}

// events reads the data of an event stream to its end.
func events(t *testing.T, body io.Reader) (data []string, comments int) {
	t.Helper()
	s := bufio.NewScanner(body)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		if d, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			data = append(data, d)
		} else if strings.HasPrefix(s.Text(), ":") {
			comments++
		}
	}
	if err := s.Err(); err != nil {
		t.Errorf("read stream: %v", err)
	}
	return data, comments
}

// wait receives or fails.
func wait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

func TestEachVersionIsAnswered(t *testing.T) {
	r := newRig(t, nil)
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2099-01-01": "2025-11-25", "1.0": "2025-11-25",
	} {
		status, out, _ := r.post(t, nil, strings.Replace(initialize, "2025-11-25", asked, 1))
		if status != 200 || out.Result["protocolVersion"] != want || out.Result["instructions"] != "Be kind." {
			t.Errorf("initialize %s: %d %+v", asked, status, out)
		}
	}
	h, body := modern("1", "server/discover", "", "")
	status, out, got := r.post(t, h, body)
	versions, _ := out.Result["supportedVersions"].([]any)
	if status != 200 || len(versions) != 5 || out.Result["resultType"] != "complete" || out.Result["instructions"] != "Be kind." {
		t.Errorf("discover: %d %+v", status, out)
	}
	if got.Get("Mcp-Session-Id") != "" {
		t.Error("modern answer carries a session id")
	}
}

func TestModernResultsAreDecorated(t *testing.T) {
	r := newRig(t, nil)
	h, body := modern("7", "tools/call", "echo", `"name":"echo","arguments":{"a":1}`)
	status, out, _ := r.post(t, h, body)
	meta, _ := out.Result["_meta"].(map[string]any)
	if status != 200 || out.Result["resultType"] != "complete" || meta["io.modelcontextprotocol/serverInfo"] == nil || out.text(t) != `{"a":1}` {
		t.Errorf("modern call: %d %+v", status, out)
	}
	h, body = modern("8", "tools/list", "", "")
	status, out, _ = r.post(t, h, body)
	if status != 200 || out.Result["ttlMs"] != 1000.0 || out.Result["cacheScope"] != "private" {
		t.Errorf("modern list: %d %+v", status, out)
	}
	_, out, _ = r.post(t, nil, call("9", "echo", "{}"))
	if out.Result["resultType"] != nil || out.Result["_meta"] != nil {
		t.Errorf("legacy call is decorated: %+v", out)
	}
}

func TestModernChecks(t *testing.T) {
	r := newRig(t, nil)
	good, body := modern("1", "tools/call", "echo", `"name":"echo"`)
	without := func(name string) headers { return append(append(headers{}, good...), name, "") }
	with := func(name, value string) headers { return append(append(headers{}, good...), name, value) }
	for name, c := range map[string]struct {
		h      headers
		body   string
		status int
		code   int
	}{
		"good":                          {good, body, 200, 0},
		"no version header":             {without("MCP-Protocol-Version"), body, 400, -32020},
		"other version header":          {with("MCP-Protocol-Version", "2025-11-25"), body, 400, -32020},
		"no method header":              {without("Mcp-Method"), body, 400, -32020},
		"other method header":           {with("Mcp-Method", "tools/list"), body, 400, -32020},
		"no name header":                {without("Mcp-Name"), body, 400, -32020},
		"other name header":             {with("Mcp-Name", "hold"), body, 400, -32020},
		"last event id":                 {with("Last-Event-ID", "3"), body, 400, -32020},
		"unknown version":               {with("MCP-Protocol-Version", "2099-01-01"), strings.ReplaceAll(body, "2026-07-28", "2099-01-01"), 400, -32022},
		"no version in meta":            {good, strings.ReplaceAll(body, "io.modelcontextprotocol/protocolVersion", "x"), 400, -32602},
		"no capabilities":               {good, strings.ReplaceAll(body, "io.modelcontextprotocol/clientCapabilities", "x"), 400, -32602},
		"unusable session is no matter": {with("Mcp-Session-Id", "forged"), body, 200, 0},
		"malformed call":                {good, strings.Replace(body, `"name":"echo"`, `"name":5`, 1), 400, -32602},
	} {
		status, out, _ := r.post(t, c.h, c.body)
		code := 0
		if out.Error != nil {
			code = out.Error.Code
		}
		if status != c.status || code != c.code || string(out.ID) != "1" {
			t.Errorf("%s: %d %+v, want %d %d", name, status, out, c.status, c.code)
		}
		if code == -32022 && (out.Error.Data["requested"] != "2099-01-01" || len(out.Error.Data["supported"].([]any)) != 5) {
			t.Errorf("%s: data %v", name, out.Error.Data)
		}
	}
	for _, method := range []string{"no/such", "ping", "initialize", "logging/setLevel"} {
		h, body := modern("1", method, "", "")
		if status, out, _ := r.post(t, h, body); status != 404 || out.Error.Code != -32601 {
			t.Errorf("modern %s: %d %+v", method, status, out)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if resp := r.do(t, method, good, ""); resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
			t.Errorf("modern %s: %d", method, resp.StatusCode)
		}
	}
}

func TestPostRules(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.MaxBody = 1000 })
	big := call("1", "echo", `{"a":"`+strings.Repeat("x", 1000)+`"}`)
	for name, c := range map[string]struct {
		h      headers
		body   string
		status int
		code   int
	}{
		"plain":               {nil, call("1", "echo", "{}"), 200, 0},
		"charset":             {headers{"Content-Type", "application/json; charset=utf-8"}, call("1", "echo", "{}"), 200, 0},
		"substring of a type": {headers{"Content-Type", "xapplication/jsonz"}, call("1", "echo", "{}"), 415, -32000},
		"no type":             {headers{"Content-Type", ""}, call("1", "echo", "{}"), 415, -32000},
		"too large":           {nil, big, 413, -32000},
		"bad JSON":            {nil, `{"jsonrpc":`, 400, -32700},
		"empty":               {nil, ``, 400, -32700},
		"two values":          {nil, `{} {}`, 400, -32700},
		"no object":           {nil, `"x"`, 400, -32600},
		"no version":          {nil, `{"id":1,"method":"ping"}`, 400, -32600},
		"null id":             {nil, `{"jsonrpc":"2.0","id":null,"method":"ping"}`, 400, -32600},
		"object id":           {nil, `{"jsonrpc":"2.0","id":{},"method":"ping"}`, 400, -32600},
		"no method":           {nil, `{"jsonrpc":"2.0","id":1}`, 400, -32600},
		"params a list":       {nil, `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, 400, -32602},
		"call without name":   {nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, 200, -32602},
		"call without params": {nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 200, -32602},
		"arguments a list":    {nil, call("1", "echo", "[]"), 200, -32602},
		"unknown method":      {nil, `{"jsonrpc":"2.0","id":1,"method":"no/such"}`, 200, -32601},
		"unknown version":     {headers{"MCP-Protocol-Version", "1999-01-01"}, call("1", "echo", "{}"), 400, -32000},
		"any Accept":          {headers{"Accept", "text/html"}, call("1", "echo", "{}"), 200, 0},
		"no Accept":           {headers{"Accept", ""}, call("1", "echo", "{}"), 200, 0},
		"notification":        {nil, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, 0},
		"stray response":      {nil, `{"jsonrpc":"2.0","id":1,"result":{}}`, 202, 0},
	} {
		status, out, h := r.post(t, c.h, c.body)
		code := 0
		if out.Error != nil {
			code = out.Error.Code
		}
		if status != c.status || code != c.code {
			t.Errorf("%s: %d %+v, want %d %d", name, status, out, c.status, c.code)
		}
		if code != 0 && h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: error may be cached", name)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodOptions} {
		if resp := r.do(t, method, nil, ""); resp.StatusCode != 405 {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

func TestChunkedBodyIsLimitedToo(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.MaxBody = 1000 })
	req, _ := http.NewRequest(http.MethodPost, r.url, io.MultiReader(strings.NewReader(strings.Repeat(" ", 5000))))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestIDsComeBackAsTheyWere(t *testing.T) {
	r := newRig(t, nil)
	for _, id := range []string{`1`, `"1"`, `12345678901234567890`, `1.0`, `""`, `"ü\u0000<>"`} {
		for _, body := range []string{call(id, "echo", "{}"), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id)} {
			if _, out, _ := r.post(t, nil, body); string(out.ID) != id {
				t.Errorf("id %s came back as %s", id, out.ID)
			}
		}
	}
}

func TestBatches(t *testing.T) {
	r := newRig(t, nil)
	batch := "[" + call("1", "echo", `{"n":1}`) + `,{"jsonrpc":"2.0","method":"notifications/initialized"},` + call(`"b"`, "echo", `{"n":2}`) + "]"
	for _, version := range []string{"", "2025-03-26", "2024-11-05"} {
		resp := r.do(t, http.MethodPost, headers{"MCP-Protocol-Version", version}, batch)
		var out []reply
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || len(out) != 2 || string(out[0].ID) != "1" || out[1].text(t) != `{"n":2}` {
			t.Errorf("batch with version %q: %v %+v", version, err, out)
		}
	}
	for version, body := range map[string]string{
		"2025-06-18": batch, "2025-11-25": batch, "2026-07-28": batch,
		"2025-03-26": "[" + initialize + "]", "2024-11-05": "[]",
	} {
		if status, out, _ := r.post(t, headers{"MCP-Protocol-Version", version}, body); status != 400 || out.Error.Code != -32600 {
			t.Errorf("batch with version %s: %d %+v", version, status, out)
		}
	}
	if resp := r.do(t, http.MethodPost, nil, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); resp.StatusCode != 202 {
		t.Errorf("batch of notifications: %d", resp.StatusCode)
	}
}

func TestSessions(t *testing.T) {
	r := newRig(t, nil)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	id := r.open(t)
	again := newRig(t, nil) // a restart with the same key
	other := newRig(t, func(o *transport.Options) { o.SessionKey = bytes.Repeat([]byte("o"), 32) })
	for name, c := range map[string]struct {
		to      *rig
		session string
		status  int
	}{
		"valid": {r, id, 200}, "missing": {r, "", 200}, "after a restart": {again, id, 200}, "of another key": {other, id, 404},
		"forged": {r, "forged", 404}, "one bit off": {r, flip(id), 404}, "uuid": {r, "0b8fbf0e-5f5c-4a53-9f0e-1d1f7e0f5c11", 404},
	} {
		if status, out, _ := c.to.post(t, headers{"Mcp-Session-Id", c.session}, ping); status != c.status {
			t.Errorf("%s: %d %+v", name, status, out)
		}
	}
	if resp := r.do(t, http.MethodDelete, headers{"Mcp-Session-Id", id}, ""); resp.StatusCode != 200 {
		t.Errorf("delete: %d", resp.StatusCode)
	}
	if status, out, _ := r.post(t, headers{"Mcp-Session-Id", id}, ping); status != 404 || !strings.Contains(out.Error.Message, "initialize again") {
		t.Errorf("deleted: %d %+v", status, out)
	}
	for name, session := range map[string]string{"deleted": id, "forged": "forged"} {
		if resp := r.do(t, http.MethodDelete, headers{"Mcp-Session-Id", session}, ""); resp.StatusCode != 404 {
			t.Errorf("delete of a %s session: %d", name, resp.StatusCode)
		}
		status, _, h := r.post(t, headers{"Mcp-Session-Id", session}, initialize)
		if fresh := h.Get("Mcp-Session-Id"); status != 200 || fresh == "" || fresh == session {
			t.Errorf("initialize with a %s session: %d, id %q", name, status, fresh)
		}
	}
	if resp := r.do(t, http.MethodDelete, nil, ""); resp.StatusCode != 400 {
		t.Errorf("delete without id: %d", resp.StatusCode)
	}
}

// flip changes one character in the middle of an id.
func flip(id string) string {
	b := []byte(id)
	i := len(b) / 2
	if b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

func TestCancelByNotification(t *testing.T) {
	r := newRig(t, nil)
	session := headers{"Mcp-Session-Id", r.open(t)}
	foreign := headers{"Mcp-Session-Id", r.open(t)}
	answers := make(chan string, 2)
	for _, id := range []string{`5`, `"5"`} {
		go func() {
			_, out, _ := r.post(t, session, call(id, "hold", `{"name":"x"}`))
			answers <- string(out.ID) + " " + out.text(t)
		}()
		wait(t, r.started, "the call")
	}
	cancel := func(h headers, id string) {
		t.Helper()
		body := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"why not"}}`
		if resp := r.do(t, http.MethodPost, h, body); resp.StatusCode != 202 {
			t.Errorf("cancel: %d", resp.StatusCode)
		}
	}
	cancel(nil, "5")
	cancel(foreign, "5")
	cancel(session, "6")
	cancel(session, "null")
	if got := r.InFlight(); got != 2 {
		t.Fatalf("a cancellation that names neither call left %d of 2", got)
	}
	cancel(session, `"5"`)
	if got := wait(t, answers, "the cancelled answer"); got != `"5" cancelled by client notification` {
		t.Errorf("answer %s", got)
	}
	if got := r.InFlight(); got > 1 {
		t.Errorf("%d calls in flight", got)
	}
	cancel(session, `5.0`)
	if got := wait(t, answers, "the cancelled answer"); got != `5 cancelled by client notification` {
		t.Errorf("answer %s", got)
	}
}

func TestCancelledCallIsSettledThoughItsHandlerIsDeaf(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.Grace = 50 * time.Millisecond })
	id := r.open(t)
	answer := make(chan reply, 1)
	go func() {
		_, out, _ := r.post(t, headers{"Mcp-Session-Id", id}, call("1", "deaf", "{}"))
		answer <- out
	}()
	wait(t, r.started, "the call")
	if resp := r.do(t, http.MethodDelete, headers{"Mcp-Session-Id", id}, ""); resp.StatusCode != 200 {
		t.Errorf("delete: %d", resp.StatusCode)
	}
	if out := wait(t, answer, "the answer"); out.Error == nil || out.Error.Message != "The request was cancelled" {
		t.Errorf("answer %+v", out)
	}
	close(r.release)
}

func TestDisconnectCancelsModernCallsOnly(t *testing.T) {
	r := newRig(t, nil)
	drop := func(h headers, body string) {
		ctx, cancel := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(h); i += 2 {
			req.Header.Set(h[i], h[i+1])
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
		wait(t, r.started, "the call")
		cancel()
		<-gone
	}
	h, body := modern("1", "tools/call", "hold", `"name":"hold","arguments":{}`)
	drop(h, body)
	if cause := wait(t, r.causes, "the modern call's end"); cause != transport.CauseDisconnect {
		t.Errorf("modern call ended by %q", cause)
	}
	drop(headers{"Mcp-Session-Id", r.open(t)}, call("1", "hold", "{}"))
	select {
	case cause := <-r.causes:
		t.Errorf("legacy call ended by %q", cause)
	case <-time.After(100 * time.Millisecond):
	}
	close(r.release)
	if cause := wait(t, r.causes, "the legacy call's end"); cause != transport.CauseNone {
		t.Errorf("legacy call ended by %q", cause)
	}
}

func TestShutdownCancelsAndAnswers(t *testing.T) {
	r := newRig(t, nil)
	answer := make(chan reply, 1)
	go func() {
		_, out, _ := r.post(t, nil, call("1", "hold", "{}"))
		answer <- out
	}()
	wait(t, r.started, "the call")
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, answer, "the answer").text(t); got != "cancelled by shutdown" {
		t.Errorf("answer %q", got)
	}
	if status, out, _ := r.post(t, nil, call("2", "echo", "{}")); status != 503 || out.Error == nil {
		t.Errorf("while stopping: %d %+v", status, out)
	}
	if !r.Stopping() {
		t.Error("does not say that it stops")
	}
}

func TestPanicIsContained(t *testing.T) {
	r := newRig(t, nil)
	status, out, _ := r.post(t, nil, call("1", "panic", "{}"))
	if status != 200 || out.Error == nil || out.Error.Code != -32603 || strings.Contains(out.Error.Message, "secret") {
		t.Errorf("%d %+v", status, out)
	}
	if got := r.InFlight(); got != 0 {
		t.Errorf("%d calls in flight", got)
	}
}

func TestTooManyRequests(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.MaxPosts = 2 })
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { r.post(t, nil, call("1", "hold", "{}")) })
		wait(t, r.started, "the call")
	}
	status, out, h := r.post(t, nil, call("1", "echo", "{}"))
	if status != 503 || h.Get("Retry-After") == "" || !strings.Contains(out.Error.Message, "retry") {
		t.Errorf("%d %+v", status, out)
	}
	close(r.release)
	wg.Wait()
	if status, _, _ := r.post(t, nil, call("1", "echo", "{}")); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

// A client is one line, whichever of its requests say its name and however its HTTP libraries call themselves.
func TestAClientIsListedOnce(t *testing.T) {
	r := newRig(t, nil)
	lines := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range r.Clients() {
			got = append(got, fmt.Sprintf("%s %s %s %d", c.Name, c.Version, c.UserAgent, c.Requests))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("clients %q, want %q", got, want)
		}
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	name := func(name, version, agent string) {
		t.Helper()
		r.post(t, headers{"User-Agent", agent}, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":%q,"version":%q}}}`, name, version))
	}
	r.post(t, headers{"User-Agent", "node"}, ping) // from before a restart of the daemon
	lines("  node 1")
	name("one", "1", "node")
	r.post(t, headers{"User-Agent", "node"}, ping) // its session id is not sent, or the name is forgotten
	lines("one 1 node 3")
	name("one", "1", "undici") // another library of the same client
	lines("one 1 undici 4")
	name("two", "1", "undici")
	r.post(t, headers{"User-Agent", "undici"}, ping) // one of the two, nobody knows which
	name("one", "2", "curl")
	lines("  undici 1", "one 1 undici 4", "one 2 curl 1", "two 1 undici 1")
}

func TestClientsAreRemembered(t *testing.T) {
	r := newRig(t, nil)
	session := headers{"Mcp-Session-Id", r.open(t), "User-Agent", "raw-http/1"}
	r.post(t, session, call("1", "echo", "{}"))
	h, body := modern("1", "tools/call", "echo", `"name":"echo"`)
	r.post(t, append(h, "User-Agent", "agent/2"), body)
	r.post(t, headers{"User-Agent", "nameless/3"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	got := map[string]transport.ClientInfo{}
	for _, c := range r.Clients() {
		got[c.Name+"|"+c.UserAgent] = c
	}
	if c := got["raw|raw-http/1"]; c.LastTool != "echo" || c.LastMethod != "tools/call" || c.Version != "9" || c.Requests != 2 || c.LastTime.IsZero() {
		t.Errorf("session's client: %+v in %+v", c, got)
	}
	if c := got["new|agent/2"]; c.LastTool != "echo" {
		t.Errorf("modern client: %+v", c)
	}
	if c := got["|nameless/3"]; c.LastMethod != "ping" || c.LastTool != "" {
		t.Errorf("nameless client: %+v", c)
	}
	for i := range 200 {
		r.post(t, headers{"User-Agent", fmt.Sprintf("flood/%d", i)}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	}
	list := r.Clients()
	if len(list) != 64 || list[0].UserAgent != "flood/199" {
		t.Errorf("%d clients, latest %+v", len(list), list[0])
	}
}
