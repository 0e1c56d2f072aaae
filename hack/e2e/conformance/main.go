package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
	"github.com/rigbridge/rigbridge/mcpserver/transport/security"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(endpoint(listener))
		err = serve(ctx, listener)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func endpoint(l net.Listener) string { return "http://" + l.Addr().String() + "/mcp" }

// serve answers on a loopback listener until ctx ends.
func serve(ctx context.Context, listener net.Listener) error {
	handler := newHandler()
	mux := http.NewServeMux()
	mux.Handle("/mcp", security.Guard(handler, security.GuardOptions{Port: listener.Addr().(*net.TCPAddr).Port}))
	s := transport.HTTPServer(mux)
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := handler.Shutdown(end); err != nil {
		return err
	}
	return s.Shutdown(end)
}

// info is how the fixture names itself.
var info = mcp.Implementation{Name: "rig-bridge-conformance", Version: "1"}

// cacheTTL is how long clients may keep lists, in milliseconds.
const cacheTTL = 1000

func newHandler() *transport.Handler {
	s := server.NewMCPServer(info.Name, info.Version,
		server.WithToolCapabilities(false),
		server.WithPromptCapabilities(false),
		server.WithResourceCapabilities(true, false),
		server.WithCompletions(),
		server.WithLogging(),
		server.WithElicitation(),
		server.WithRoots(),
		server.WithCacheHints(cacheTTL, mcp.CacheScopePrivate),
	)
	s.EnableSampling()
	addPlainTools(s)
	addTalkingTools(s)
	addInputTools(s)
	addPrompts(s)
	addResources(s)
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return transport.New(transport.Options{
		Server: s, Call: call, Info: info, SessionKey: key,
		ProgressInterval: time.Millisecond, // the suite counts each report
	})
}

// call answers plain tools, as the product answers its own, and leaves the
// others to the library.
func call(ctx context.Context, tool string, args json.RawMessage) (*mcp.CallToolResult, error) {
	if tool == "test_missing_capability" {
		return missingCapability(ctx)
	}
	if run, ok := plainTools[tool]; ok {
		return run(ctx, args), nil
	}
	return nil, nil
}
