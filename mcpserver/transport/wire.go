package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
)

// codeServer is the JSON-RPC code of refusals that have none of their own.
const codeServer = -32000

// answer is the encoded reply to one request and the HTTP status for it.
type answer struct {
	status int
	body   []byte
	failed bool // an error, whatever the status
	// session is the id of a session that the request opened.
	session string
}

type envelope struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *errorObject    `json:"error,omitempty"`
}

type errorObject struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

type notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// encode writes one JSON value on one line, without the escapes that HTML would
// need and that make code longer.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// resultAnswer encodes a success.
func resultAnswer(id json.RawMessage, result any) answer {
	body, err := encode(envelope{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Result: result})
	if err != nil {
		return errorAnswer(id, &rpcError{status: 200, code: mcp.INTERNAL_ERROR, message: fmt.Sprintf("The result cannot be encoded: %v", err)})
	}
	return answer{status: 200, body: body}
}

// errorAnswer encodes a failure; a request without a usable id gets null.
func errorAnswer(id json.RawMessage, e *rpcError) answer {
	if id == nil {
		id = json.RawMessage("null")
	}
	object := &errorObject{Code: e.code, Message: e.message, Data: e.data}
	body, err := encode(envelope{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: object})
	if err != nil { // only data can be at fault
		object.Data = nil
		body, _ = encode(envelope{JSONRPC: mcp.JSONRPC_VERSION, ID: id, Error: object})
	}
	return answer{status: e.status, body: body, failed: true}
}

// toolResult is a mcp.CallToolResult as it is written: in one encoding, with
// the details of its structured content also at the top level, where clients of
// the reference look for them.
type toolResult struct {
	Meta       map[string]any `json:"_meta,omitempty"`
	ResultType mcp.ResultType `json:"resultType,omitempty"`
	Content    []any          `json:"content"`
	Structured any            `json:"structuredContent,omitempty"`
	Details    any            `json:"details,omitempty"`
	IsError    bool           `json:"isError,omitempty"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type imageBlock struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
}

// wire prepares the result of a tool for encoding.
func (h *Handler) wire(r *mcp.CallToolResult, modern bool) toolResult {
	out := toolResult{Content: make([]any, len(r.Content)), Structured: r.StructuredContent, IsError: r.IsError}
	for i, c := range r.Content {
		out.Content[i] = block(c)
	}
	if fields, ok := r.StructuredContent.(map[string]any); ok {
		out.Details = fields["details"]
	}
	if r.Meta != nil {
		out.Meta = maps.Clone(r.Meta.AdditionalFields)
	}
	if modern {
		if out.Meta == nil {
			out.Meta = make(map[string]any)
		}
		out.Meta[mcp.MetaKeyServerInfo] = h.o.Info
		out.ResultType = mcp.ResultTypeComplete
	}
	return out
}

// block spares the common content the library's generic encoding.
func block(c mcp.Content) any {
	switch c := c.(type) {
	case mcp.TextContent:
		if c.Meta == nil && c.Annotations == nil {
			return textBlock{"text", c.Text}
		}
	case mcp.ImageContent:
		if c.Meta == nil && c.Annotations == nil {
			return imageBlock{"image", c.Data, c.MIMEType}
		}
	}
	return c
}
