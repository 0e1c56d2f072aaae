package transport

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// responder writes the response to one POST: plain JSON, or an event stream
// once there is something to say before the result.
type responder struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	o         *Options
	mayStream bool

	mu        sync.Mutex
	streaming bool
	broken    bool // a write failed: the reader is gone or too slow
	closed    bool // answered or given up: w belongs to nobody any more
	timer     *time.Timer
}

func newResponder(w http.ResponseWriter, r *http.Request, o *Options) *responder {
	p := &responder{w: w, rc: http.NewResponseController(w), o: o, mayStream: acceptsStream(r.Header)}
	if p.mayStream {
		p.mu.Lock()
		p.timer = time.AfterFunc(o.Silence, p.tick)
		p.mu.Unlock()
	}
	return p
}

// acceptsStream tells whether the client named event streams in Accept.
func acceptsStream(h http.Header) bool {
	for _, line := range h.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err == nil && kind == "text/event-stream" && params["q"] != "0" {
				return true
			}
		}
	}
	return false
}

// tick keeps a silent response alive.
func (p *responder) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.broken {
		return
	}
	p.stream([]byte(": still working\n\n"))
}

// event sends one message ahead of the result and tells whether it did: without
// streaming it is lost, as the protocol allows for progress.
func (p *responder) event(data []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.broken || !p.mayStream {
		return false
	}
	p.stream(frame(data))
	return !p.broken
}

func frame(data []byte) []byte {
	out := make([]byte, 0, len(data)+24)
	out = append(out, "event: message\ndata: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}

// stream writes to the event stream, which it starts if need be, and rearms
// the keep-alive. The caller holds mu.
func (p *responder) stream(data []byte) {
	if !p.streaming {
		p.streaming = true
		h := p.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		p.w.WriteHeader(http.StatusOK)
	}
	p.write(data)
	if !p.broken {
		p.timer.Reset(p.o.KeepAlive)
	}
}

// finish writes the answer; nothing may follow it.
func (p *responder) finish(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.close()
	if p.broken {
		return
	}
	if p.streaming {
		p.write(frame(a.body))
	} else {
		h := p.w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
		if a.session != "" {
			h.Set(mcp.HeaderSessionID, a.session)
		}
		p.w.WriteHeader(a.status)
		p.write(a.body)
	}
	_ = p.rc.SetWriteDeadline(time.Time{}) // the connection may serve another request
}

// abandon gives the response up, because the client is gone, and the connection
// with it: the HTTP server would make a success without a body of it, which a
// client that only closed its half could take for the answer. It panics with
// http.ErrAbortHandler.
func (p *responder) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
	panic(http.ErrAbortHandler)
}

func (p *responder) close() {
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

// writeChunk is what must get through within one write deadline.
const writeChunk = 64 << 10

// write sends data with a deadline for each chunk. A failure breaks the
// response: the server then closes the connection. The caller holds mu.
func (p *responder) write(data []byte) {
	for len(data) > 0 {
		n := min(len(data), writeChunk)
		_ = p.rc.SetWriteDeadline(time.Now().Add(p.o.WriteTimeout)) // unsupported in tests without a connection
		if _, err := p.w.Write(data[:n]); err != nil {
			p.broken = true
			return
		}
		data = data[n:]
	}
	if err := p.rc.Flush(); err != nil {
		p.broken = true
	}
}
