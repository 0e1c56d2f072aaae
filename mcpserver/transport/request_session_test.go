package transport_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// newTalkingRig adds tools that are left to the library: talk sends log
// messages, ask asks the client for a name. refuse and break end in errors.
func newTalkingRig(t *testing.T) *rig {
	return newRig(t, func(o *transport.Options) {
		server.WithLogging()(o.Server)
		server.WithElicitation()(o.Server)
		schema := json.RawMessage(`{"type":"object","properties":{}}`)
		o.Server.AddTool(mcp.NewToolWithRawSchema("talk", "Talks", schema), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range r.GetInt("steps", 0) {
				if err := o.Server.SendNotificationToClient(ctx, "notifications/message", map[string]any{"level": "info", "data": i}); err != nil {
					return nil, err
				}
			}
			return mcp.NewToolResultText("talked"), nil
		})
		o.Server.AddTool(mcp.NewToolWithRawSchema("ask", "Asks", schema), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := o.Server.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "Who?", RequestedSchema: map[string]any{"type": "object"}}})
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(fmt.Sprint(answer.Action, answer.Content)), nil
		})
		inner := o.Call
		o.Call = func(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
			switch tool {
			case "talk", "ask":
				return nil, nil
			case "refuse":
				return nil, &transport.Error{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "You cannot", Data: map[string]any{"lacks": "x"}}
			case "break":
				return nil, errors.New("secret")
			}
			return inner(ctx, tool, args)
		}
	})
}

func TestLibraryToolsTalkOnTheirOwnStream(t *testing.T) {
	r := newTalkingRig(t)
	session := r.open(t)
	const calls, steps = 50, 30
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			id := fmt.Sprint(100 + i)
			resp, err := r.try(http.MethodPost, headers{"Mcp-Session-Id", session}, call(id, "talk", fmt.Sprintf(`{"steps":%d}`, steps)))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			data, _ := events(t, resp.Body)
			if len(data) != steps+1 || !strings.Contains(data[steps], `"id":`+id+",") || !strings.Contains(data[steps], "talked") {
				t.Errorf("call %s: %d messages, the last %s", id, len(data), data[max(0, len(data)-1)])
				return
			}
			for n, d := range data[:steps] {
				if !strings.Contains(d, fmt.Sprintf(`"data":%d`, n)) {
					t.Errorf("call %s: message %d is %s", id, n, d)
				}
			}
		})
	}
	wg.Wait()
}

// asked is a request of the server's.
type asked struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

func TestClientIsAsked(t *testing.T) {
	r := newTalkingRig(t)
	session := r.open(t)
	other := r.open(t)
	for name, c := range map[string]struct{ answer, want string }{
		"answers":            {`"result":{"action":"accept","content":{"name":"Ada"}}`, "acceptmap[name:Ada]"},
		"answers with error": {`"error":{"code":-32601,"message":"cannot"}`, "the client answered with error -32601: cannot"},
		"answers nonsense":   {`"result":7`, "read the client's result"},
	} {
		t.Run(name, func(t *testing.T) {
			resp := r.do(t, http.MethodPost, headers{"Mcp-Session-Id", session}, call("1", "ask", "{}"))
			body := bufio.NewReader(resp.Body)
			q := readQuestion(t, body)
			if q.Method != "elicitation/create" {
				t.Fatalf("%+v", q)
			}
			reply := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, c.answer)
			for _, foreign := range []headers{{"Mcp-Session-Id", other}, nil} { // another client cannot answer for it
				if status, _, _ := r.post(t, foreign, strings.Replace(reply, c.answer, `"result":{"action":"decline"}`, 1)); status != http.StatusAccepted {
					t.Errorf("a foreign answer: HTTP %d", status)
				}
			}
			for range 2 { // the second one finds no question
				if status, _, _ := r.post(t, headers{"Mcp-Session-Id", session}, reply); status != http.StatusAccepted {
					t.Errorf("the answer: HTTP %d", status)
				}
			}
			if data, _ := events(t, body); len(data) != 1 || !strings.Contains(data[0], c.want) {
				t.Errorf("%q", data)
			}
		})
	}
}

// readQuestion reads the first event of a stream.
func readQuestion(t *testing.T, body *bufio.Reader) (q asked) {
	t.Helper()
	for {
		line, err := body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &q); err != nil {
				t.Fatal(err)
			}
			return q
		}
	}
}

