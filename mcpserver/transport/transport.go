package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/api/failpoint"
)

// CallFunc runs one tool call. It reports failures of the tool as results; an
// error is for what the model cannot mend, such as a capability that the client
// lacks (see Error), and nil without an error leaves the call to Options.Server.
// ctx ends when the call is to stop (see CancelCause); args is the client's
// JSON object, or empty.
type CallFunc func(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error)

// Error is an error with a JSON-RPC code of its own; any other is told to the
// client as an internal error without its text.
type Error struct {
	Code    int
	Message string
	// Data is what goes with the code, encoded to JSON; optional.
	Data any
}

func (e *Error) Error() string { return e.Message }

// Options configure a Handler. Zero durations and sizes take the defaults.
type Options struct {
	// Server answers every method but tools/call, and what Call leaves to it.
	// Required.
	Server *server.MCPServer
	// Call runs the tools. Required.
	Call CallFunc
	// Info is how the server names itself in modern results.
	Info mcp.Implementation
	// SessionKey proves session ids; at least 32 bytes, kept across restarts.
	SessionKey []byte
	// Log receives state changes and panics, never contents. The zero value
	// discards.
	Log logr.Logger

	// MaxBody is the largest request body in bytes; default 8,000,000.
	MaxBody int64
	// MaxPosts bounds the requests in progress, bodies being read included;
	// default 512. The number of tool calls is bounded by Call itself.
	MaxPosts int
	// BodyTimeout is how long a body may take to arrive; default 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a reader may take for 64 KiB; default 20 s.
	WriteTimeout time.Duration
	// Silence is when an unanswered request turns into an event stream, if the
	// client accepts one; default 10 s.
	Silence time.Duration
	// KeepAlive is the time between comments on a silent stream; default 15 s.
	KeepAlive time.Duration
	// ProgressInterval is the least time between two progress notifications of
	// a request; default 500 ms.
	ProgressInterval time.Duration
	// Grace is how long a cancelled handler may take before its request is
	// answered without it; default 5 s.
	Grace time.Duration
	// Now tells the time for Clients; default time.Now.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	setDefault(&o.MaxBody, 8_000_000)
	setDefault(&o.MaxPosts, 512)
	setDefault(&o.BodyTimeout, 30*time.Second)
	setDefault(&o.WriteTimeout, 20*time.Second)
	setDefault(&o.Silence, 10*time.Second)
	setDefault(&o.KeepAlive, 15*time.Second)
	setDefault(&o.ProgressInterval, 500*time.Millisecond)
	setDefault(&o.Grace, 5*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Handler is the MCP endpoint. It is an http.Handler for one path and serves
// stdio as well.
type Handler struct {
	o        Options
	sessions *sessions
	calls    *calls
	clients  *clients
	// questions are ours to clients.
	questions *questions
	posts     chan struct{} // one token for each POST in progress
}

// New makes a Handler. It panics when a required option is missing, which is a
// fault of the program.
func New(o Options) *Handler {
	if o.Server == nil || o.Call == nil || len(o.SessionKey) < 32 {
		panic("transport: Server, Call and a SessionKey of at least 32 bytes are required")
	}
	o.setDefaults()
	return &Handler{
		o:         o,
		sessions:  newSessions(o.SessionKey),
		calls:     newCalls(),
		questions: newQuestions(),
		clients:   newClients(o.Now),
		posts:     make(chan struct{}, o.MaxPosts),
	}
}

// Clients tells what was last heard of whom, the latest first.
func (h *Handler) Clients() []ClientInfo { return h.clients.list() }

// InFlight is the number of requests whose handlers run now.
func (h *Handler) InFlight() int { return h.calls.count() }

// Stopping tells whether Shutdown was called.
func (h *Handler) Stopping() bool { return h.calls.stopped() }

// Shutdown refuses new requests with 503, cancels the running ones with
// CauseShutdown and waits until their handlers have returned or ctx ends. The
// answers are written by the HTTP server, whose own Shutdown comes after.
func (h *Handler) Shutdown(ctx context.Context) error {
	select {
	case <-h.calls.stop():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %d running calls: %w", h.calls.count(), ctx.Err())
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	failpoint.Hit(failpoint.Received)
	// It stays when the request is refused: the HTTP server then reads what is
	// left of the body, which may never come. Only a test without a connection
	// does not support it.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.o.BodyTimeout))
	switch {
	case h.calls.stopped():
		refuse(w, nil, &rpcError{status: http.StatusServiceUnavailable, code: codeServer, message: "The bridge is stopping"})
	case r.Method == http.MethodPost:
		h.post(w, r)
	case r.Method == http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		refuse(w, nil, &rpcError{status: http.StatusMethodNotAllowed, code: codeServer, message: "Method not allowed: send requests by POST"})
	}
}

// refuse answers without the responder: small, at once, never cached.
func refuse(w http.ResponseWriter, id json.RawMessage, e *rpcError) {
	a := errorAnswer(id, e)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone
}

// delete ends a session and the calls in it.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		w.Header().Set("Allow", "POST")
		refuse(w, nil, &rpcError{status: http.StatusMethodNotAllowed, code: codeServer, message: "This protocol version has no sessions to end"})
		return
	}
	id := r.Header.Get(mcp.HeaderSessionID)
	switch {
	case id == "":
		refuse(w, nil, badRequest(codeServer, "The header %s is missing", mcp.HeaderSessionID))
	case !h.sessions.valid(id):
		refuse(w, nil, errNoSession)
	default:
		h.sessions.end(id)
		h.calls.cancelSession(id, CauseClient)
		w.WriteHeader(http.StatusOK)
	}
}

var errNoSession = &rpcError{
	status: http.StatusNotFound, code: codeServer,
	message: "MCP session expired; initialize again. Workspace handles remain valid.",
}

// post reads a body and answers the requests in it.
func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	select {
	case h.posts <- struct{}{}:
		defer func() { <-h.posts }()
	default:
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		refuse(w, nil, &rpcError{status: http.StatusServiceUnavailable, code: codeServer,
			message: fmt.Sprintf("%d requests are in progress; retry after one of them completes", h.o.MaxPosts)})
		return
	}
	body, rerr := h.readBody(w, r)
	if rerr != nil {
		refuse(w, nil, rerr)
		return
	}
	msgs, batch, perr := parseBody(body)
	if perr != nil {
		refuseBody(w, r.Header, msgs, batch, *perr)
		return
	}
	if batch {
		if err := checkBatch(r.Header, msgs); err != nil {
			refuse(w, nil, err)
			return
		}
	}
	h.admit(w, r, msgs, batch)
}

