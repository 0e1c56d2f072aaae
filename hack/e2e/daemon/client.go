package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// Args are the arguments of a tool.
type Args map[string]any

// Client speaks MCP over HTTP: one POST for each call, the answer as JSON or as an event stream.
// It never opens a session unless Initialize is called. It may be used from several goroutines.
type Client struct {
	// HTTP is the client for the requests; nil is http.DefaultClient.
	HTTP *http.Client
	// Header is added to each request and replaces what the client would have sent.
	Header http.Header
	// OnNotification is called for each notification of an event stream, before the result is returned.
	OnNotification func(method string, params json.RawMessage)

	endpoint      func() string
	authorization func() string
	ids           atomic.Int64
	mu            sync.Mutex
	session       string
	version       string
}

// NewClient returns a client for any server that speaks the contract. authorization is the whole header
// value.
func NewClient(url, authorization string) *Client {
	return &Client{
		endpoint:      func() string { return url },
		authorization: func() string { return authorization },
	}
}

// Block is one content block of a result.
type Block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     []byte `json:"data"` // decoded from base64
	MIMEType string `json:"mimeType"`
}

// Result is the result of a tool call. A failed tool is a result too, with IsError.
type Result struct {
	IsError    bool           `json:"isError"`
	Content    []Block        `json:"content"`
	Structured map[string]any `json:"structuredContent"`
	// Raw is the JSON of the result as it came.
	Raw json.RawMessage `json:"-"`
}

// Text is all text blocks joined by newline.
func (r Result) Text() string {
	var texts []string
	for _, b := range r.Content {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// String is a string of the structured content, empty when it is absent or not a string.
func (r Result) String(key string) string {
	s, _ := r.Structured[key].(string)
	return s
}

// Code is the contract's error code, or the code of a replay.
func (r Result) Code() string { return r.String("code") }

// Replayed says that the answer comes from a receipt.
func (r Result) Replayed() bool { b, _ := r.Structured["replayed"].(bool); return b }

// RPCError is an error of the JSON-RPC layer: the request reached no tool.
type RPCError struct {
	// Status is the HTTP status code.
	Status  int             `json:"-"`
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *RPCError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d (HTTP %d): %s", e.Code, e.Status, e.Message)
}

// StatusError is an answer that is not JSON-RPC at all.
type StatusError struct {
	Status int
	Body   string
}

func (e *StatusError) Error() string { return fmt.Sprintf("HTTP %d: %s", e.Status, e.Body) }

// Call calls a tool. The error is non-nil only when no result came back; a failed tool is a Result.
func (c *Client) Call(ctx context.Context, tool string, args Args) (Result, error) {
	if args == nil {
		args = Args{}
	}
	return c.CallWith(ctx, map[string]any{"name": tool, "arguments": args})
}

// CallWith calls a tool with the whole params object, for a progress token and the like.
func (c *Client) CallWith(ctx context.Context, params map[string]any) (Result, error) {
	raw, err := c.Request(ctx, "tools/call", params)
	if err != nil {
		return Result{}, fmt.Errorf("call %v: %w", params["name"], err)
	}
	r := Result{Raw: raw}
	if err := json.Unmarshal(raw, &r); err != nil {
		return Result{}, fmt.Errorf("call %v: decode the result: %w", params["name"], err)
	}
	return r, nil
}

// Initialize does the handshake of the protocol versions that have one and keeps the session id, if any.
func (c *Client) Initialize(ctx context.Context, version string) (json.RawMessage, error) {
	c.mu.Lock()
	c.session, c.version = "", ""
	c.mu.Unlock()
	raw, err := c.Request(ctx, "initialize", map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "rig-bridge-e2e", "version": "1"},
	})
	if err != nil {
		return nil, err
	}
	var agreed struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(raw, &agreed); err != nil {
		return nil, fmt.Errorf("decode the answer to initialize: %w", err)
	}
	c.mu.Lock()
	c.version = agreed.ProtocolVersion
	c.mu.Unlock()
	return raw, c.Notify(ctx, "notifications/initialized", nil)
}

// Session is the session id that the server gave, or empty.
func (c *Client) Session() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// Request sends one JSON-RPC request with the next id and returns the result.
func (c *Client) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.RequestID(ctx, c.ids.Add(1), method, params)
}

// RequestID is Request with an id of the caller's, so that it can be cancelled by notification.
func (c *Client) RequestID(ctx context.Context, id int64, method string, params any) (json.RawMessage, error) {
	message := map[string]any{"jsonrpc": "2.0", "id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	resp, err := c.Post(ctx, body, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if s := resp.Header.Get("Mcp-Session-Id"); s != "" && method == "initialize" {
		c.mu.Lock()
		c.session = s
		c.mu.Unlock()
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return c.fromStream(resp)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return answer(resp.StatusCode, b)
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		message["params"] = params
	}
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encode the notification: %w", err)
	}
	resp, err := c.Post(ctx, body, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode/100 != 2 {
		return &StatusError{resp.StatusCode, string(b)}
	}
	return nil
}

// Post sends bytes as they are. header replaces single headers of the client's; an empty value list
// removes one; "Host" sets the request's host. The caller closes the body of the answer.
func (c *Client) Post(ctx context.Context, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if a := c.authorization(); a != "" {
		req.Header.Set("Authorization", a)
	}
	c.mu.Lock()
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.version != "" {
		req.Header.Set("MCP-Protocol-Version", c.version)
	}
	c.mu.Unlock()
	maps.Copy(req.Header, c.Header)
	maps.Copy(req.Header, header)
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	return client.Do(req)
}

// fromStream reads events until the one that carries the result.
func (c *Client) fromStream(resp *http.Response) (json.RawMessage, error) {
	events := bufio.NewReader(resp.Body)
	var data []string
	for {
		line, err := events.ReadString('\n')
		if err != nil && line == "" {
			return nil, fmt.Errorf("the event stream ended without a result: %w", err)
		}
		line = strings.TrimRight(line, "\r\n")
		if value, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(value, " "))
			continue
		}
		if line != "" { // another field or a comment
			continue
		}
		message := []byte(strings.Join(data, "\n"))
		data = nil
		if len(message) == 0 { // an event without data carries no message
			continue
		}
		if result, err := answer(resp.StatusCode, message); !errors.Is(err, errNotification) {
			return result, err
		}
		c.notified(message)
	}
}

func (c *Client) notified(message []byte) {
	var n struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(message, &n) == nil && c.OnNotification != nil {
		c.OnNotification(n.Method, n.Params)
	}
}

var errNotification = errors.New("a notification, not an answer")

func answer(status int, b []byte) (json.RawMessage, error) {
	var m struct {
		JSONRPC string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   *RPCError       `json:"error"`
	}
	if err := json.Unmarshal(b, &m); err != nil || m.JSONRPC != "2.0" {
		return nil, &StatusError{status, string(b)}
	}
	switch {
	case m.Error != nil:
		m.Error.Status = status
		return nil, m.Error
	case m.Result != nil:
		return m.Result, nil
	case m.Method != "":
		return nil, errNotification
	}
	return nil, &StatusError{status, string(b)}
}
