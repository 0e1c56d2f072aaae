package tools

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Hints are the four behaviour hints of a tool. All are always sent.
type Hints struct {
	// ReadOnly: the call changes nothing.
	ReadOnly bool
	// Destructive: the call may overwrite, remove or stop something.
	Destructive bool
	// Idempotent: the same call again has no further effect.
	Idempotent bool
	// OpenWorld: the call may reach beyond this computer's files.
	OpenWorld bool
}

// Definition is everything a client is told about one tool.
type Definition struct {
	// Name is the tool's name on the wire.
	Name string
	// Title is its name for people.
	Title string
	// Description is the text of the tool's Markdown file.
	Description string
	// Input and Output are the schemas of arguments and structured content.
	Input, Output Schema
	// Returns names fields that each success carries besides output. A replayed
	// receipt is exempt: it holds what was recorded.
	Returns []string
	// OneOf names arguments of which exactly one must be given; top-level
	// anyOf would say so in the schema, but some hosts drop such tools.
	OneOf []string
	// Hints describe what a call does to the world.
	Hints Hints
	// Large marks the tools whose results, at their limit of 51,200 bytes, are
	// more than Claude Code shows a model unless the definition asks for it.
	Large bool
}

// largeResult is the size, in characters of JSON, up to which a result of a
// large tool is to be shown: the limit of its text, escapes and fields.
const largeResult = 100_000

//go:embed *.md
var texts embed.FS

// markdown returns an embedded text as one line per paragraph, or panics: the
// files are part of the program.
func markdown(name string) string {
	b, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic(fmt.Sprintf("embedded text of %s: %v", name, err))
	}
	return strings.TrimSpace(string(b))
}

// Instructions is the text that initialize and server/discover give to the
// model, at most 2,000 characters.
func Instructions() string { return markdown("instructions") }

// All returns the fifteen definitions in the order in which a model meets
// them. The slice is the caller's.
func All() []Definition {
	return []Definition{
		workspaceOpen, workspaceList, workspaceClose, runStart, workHandoff,
		read, ls, find, grep, write, edit, bash,
		operationWait, operationCancel, skillInfo,
	}
}

// Lookup returns the definition of the named tool.
func Lookup(name string) (Definition, bool) {
	for _, d := range All() {
		if d.Name == name {
			return d, true
		}
	}
	return Definition{}, false
}

// MCP renders the definition for tools/list.
func (d Definition) MCP() (mcp.Tool, error) {
	input, err := json.Marshal(d.Input)
	if err != nil {
		return mcp.Tool{}, fmt.Errorf("encode input schema of %s: %w", d.Name, err)
	}
	output, err := json.Marshal(d.Output)
	if err != nil {
		return mcp.Tool{}, fmt.Errorf("encode output schema of %s: %w", d.Name, err)
	}
	h := d.Hints
	var meta *mcp.Meta
	if d.Large {
		meta = &mcp.Meta{AdditionalFields: map[string]any{"anthropic/maxResultSizeChars": largeResult}}
	}
	return mcp.Tool{
		Meta:            meta,
		Name:            d.Name,
		Title:           d.Title,
		Description:     d.Description,
		RawInputSchema:  input,
		RawOutputSchema: output,
		Annotations: mcp.ToolAnnotation{
			ReadOnlyHint:    &h.ReadOnly,
			DestructiveHint: &h.Destructive,
			IdempotentHint:  &h.Idempotent,
			OpenWorldHint:   &h.OpenWorld,
		},
	}, nil
}

// compiled are the validators of one tool.
type compiled struct {
	definition    Definition
	input, output *jsonschema.Schema
}

// validators compiles all schemas once. A schema that does not compile is a
// fault of the program and stops it.
var validators = sync.OnceValue(func() map[string]compiled {
	all := make(map[string]compiled)
	for _, d := range All() {
		all[d.Name] = compiled{
			definition: d,
			input:      compile(d.Name+"/input", d.Input),
			output:     compile(d.Name+"/output", d.Output),
		}
	}
	return all
})

func compile(name string, s Schema) *jsonschema.Schema {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode schema %s: %v", name, err))
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		panic(fmt.Sprintf("decode schema %s: %v", name, err))
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	url := "mem:///" + name
	if err := c.AddResource(url, doc); err != nil {
		panic(fmt.Sprintf("add schema %s: %v", name, err))
	}
	return c.MustCompile(url)
}

// CheckOutput reports how the structured content of a success departs from
// what the tool's definition promises. The content may be any value that
// encodes to JSON.
func CheckOutput(tool string, structured any) error {
	fields, err := validated(tool, structured)
	if err != nil || fields["replayed"] == true {
		return err
	}
	definition := validators()[tool].definition
	missing := slices.DeleteFunc(slices.Clone(definition.Returns), func(name string) bool {
		_, has := fields[name]
		return has
	})
	if len(missing) > 0 {
		return fmt.Errorf("structured content of %s lacks %s", tool, strings.Join(missing, ", "))
	}
	return nil
}

// CheckFailure is CheckOutput for failures, which hold the schema but lack what
// a success returns.
func CheckFailure(tool string, structured any) error {
	_, err := validated(tool, structured)
	return err
}

// validated holds structured content against the output schema of its tool.
func validated(tool string, structured any) (map[string]any, error) {
	v, ok := validators()[tool]
	if !ok {
		return nil, fmt.Errorf("no tool %q", tool)
	}
	raw, err := json.Marshal(structured)
	if err != nil {
		return nil, fmt.Errorf("encode structured content of %s: %w", tool, err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("decode structured content of %s: %w", tool, err)
	}
	if err := v.output.Validate(doc); err != nil {
		return nil, fmt.Errorf("structured content of %s: %w", tool, err)
	}
	fields, _ := doc.(map[string]any)
	return fields, nil
}
