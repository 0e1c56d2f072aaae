package transport

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// requestSession is the client as the MCP library sees it while it answers one
// request. What a handler of the library says goes to that request's response,
// ahead of the answer; what it says later goes nowhere.
type requestSession struct {
	h    *Handler
	from origin
	send func([]byte) bool

	out  chan mcp.JSONRPCNotification
	stop chan struct{} // closed when the request is answered
	done chan struct{} // closed when all is sent
}

// maxWaiting bounds the notifications that wait for a slow reader; the library
// drops what does not fit.
const maxWaiting = 64

func (h *Handler) newRequestSession(from origin, send func([]byte) bool) *requestSession {
	s := &requestSession{
		h: h, from: from, send: send,
		out: make(chan mcp.JSONRPCNotification, maxWaiting), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.forward()
	return s
}

// forward sends notifications until the session is closed, the last ones too.
func (s *requestSession) forward() {
	defer close(s.done)
	for {
		select {
		case n := <-s.out:
			s.notify(n)
			continue
		case <-s.stop:
		}
		select {
		case n := <-s.out:
			s.notify(n)
		default:
			return
		}
	}
}

func (s *requestSession) notify(n mcp.JSONRPCNotification) {
	if data, err := encode(n); err == nil { // a handler's own values may not encode
		s.send(data)
	}
}

// close returns when everything that was said is sent.
func (s *requestSession) close() {
	close(s.stop)
	<-s.done
}

// Initialize implements server.ClientSession.
func (*requestSession) Initialize() {}

// Initialized implements server.ClientSession.
func (*requestSession) Initialized() bool { return true }

// SessionID implements server.ClientSession.
func (s *requestSession) SessionID() string { return s.from.session }

// NotificationChannel implements server.ClientSession.
func (s *requestSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.out }

// SetLogLevel implements server.SessionWithLogging.
func (s *requestSession) SetLogLevel(level mcp.LoggingLevel) {
	if s.from.session != "" {
		s.h.clients.setLevel(s.from.session, level)
	}
}

// GetLogLevel implements server.SessionWithLogging.
func (s *requestSession) GetLogLevel() mcp.LoggingLevel { return s.h.clients.level(s.from.session) }

// RequestElicitation implements server.SessionWithElicitation.
func (s *requestSession) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	out := new(mcp.ElicitationResult)
	return out, s.ask(ctx, mcp.MethodElicitationCreate, r.Params, out)
}

// RequestSampling implements server.SessionWithSampling.
func (s *requestSession) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	out := new(mcp.CreateMessageResult)
	if err := s.ask(ctx, mcp.MethodSamplingCreateMessage, r.CreateMessageParams, out); err != nil {
		return nil, err
	}
	content, err := mcp.ParseSamplingContent(out.Content)
	if err != nil {
		return nil, fmt.Errorf("read the content of the client's message: %w", err)
	}
	out.Content = content
	return out, nil
}

// ListRoots implements server.SessionWithRoots.
func (s *requestSession) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	out := new(mcp.ListRootsResult)
	return out, s.ask(ctx, mcp.MethodListRoots, struct{}{}, out)
}

// ask sends a request of ours on the response of the client's and waits for the
// client's answer, which comes in a POST of its own. Versions since 2026-07-28
// have none; the library does not ask there.
func (s *requestSession) ask(ctx context.Context, method mcp.MCPMethod, params, into any) error {
	if s.from.session == "" {
		return errors.New("only a client with a session can be asked: its answer could not be told from another's")
	}
	id, answer := s.h.questions.open(s.from.session)
	defer s.h.questions.close(s.from.session, id)
	data, err := encode(question{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Method: string(method), Params: params})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	if !s.send(data) {
		return fmt.Errorf("send %s: the client takes no event stream or is gone", method)
	}
	select {
	case raw := <-answer:
		return decodeReply(raw, into)
	case <-ctx.Done():
		return fmt.Errorf("wait for the client's answer to %s: %w", method, context.Cause(ctx))
	}
}

type question struct {
	JSONRPC string `json:"jsonrpc"`
	ID      string `json:"id"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// decodeReply reads what a client answered.
func decodeReply(raw json.RawMessage, into any) error {
	var reply struct {
		Result json.RawMessage `json:"result"`
		Error  *errorObject    `json:"error"`
	}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return fmt.Errorf("read the client's answer: %w", err)
	}
	if reply.Error != nil {
		return fmt.Errorf("the client answered with error %d: %s", reply.Error.Code, reply.Error.Message)
	}
	if err := json.Unmarshal(reply.Result, into); err != nil {
		return fmt.Errorf("read the client's result: %w", err)
	}
	return nil
}

// questions are the requests that wait for an answer of a client.
type questions struct {
	mu      sync.Mutex
	pending map[callKey]chan json.RawMessage
}

func newQuestions() *questions {
	return &questions{pending: make(map[callKey]chan json.RawMessage)}
}

// open returns a fresh id and where its answer will arrive.
func (q *questions) open(session string) (id string, answer <-chan json.RawMessage) {
	id = rand.Text()
	c := make(chan json.RawMessage, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending[questionKey(session, id)] = c
	return id, c
}

func (q *questions) close(session, id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pending, questionKey(session, id))
}

// answer delivers the first answer to a question; others are dropped.
func (q *questions) answer(session string, msg message) {
	id, err := typedID(msg.id)
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case q.pending[callKey{session, id}] <- msg.raw: // nil, if nobody asked: never ready
	default:
	}
}

func questionKey(session, id string) callKey { return callKey{session, "s" + id} } // as typedID makes it