func TestClientsThatCannotBeAsked(t *testing.T) {
	r := newTalkingRig(t)
	session := r.open(t)
	for name, c := range map[string]struct {
		h    headers
		want string
	}{
		"no session": {nil, "only a client with a session"},
		"JSON only":  {headers{"Mcp-Session-Id", session, "Accept", "application/json"}, "takes no event stream"},
	} {
		if _, out, _ := r.post(t, c.h, call("1", "ask", "{}")); !strings.Contains(out.text(t), c.want) {
			t.Errorf("%s: %+v", name, out)
		}
	}
	// One that cancels its call is no longer waited for.
	resp := r.do(t, http.MethodPost, headers{"Mcp-Session-Id", session}, call("5", "ask", "{}"))
	body := bufio.NewReader(resp.Body)
	readQuestion(t, body)
	if status, _, _ := r.post(t, headers{"Mcp-Session-Id", session}, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`); status != http.StatusAccepted {
		t.Errorf("cancel: HTTP %d", status)
	}
	if data, _ := events(t, body); len(data) != 1 || !strings.Contains(data[0], "cancelled") {
		t.Errorf("%q", data)
	}
}

func TestStdioClientIsAsked(t *testing.T) {
	r := newTalkingRig(t)
	p := newPipe(t, t.Context(), r)
	p.send(t, call("1", "ask", "{}"))
	var q asked
	if err := json.Unmarshal([]byte(wait(t, p.lines, "the question")), &q); err != nil || q.Method != "elicitation/create" {
		t.Fatalf("%+v %v", q, err)
	}
	p.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, q.ID))
	if out := p.answer(t); string(out.ID) != "1" || !strings.HasPrefix(out.text(t), "decline") {
		t.Errorf("%+v", out)
	}
	p.send(t, call("2", "panic", "{}")) // writes nothing but an answer
	if out := p.answer(t); string(out.ID) != "2" || out.Error == nil || out.Error.Code != mcp.INTERNAL_ERROR || strings.Contains(out.Error.Message, "secret") {
		t.Errorf("after a panic: %+v", out)
	}
}

func TestCallsThatEndInErrors(t *testing.T) {
	r := newTalkingRig(t)
	status, out, _ := r.post(t, nil, call("1", "refuse", "{}"))
	if status != http.StatusOK || out.Error == nil || out.Error.Code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY || out.Error.Data["lacks"] != "x" {
		t.Errorf("legacy: %d %+v", status, out)
	}
	h, body := modern("1", "tools/call", "refuse", `"name":"refuse"`)
	if status, out, _ = r.post(t, h, body); status != http.StatusBadRequest || out.Error == nil || out.Error.Code != mcp.MISSING_REQUIRED_CLIENT_CAPABILITY {
		t.Errorf("modern: %d %+v", status, out)
	}
	if _, out, _ = r.post(t, nil, call("1", "break", "{}")); out.Error == nil || out.Error.Code != mcp.INTERNAL_ERROR || strings.Contains(out.Error.Message, "secret") {
		t.Errorf("an error without a code: %+v", out)
	}
}

func TestLogLevelIsTheSessions(t *testing.T) {
	r := newTalkingRig(t)
	session := r.open(t)
	const set = `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"%s"}}`
	if _, out, _ := r.post(t, headers{"Mcp-Session-Id", session}, fmt.Sprintf(set, "info")); out.Error != nil {
		t.Errorf("%+v", out.Error)
	}
	if _, out, _ := r.post(t, headers{"Mcp-Session-Id", session}, fmt.Sprintf(set, "loud")); out.Error == nil || out.Error.Code != mcp.INVALID_PARAMS {
		t.Errorf("an unknown level: %+v", out)
	}
}

func TestHeadersThatRepeatArguments(t *testing.T) {
	r := newRig(t, func(o *transport.Options) {
		o.Server.AddTool(mcp.NewToolWithRawSchema("echo", "Echoes", json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)), nil)
	})
	h, body := modern("1", "tools/call", "echo", `"name":"echo","arguments":{"region":"eu"}`)
	for name, c := range map[string]struct {
		more   headers
		status int
	}{
		"the same":  {headers{"Mcp-Param-Region", "eu"}, 200},
		"another":   {headers{"Mcp-Param-Region", "us"}, 400},
		"left out":  {nil, 400},
		"as base64": {headers{"Mcp-Param-Region", "=?base64?ZXU=?="}, 200},
	} {
		status, out, _ := r.post(t, append(append(headers{}, h...), c.more...), body)
		if status != c.status || status == 400 && out.Error.Code != mcp.HEADER_MISMATCH {
			t.Errorf("%s: %d %+v", name, status, out)
		}
	}
}
