package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// streamed is a message on an event stream.
type streamed struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total"`
		Message  string          `json:"message"`
	} `json:"params"`
}

// checkStream demands progress of one token only, growing to the last step,
// and then the answer to id, and nothing more.
func checkStream(data []string, id, token string, steps int) error {
	if len(data) < 2 {
		return fmt.Errorf("call %s: %d messages", id, len(data))
	}
	last := 0.0
	for i, d := range data {
		var m streamed
		if err := json.Unmarshal([]byte(d), &m); err != nil {
			return fmt.Errorf("call %s: %w", id, err)
		}
		if i == len(data)-1 {
			if string(m.ID) != id {
				return fmt.Errorf("call %s: last message is %s", id, d)
			}
			break
		}
		if m.Method != "notifications/progress" || string(m.Params.Token) != token || m.Params.Progress <= last {
			return fmt.Errorf("call %s: message %d is %s after %g", id, i, d, last)
		}
		last = m.Params.Progress
	}
	if last != float64(steps) {
		return fmt.Errorf("call %s: progress ended at %g of %d", id, last, steps)
	}
	return nil
}

func TestProgressStaysOnItsOwnStreamInOrder(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.ProgressInterval = time.Nanosecond })
	session := r.open(t)
	const calls, steps = 50, 40
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			id, token := fmt.Sprint(i+10), fmt.Sprintf(`"t%d"`, i)
			if i%2 == 0 {
				token = fmt.Sprint(i)
			}
			resp, err := r.try(http.MethodPost, headers{"Mcp-Session-Id", session},
				callWithProgress(id, "progress", fmt.Sprintf(`{"steps":%d}`, steps), token))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
				t.Errorf("headers %v", resp.Header)
			}
			data, _ := events(t, resp.Body)
			if err := checkStream(data, id, token, steps); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestProgressIsThinnedButItsEndIsSent(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.ProgressInterval = time.Hour })
	resp := r.do(t, http.MethodPost, nil, callWithProgress("1", "progress", `{"steps":1000}`, "7"))
	data, _ := events(t, resp.Body)
	if len(data) != 3 {
		t.Errorf("%d messages instead of first, last and result", len(data))
	}
	if err := checkStream(data, "1", "7", 1000); err != nil {
		t.Error(err)
	}
}

func TestProgressNeedsATokenAndAStream(t *testing.T) {
	r := newRig(t, nil)
	for name, c := range map[string]struct {
		h    headers
		body string
		want string
	}{
		"no token":    {nil, call("1", "progress", `{"steps":3}`), "asked=false"},
		"null token":  {nil, callWithProgress("1", "progress", `{"steps":3}`, "null"), "asked=false"},
		"odd token":   {nil, callWithProgress("1", "progress", `{"steps":3}`, "{}"), "asked=false"},
		"JSON only":   {headers{"Accept", "application/json"}, callWithProgress("1", "progress", `{"steps":3}`, "1"), "asked=true"},
		"stream at 0": {headers{"Accept", "application/json, text/event-stream;q=0"}, callWithProgress("1", "progress", `{"steps":3}`, "1"), "asked=true"},
	} {
		status, out, h := r.post(t, c.h, c.body)
		if status != 200 || h.Get("Content-Type") != "application/json" || out.text(t) != c.want {
			t.Errorf("%s: %d %v %+v", name, status, h, out)
		}
	}
}

func TestProgressAfterTheResultGoesNowhere(t *testing.T) {
	late := make(chan transport.ProgressFunc, 1)
	r := newRig(t, nil)
	r2 := newRig(t, func(o *transport.Options) {
		inner := r.call
		o.Call = func(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
			late <- transport.Progress(ctx)
			return inner(ctx, tool, args)
		}
	})
	resp := r2.do(t, http.MethodPost, nil, callWithProgress("1", "echo", `{}`, "1"))
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	report := <-late
	for i := range 10 {
		report(float64(i+1), 0, "late")
	}
	if !json.Valid(body) || strings.Contains(string(body), "progress") {
		t.Errorf("answer %s", body)
	}
	if status, _, _ := r2.post(t, nil, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); status != 200 {
		t.Errorf("the connection is spoilt: %d", status)
	}
}

func TestSilenceTurnsIntoAKeptStream(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.Silence, o.KeepAlive = 20*time.Millisecond, 20*time.Millisecond })
	resp := r.do(t, http.MethodPost, nil, call("1", "hold", "{}"))
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("Content-Type %q", kind)
	}
	body := bufio.NewReader(resp.Body)
	for comments := 0; comments < 3; {
		line, err := body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(line, ":"):
			comments++
		case line != "\n":
			t.Fatalf("line %q while the call runs", line)
		}
	}
	close(r.release)
	if data, _ := events(t, body); len(data) != 1 || !strings.Contains(data[0], "released") {
		t.Errorf("messages %q", data)
	}
	status, _, h := r.post(t, headers{"Accept", "application/json"}, call("2", "hold", "{}"))
	if status != 200 || h.Get("Content-Type") != "application/json" {
		t.Errorf("a client that takes JSON only: %d %v", status, h)
	}
}

// rawConn opens a connection and sends a request without reading the answer.
func rawConn(t *testing.T, r *rig, extra, body string) net.Conn {
	t.Helper()
	u, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n%s", extra, body)
	return conn
}

