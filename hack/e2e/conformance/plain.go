package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// pause is what the suite asks for between two messages of a tool.
const pause = 50 * time.Millisecond

// plainTools answer without a word to the client but progress.
var plainTools = map[string]func(context.Context, json.RawMessage) *mcp.CallToolResult{
	"test_simple_text":            content(mcp.NewTextContent("This is a simple text response for testing.")),
	"test_image_content":          content(mcp.NewImageContent(pixel, "image/png")),
	"test_audio_content":          content(mcp.NewAudioContent(silence, "audio/wav")),
	"test_embedded_resource":      content(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
	"test_multiple_content_types": content(mcp.NewTextContent("Multiple content types test:"), mcp.NewImageContent(pixel, "image/png"), embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
	"test_error_handling": func(context.Context, json.RawMessage) *mcp.CallToolResult {
		return mcp.NewToolResultError("This tool intentionally returns an error for testing")
	},
	"test_tool_with_progress":  withProgress,
	"test_header_parameter":    echo,
	"json_schema_2020_12_tool": echo,
}

// schemas are the input schemas of tools that have arguments.
var schemas = map[string]string{
	"test_header_parameter": `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`,
	// Verbatim from the suite.
	"json_schema_2020_12_tool": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
		"additionalProperties":false}`,
}

func addPlainTools(s *server.MCPServer) {
	for name := range plainTools {
		addTool(s, name, nil)
	}
	addTool(s, "test_missing_capability", nil)
}

// addTool lists a tool. Without a handler the tool is one of call's.
func addTool(s *server.MCPServer, name string, handler server.ToolHandlerFunc) {
	schema, ok := schemas[name]
	if !ok {
		schema = `{"type":"object","properties":{}}`
	}
	if handler == nil {
		handler = func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, name, r.Params.RawArguments)
		}
	}
	s.AddTool(mcp.NewToolWithRawSchema(name, "A fixture of the conformance suite", json.RawMessage(schema)), handler)
}

func content(blocks ...mcp.Content) func(context.Context, json.RawMessage) *mcp.CallToolResult {
	return func(context.Context, json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: blocks}
	}
}

func embedded(uri, kind, text string) mcp.Content {
	return mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: uri, MIMEType: kind, Text: text})
}

func echo(_ context.Context, args json.RawMessage) *mcp.CallToolResult {
	return mcp.NewToolResultText(string(args))
}

func withProgress(ctx context.Context, _ json.RawMessage) *mcp.CallToolResult {
	report := transport.Progress(ctx)
	for i := range 3 {
		if report != nil {
			report(float64(50*i), 100, "")
		}
		time.Sleep(pause)
	}
	return mcp.NewToolResultText("Tool with progress executed")
}

// Smallest files of their kind, from the suite's examples.
const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)
