package mcpserver

import (
	"encoding/base64"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
)

// Image is a picture in a result.
type Image struct {
	// Data are the bytes of the encoded picture.
	Data []byte
	// MIMEType is its type, such as image/png.
	MIMEType string
}

// Success renders an outcome. text becomes the text block and, since half of
// the hosts show the model only the structured content, its output as well.
// structured may be nil; the result shares nothing with it but its values. It
// must not hold output of its own.
func Success(text string, images []Image, structured map[string]any) *mcp.CallToolResult {
	fields := maps.Clone(structured)
	if fields == nil {
		fields = make(map[string]any, 1)
	}
	fields["output"] = text
	result := &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(text)},
		StructuredContent: fields,
	}
	for _, image := range images {
		result.Content = append(result.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(image.Data), image.MIMEType))
	}
	return result
}

// Failure renders an error that the model is to read: message says in plain
// words what happened and what to do next. code is one of the contract's,
// reason, if any, a finer PascalCase cause. extra holds more fields, such as
// effects_may_have_occurred; it may not replace code, reason, message, output.
func Failure(code, reason, message string, extra map[string]any) *mcp.CallToolResult {
	return FailureWithOutput(code, reason, message, message, extra)
}

// FailureWithOutput renders an error with a text longer than its message, such
// as the output of a command that failed, which then ends with the message.
func FailureWithOutput(code, reason, message, output string, extra map[string]any) *mcp.CallToolResult {
	fields := maps.Clone(extra)
	if fields == nil {
		fields = make(map[string]any, 4)
	}
	fields["code"], fields["message"] = code, message
	delete(fields, "reason")
	if reason != "" {
		fields["reason"] = reason
	}
	result := Success(output, nil, fields)
	result.IsError = true
	return result
}