func TestSlowReaderIsCutOffAlone(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.WriteTimeout = 200 * time.Millisecond })
	const size = 32 << 20 // more than the system's buffers take
	body := call("1", "big", fmt.Sprintf(`{"steps":%d}`, size))
	conn := rawConn(t, r, fmt.Sprintf("X-Mark: slow\r\nContent-Length: %d\r\n", len(body)), body)
	wait(t, r.started, "the call")
	for i := range 20 { // meanwhile others are served
		if status, _, _ := r.post(t, nil, call(fmt.Sprint(i), "echo", "{}")); status != 200 {
			t.Fatalf("status %d beside a slow reader", status)
		}
	}
	wait(t, r.served, "the server to give up")
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, conn)
	if n >= size {
		t.Errorf("the reader that slept got all %d bytes (%v)", n, err)
	}
	if nerr, ok := err.(net.Error); ok && nerr.Timeout() {
		t.Error("the connection is still open")
	}
}

// A client that closes its half of the connection counts as gone. It must not
// read a success that nobody gave.
func TestHalfClosedClientIsToldNothing(t *testing.T) {
	r := newRig(t, nil)
	h, body := modern("1", "tools/call", "hold", `"name":"hold"`)
	for name, c := range map[string]struct {
		h    headers
		body string
	}{"legacy": {nil, call("1", "hold", "{}")}, "modern": {h, body}, "batch": {nil, "[" + call("1", "hold", "{}") + "]"}} {
		var extra strings.Builder
		for i := 0; i < len(c.h); i += 2 {
			fmt.Fprintf(&extra, "%s: %s\r\n", c.h[i], c.h[i+1])
		}
		conn := rawConn(t, r, extra.String()+fmt.Sprintf("Content-Length: %d\r\n", len(c.body)), c.body)
		wait(t, r.started, "the call")
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); len(got) > 0 || isTimeout(err) {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if name != "modern" { // that one was cancelled
			r.release <- struct{}{}
		}
	}
}

func TestTricklingBodyIsCutOff(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.BodyTimeout = 100 * time.Millisecond })
	conn := rawConn(t, r, "Content-Length: 500\r\n", `{"jsonrpc":`)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("%v %q", err, got)
	}
}

func TestOversizeIsRefusedBeforeTheBody(t *testing.T) {
	r := newRig(t, nil)
	conn := rawConn(t, r, "Content-Length: 8000001\r\n", "")
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 13)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "HTTP/1.1 413 " {
		t.Errorf("%v %q", err, got)
	}
}

func TestBodyDeadlineDoesNotOutliveTheBody(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.BodyTimeout, o.WriteTimeout = time.Second, time.Second })
	h, body := modern("1", "tools/call", "hold", `"name":"hold","arguments":{}`)
	go func() {
		<-r.started
		time.Sleep(2500 * time.Millisecond) // past both deadlines
		close(r.release)
	}()
	if status, out, _ := r.post(t, h, body); status != 200 || out.text(t) != "released" {
		t.Errorf("%d %+v", status, out)
	}
	if status, _, _ := r.post(t, nil, call("2", "echo", "{}")); status != 200 {
		t.Errorf("the next request on the connection: %d", status)
	}
}

func TestSessionsAndLostClientsCostNoMemory(t *testing.T) {
	r := newRig(t, nil)
	body := []byte(initialize)
	post := func() {
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != 200 || w.Header().Get("Mcp-Session-Id") == "" {
			t.Fatalf("status %d, headers %v", w.Code, w.Header())
		}
	}
	for range 2000 { // fill what is bounded
		post()
	}
	before := heap()
	for range 20_000 {
		post()
	}
	if grown := heap() - before; grown > 2<<20 {
		t.Errorf("20,000 sessions cost %d bytes", grown)
	}
	h, call := modern("1", "tools/call", "hold", `"name":"hold","arguments":{}`)
	var conns []net.Conn
	for range 200 {
		var extra strings.Builder
		for i := 0; i < len(h); i += 2 {
			fmt.Fprintf(&extra, "%s: %s\r\n", h[i], h[i+1])
		}
		conns = append(conns, rawConn(t, r, extra.String()+fmt.Sprintf("Content-Length: %d\r\n", len(call)), call))
	}
	for range conns {
		wait(t, r.started, "the call")
	}
	for _, c := range conns {
		c.Close()
	}
	for range conns {
		if cause := wait(t, r.causes, "the call's end"); cause != transport.CauseDisconnect {
			t.Fatalf("ended by %q", cause)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); r.InFlight() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d calls are left", r.InFlight())
		}
	}
}

// heap is what the live objects take.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkCall(b *testing.B) {
	for name, size := range map[string]int{"small": 10, "1MB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			h := transport.New(transport.Options{
				Server: server.NewMCPServer("bench", "1", server.WithToolCapabilities(false)), SessionKey: key,
				Call: func(context.Context, string, json.RawMessage) (*mcp.CallToolResult, error) {
					return mcp.NewToolResultText("ok"), nil
				},
			})
			body := []byte(call("1", "x", `{"a":"`+strings.Repeat("x", size)+`"}`))
			for b.Loop() {
				req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, req)
				if w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

func TestListenAcknowledgesNothingAndEnds(t *testing.T) {
	r := newRig(t, nil)
	h, body := modern(`"sub"`, "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
	resp := r.do(t, http.MethodPost, h, body)
	data, _ := events(t, resp.Body)
	if len(data) != 2 || !strings.Contains(data[0], "notifications/subscriptions/acknowledged") || !strings.Contains(data[1], `"id":"sub"`) {
		t.Errorf("%d %q", resp.StatusCode, data)
	}
}
