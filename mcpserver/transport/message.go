package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// message is one JSON-RPC message, its parts left as the client wrote them.
type message struct {
	raw    json.RawMessage
	id     json.RawMessage // nil for a notification
	method string
	params json.RawMessage
	// reply marks an answer of the client to a request of ours.
	reply bool
	call  callParams // of tools/call
	meta  *mcp.Meta
}

// callParams are the parts of a tools/call that the transport looks at.
type callParams struct {
	Name      *string         `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// rpcError is a JSON-RPC error with the HTTP status that goes with it.
type rpcError struct {
	status  int
	code    int
	message string
	data    any
}

func (e *rpcError) Error() string { return e.message }

func badRequest(code int, format string, args ...any) *rpcError {
	return &rpcError{status: 400, code: code, message: fmt.Sprintf(format, args...)}
}

// parseBody splits a body into its messages and tells whether it was a batch.
func parseBody(body []byte) (msgs []message, batch bool, err *rpcError) {
	body = bytes.TrimSpace(body)
	if !bytes.HasPrefix(body, []byte("[")) {
		msg, err := parseMessage(body)
		return []message{msg}, false, err
	}
	var parts []json.RawMessage
	if json.Unmarshal(body, &parts) != nil {
		return nil, true, errNotJSON
	}
	if len(parts) == 0 {
		return nil, true, badRequest(mcp.INVALID_REQUEST, "A batch must hold at least one message")
	}
	if len(parts) > maxBatch {
		return nil, true, badRequest(mcp.INVALID_REQUEST, "A batch may hold at most %d messages", maxBatch)
	}
	for _, part := range parts {
		msg, err := parseMessage(part)
		if err != nil {
			return nil, true, err
		}
		msgs = append(msgs, msg)
	}
	return msgs, true, nil
}

var errNotJSON = badRequest(mcp.PARSE_ERROR, "The body is not valid JSON")

// maxBatch bounds the messages of one batch.
const maxBatch = 64

// parseMessage reads the envelope of one message. On an error the message still
// holds the id, if it has a usable one.
func parseMessage(raw json.RawMessage) (message, *rpcError) {
	var envelope struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			return message{}, errNotJSON
		}
		return message{}, badRequest(mcp.INVALID_REQUEST, "The message is not a JSON-RPC object")
	}
	msg := message{raw: raw, params: envelope.Params}
	if envelope.ID != nil {
		if _, err := typedID(envelope.ID); err != nil {
			return msg, badRequest(mcp.INVALID_REQUEST, "%s", err.Error())
		}
		msg.id = envelope.ID
	}
	if envelope.JSONRPC != mcp.JSONRPC_VERSION {
		return msg, badRequest(mcp.INVALID_REQUEST, `jsonrpc must be "2.0"`)
	}
	if envelope.Method == nil {
		if envelope.Result == nil && envelope.Error == nil {
			return msg, badRequest(mcp.INVALID_REQUEST, "method is missing")
		}
		msg.reply = true
		return msg, nil
	}
	msg.method = *envelope.Method
	return msg, msg.readParams()
}

// readParams takes out of params what the transport needs.
func (m *message) readParams() *rpcError {
	if len(m.params) == 0 || string(m.params) == "null" {
		if m.method == string(mcp.MethodToolsCall) {
			return m.refuseCall("params are missing")
		}
		return nil
	}
	if m.params[0] != '{' {
		return badRequest(mcp.INVALID_PARAMS, "params must be an object")
	}
	var params struct {
		callParams
		Meta json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(m.params, &params); err != nil && m.method == string(mcp.MethodToolsCall) {
		return m.refuseCall("name must be a string")
	}
	if len(params.Meta) > 0 && params.Meta[0] == '{' {
		m.meta = new(mcp.Meta)
		if err := json.Unmarshal(params.Meta, m.meta); err != nil {
			return badRequest(mcp.INVALID_PARAMS, "_meta is not readable")
		}
	}
	if m.method != string(mcp.MethodToolsCall) {
		return nil
	}
	if params.Name == nil {
		return m.refuseCall("name is missing")
	}
	if a := params.Arguments; len(a) > 0 && a[0] != '{' && string(a) != "null" {
		return m.refuseCall("arguments must be an object")
	}
	m.call = params.callParams
	return nil
}

// refuseCall is the answer to a tools/call that is no call; unlike wrong
// arguments of a tool it is a fault of the client's code, not of the model.
func (m *message) refuseCall(why string) *rpcError {
	return &rpcError{status: 200, code: mcp.INVALID_PARAMS, message: "Invalid tools/call: " + why}
}

// typedID makes a comparable key of a request id, in which "5" and 5 differ and
// 5 and 5.0 do not.
func typedID(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0:
		return "", errors.New("id is missing")
	case raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", fmt.Errorf("id is not a readable string: %w", err)
		}
		return "s" + s, nil
	case raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9':
		return "n" + plainNumber(string(raw)), nil
	default:
		return "", errors.New("id must be a string or a number")
	}
}

// plainNumber drops a fraction of zeros, so that 5.0 is 5.
func plainNumber(s string) string {
	whole, fraction, found := strings.Cut(s, ".")
	if found && strings.Trim(fraction, "0") == "" {
		return whole
	}
	return s
}
