package bash

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

// badSequences are examples of the WHATWG decoder's: one U+FFFD for each maximal bad prefix.
var badSequences = []struct{ name, in, want string }{
	{"plain", "abc", "abc"},
	{"two, three and four bytes", "é漢😀", "é漢😀"},
	{"lone continuation", "\x80\xbf", "\uFFFD\uFFFD"},
	{"never valid", "\xc0\xaf\xf5\xff", "\uFFFD\uFFFD\uFFFD\uFFFD"},
	{"cut three", "\xe2\x82x", "\uFFFDx"},
	{"cut four", "\xf0\x9f\x98x", "\uFFFDx"},
	{"cut at the end", "x\xe2\x82", "x\uFFFD"},
	{"surrogate", "\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
	{"overlong three", "\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
	{"overlong four", "\xf0\x8f\xbf\xbf", "\uFFFD\uFFFD\uFFFD\uFFFD"},
	{"beyond the last", "\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
	{"two starts", "\xe2\xe2\x82\xac", "\uFFFD€"},
	{"a real U+FFFD", "\uFFFDx", "\uFFFDx"},
	{"BOM", "\uFEFFa", "\uFEFFa"},
}

func decodeAll(parts ...[]byte) string {
	var d decoder
	var out []byte
	for _, p := range parts {
		out = d.decode(out, p)
	}
	return string(d.flush(out))
}

func TestDecode(t *testing.T) {
	for _, c := range badSequences {
		if got := decodeAll([]byte(c.in)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzDecode: whatever the split, the text is valid, the same, and that of valid input is the input.
func FuzzDecode(f *testing.F) {
	for _, c := range badSequences {
		f.Add([]byte(c.in), uint8(1))
		f.Add([]byte("é"+c.in+"漢"), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, at uint8) {
		whole := decodeAll(bytes.Clone(in))
		if !utf8.ValidString(whole) {
			t.Fatalf("not valid: %q", whole)
		}
		if utf8.Valid(in) && whole != string(in) {
			t.Fatalf("valid input changed: %q", whole)
		}
		cut := min(int(at), len(in))
		if two := decodeAll(bytes.Clone(in[:cut]), bytes.Clone(in[cut:])); two != whole {
			t.Fatalf("split at %d: %q, whole %q", cut, two, whole)
		}
		single := make([][]byte, len(in))
		for i := range in {
			single[i] = in[i : i+1 : i+1]
		}
		if bytewise := decodeAll(single...); bytewise != whole {
			t.Fatalf("byte by byte: %q, whole %q", bytewise, whole)
		}
	})
}
