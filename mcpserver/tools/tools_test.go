package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write the golden file anew")

// listed is a tool as a client sees it.
type listed struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	Annotations               map[string]any
}

// list renders all definitions as tools/list does.
func list(t *testing.T) (raw []byte, all []listed) {
	t.Helper()
	var wire []any
	for _, d := range All() {
		tool, err := d.MCP()
		if err != nil {
			t.Fatal(err)
		}
		wire = append(wire, tool)
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{"tools": wire}})
	if err != nil {
		t.Fatal(err)
	}
	var decoded struct{ Result struct{ Tools []listed } }
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatal(err)
	}
	return raw, decoded.Result.Tools
}

func TestListIsGolden(t *testing.T) {
	raw, _ := list(t)
	var got bytes.Buffer
	if err := json.Indent(&got, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "list.golden.json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("tools/list differs from its golden file; look at the change, then run with -update")
	}
	if len(raw) >= 24_000 {
		t.Errorf("the list has %d bytes, 24,000 are allowed", len(raw))
	}
}

func TestFifteenTools(t *testing.T) {
	want := []string{
		"workspace_open", "workspace_list", "workspace_close", "run_start", "work_handoff",
		"read", "ls", "find", "grep", "write", "edit", "bash", "operation_wait", "operation_cancel", "skill_info",
	}
	_, all := list(t)
	var got []string
	for _, d := range all {
		got = append(got, d.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("tools %v", got)
	}
}

// verbs are the first words that a description may have.
var verbs = []string{"Open", "List", "Close", "Start", "Report", "Read", "Find", "Search", "Write", "Edit", "Run", "Wait", "Stop", "Show"}

func TestDescriptionsAreUsable(t *testing.T) {
	_, all := list(t)
	for _, d := range all {
		n := utf8.RuneCountInString(d.Description)
		first, _, _ := strings.Cut(d.Description, " ")
		switch {
		case n < 400 || n > 1100:
			t.Errorf("%s: description of %d characters", d.Name, n)
		case !slices.Contains(verbs, first):
			t.Errorf("%s: description begins with %q", d.Name, first)
		case !strings.Contains(d.Description, "Use ") || !strings.Contains(d.Description, "use "):
			t.Errorf("%s: description does not say when to use it and when another", d.Name)
		case !namesSibling(d, all):
			t.Errorf("%s: description names no other tool", d.Name)
		case strings.Contains(d.Description, "\n"):
			t.Errorf("%s: description has several lines", d.Name)
		}
		if d.Title == "" || strings.EqualFold(d.Title, d.Name) || len(d.Title) <= len(d.Name) && len(d.Title) < 10 {
			t.Errorf("%s: title %q", d.Name, d.Title)
		}
	}
}

func namesSibling(d listed, all []listed) bool {
	return slices.ContainsFunc(all, func(o listed) bool {
		return o.Name != d.Name && regexp.MustCompile(`\b`+o.Name+`\b`).MatchString(d.Description)
	})
}

func TestNeighboursAreTold(t *testing.T) {
	for name, neighbours := range map[string][]string{
		"grep": {"find", "ls", "read"}, "find": {"grep", "ls"}, "ls": {"find", "grep"}, "read": {"bash", "grep", "ls"},
		"edit": {"write", "read"}, "write": {"edit"}, "bash": {"read", "operation_wait", "operation_cancel"},
		"run_start": {"bash", "work_handoff"}, "work_handoff": {"run_start", "workspace_close"},
		"workspace_open": {"workspace_list"}, "workspace_list": {"workspace_open"}, "workspace_close": {"work_handoff", "operation_cancel"},
		"operation_wait": {"bash", "operation_cancel"}, "operation_cancel": {"workspace_close", "operation_wait"}, "skill_info": {"read"},
	} {
		d, _ := Lookup(name)
		for _, n := range neighbours {
			if !regexp.MustCompile(`\b` + n + `\b`).MatchString(d.Description) {
				t.Errorf("%s does not tell it from %s", name, n)
			}
		}
	}
}

func TestHintsAreAllSetAndTrue(t *testing.T) {
	// read only, destructive, idempotent, open world
	want := map[string][4]bool{
		"workspace_open": {}, "workspace_list": {true, false, true, false}, "workspace_close": {false, true, true, false},
		"run_start": {}, "work_handoff": {},
		"read": {true, false, true, false}, "ls": {true, false, true, false}, "find": {true, false, true, false}, "grep": {true, false, true, false},
		"write": {false, true, true, false}, "edit": {false, true, false, false}, "bash": {false, true, false, true},
		"operation_wait": {true, false, true, false}, "operation_cancel": {false, true, true, false}, "skill_info": {true, false, true, false},
	}
	_, all := list(t)
	for _, d := range all {
		w := want[d.Name]
		for i, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if got, ok := d.Annotations[hint].(bool); !ok || got != w[i] {
				t.Errorf("%s: %s is %v", d.Name, hint, d.Annotations[hint])
			}
		}
		changesNothing := regexp.MustCompile(`(?i)changes nothing`).MatchString(d.Description)
		if w[0] && !changesNothing || !w[0] && changesNothing {
			t.Errorf("%s: description and readOnlyHint differ", d.Name)
		}
	}
}