// refuseBody answers a body that is no request, with its id if it has one.
func refuseBody(w http.ResponseWriter, header http.Header, msgs []message, batch bool, e rpcError) {
	var id json.RawMessage
	if len(msgs) == 1 && !batch {
		id = msgs[0].id
		if isModern(header, msgs[0]) {
			e.status = modernStatus(e.code)
		}
	}
	refuse(w, id, &e)
}

// readBody applies the limits of type, size and time.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *rpcError) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		w.Header().Set("Connection", "close")
		return nil, &rpcError{status: http.StatusUnsupportedMediaType, code: codeServer, message: "Content-Type must be application/json"}
	}
	tooLarge := &rpcError{status: http.StatusRequestEntityTooLarge, code: codeServer,
		message: fmt.Sprintf("The body is larger than %d bytes", h.o.MaxBody)}
	if r.ContentLength > h.o.MaxBody {
		w.Header().Set("Connection", "close")
		return nil, tooLarge
	}
	body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead)) // MinRead spares a copy at the end
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.o.MaxBody))
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // unsupported without a connection
		return body.Bytes(), nil
	}
	w.Header().Set("Connection", "close")
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &rpcError{status: http.StatusRequestTimeout, code: codeServer,
			message: fmt.Sprintf("The body did not arrive within %s", h.o.BodyTimeout)}
	default:
		return nil, badRequest(mcp.PARSE_ERROR, "The body could not be read")
	}
}

// checkBatch refuses batches where the version has none, and what a batch must
// not hold.
func checkBatch(header http.Header, msgs []message) *rpcError {
	if !batchesAllowed(header) {
		return badRequest(mcp.INVALID_REQUEST, "Batches ended with protocol version 2025-03-26: send one message per request")
	}
	for _, msg := range msgs {
		if isModern(header, msg) {
			return badRequest(mcp.INVALID_REQUEST, "Batches ended with protocol version 2025-03-26: send one message per request")
		}
		if msg.method == string(mcp.MethodInitialize) {
			return badRequest(mcp.INVALID_REQUEST, "initialize must not be part of a batch")
		}
	}
	return nil
}

// admit checks era and session, takes in notifications and serves requests.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, msgs []message, batch bool) {
	from := origin{agent: r.UserAgent(), session: r.Header.Get(mcp.HeaderSessionID)}
	first := msgs[0]
	if from.modern = !batch && isModern(r.Header, first); from.modern {
		from.session = ""
		if first.id != nil && !first.reply {
			if err := h.checkModern(r.Header, first); err != nil {
				refuse(w, first.id, err)
				return
			}
		}
	} else if err := checkLegacyVersion(r.Header); err != nil {
		refuse(w, first.id, err)
		return
	}
	if first.method == string(mcp.MethodInitialize) {
		from.session = "" // whatever it was, this makes a new one
	} else if from.session != "" && !h.sessions.valid(from.session) {
		refuse(w, first.id, errNoSession)
		return
	}
	var requests []message
	for _, msg := range msgs {
		switch {
		case msg.reply:
			h.questions.answer(from.session, msg)
		case msg.id == nil:
			h.notice(from, msg)
		default:
			requests = append(requests, msg)
		}
	}
	if len(requests) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	failpoint.Hit(failpoint.Parsed)
	h.serve(w, r, requests, batch, from)
}

// origin is what is known of the sender of a message.
type origin struct {
	agent, session string
	modern         bool
}

// notice takes a notification in. Only cancellation means something to us, and
// only within a session: elsewhere ids of different clients would collide, and
// since 2026-07-28 a client cancels by closing the connection.
func (h *Handler) notice(from origin, msg message) {
	if msg.method != string(mcp.MethodNotificationCancelled) || from.session == "" {
		return
	}
	if id, ok := cancelledID(msg); ok {
		h.calls.cancel(callKey{from.session, id}, CauseClient)
	}
}

// cancelledID is the typed id that a cancellation names.
func cancelledID(msg message) (string, bool) {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(msg.params, &params) != nil {
		return "", false
	}
	id, err := typedID(params.ID)
	return id, err == nil
}

// serve answers one request, or a batch of them, on one response.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, requests []message, batch bool, from origin) {
	p := newResponder(w, r, &h.o)
	if !batch {
		a, alive := h.run(r.Context(), requests[0], from, p.event)
		if !alive {
			p.abandon()
		}
		failpoint.Hit(failpoint.Encoded)
		p.finish(a)
		failpoint.Hit(failpoint.Written)
		return
	}
	bodies := make([][]byte, len(requests))
	var wg sync.WaitGroup
	for i, msg := range requests {
		wg.Go(func() {
			a, _ := h.run(r.Context(), msg, from, p.event)
			bodies[i] = a.body
		})
	}
	wg.Wait()
	if r.Context().Err() != nil {
		p.abandon()
	}
	p.finish(answer{status: http.StatusOK, body: array(bodies)})
}
