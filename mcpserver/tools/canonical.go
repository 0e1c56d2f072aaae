package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ErrUnknownTool says that no definition has that name.
var ErrUnknownTool = errors.New("unknown tool")

// ArgumentError names everything that is wrong with the arguments of a call.
type ArgumentError struct {
	// Tool is the tool that was called.
	Tool string
	// Problems are plain sentences such as "limit: 5000 is above the maximum
	// 2000", one for each failing argument, in a fixed order.
	Problems []string
}

// Error lists the problems, one a line when there are several.
func (e *ArgumentError) Error() string {
	if len(e.Problems) == 1 {
		return "Invalid arguments for " + e.Tool + ": " + e.Problems[0]
	}
	return "Invalid arguments for " + e.Tool + ":\n- " + strings.Join(e.Problems, "\n- ")
}

// maxProblems bounds how many problems one error names.
const maxProblems = 20

// Canonical checks raw against the tool's input schema and returns the
// arguments in the one form that equal requests share: null for an optional
// argument is dropped, 10.0 becomes 10, defaults are filled in, keys are
// sorted. The error is an *ArgumentError, or wraps ErrUnknownTool.
func Canonical(tool string, raw json.RawMessage) (args map[string]any, canonical []byte, err error) {
	v, ok := validators()[tool]
	if !ok {
		return nil, nil, fmt.Errorf("%w %q", ErrUnknownTool, tool)
	}
	args, err = decodeObject(raw)
	if err != nil {
		return nil, nil, &ArgumentError{Tool: tool, Problems: []string{err.Error()}}
	}
	problems := normalise(args, v.definition.Input, "")
	if verr := v.input.Validate(args); verr != nil {
		problems = append(problems, otherThan(problems, explain(verr, v.definition.Input))...)
	}
	problems = append(problems, checkOneOf(args, v.definition.OneOf)...)
	if len(problems) > 0 {
		slices.Sort(problems)
		problems = slices.Compact(problems)
		return nil, nil, &ArgumentError{Tool: tool, Problems: problems[:min(len(problems), maxProblems)]}
	}
	canonical, err = encode(args)
	if err != nil {
		return nil, nil, fmt.Errorf("encode arguments of %s: %w", tool, err)
	}
	return args, canonical, nil
}

// otherThan leaves out what is said about arguments that already have a
// problem: an unusable number was replaced by 0 to go on.
func otherThan(known, found []string) []string {
	return slices.DeleteFunc(found, func(problem string) bool {
		return slices.ContainsFunc(known, func(k string) bool {
			path, _, _ := strings.Cut(k, ": ")
			return strings.HasPrefix(problem, path+": ")
		})
	})
}

// decodeObject decodes the arguments; absent and null are the empty object.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, errors.New("arguments: not valid JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("arguments: not valid JSON")
	}
	switch value := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("arguments: must be an object, got %s", kindOf(value))
	}
}

func encode(args map[string]any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(args); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// normalise brings one object into canonical form in place: optional nulls go,
// defaults come, numbers get one spelling.
func normalise(object map[string]any, s Schema, path string) (problems []string) {
	for _, p := range s.Properties {
		value, present := object[p.Name]
		if present && value == nil && !slices.Contains(s.Required, p.Name) {
			delete(object, p.Name)
			present = false
		}
		if !present && p.Schema.Default != nil {
			object[p.Name] = p.Schema.Default
		}
	}
	for name, value := range object {
		p, _ := s.Properties.Lookup(name)
		clean, bad := normaliseValue(value, p, join(path, name))
		object[name] = clean
		problems = append(problems, bad...)
	}
	return problems
}

func normaliseValue(value any, s Schema, path string) (any, []string) {
	switch value := value.(type) {
	case json.Number:
		clean, err := plainNumber(value)
		if err != nil {
			return 0, []string{path + ": " + err.Error()}
		}
		return clean, nil
	case int: // a default
		return int64(value), nil
	case map[string]any:
		return value, normalise(value, s, path)
	case []any:
		var item Schema
		if s.Items != nil {
			item = *s.Items
		}
		var problems []string
		for i := range value {
			clean, bad := normaliseValue(value[i], item, fmt.Sprintf("%s[%d]", path, i))
			value[i] = clean
			problems = append(problems, bad...)
		}
		return value, problems
	default:
		return value, nil
	}
}

// plainNumber gives equal numbers one Go value: int64 when integral, else
// float64. Numbers that only exact arithmetic could hold are refused before
// anything computes with them.
func plainNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil {
		return nil, fmt.Errorf("%s is too large a number", shorten(n.String()))
	}
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f), nil
	}
	return f, nil
}

// checkOneOf demands exactly one of the named arguments, if any are named.
func checkOneOf(args map[string]any, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	given := 0
	for _, name := range names {
		if _, ok := args[name]; ok {
			given++
		}
	}
	choice := strings.Join(names, " or ")
	switch given {
	case 0:
		return []string{choice + ": missing, one of them is required"}
	case 1:
		return nil
	default:
		return []string{choice + ": give only one of them"}
	}
}

// explain turns the validator's tree of failures into plain sentences.
func explain(err error, input Schema) []string {
	var verr *jsonschema.ValidationError
	if !errors.As(err, &verr) {
		return []string{"arguments: " + err.Error()}
	}
	var problems []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			problems = append(problems, sentences(e, input)...)
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(verr)
	return problems
}

// join names a member of the value at path: edits[0].oldText.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