// forbidden are keywords that some host refuses or misreads.
var forbidden = []string{"$schema", "$defs", "$ref", "anyOf", "oneOf", "allOf", "not", "nullable"}

func TestSchemasAreWhatAllHostsTake(t *testing.T) {
	_, all := list(t)
	for _, d := range all {
		for side, raw := range map[string]json.RawMessage{"input": d.InputSchema, "output": d.OutputSchema} {
			var schema map[string]any
			if err := json.Unmarshal(raw, &schema); err != nil {
				t.Fatalf("%s %s: %v", d.Name, side, err)
			}
			if schema["type"] != "object" {
				t.Errorf("%s %s: type %v", d.Name, side, schema["type"])
			}
			if _, ok := schema["properties"].(map[string]any); !ok {
				t.Errorf("%s %s: properties %v", d.Name, side, schema["properties"])
			}
			lint(t, d.Name+" "+side, schema, side == "input", true)
		}
	}
}

var unit = regexp.MustCompile(`(?i)seconds|lines|line, 1-based|entries|paths|milliseconds|cursor|position|operation_wait`)

// lint walks a schema.
func lint(t *testing.T, path string, s map[string]any, input, top bool) {
	t.Helper()
	for _, key := range forbidden {
		if _, has := s[key]; has {
			t.Errorf("%s: %s", path, key)
		}
	}
	kind, typed := s["type"].(string)
	if _, isList := s["type"].([]any); isList || input && !typed {
		t.Errorf("%s: type %v", path, s["type"])
	}
	if d, _ := s["description"].(string); !top && !strings.HasSuffix(path, "[]") && len(d) < 3 {
		t.Errorf("%s: description %q", path, d)
	} else if (kind == "integer" || kind == "number") && !unit.MatchString(d) {
		t.Errorf("%s: no unit in %q", path, d)
	}
	if (kind == "integer" || kind == "number") && input && s["minimum"] == nil {
		t.Errorf("%s: no minimum", path)
	}
	switch kind {
	case "object":
		if input && s["additionalProperties"] != false {
			t.Errorf("%s: additionalProperties %v", path, s["additionalProperties"])
		}
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			lint(t, path+"."+name, p.(map[string]any), input, false)
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := properties[name.(string)]; !ok {
				t.Errorf("%s: requires %v, which it does not have", path, name)
			}
		}
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			t.Errorf("%s: no items", path)
			return
		}
		lint(t, path+"[]", items, input, false)
	}
}

