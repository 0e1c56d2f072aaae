package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rigbridge/rigbridge/mcpserver"
	"github.com/rigbridge/rigbridge/mcpserver/transport"
	"github.com/rigbridge/rigbridge/mcpserver/transport/security"
)

// How a daemon puts the parts together.
func Example() {
	server := mcpserver.New(mcpserver.Options{Version: "1.0.0"})
	err := server.Register("read", func(_ context.Context, _ string, args json.RawMessage) *mcp.CallToolResult {
		return mcpserver.Success("read with "+string(args), nil, nil)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	endpoint := transport.New(transport.Options{
		Server: server.MCP(), Call: server.Call, Info: server.Info(),
		SessionKey: bytes.Repeat([]byte{1}, 32), // kept in the state directory
	})

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	token := security.NewToken("Bearer test") // security.LoadToken in a daemon
	guard := security.GuardOptions{Port: listener.Addr().(*net.TCPAddr).Port, RefuseOrigin: true, Token: token}
	mux := http.NewServeMux()
	mux.Handle("/mcp", security.Guard(endpoint, guard))
	mux.Handle("/healthz", security.Health("live", "stopping", func() bool { return !endpoint.Stopping() }))
	web := transport.HTTPServer(security.WellKnown(mux))
	go func() { _ = web.Serve(listener) }()

	req, err := http.NewRequest(http.MethodPost, "http://"+listener.Addr().String()+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"w","path":"p","limit":10.0}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var answer struct {
		Result struct {
			Content []struct{ Text string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer.Result.Content[0].Text)

	_ = endpoint.Shutdown(context.Background()) // first the calls,
	_ = web.Shutdown(context.Background())      // then the connections

	// Output: read with {"limit":10,"offset":1,"path":"p","workspace_id":"w"}
}
