package main

import "testing"

func TestCutLine(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"", 1, ""},
		{"äöü", 2, "ä…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301f", 2, "e\u0301f"},
		{"\x1b[1mabc\x1b[m", 3, "\x1b[1mabc\x1b[m"},
		{"\x1b[1mabcd\x1b[m", 3, "\x1b[1mab…\x1b[m"},
	} {
		if got := cutLine(c.line, c.columns); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

// TestStyles: colours are ours alone, also inside of what has one.
func TestStyles(t *testing.T) {
	for colour, want := range map[bool]string{true: "\x1b[31m·[2Jx\x1b[m ·", false: "·[2Jx ·"} {
		p := &page{colour: colour}
		p.add("%s %s", red("\x1b[2Jx"), "\a")
		if len(p.lines) != 1 || p.lines[0] != want {
			t.Errorf("%v: %q, want %q", colour, p.lines, want)
		}
	}
}
