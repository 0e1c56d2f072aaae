package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

func init() {
	schemas["test_sampling"] = `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`
	schemas["test_elicitation"] = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`
}

// addTalkingTools adds the tools that send log messages or ask the client.
func addTalkingTools(s *server.MCPServer) {
	addTool(s, "test_tool_with_logging", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if i > 0 {
				time.Sleep(pause)
			}
			if err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, info.Name, text)); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("Tool with logging executed successfully"), nil
	})
	addTool(s, "test_logging_tool", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, info.Name, "A log message"))
		return mcp.NewToolResultText("logged, if the request wants it"), err
	})
	addTool(s, "test_sampling", func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		//lint:ignore SA1019 the suite still asks for it in the versions that have it
		answer, err := s.RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: sampling(r.GetString("prompt", ""))})
		if err != nil {
			return mcp.NewToolResultErrorFromErr("sampling", err), nil
		}
		text, _ := answer.Content.(mcp.TextContent)
		return mcp.NewToolResultText("LLM response: " + text.Text), nil
	})
	for name, ask := range map[string]func(mcp.CallToolRequest) mcp.ElicitationParams{
		"test_elicitation": func(r mcp.CallToolRequest) mcp.ElicitationParams {
			return elicitation(r.GetString("message", ""), properties{
				"username": {"type": "string", "description": "User's response"},
				"email":    {"type": "string", "description": "User's email address"},
			}, "username", "email")
		},
		"test_elicitation_sep1034_defaults": func(mcp.CallToolRequest) mcp.ElicitationParams {
			return elicitation("Provide your information", defaults)
		},
		"test_elicitation_sep1330_enums": func(mcp.CallToolRequest) mcp.ElicitationParams {
			return elicitation("Select options", enums)
		},
	} {
		addTool(s, name, func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			answer, err := s.RequestElicitation(ctx, mcp.ElicitationRequest{Params: ask(r)})
			if err != nil {
				return mcp.NewToolResultErrorFromErr("elicitation", err), nil
			}
			return mcp.NewToolResultText(fmt.Sprintf("Elicitation completed: action=%s, content=%v", answer.Action, answer.Content)), nil
		})
	}
}

func sampling(prompt string) mcp.CreateMessageParams {
	return mcp.CreateMessageParams{
		Messages:  []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent(prompt)}},
		MaxTokens: 100,
	}
}

// properties are those of an object's schema.
type properties map[string]map[string]any

func elicitation(message string, p properties, required ...string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{"type": "object", "properties": p, "required": append([]string{}, required...)}}
}

var defaults = properties{
	"name":     {"type": "string", "default": "John Doe"},
	"age":      {"type": "integer", "default": 30},
	"score":    {"type": "number", "default": 95.5},
	"status":   {"type": "string", "enum": []string{"active", "inactive", "pending"}, "default": "active"},
	"verified": {"type": "boolean", "default": true},
}

var enums = properties{
	"untitledSingle": {"type": "string", "enum": []string{"option1", "option2", "option3"}},
	"titledSingle":   {"type": "string", "oneOf": titled},
	"legacyEnum":     {"type": "string", "enum": []string{"opt1", "opt2", "opt3"}, "enumNames": []string{"Option One", "Option Two", "Option Three"}},
	"untitledMulti":  {"type": "array", "items": map[string]any{"type": "string", "enum": []string{"option1", "option2", "option3"}}},
	"titledMulti":    {"type": "array", "items": map[string]any{"anyOf": titled}},
}

var titled = []map[string]string{{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}}

// missingCapability refuses clients that did not declare sampling, as the
// protocol since 2026-07-28 says it.
func missingCapability(ctx context.Context) (*mcp.CallToolResult, error) {
	if c := transport.CallerFrom(ctx).Capabilities; c != nil && c.Sampling != nil {
		return mcp.NewToolResultText("The client can sample"), nil
	}
	return nil, &transport.Error{
		Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: "This tool needs the client capability sampling",
		Data: map[string]any{"requiredCapabilities": map[string]any{"sampling": struct{}{}}},
	}
}
