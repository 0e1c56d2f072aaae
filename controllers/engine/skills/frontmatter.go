package skills

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is a Markdown file with front matter.
type document struct {
	// fields is the front matter; nil if there is none or if it is no mapping.
	fields map[string]any
	// body is what follows the front matter, without blanks around it.
	body string
	// err says why the front matter could not be parsed.
	err error
}

// parseDocument takes a text apart. The front matter lies between three dashes at the very start and the next
// line that begins with three dashes.
func parseDocument(text string) document {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	const fence = "---"
	rest, ok := strings.CutPrefix(text, fence)
	if !ok {
		return document{body: strings.TrimSpace(text)}
	}
	block, body, ok := strings.Cut(rest, "\n"+fence)
	if !ok {
		return document{body: strings.TrimSpace(text)}
	}
	d := document{body: strings.TrimSpace(body)}
	if len(block) > 0 {
		d.fields, d.err = parseFields(block[1:]) // what follows the dashes: a line end, or a fourth dash
	}
	return d
}

// parseFields parses a YAML mapping by the rules of YAML 1.2. Anything but a mapping has no fields.
func parseFields(block string) (map[string]any, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(block), &root); err != nil {
		return nil, yamlError(err)
	}
	followYAML12(&root)
	var value any
	if err := root.Decode(&value); err != nil {
		return nil, yamlError(err)
	}
	fields, _ := plain(value).(map[string]any)
	return fields, nil
}

func yamlError(err error) error {
	return fmt.Errorf("front matter is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// notString matches the plain scalars that the core schema of YAML 1.2 does not read as strings.
var notString = regexp.MustCompile(`^(?:|~|null|Null|NULL|true|True|TRUE|false|False|FALSE|` +
	`[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|` +
	`[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)

// followYAML12 marks as strings what the library, which also knows older rules, would read as dates, merge
// keys, or numbers with underscores.
func followYAML12(n *yaml.Node) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	if n.Kind == yaml.ScalarNode && n.Style&quoted == 0 && !notString.MatchString(n.Value) {
		n.Tag = "!!str"
	}
	for _, child := range n.Content {
		followYAML12(child)
	}
}

// plain turns a decoded value into one that JSON can hold.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[fmt.Sprint(k)] = plain(x)
		}
		return m
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	}
	return v
}
