package tools

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// sentences says in plain words what one failure of the validator means.
func sentences(e *jsonschema.ValidationError, input Schema) []string {
	path, object := locate(e.InstanceLocation, input)
	one := func(format string, args ...any) []string {
		return []string{path + ": " + fmt.Sprintf(format, args...)}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(k.Missing, func(name string) string {
			return join(trimRoot(path), name) + ": missing, it is required"
		})
	case *kind.AdditionalProperties:
		names := slices.Sorted(slices.Values(k.Properties)) // a caller can send a million of them
		return each(names[:min(len(names), maxProblems)], func(name string) string {
			return join(trimRoot(path), shorten(name)) + ": " + unknown(name, object.Properties.Names())
		})
	case *kind.Type:
		return one("must be %s, got %s", article(k.Want), article([]string{k.Got}))
	case *kind.Minimum:
		return one("%s is below the minimum %s", plain(k.Got), plain(k.Want))
	case *kind.Maximum:
		return one("%s is above the maximum %s", plain(k.Got), plain(k.Want))
	case *kind.MinLength:
		if k.Got == 0 {
			return one("must not be empty")
		}
		return one("%d characters are below the minimum %d", k.Got, k.Want)
	case *kind.MaxLength:
		return one("%d characters are above the maximum %d", k.Got, k.Want)
	case *kind.MinItems:
		return one("%d items are below the minimum %d", k.Got, k.Want)
	case *kind.MaxItems:
		return one("%d items are above the maximum %d", k.Got, k.Want)
	case *kind.Enum:
		return one("%s is not one of %s", quote(k.Got), choices(k.Want))
	default:
		return one("does not fit the tool's schema (%s)", strings.Join(k.KeywordPath(), "/"))
	}
}

func each(names []string, f func(string) string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = f(name)
	}
	return out
}

// locate renders the place of a value and finds the schema that holds there.
func locate(tokens []string, s Schema) (string, Schema) {
	if len(tokens) == 0 {
		return "arguments", s
	}
	path := ""
	for _, token := range tokens {
		if s.Items != nil {
			path += "[" + token + "]"
			s = *s.Items
			continue
		}
		path = join(path, token)
		s, _ = s.Properties.Lookup(token)
	}
	return path, s
}

// trimRoot leaves out the name of the whole when a member is named.
func trimRoot(path string) string {
	if path == "arguments" {
		return ""
	}
	return path
}

// unknown hints at the near name, or lists the names that exist.
func unknown(name string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(fold(name), fold(k)); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return "unknown argument, did you mean " + best + "?"
	case len(known) == 0:
		return "unknown argument, this tool takes none"
	default:
		return "unknown argument, known are " + strings.Join(known, ", ")
	}
}

// fold makes workspaceId, workspace-id and workspace_id alike.
func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(shorten(name)))
}

// editDistance counts the insertions, deletions and substitutions between a
// and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// article names JSON types as one would say them.
func article(types []string) string {
	names := each(slices.Clone(types), func(t string) string {
		switch t {
		case "null":
			return "null"
		case "array", "integer", "object":
			return "an " + t
		default:
			return "a " + t
		}
	})
	return strings.Join(names, " or ")
}

// kindOf names the JSON type of a decoded value.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number, float64, int64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

func plain(r *big.Rat) string {
	if r.IsInt() {
		return shorten(r.Num().String())
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func choices(values []any) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = fmt.Sprint(v)
	}
	return strings.Join(names, ", ")
}

func quote(value any) string {
	if s, ok := value.(string); ok {
		return strconv.Quote(shorten(s))
	}
	return shorten(fmt.Sprint(value))
}

// shorten cuts a caller's text to what an error message can carry.
func shorten(s string) string {
	const limit = 60
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}
