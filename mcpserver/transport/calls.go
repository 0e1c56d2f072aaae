package transport

import (
	"context"
	"errors"
	"sync"
)

// Cause says why a call's context ended.
type Cause string

const (
	// CauseNone: not cancelled, or by something outside the transport, such as
	// the handler's own deadline.
	CauseNone Cause = ""
	// CauseClient: the client cancelled the request or ended its session.
	CauseClient Cause = "client notification"
	// CauseDisconnect: the connection is gone, for clients that mean to cancel
	// by that (2026-07-28 and stdio).
	CauseDisconnect Cause = "disconnect"
	// CauseShutdown: the daemon is stopping.
	CauseShutdown Cause = "shutdown"
)

// cancelled is the cancel cause that the transport gives to a context.
type cancelled struct{ cause Cause }

func (c cancelled) Error() string { return "cancelled: " + string(c.cause) }

// Is makes errors.Is(cause, context.Canceled) true.
func (c cancelled) Is(target error) bool { return target == context.Canceled }

// CancelCause tells why the context of a tool call ended, or CauseNone.
func CancelCause(ctx context.Context) Cause {
	var c cancelled
	if errors.As(context.Cause(ctx), &c) {
		return c.cause
	}
	return CauseNone
}

// callKey names a request for cancellation. Requests without a session have
// none: ids of different clients would collide.
type callKey struct{ session, id string }

// calls are the requests that run now.
type calls struct {
	mu       sync.Mutex
	running  map[*call]struct{}
	byKey    map[callKey]map[*call]struct{}
	stopping bool
	stops    chan struct{} // closed when stopping
	idle     chan struct{} // closed when stopping and nothing runs
}

// call is one running request.
type call struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	key    callKey
}

func newCalls() *calls {
	return &calls{
		running: make(map[*call]struct{}),
		byKey:   make(map[callKey]map[*call]struct{}),
		stops:   make(chan struct{}),
		idle:    make(chan struct{}),
	}
}

// start registers a request before it runs; false when the transport stops.
func (c *calls) start(parent context.Context, key callKey) (*call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return nil, false
	}
	one := &call{key: key}
	one.ctx, one.cancel = context.WithCancelCause(parent)
	c.running[one] = struct{}{}
	if key.session != "" {
		if c.byKey[key] == nil {
			c.byKey[key] = make(map[*call]struct{})
		}
		c.byKey[key][one] = struct{}{}
	}
	return one, true
}

// end forgets a request whose handler has returned.
func (c *calls) end(one *call) {
	one.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, one)
	if same := c.byKey[one.key]; same != nil {
		delete(same, one)
		if len(same) == 0 {
			delete(c.byKey, one.key)
		}
	}
	if c.stopping && len(c.running) == 0 {
		close(c.idle)
	}
}

// cancel ends the request with that key, if it runs.
func (c *calls) cancel(key callKey, why Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.byKey[key] {
		one.cancel(cancelled{why})
	}
}

// cancelSession ends all requests of a session.
func (c *calls) cancelSession(session string, why Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.running {
		if one.key.session == session {
			one.cancel(cancelled{why})
		}
	}
}

// stop refuses new requests, ends the running ones and returns a channel that
// is closed when none is left.
func (c *calls) stop() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return c.idle
	}
	c.stopping = true
	close(c.stops)
	for one := range c.running {
		one.cancel(cancelled{CauseShutdown})
	}
	if len(c.running) == 0 {
		close(c.idle)
	}
	return c.idle
}

func (c *calls) stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopping
}

// count is the number of requests that run.
func (c *calls) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running)
}
