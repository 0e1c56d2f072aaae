package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Caller is what a tool may want to know of who asks.
type Caller struct {
	// Client is the client's own name, or its user agent.
	Client string
	// Session is the MCP session id, empty without one.
	Session string
	// Modern tells that the request uses protocol version 2026-07-28 or later.
	Modern bool
	// Capabilities are those that a modern request declares, nil otherwise.
	Capabilities *mcp.ClientCapabilities
}

type callerKey struct{}

// CallerFrom returns the caller of the request that ctx belongs to.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// run handles one request in a goroutine of its own and waits for the answer.
// It returns false when the client is gone; the handler then goes on (legacy)
// or is told to stop (modern).
func (h *Handler) run(client context.Context, msg message, from origin, send func([]byte) bool) (answer, bool) {
	var key callKey
	if from.session != "" {
		id, _ := typedID(msg.id) // checked when parsed
		key = callKey{from.session, id}
	}
	one, ok := h.calls.start(context.WithoutCancel(client), key)
	if !ok {
		return errorAnswer(msg.id, &rpcError{status: http.StatusServiceUnavailable, code: codeServer, message: "The bridge is stopping"}), true
	}
	if from.modern {
		stop := context.AfterFunc(client, func() { one.cancel(cancelled{CauseDisconnect}) })
		defer stop()
	}
	done := make(chan answer, 1)
	go func() {
		defer h.calls.end(one)
		done <- h.handle(one.ctx, msg, from, send)
	}()
	select {
	case a := <-done:
		return a, true
	case <-client.Done():
		if from.modern {
			one.cancel(cancelled{CauseDisconnect}) // before the deferred stop
		}
		return answer{}, false
	case <-one.ctx.Done():
		return h.settle(client, done, msg)
	}
}

// settle gives a cancelled handler its grace and then answers without it, so
// that no response stays open.
func (h *Handler) settle(client context.Context, done <-chan answer, msg message) (answer, bool) {
	grace := time.NewTimer(h.o.Grace)
	defer grace.Stop()
	select {
	case a := <-done:
		return a, true
	case <-client.Done():
		return answer{}, false
	case <-grace.C:
		h.o.Log.Info("Cancelled request has not ended", "method", msg.method)
		return errorAnswer(msg.id, &rpcError{status: http.StatusOK, code: codeServer, message: "The request was cancelled"}), true
	}
}

// open answers initialize and makes the session that goes with a success.
func (h *Handler) open(ctx context.Context, msg message, from origin, send func([]byte) bool) answer {
	a := h.ask(ctx, msg, from, send)
	if a.failed {
		return a
	}
	a.session = h.sessions.mint()
	if info := initializeInfo(msg); info != nil {
		h.clients.name(a.session, *info)
	}
	return a
}

// initializeInfo is how the client names itself in the handshake.
func initializeInfo(msg message) *mcp.Implementation {
	var params struct {
		Info *mcp.Implementation `json:"clientInfo"`
	}
	if msg.method != string(mcp.MethodInitialize) || json.Unmarshal(msg.params, &params) != nil {
		return nil
	}
	return params.Info
}

// handle produces the answer to one request. A panic below it is the
// programmer's; the client is told only that there was one.
func (h *Handler) handle(ctx context.Context, msg message, from origin, send func([]byte) bool) (a answer) {
	defer func() {
		if v := recover(); v != nil {
			h.o.Log.Error(fmt.Errorf("panic: %T", v), "Request panicked", "method", msg.method, "stack", string(debug.Stack()))
			a = errorAnswer(msg.id, &rpcError{status: http.StatusOK, code: mcp.INTERNAL_ERROR, message: "Internal error"})
		}
	}()
	info := msg.meta.ClientInfo()
	if info == nil {
		info = initializeInfo(msg)
	}
	client := h.clients.saw(from.agent, from.session, info, msg)
	ctx = context.WithValue(ctx, callerKey{}, Caller{
		Client: client, Session: from.session, Modern: from.modern, Capabilities: msg.meta.ClientCapabilities(),
	})
	switch mcp.MCPMethod(msg.method) {
	case mcp.MethodToolsCall:
		return h.callTool(ctx, msg, from, send)
	case mcp.MethodInitialize:
		return h.open(ctx, msg, from, send)
	default:
		return h.ask(ctx, msg, from, send)
	}
}

// callTool runs a tool with its progress on the same response.
func (h *Handler) callTool(ctx context.Context, msg message, from origin, send func([]byte) bool) answer {
	if token := msg.progressToken(); token != nil {
		r := &reporter{token: token, interval: h.o.ProgressInterval, send: send}
		defer r.close() // before the answer leaves this function's caller
		ctx = context.WithValue(ctx, progressKey{}, ProgressFunc(r.report))
	}
	result, err := h.o.Call(ctx, *msg.call.Name, msg.call.Arguments)
	switch {
	case err != nil:
		return h.refusal(msg, from, err)
	case result == nil:
		return h.ask(ctx, msg, from, send)
	default:
		return resultAnswer(msg.id, h.wire(result, from.modern))
	}
}

// refusal answers a call with the error of its CallFunc.
func (h *Handler) refusal(msg message, from origin, err error) answer {
	var known *Error
	if !errors.As(err, &known) {
		h.o.Log.Error(err, "Call failed")
		known = &Error{Code: mcp.INTERNAL_ERROR, Message: "Internal error"}
	}
	return failedAnswer(msg, from, known.Code, known.Message, known.Data)
}

func failedAnswer(msg message, from origin, code int, text string, data any) answer {
	e := &rpcError{status: http.StatusOK, code: code, message: text, data: data}
	if from.modern {
		e.status = modernStatus(code)
	}
	return errorAnswer(msg.id, e)
}

// ask hands a request to the MCP library and puts the client's own id on the
// reply: the library's detour over float64 changes long ones. What the library
// says besides goes ahead of the reply. As our tools do not change while we
// run, nothing can be subscribed to and subscriptions/listen ends at once.
func (h *Handler) ask(ctx context.Context, msg message, from origin, send func([]byte) bool) answer {
	session := h.newRequestSession(from, send)
	defer session.close() // before the answer leaves this function's caller
	switch reply := h.o.Server.HandleMessage(h.o.Server.WithContext(ctx, session), msg.raw).(type) {
	case mcp.JSONRPCResponse:
		return resultAnswer(msg.id, reply.Result)
	case mcp.JSONRPCError:
		return failedAnswer(msg, from, reply.Error.Code, reply.Error.Message, reply.Error.Data)
	default:
		return failedAnswer(msg, from, mcp.INTERNAL_ERROR, "Internal error", nil)
	}
}