// A default that its own schema refuses would make the tool refuse what it fills in.
func TestDefaultsAreValid(t *testing.T) {
	checked := 0
	for _, d := range All() {
		for _, p := range d.Input.Properties {
			if p.Schema.Default == nil {
				continue
			}
			checked++
			value, err := json.Marshal(p.Schema.Default)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
			if err != nil {
				t.Fatal(err)
			}
			if err := compile("default of "+d.Name+" "+p.Name, p.Schema).Validate(doc); err != nil {
				t.Errorf("%s.%s: default %s: %v", d.Name, p.Name, value, err)
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d defaults", checked)
	}
}

func TestErrorsFitEveryOutputSchema(t *testing.T) {
	// Official clients hold error results against the schema too.
	failure := map[string]any{
		"code": "COMMAND_FAILED", "reason": "KilledBySignal", "message": "m", "output": "m", "effects_may_have_occurred": true,
		"exit_code": nil, "details": nil, "workspace_id": "w", "status": "failed", "replayed": true,
	}
	for _, d := range All() {
		if err := validators()[d.Name].output.Validate(failure); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestInstructions(t *testing.T) {
	text := Instructions()
	if n := utf8.RuneCountInString(text); n > 2000 || n < 500 {
		t.Errorf("%d characters", n)
	}
	for _, d := range All() {
		if prefix, _, group := strings.Cut(d.Name, "_"); !strings.Contains(text, d.Name) && !(group && strings.Contains(text, prefix+"_*")) {
			t.Errorf("instructions do not mention %s", d.Name)
		}
	}
}

func TestCheckOutput(t *testing.T) {
	good := map[string]any{"workspace_id": "w", "cwd": "/", "elapsed_ms": 3, "exit_code": 0, "details": nil, "output": "x"}
	if err := CheckOutput("bash", good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(map[string]any){
		"no output":     func(m map[string]any) { delete(m, "output") },
		"wrong type":    func(m map[string]any) { m["elapsed_ms"] = "3" },
		"missing field": func(m map[string]any) { delete(m, "cwd") },
	} {
		bad := map[string]any{}
		for k, v := range good {
			bad[k] = v
		}
		change(bad)
		if err := CheckOutput("bash", bad); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := CheckOutput("bash", map[string]any{"output": "x", "replayed": true}); err != nil {
		t.Errorf("receipt: %v", err)
	}
	if err := CheckOutput("bash", nil); err == nil {
		t.Error("no structured content passes")
	}
	if err := CheckOutput("no_such", good); err == nil {
		t.Error("unknown tool passes")
	}
}

func TestCanonical(t *testing.T) {
	for name, c := range map[string]struct{ tool, a, b string }{
		"omitted default":   {"bash", `{"workspace_id":"w","request_key":"k","command":"c"}`, `{"timeout":120,"command":"c","request_key":"k","workspace_id":"w","wait_seconds":45}`},
		"null is absent":    {"grep", `{"workspace_id":"w","pattern":"p","glob":null,"literal":null}`, `{"workspace_id":"w","pattern":"p","ignoreCase":false,"context":0,"limit":100}`},
		"10.0 is 10":        {"read", `{"workspace_id":"w","path":"p","limit":10.0,"offset":1e1}`, `{"workspace_id":"w","path":"p","limit":10,"offset":10}`},
		"escapes and order": {"write", `{"content":"<\u00e9>","path":"p","workspace_id":"w","request_key":"k","expected_revision":"missing"}`, `{"expected_revision":"missing","request_key":"k","workspace_id":"w","path":"p","content":"<é>"}`},
		"no arguments":      {"workspace_list", ``, `null`},
		"empty object":      {"workspace_list", `{}`, ``},
	} {
		_, a, err := Canonical(c.tool, json.RawMessage(c.a))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, b, err := Canonical(c.tool, json.RawMessage(c.b))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s and %s", name, a, b)
		}
	}
	args, canonical, err := Canonical("bash", json.RawMessage(`{"workspace_id":"w","request_key":"k","command":"a<b","timeout":1.5}`))
	if err != nil || args["timeout"] != 1.5 || args["wait_seconds"] != int64(45) || string(canonical) != `{"command":"a<b","request_key":"k","timeout":1.5,"wait_seconds":45,"workspace_id":"w"}` {
		t.Errorf("%v %s %v", args, canonical, err)
	}
}

func TestWrongArgumentsAreNamed(t *testing.T) {
	long := strings.Repeat("x", 201)
	for _, c := range []struct {
		tool, args string
		want       []string
	}{
		{"read", `{"workspace_id":"w","path":"p","limit":5000}`, []string{"limit: 5000 is above the maximum 2000"}},
		{"read", `{"workspace_id":"w","path":"p","offset":0}`, []string{"offset: 0 is below the minimum 1"}},
		{"read", `{"workspace_id":"w","path":"p","offset":1.5}`, []string{"offset: must be an integer, got a number"}},
		{"read", `{"workspace_id":"w","path":"p","limit":"5"}`, []string{"limit: must be an integer, got a string"}},
		{"read", `{}`, []string{"path: missing, it is required", "workspace_id: missing, it is required"}},
		{"read", `{"workspaceId":"w","path":null}`, []string{"path: must be a string, got null", "workspaceId: unknown argument, did you mean workspace_id?", "workspace_id: missing, it is required"}},
		{"read", `{"workspace_id":"w","path":"p","colour":1}`, []string{"colour: unknown argument, known are workspace_id, path, offset, limit"}},
		{"read", `{"workspace_id":"w","path":""}`, []string{"path: must not be empty"}},
		{"read", `{"workspace_id":"w","path":"p","limit":1e999999999}`, []string{"limit: 1e999999999 is too large a number"}},
		{"read", `[]`, []string{"arguments: must be an object, got an array"}},
		{"read", `{"a":`, []string{"arguments: not valid JSON"}},
		{"workspace_list", `{"x":1}`, []string{"x: unknown argument, known are cursor"}},
		{"workspace_open", `{"title":"` + long + `"}`, []string{"title: 201 characters are above the maximum 200"}},
		{"work_handoff", `{"workspace_id":"w","request_key":"k","reason":"done","summary":"s"}`, []string{`reason: "done" is not one of completed, needs_input, blocked, failed, cancelled`}},
		{"edit", `{"workspace_id":"w","request_key":"k","path":"p","expected_revision":"r","edits":[]}`, []string{"edits: 0 items are below the minimum 1"}},
		{"edit", `{"workspace_id":"w","request_key":"k","path":"p","expected_revision":"r","edits":[{"oldText":"a","newText":"b"},{"oldText":"","new_text":"b"}]}`,
			[]string{"edits[1].newText: missing, it is required", "edits[1].new_text: unknown argument, did you mean newText?", "edits[1].oldText: must not be empty"}},
		{"edit", `{"workspace_id":"w","request_key":"k","path":"p","expected_revision":"r","edits":"x"}`, []string{"edits: must be an array, got a string"}},
		{"operation_wait", `{"workspace_id":"w"}`, []string{"operation_id or request_key: missing, one of them is required"}},
		{"operation_wait", `{"workspace_id":"w","operation_id":"o","request_key":"k"}`, []string{"operation_id or request_key: give only one of them"}},
	} {
		_, _, err := Canonical(c.tool, json.RawMessage(c.args))
		var wrong *ArgumentError
		if !errors.As(err, &wrong) || !slices.Equal(wrong.Problems, c.want) {
			t.Errorf("%s %s:\n got %v\nwant %v", c.tool, c.args, err, c.want)
		}
	}
	if _, _, err := Canonical("no_such", nil); !errors.Is(err, ErrUnknownTool) {
		t.Errorf("unknown tool: %v", err)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"workspace_id":"w","path":"p"`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"unknown%d":%d`, i, i)
	}
	b.WriteString("}")
	_, _, first := Canonical("read", json.RawMessage(b.String()))
	_, _, second := Canonical("read", json.RawMessage(b.String()))
	if len(first.Error()) > 5000 || first.Error() != second.Error() {
		t.Errorf("%.200s (%d bytes)", first, len(first.Error()))
	}
}

func TestLengthsAreCodePoints(t *testing.T) {
	for n, ok := range map[int]bool{200: true, 201: false} {
		key := strings.Repeat("😀", n)
		_, _, err := Canonical("run_start", json.RawMessage(`{"workspace_id":"w","request_key":"`+key+`"}`))
		if (err == nil) != ok {
			t.Errorf("%d code points: %v", n, err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add("read", `{"workspace_id":"w","path":"p","limit":10.0}`)
	f.Add("edit", `{"workspace_id":"w","request_key":"k","path":"p","expected_revision":"r","edits":[{"oldText":"a","newText":""}]}`)
	f.Add("grep", `{"pattern":null,"context":1e400,"a":[{"b":-0.0}]}`)
	f.Fuzz(func(t *testing.T, tool, raw string) {
		_, first, err := Canonical(tool, json.RawMessage(raw))
		if err != nil {
			return
		}
		_, second, err := Canonical(tool, first)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s is not stable: %s, then %s (%v)", raw, first, second, err)
		}
	})
}
