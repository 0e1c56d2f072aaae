package goclients

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"testing"

	library "github.com/mark3labs/mcp-go/client"
	librarytransport "github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// assistant is a connected client. call passes progress on when it is asked to;
// a call whose ctx ends is cancelled as the client does it.
type assistant interface {
	tools(ctx context.Context) (int, error)
	call(ctx context.Context, tool string, args daemon.Args, progress func(float64)) (daemon.Result, error)
	close() error
	// silent tells that the client drops a call without a word that the server
	// may take for a cancellation.
	silent() bool
}

// connects opens each client.
var connects = map[string]func(testing.TB, *daemon.Daemon) (assistant, error){
	"official SDK 2026-07-28": func(t testing.TB, d *daemon.Daemon) (assistant, error) {
		return official(t, "2026-07-28", overHTTP(d))
	},
	"official SDK 2025-11-25": func(t testing.TB, d *daemon.Daemon) (assistant, error) {
		return official(t, "2025-11-25", overHTTP(d))
	},
	"official SDK over stdio": func(t testing.TB, d *daemon.Daemon) (assistant, error) {
		return official(t, "2025-11-25", &sdk.CommandTransport{Command: stdio(t, d)})
	},
	"mcp-go 2026-07-28": func(t testing.TB, d *daemon.Daemon) (assistant, error) {
		return mark3labs(t, d, "2026-07-28")
	},
	"mcp-go 2025-11-25": func(t testing.TB, d *daemon.Daemon) (assistant, error) {
		return mark3labs(t, d, "2025-11-25")
	},
}

func stdio(t testing.TB, d *daemon.Daemon) *exec.Cmd {
	return exec.CommandContext(t.Context(), d.Binary(), "stdio", "--state-dir", d.StateDir())
}

// bearing adds the bearer to each request.
type bearing struct{ d *daemon.Daemon }

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", b.d.Authorization())
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(d *daemon.Daemon) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: d.URL(), HTTPClient: &http.Client{Transport: bearing{d}}}
}

// listeners hand progress to the call that asked for it.
type listeners struct {
	mu   sync.Mutex
	next int
	by   map[string]func(float64)
}

func (l *listeners) add(f func(float64)) (token string, drop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	token = fmt.Sprintf("token-%d", l.next)
	if l.by == nil {
		l.by = map[string]func(float64){}
	}
	l.by[token] = f
	return token, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.by, token)
	}
}

func (l *listeners) tell(token any, progress float64) {
	l.mu.Lock()
	f := l.by[fmt.Sprint(token)]
	l.mu.Unlock()
	if f != nil {
		f(progress)
	}
}

// decode turns any client's result into ours, by the JSON of both.
func decode(result any) (r daemon.Result, err error) {
	if r.Raw, err = json.Marshal(result); err != nil {
		return r, err
	}
	return r, json.Unmarshal(r.Raw, &r)
}

type officialClient struct {
	session   *sdk.ClientSession
	listeners *listeners
}

func official(t testing.TB, version string, over sdk.Transport) (assistant, error) {
	l := &listeners{}
	client := sdk.NewClient(&sdk.Implementation{Name: "go-sdk-story", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			l.tell(r.Params.ProgressToken, r.Params.Progress)
		},
	})
	session, err := client.Connect(t.Context(), over, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("the version is %s, not %s", got, version)
	}
	return &officialClient{session, l}, nil
}

func (c *officialClient) tools(ctx context.Context) (int, error) {
	list, err := c.session.ListTools(ctx, nil)
	if err != nil {
		return 0, err
	}
	return len(list.Tools), nil
}

func (c *officialClient) call(ctx context.Context, tool string, args daemon.Args, progress func(float64)) (daemon.Result, error) {
	params := &sdk.CallToolParams{Name: tool, Arguments: args}
	if progress != nil {
		token, drop := c.listeners.add(progress)
		defer drop()
		params.SetProgressToken(token)
	}
	result, err := c.session.CallTool(ctx, params)
	if err != nil {
		return daemon.Result{}, err
	}
	return decode(result)
}

func (c *officialClient) close() error { return c.session.Close() }
func (*officialClient) silent() bool   { return false }

type libraryClient struct {
	client    *library.Client
	listeners *listeners
	version   string
}

func mark3labs(t testing.TB, d *daemon.Daemon, version string) (assistant, error) {
	over, err := librarytransport.NewStreamableHTTP(d.URL(), librarytransport.WithHTTPBasicClient(&http.Client{Transport: bearing{d}}))
	if err != nil {
		return nil, err
	}
	client := library.NewClient(over, library.WithProtocolVersion(version))
	l := &listeners{}
	client.OnNotification(func(n mcp.JSONRPCNotification) {
		if progress, ok := n.Params.AdditionalFields["progress"].(float64); ok {
			l.tell(n.Params.AdditionalFields["progressToken"], progress)
		}
	})
	if err := client.Start(t.Context()); err != nil {
		return nil, err
	}
	hello := mcp.InitializeRequest{}
	hello.Params.ClientInfo = mcp.Implementation{Name: "mcp-go-story", Version: "1"}
	hello.Params.ProtocolVersion = version
	got, err := client.Initialize(t.Context(), hello)
	if err != nil {
		return nil, err
	}
	if got.ProtocolVersion != version {
		t.Errorf("the version is %s, not %s", got.ProtocolVersion, version)
	}
	return &libraryClient{client, l, version}, nil
}

func (c *libraryClient) tools(ctx context.Context) (int, error) {
	list, err := c.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return 0, err
	}
	return len(list.Tools), nil
}

func (c *libraryClient) call(ctx context.Context, tool string, args daemon.Args, progress func(float64)) (daemon.Result, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = tool, args
	if progress != nil {
		token, drop := c.listeners.add(progress)
		defer drop()
		request.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	result, err := c.client.CallTool(ctx, request)
	if err != nil {
		return daemon.Result{}, err
	}
	return decode(result)
}

func (c *libraryClient) close() error { return c.client.Close() }

// silent: over HTTP mcp-go only closes the stream, which cancels since
// 2026-07-28 and not before.
func (c *libraryClient) silent() bool { return c.version < "2026-07-28" }
