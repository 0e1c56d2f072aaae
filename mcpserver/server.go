package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/mcpserver/tools"
)

// Name is how the server names itself.
const Name = "rig-bridge"

// Codes that this package gives by itself; the contract lists all.
const (
	CodeInvalidArguments = "INVALID_ARGUMENTS"
	CodeUnknownTool      = "UNKNOWN_TOOL"
	CodeExecutionFailed  = "EXECUTION_FAILED"
	// CodeTooManyCalls is ours: the reference had no limit of calls.
	CodeTooManyCalls = "TOO_MANY_CALLS"
)

// MaxCalls is the default limit of tool calls at once.
const MaxCalls = 256

// listTTL is how long a client may keep tools/list and discover, in
// milliseconds: both change only with a new version of the daemon.
const listTTL = 300_000

// Handler answers calls of one tool. args are valid and canonical: defaults are
// filled in, keys sorted, so equal requests have equal bytes. ctx ends when the
// call is to stop; transport.CancelCause says why. It never returns nil.
type Handler func(ctx context.Context, tool string, args json.RawMessage) *mcp.CallToolResult

// Options configure a Server.
type Options struct {
	// Version is the daemon's.
	Version string
	// MaxCalls bounds the calls at once; default MaxCalls.
	MaxCalls int
	// CheckOutputs holds each result against its tool's definition and turns
	// one that departs into a failure. For tests: it costs a second encoding.
	CheckOutputs bool
	// Log receives panics and departures, never contents. The zero value
	// discards.
	Log logr.Logger
}

// Server knows which tools are live, checks calls and passes them on. Register
// everything before the first client connects: a list that changes is not
// announced.
type Server struct {
	o     Options
	mcp   *server.MCPServer
	slots chan struct{} // one token for each call in progress

	mu       sync.RWMutex
	handlers map[string]Handler
}

// New makes a Server without tools.
func New(o Options) *Server {
	if o.MaxCalls == 0 {
		o.MaxCalls = MaxCalls
	}
	return &Server{
		o:        o,
		slots:    make(chan struct{}, o.MaxCalls),
		handlers: make(map[string]Handler),
		mcp: server.NewMCPServer(Name, o.Version,
			server.WithToolCapabilities(false),
			server.WithInstructions(tools.Instructions()),
			server.WithMethodCacheHints(mcp.MethodToolsList, listTTL, mcp.CacheScopePrivate),
			server.WithMethodCacheHints(mcp.MethodServerDiscover, listTTL, mcp.CacheScopePrivate),
		),
	}
}

// Info is how the server names itself to clients.
func (s *Server) Info() mcp.Implementation {
	return mcp.Implementation{Name: Name, Version: s.o.Version}
}

// MCP is the library's server that lists the tools; calls through it end in
// Call as well.
func (s *Server) MCP() *server.MCPServer { return s.mcp }

// Register makes a defined tool live: it is listed from now on and its calls go
// to handler.
func (s *Server) Register(tool string, handler Handler) error {
	definition, ok := tools.Lookup(tool)
	if !ok {
		return fmt.Errorf("register %s: %w", tool, tools.ErrUnknownTool)
	}
	described, err := definition.MCP()
	if err != nil {
		return fmt.Errorf("register %s: %w", tool, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.handlers[tool]; taken {
		return fmt.Errorf("register %s: it has a handler", tool)
	}
	s.handlers[tool] = handler
	s.mcp.AddTool(described, func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.Call(ctx, tool, r.Params.RawArguments)
	})
	return nil
}

// Live names the registered tools in the order of their definitions.
func (s *Server) Live() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var names []string
	for _, d := range tools.All() {
		if _, ok := s.handlers[d.Name]; ok {
			names = append(names, d.Name)
		}
	}
	return names
}

// Call is a transport.CallFunc without errors: whatever goes wrong is a result
// that the model can read.
func (s *Server) Call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	return s.check(tool, s.call(ctx, tool, args)), nil
}

// call checks one call, finds its handler and returns the result.
func (s *Server) call(ctx context.Context, tool string, args json.RawMessage) *mcp.CallToolResult {
	s.mu.RLock()
	handler := s.handlers[tool]
	s.mu.RUnlock()
	if handler == nil {
		return Failure(CodeUnknownTool, "", fmt.Sprintf("There is no tool %q. The tools are %s.", shorten(tool), strings.Join(s.Live(), ", ")), nil)
	}
	_, canonical, err := tools.Canonical(tool, args)
	if err != nil {
		var wrong *tools.ArgumentError
		if errors.As(err, &wrong) {
			return Failure(CodeInvalidArguments, "", wrong.Error(), nil)
		}
		return Failure(CodeExecutionFailed, "InternalError", "The arguments could not be processed.", nil)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return Failure(CodeTooManyCalls, "TooManyCalls", fmt.Sprintf("%d calls are already running. Nothing was done; retry in a second, with the same request_key if there is one.", s.o.MaxCalls), nil)
	}
	failpoint.Hit(failpoint.Validated)
	begin := time.Now()
	result := s.guarded(ctx, handler, tool, canonical)
	s.o.Log.V(1).Info("Call answered", "tool", tool, "duration", time.Since(begin), "reason", codeOf(result))
	return result
}

// codeOf is the code of a failure, or nothing.
func codeOf(result *mcp.CallToolResult) string {
	fields, _ := result.StructuredContent.(map[string]any)
	code, _ := fields["code"].(string)
	return code
}

// guarded runs the handler; a panic ends that call only.
func (s *Server) guarded(ctx context.Context, handler Handler, tool string, args json.RawMessage) (result *mcp.CallToolResult) {
	defer func() {
		v := recover()
		if v == nil && result != nil {
			return
		}
		if v != nil { // of the value only the type: it may hold content
			s.o.Log.Error(fmt.Errorf("panic: %T", v), "Tool panicked", "tool", tool, "stack", string(debug.Stack()))
		}
		result = Failure(CodeExecutionFailed, "InternalError",
			"The tool ended with an internal error; it may have had effects. Look before you repeat the call.",
			map[string]any{"effects_may_have_occurred": mutates(tool)})
	}()
	return handler(ctx, tool, args)
}

// mutates tells whether calls of the tool can have effects.
func mutates(tool string) bool {
	d, ok := tools.Lookup(tool)
	return !ok || !d.Hints.ReadOnly
}

// check fails a result that departs from its definition, where that is asked
// for. The end-to-end tests look for what it logs.
func (s *Server) check(tool string, result *mcp.CallToolResult) *mcp.CallToolResult {
	if !s.o.CheckOutputs {
		return result
	}
	if err := conforms(tool, result); err != nil {
		s.o.Log.Error(err, "Result departs from its definition", "tool", tool)
		return Failure(CodeExecutionFailed, "OutputNonconforming", err.Error(), nil)
	}
	return result
}

// conforms tells how a result departs from its definition: text and structured
// content must each be complete, and the latter must keep to the output schema,
// for failures too, since official clients look no closer.
func conforms(tool string, r *mcp.CallToolResult) error {
	var texts []string
	for _, c := range r.Content {
		if t, ok := c.(mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	fields, _ := r.StructuredContent.(map[string]any)
	if len(texts) == 0 || fields["output"] != strings.Join(texts, "\n") {
		return fmt.Errorf("content and structured content of %s tell different texts", tool)
	}
	if _, ok := tools.Lookup(tool); !ok {
		return nil
	}
	if r.IsError {
		return tools.CheckFailure(tool, fields)
	}
	return tools.CheckOutput(tool, fields)
}

// shorten bounds a name that a client made up.
func shorten(s string) string {
	const limit = 80
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
