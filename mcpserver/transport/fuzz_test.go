package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// FuzzEndpoint writes bytes to the HTTP endpoint as a client would, and to the
// stdio server. Whatever they are, nothing panics or hangs, each answer is an
// HTTP error or JSON-RPC, and the next call is answered.
func FuzzEndpoint(f *testing.F) {
	r := newRig(f, func(o *transport.Options) {
		o.ProgressInterval = time.Nanosecond
		o.Call = func(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
			switch tool {
			case "panic":
				panic("on purpose")
			case "library":
				return nil, nil
			case "refused":
				return nil, &transport.Error{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "no"}
			case "broken":
				return nil, errors.New("secret")
			case "progress":
				if report := transport.Progress(ctx); report != nil {
					report(1, 2, string(args))
				}
			}
			return mcp.NewToolResultText(string(args)), nil
		}
	})
	for _, seed := range fuzzSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		exchange(t, r.url, raw)
		var out bytes.Buffer
		if err := r.ServeStdio(t.Context(), bytes.NewReader(raw), &out); err != nil {
			t.Errorf("stdio: %v", err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if err := checkMessages(line); err != nil {
				t.Errorf("stdio: %v", err)
			}
		}
		if status, got, _ := r.post(t, nil, `{"jsonrpc":"2.0","id":7,"method":"ping"}`); status != 200 || string(got.ID) != "7" {
			t.Errorf("the next call: HTTP %d %+v", status, got)
		}
	})
}

// fuzzSeeds are whole requests, bodies for stdio and beginnings of both.
func fuzzSeeds() (seeds []string) {
	bodies := []string{
		``, `[]`, `{}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"},7]`, initialize,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"a":[1]},"_meta":{"progressToken":5}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-0.0}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":null,"_meta":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`,
		callWithProgress("1e3", "progress", `{"steps":3}`, `"t"`), call("1", "panic", "{}"), call("2", "library", "null"), call("3", "refused", "{}"), call("4", "broken", "{}"),
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x"}}`,
	}
	head := func(h headers) string {
		var b strings.Builder
		for i := 0; i < len(h); i += 2 {
			fmt.Fprintf(&b, "%s: %s\r\n", h[i], h[i+1])
		}
		return b.String()
	}
	request := func(method, extra, body string) string {
		return fmt.Sprintf("%s / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s", method, extra, len(body), body)
	}
	for _, body := range bodies {
		seeds = append(seeds, body+"\n", request("POST", "", body))
	}
	for _, method := range []string{"server/discover", "subscriptions/listen", "tools/list", "no/such"} {
		h, body := modern("1", method, "", `"notifications":{"toolsListChanged":true}`)
		seeds = append(seeds, body, request("POST", head(h), body))
	}
	h, body := modern("1", "tools/call", "echo", `"name":"echo","arguments":{}`)
	return append(seeds,
		request("POST", head(h), body), request("POST", "MCP-Protocol-Version: 2026-07-28\r\n", body), request("GET", "", ""), request("HEAD", "", ""),
		request("DELETE", "Mcp-Session-Id: x\r\n", ""), request("POST", "Mcp-Session-Id: x\r\nLast-Event-ID: 1\r\n", body), request("POST", "Expect: 100-continue\r\n", body),
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"j\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nContent-Type: application/json\r\n\r\n{", "POST / HTTP/1.0\r\n\r\n", "\x16\x03\x01\x02\x00", "GET",
	)
}

// exchange writes raw to a connection and checks the first answer. A request
// that is complete has one; the way there stays open until it has come. Others
// end where raw does.
func exchange(t *testing.T, address string, raw []byte) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(raw) // a server that refuses may hang up on the rest
	request := complete(raw)
	if request == nil {
		_ = conn.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
			t.Error("no end to the answer")
		}
		return
	}
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, request)
	for err == nil && resp.StatusCode == http.StatusContinue {
		resp, err = http.ReadResponse(from, request)
	}
	if err != nil {
		t.Errorf("no answer: %v", err)
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("the answer is torn: %v: %q", err, body)
	} else if err := checkAnswer(request.Method, resp, body); err != nil {
		t.Error(err)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

// complete is the first request in raw, or nil when it is torn or none.
func complete(raw []byte) *http.Request {
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return nil
	}
	return request
}

// checkAnswer wants JSON-RPC or an HTTP error.
func checkAnswer(method string, resp *http.Response, body []byte) error {
	kind := resp.Header.Get("Content-Type")
	switch {
	case method == http.MethodHead || len(body) == 0 && (resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent):
		return nil
	case kind == "application/json":
		return checkMessages(body)
	case kind == "text/event-stream":
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				if err := checkMessages(data); err != nil {
					return err
				}
			}
		}
		return nil
	case resp.StatusCode >= 400: // net/http's own
		return nil
	default:
		return fmt.Errorf("HTTP %d, %q: %q", resp.StatusCode, kind, body)
	}
}

// checkMessages wants one JSON-RPC message, or a batch of them.
func checkMessages(raw []byte) error {
	var batch []json.RawMessage
	if json.Unmarshal(raw, &batch) != nil {
		batch = []json.RawMessage{raw}
	}
	for _, one := range batch {
		var m struct {
			JSONRPC       string
			Method        string
			Result, Error *json.RawMessage
		}
		if err := json.Unmarshal(one, &m); err != nil {
			return fmt.Errorf("no JSON: %w: %q", err, raw)
		}
		kinds := 0
		for _, is := range []bool{m.Method != "", m.Result != nil, m.Error != nil} {
			if is {
				kinds++
			}
		}
		if m.JSONRPC != "2.0" || kinds != 1 || bytes.Contains(one, []byte("secret")) {
			return fmt.Errorf("no JSON-RPC message: %q", raw)
		}
	}
	return nil
}
