package skills

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestParseDocument(t *testing.T) {
	for _, c := range []struct {
		name, text string
		fields     map[string]any
		body       string
	}{
		{"no front matter", "# Title\n", nil, "# Title"},
		{"front matter later", "\n---\na: b\n---\n", nil, "---\na: b\n---"},
		{"byte order mark", "\ufeff---\na: b\n---\nx", map[string]any{"a": "b"}, "x"},
		{"old line ends", "---\ra: b\r---\rx\r", map[string]any{"a": "b"}, "x"},
		{"unclosed", "---\na: b\n", nil, "---\na: b"},
		{"empty", "---\n---\nx", nil, "x"},
		{"only dashes", "---", nil, "---"},
		{"words behind the closing dashes", "---\na: b\n--- end\nx", map[string]any{"a": "b"}, "end\nx"},
		{"comment only", "---\n# nothing\n---\nx", nil, "x"},
		{"scalar", "---\njust text\n---\nx", nil, "x"},
		{"yes and no", "---\na: yes\nb: No\nc: on\n---\n", map[string]any{"a": "yes", "b": "No", "c": "on"}, ""},
		{"booleans", "---\na: true\nb: FALSE\n---\n", map[string]any{"a": true, "b": false}, ""},
		{"nothing", "---\na:\nb: ~\nc: null\nd: ''\n---\n", map[string]any{"a": nil, "b": nil, "c": nil, "d": ""}, ""},
		{"dates are strings", "---\na: 2024-01-02\nb: 2024-01-02T03:04:05Z\n---\n", map[string]any{"a": "2024-01-02", "b": "2024-01-02T03:04:05Z"}, ""},
		{"underscores are strings", "---\na: 1_000\nb: 0b11\nc: 0x_f\n---\n", map[string]any{"a": "1_000", "b": "0b11", "c": "0x_f"}, ""},
		{"numbers", "---\na: 42\nb: -1.5e3\nc: 0x1f\nd: 0o17\n---\n", map[string]any{"a": 42, "b": -1500.0, "c": 31, "d": 15}, ""},
		{"not numbers for JSON", "---\na: .inf\nb: .nan\n---\n", map[string]any{"a": "+Inf", "b": "NaN"}, ""},
		{"merge key is a key", "---\n<<: {a: 1}\nb: 2\n---\n", map[string]any{"<<": map[string]any{"a": 1}, "b": 2}, ""},
		{"keys of other types", "---\n1: a\ntrue: b\n---\n", map[string]any{"1": "a", "true": "b"}, ""},
		{"quoted numbers", "---\na: \"42\"\nb: '2024-01-02'\n---\n", map[string]any{"a": "42", "b": "2024-01-02"}, ""},
		{"explicit tag", "---\na: !!str 42\n---\n", map[string]any{"a": "42"}, ""},
		{"folded", "---\na: >-\n  one\n  two\n---\n", map[string]any{"a": "one two"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := parseDocument(c.text)
			if d.err != nil {
				t.Fatal(d.err)
			}
			if !reflect.DeepEqual(d.fields, c.fields) {
				t.Errorf("fields %#v, want %#v", d.fields, c.fields)
			}
			if d.body != c.body {
				t.Errorf("body %q, want %q", d.body, c.body)
			}
		})
	}
}

func TestParseDocumentFailures(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	for name, text := range map[string]string{
		"duplicate key":       "---\na: 1\na: 2\n---\n",
		"nested duplicate":    "---\nm:\n  a: 1\n  a: 2\n---\n",
		"tab":                 "---\nm:\n\ta: 1\n---\n",
		"colon":               "---\na: b: c\n---\n",
		"unclosed list":       "---\na: [b\n---\n",
		"unknown alias":       "---\na: *b\n---\n",
		"alias of itself":     "---\na: &a [*a]\n---\n",
		"a billion laughs":    bomb + "---\n",
		"unprintable":         "---\na: \x01\n---\n",
		"bad escape in quote": "---\na: \"\\q\"\n---\n",
	} {
		if d := parseDocument(text); d.err == nil || !strings.HasPrefix(d.err.Error(), "front matter is not valid YAML: ") {
			t.Errorf("%s: %v, %v", name, d.err, d.fields)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, s := range []string{"", "abc", "é€", "😀a😀", "\ufffd"} {
		if got, want := units(s), len(utf16.Encode([]rune(s))); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

// FuzzParseDocument never panics, never hangs, and gives what JSON can hold.
func FuzzParseDocument(f *testing.F) {
	for _, s := range []string{"---\na: b\n---\nx", "---\n? [a]\n: b\n---\n", "---\n&a [*a]\n---", "---\n!!binary x: y\n---\n",
		"---\na: !!float x\n---\n", "----\n{a: 1, b: [c, 2024-01-01]}\n---", "---\n<<: *a\n---\n", "---\n--- >\n---\n", "---\n%YAML 1.2\n---\n---\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := parseDocument(text)
		if d.err != nil && d.fields != nil {
			t.Fatal("both fields and an error")
		}
		if _, err := json.Marshal(d.fields); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(d.body, "\r") || d.body != strings.TrimSpace(d.body) {
			t.Fatalf("body %q", d.body)
		}
	})
}
