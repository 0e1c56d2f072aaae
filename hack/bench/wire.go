package main

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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// callTimeout bounds one call.
const callTimeout = 2 * time.Minute

// wire is one kept-alive connection that posts requests, as plainly as can be, so that what is measured is the
// server: the request is made before the time runs, and the answer is decoded after it.
type wire struct {
	addr, head string
	conn       net.Conn
	in         *bufio.Reader
	out        bytes.Buffer
	answer     bytes.Buffer
}

// newWire makes a connection to a URL whose requests all carry the same headers.
func newWire(target string, header http.Header) (*wire, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\n", u.RequestURI(), u.Host)
	if err := header.Write(&head); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &wire{addr: u.Host, head: head.String()}, nil
}

// prepare makes the bytes of the next request.
func (w *wire) prepare(body []byte, more string) {
	w.out.Reset()
	w.out.WriteString(w.head)
	w.out.WriteString(more)
	w.out.WriteString("Content-Length: ")
	w.out.WriteString(strconv.Itoa(len(body)))
	w.out.WriteString("\r\n\r\n")
	w.out.Write(body)
}

// roundTrip sends what was prepared and reads the whole answer, which stays valid until the next one. A connection
// that the server has closed meanwhile is made anew, once.
func (w *wire) roundTrip() ([]byte, error) {
	kept := w.conn != nil
	b, began, err := w.try()
	if err != nil && kept && !began {
		b, _, err = w.try()
	}
	return b, err
}

func (w *wire) try() (_ []byte, began bool, err error) {
	if w.conn == nil {
		if w.conn, err = net.Dial("tcp4", w.addr); err != nil {
			return nil, false, err
		}
		w.in = bufio.NewReaderSize(w.conn, 64<<10)
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if err := w.conn.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return nil, false, err
	}
	if _, err := w.conn.Write(w.out.Bytes()); err != nil {
		return nil, false, err
	}
	if _, err := w.in.Peek(1); err != nil {
		return nil, false, err
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return nil, true, err
	}
	defer resp.Body.Close()
	w.answer.Reset()
	if _, err := w.answer.ReadFrom(resp.Body); err != nil {
		return nil, true, err
	}
	if resp.Close {
		w.close()
	}
	b := w.answer.Bytes()
	if resp.StatusCode != http.StatusOK {
		return nil, true, fmt.Errorf("HTTP %d: %.300s", resp.StatusCode, b)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err = lastEvent(b)
	}
	return b, true, err
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is under way
		w.conn = nil
	}
}

// lastEvent is the data of the last event of a stream that has any.
func lastEvent(stream []byte) ([]byte, error) {
	events := bytes.Split(bytes.TrimSpace(stream), []byte("\n\n"))
	for i := len(events) - 1; i >= 0; i-- {
		for line := range bytes.Lines(events[i]) {
			if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				return bytes.TrimSpace(data), nil
			}
		}
	}
	return nil, errors.New("the event stream ended without a result")
}

// wires are the connections of the callers, by number.
type wires struct {
	target string
	header http.Header
	ids    atomic.Int64

	mu  sync.Mutex
	all map[int]*wire
}

func newWires(target string, header http.Header) *wires {
	return &wires{target: target, header: header, all: map[int]*wire{}}
}

// of returns the caller's own connection.
func (ws *wires) of(caller int) (*wire, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.all[caller]; w != nil {
		return w, nil
	}
	w, err := newWire(ws.target, ws.header)
	if err == nil {
		ws.all[caller] = w
	}
	return w, err
}

func (ws *wires) close() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		w.close()
	}
	clear(ws.all)
}

// exchanged is how large the last call of a tool was, in bytes.
type exchanged struct{ request, answer int }

// shoot makes a call of a tool. The answer must be a success and pass the check.
func (s *server) shoot(caller int, tool string, args daemon.Args, check func(daemon.Result) error) (shot, error) {
	w, err := s.wires.of(caller)
	if err != nil {
		return shot{}, err
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.wires.ids.Add(1), "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		return shot{}, fmt.Errorf("encode the call: %w", err)
	}
	w.prepare(body, "")
	var answer []byte
	return shot{
		fire: func() (err error) {
			answer, err = w.roundTrip()
			return err
		},
		after: func() error {
			s.lastSize.Store(&exchanged{len(body), len(answer)})
			r, err := decode(answer)
			if err != nil {
				return fmt.Errorf("%s: %w", tool, err)
			}
			if r.IsError {
				return fmt.Errorf("%s: %s: %s", tool, r.Code(), r.Text())
			}
			if err := check(r); err != nil {
				return fmt.Errorf("%s: %w", tool, err)
			}
			return nil
		},
	}, nil
}

// decode takes the result out of a JSON-RPC answer.
func decode(b []byte) (r daemon.Result, err error) {
	var m struct {
		Result *daemon.Result   `json:"result"`
		Error  *daemon.RPCError `json:"error"`
	}
	switch err := json.Unmarshal(b, &m); {
	case err != nil:
		return r, fmt.Errorf("decode the answer: %w", err)
	case m.Error != nil:
		return r, m.Error
	case m.Result == nil:
		return r, errors.New("the answer has neither result nor error")
	}
	return *m.Result, nil
}

// fire calls a tool once, outside any measurement.
func (s *server) fire(ctx context.Context, tool string, args daemon.Args) (daemon.Result, error) {
	r, err := s.client.Call(ctx, tool, args)
	if err == nil && r.IsError {
		err = fmt.Errorf("%s: %s: %s", tool, r.Code(), r.Text())
	}
	return r, err
}

// get reads a page of the server with its credential.
func (s *server) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", s.token)
	resp, err := s.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: HTTP %d: %.300s", path, resp.StatusCode, b)
	}
	return b, err
}
