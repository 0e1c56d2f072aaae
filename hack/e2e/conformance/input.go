package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// addInputTools adds the tools that ask the client by their result and are
// called again with the answers (2026-07-28).
func addInputTools(s *server.MCPServer) {
	simple := func(name, id string, ask func(*server.InputRequestBuilder) *server.InputRequestBuilder) {
		addTool(s, name, func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if !answered(r.Params.MultiRoundTripParams, id) {
				return ask(server.NewInputRequestBuilder("")).ToolResult(), nil
			}
			return mcp.NewToolResultText("Thank you for " + id), nil
		})
	}
	simple("test_input_required_result_elicitation", "user_name", askName("user_name"))
	simple("test_input_required_result_sampling", "capital_question", func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Sample("capital_question", sampling("What is the capital of France?"))
	})
	simple("test_input_required_result_list_roots", "client_roots", func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Roots("client_roots")
	})
	simple("test_streaming_elicitation", "user_name", askName("user_name"))
	addStatefulTools(s)
	addTool(s, "test_input_required_result_capabilities", askWhatIsDeclared)
}

func askName(id string) func(*server.InputRequestBuilder) *server.InputRequestBuilder {
	return func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Elicit(id, elicitation("What is your name?", properties{"name": {"type": "string"}}, "name"))
	}
}

// answered tells whether the client has given a usable answer to a question.
func answered(p mcp.MultiRoundTripParams, id string) bool {
	return server.ElicitationResponse(p.InputResponses, id) != nil ||
		server.SamplingResponse(p.InputResponses, id) != nil ||
		server.RootsResponse(p.InputResponses, id) != nil
}

// addStatefulTools adds those that keep what they know in the request state.
func addStatefulTools(s *server.MCPServer) {
	confirm := func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
		return b.Elicit("confirm", elicitation("Please confirm", properties{"ok": {"type": "boolean"}}, "ok"))
	}
	rounds := map[string][]func(*server.InputRequestBuilder) *server.InputRequestBuilder{
		"test_input_required_result_request_state":  {confirm},
		"test_input_required_result_tampered_state": {confirm},
		"test_input_required_result_multiple_inputs": {func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
			return askName("user_name")(b).Sample("greeting", sampling("Generate a greeting")).Roots("client_roots")
		}},
		"test_input_required_result_multi_round": {askName("step1"), func(b *server.InputRequestBuilder) *server.InputRequestBuilder {
			return b.Elicit("step2", elicitation("Step 2: What is your favorite color?", properties{"color": {"type": "string"}}, "color"))
		}},
	}
	for name, steps := range rounds {
		addTool(s, name, func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			done := ""
			if r.Params.RequestState != "" {
				var err error
				if done, err = unseal(name, r.Params.RequestState); err != nil {
					return nil, err
				}
			}
			if len(done) == len(steps) {
				return mcp.NewToolResultText("state-ok"), nil
			}
			return steps[len(done)](server.NewInputRequestBuilder(seal(name, done+"x"))).ToolResult(), nil
		})
	}
}

// sealKey proves request states; they are worth nothing after a restart.
var sealKey = func() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}()

func mac(tool, state string) string {
	m := hmac.New(sha256.New, sealKey)
	m.Write([]byte(tool + "\x00" + state))
	return hex.EncodeToString(m.Sum(nil))
}

func seal(tool, state string) string { return state + "." + mac(tool, state) }

func unseal(tool, sealed string) (string, error) {
	state, sum, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(sum), []byte(mac(tool, state))) {
		return "", errors.New("the request state is not ours")
	}
	return state, nil
}

// askWhatIsDeclared asks only for what the client says it can do.
func askWhatIsDeclared(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b := server.NewInputRequestBuilder("")
	can := server.RequestProtocolInfoFromContext(ctx).ClientCapabilities
	if can != nil && can.Sampling != nil {
		b.Sample("greeting", sampling("Generate a greeting"))
	}
	if can != nil && can.Elicitation != nil {
		askName("user_name")(b)
	}
	return b.ToolResult(), nil
}
