package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// pipe is a client on the other end of ServeStdio.
type pipe struct {
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

func newPipe(t *testing.T, ctx context.Context, r *rig) *pipe {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{in: inW, lines: make(chan string, 10_000), ended: make(chan error, 1)}
	go func() {
		p.ended <- r.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	go func() {
		s := bufio.NewScanner(outR)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	t.Cleanup(func() { inW.Close() })
	return p
}

func (p *pipe) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (p *pipe) answer(t *testing.T) reply {
	t.Helper()
	var out reply
	line := wait(t, p.lines, "a line")
	if err := json.Unmarshal([]byte(line), &out); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	return out
}

func TestStdioSpeaksBothEras(t *testing.T) {
	r := newRig(t, nil)
	p := newPipe(t, t.Context(), r)
	_, body := modern("0", "server/discover", "", "")
	p.send(t, body)
	if out := p.answer(t); string(out.ID) != "0" || out.Result["resultType"] != "complete" {
		t.Errorf("discover: %+v", out)
	}
	p.send(t, initialize)
	if out := p.answer(t); out.Result["protocolVersion"] != "2025-11-25" {
		t.Errorf("initialize: %+v", out)
	}
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.send(t, "  ")
	p.send(t, call(`"a"`, "echo", `{"x":1}`))
	if out := p.answer(t); string(out.ID) != `"a"` || out.text(t) != `{"x":1}` {
		t.Errorf("call: %+v", out)
	}
	for line, code := range map[string]int{
		`{"bad`: -32700, `[` + call("1", "echo", "{}") + `]`: -32600, `7`: -32600,
		strings.ReplaceAll(body, "2026-07-28", "2099-01-01"):                        -32022,
		strings.ReplaceAll(body, "io.modelcontextprotocol/clientCapabilities", "x"): -32602,
	} {
		p.send(t, line)
		if out := p.answer(t); out.Error == nil || out.Error.Code != code {
			t.Errorf("%s: %+v", line, out)
		}
	}
	p.in.Close()
	if err := wait(t, p.ended, "the end"); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestStdioBatchesWhereTheVersionHasThem(t *testing.T) {
	p := newPipe(t, t.Context(), newRig(t, nil))
	p.send(t, strings.Replace(initialize, "2025-11-25", "2025-03-26", 1))
	p.answer(t)
	p.send(t, "["+call("1", "echo", "{}")+","+call("2", "echo", "{}")+"]")
	var out []reply
	if err := json.Unmarshal([]byte(wait(t, p.lines, "the batch")), &out); err != nil || len(out) != 2 || string(out[1].ID) != "2" {
		t.Errorf("%v %+v", err, out)
	}
}

func TestStdioProgressComesBeforeTheResult(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.ProgressInterval = time.Nanosecond })
	p := newPipe(t, t.Context(), r)
	const calls, steps = 50, 20
	for i := range calls {
		p.send(t, callWithProgress(fmt.Sprint(i), "progress", fmt.Sprintf(`{"steps":%d}`, steps), fmt.Sprint(i)))
	}
	byCall := map[string][]string{}
	for done := 0; done < calls; {
		line := wait(t, p.lines, "a line")
		var m streamed
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		key := string(m.ID)
		if m.Method != "" {
			key = string(m.Params.Token)
		} else {
			done++
		}
		byCall[key] = append(byCall[key], line)
	}
	for i := range calls {
		id := fmt.Sprint(i)
		if err := checkStream(byCall[id], id, id, steps); err != nil {
			t.Error(err)
		}
	}
}

func TestStdioCancelledCallGetsNoAnswer(t *testing.T) {
	r := newRig(t, nil)
	p := newPipe(t, t.Context(), r)
	for i := range 40 { // busy calls delay nobody
		p.send(t, call(fmt.Sprint(i), "hold", "{}"))
	}
	p.send(t, call(`"x"`, "hold", `{"name":"x"}`))
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	if cause := wait(t, r.causes, "the cancelled call"); cause != transport.CauseClient {
		t.Errorf("ended by %q", cause)
	}
	p.send(t, `{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
	if out := p.answer(t); string(out.ID) != `"ping"` {
		t.Errorf("first answer %+v", out)
	}
	close(r.release)
	for range 40 {
		if out := p.answer(t); string(out.ID) == `"x"` {
			t.Error("the cancelled call was answered")
		}
	}
}

func TestStdioEndOfInput(t *testing.T) {
	r := newRig(t, nil)
	var out bytes.Buffer
	err := r.ServeStdio(t.Context(), strings.NewReader(call("1", "echo", "{}")), &out) // no newline at the end
	if err != nil || !strings.Contains(out.String(), `"id":1`) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v %q", err, out.String())
	}
	p := newPipe(t, t.Context(), r)
	p.send(t, call("1", "hold", "{}"))
	p.send(t, call("2", "deaf", "{}"))
	wait(t, r.started, "the call")
	wait(t, r.started, "the call")
	begin := time.Now()
	p.in.Close()
	if err := wait(t, p.ended, "the end"); err != nil {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s to end", took)
	}
	if cause := wait(t, r.causes, "the call's end"); cause != transport.CauseDisconnect {
		t.Errorf("the running call ended by %q", cause)
	}
}

func TestStdioEndsWithItsContext(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	p := newPipe(t, ctx, r)
	p.send(t, call("1", "hold", "{}"))
	wait(t, r.started, "the call")
	cancel()
	if err := wait(t, p.ended, "the end"); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if cause := wait(t, r.causes, "the call's end"); cause != transport.CauseShutdown {
		t.Errorf("the running call ended by %q", cause)
	}
}

func TestStdioLineLimit(t *testing.T) {
	r := newRig(t, func(o *transport.Options) { o.MaxBody = 200_000 })
	p := newPipe(t, t.Context(), r)
	var wg sync.WaitGroup
	wg.Go(func() { p.send(t, call("1", "echo", `{"a":"`+strings.Repeat("x", 300_000)+`"}`)) })
	if out := p.answer(t); out.Error == nil || out.Error.Code != -32700 || string(out.ID) != "null" {
		t.Errorf("%+v", out)
	}
	wg.Wait()
	p.send(t, call("2", "echo", `{"a":"`+strings.Repeat("x", 100_000)+`"}`))
	if out := p.answer(t); string(out.ID) != "2" {
		t.Errorf("after a line that was too long: %+v", out)
	}
}
