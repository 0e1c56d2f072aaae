package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func addPrompts(s *server.MCPServer) {
	argument := func(name string) mcp.PromptOption { return mcp.WithArgument(name, mcp.RequiredArgument()) }
	says := func(blocks ...mcp.Content) *mcp.GetPromptResult {
		out := &mcp.GetPromptResult{}
		for _, b := range blocks {
			out.Messages = append(out.Messages, mcp.NewPromptMessage(mcp.RoleUser, b))
		}
		return out
	}
	add := func(name string, answer func(mcp.GetPromptRequest) *mcp.GetPromptResult, options ...mcp.PromptOption) {
		options = append(options, mcp.WithPromptDescription("A fixture of the conformance suite"))
		s.AddPrompt(mcp.NewPrompt(name, options...), func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return answer(r), nil
		})
	}
	add("test_simple_prompt", func(mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewTextContent("This is a simple prompt for testing."))
	})
	add("test_prompt_with_arguments", func(r mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewTextContent(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", r.Params.Arguments["arg1"], r.Params.Arguments["arg2"])))
	}, argument("arg1"), argument("arg2"))
	add("test_prompt_with_embedded_resource", func(r mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(embedded(r.Params.Arguments["resourceUri"], "text/plain", "Embedded resource content for testing."),
			mcp.NewTextContent("Please process the embedded resource above."))
	}, argument("resourceUri"))
	add("test_prompt_with_image", func(mcp.GetPromptRequest) *mcp.GetPromptResult {
		return says(mcp.NewImageContent(pixel, "image/png"), mcp.NewTextContent("Please analyze the image above."))
	})
	add("test_input_required_result_prompt", func(r mcp.GetPromptRequest) *mcp.GetPromptResult {
		if !answered(r.Params.MultiRoundTripParams, "user_context") {
			return server.NewInputRequestBuilder("").Elicit("user_context",
				elicitation("What context should the prompt use?", properties{"context": {"type": "string"}}, "context")).PromptResult()
		}
		return says(mcp.NewTextContent("A prompt in the context that was given."))
	})
}

func addResources(s *server.MCPServer) {
	add := func(uri, kind string, contents mcp.ResourceContents) {
		s.AddResource(mcp.NewResource(uri, strings.TrimPrefix(uri, "test://"), mcp.WithMIMEType(kind), mcp.WithResourceDescription("A fixture of the conformance suite")),
			func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{contents}, nil
			})
	}
	text := func(uri, text string) {
		add(uri, "text/plain", mcp.TextResourceContents{URI: uri, MIMEType: "text/plain", Text: text})
	}
	text("test://static-text", "This is the content of the static text resource.")
	text("test://watched-resource", "A resource that clients may watch.")
	text("test://example-resource", "An example.")
	add("test://static-binary", "image/png", mcp.BlobResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: pixel})
	s.AddResourceTemplate(mcp.NewResourceTemplate("test://template/{id}/data", "template", mcp.WithTemplateMIMEType("application/json"), mcp.WithTemplateDescription("A fixture of the conformance suite")),
		func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, MIMEType: "application/json",
				Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id)}}, nil
		})
}
