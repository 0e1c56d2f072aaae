package pattern_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine/grep/pattern"
)

// lines returns the numbers of the matching lines.
func lines(m *pattern.Matcher, text string) []int {
	var out []int
	s := m.NewScanner()
	for at := 0; at < len(text); {
		start, end, ok := s.Find([]byte(text[at:]))
		if !ok {
			break
		}
		out = append(out, 1+strings.Count(text[:at+start], "\n"))
		at += end + 1
	}
	return out
}

func TestLineMatches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		o       pattern.Options
		line    string
		want    bool
	}{
		{pattern: `foo`, line: "a foo b", want: true},
		{pattern: `foo`, line: "a Foo b"},
		{pattern: `foo`, o: pattern.Options{IgnoreCase: true}, line: "a FOO b", want: true},
		{pattern: `task`, o: pattern.Options{IgnoreCase: true}, line: "TAſK", want: true},
		{pattern: `a.b`, o: pattern.Options{Literal: true}, line: "axb"},
		{pattern: `a.b`, o: pattern.Options{Literal: true}, line: "xa.by", want: true},
		{pattern: `^foo$`, line: "foo", want: true},
		{pattern: `^foo$`, line: "foo\r", want: true},
		{pattern: `^foo$`, line: "foo x"},
		{pattern: `^$`, line: "", want: true},
		{pattern: `^$`, line: "x"},
		{pattern: ``, line: "x", want: true},
		{pattern: `\bfoo\b`, line: "a foo.", want: true},
		{pattern: `\bfoo\b`, line: "éfoo"},
		{pattern: `foo\b`, line: "fooé"},
		{pattern: `foo\B`, line: "fooé", want: true},
		{pattern: `\d`, line: "٣", want: true},
		{pattern: `(?-u:\d)`, line: "٣"},
		{pattern: `\w`, line: "é", want: true},
		{pattern: `^\W+$`, line: "!é"},
		{pattern: `\s`, line: "a\u00a0b", want: true},
		{pattern: `^.$`, line: "é", want: true},
		{pattern: `^.$`, line: "\xff"},
		{pattern: `[^a]`, line: "\xff"},
		{pattern: `(?i)[^a]`, line: "A"},
		{pattern: `(?i)é`, line: "É", want: true},
		{pattern: `[a-z&&[^aeiou]]`, line: "aei"},
		{pattern: `[a-z&&[^aeiou]]`, line: "aeix", want: true},
		{pattern: `^[\w--\d]+$`, line: "abc", want: true},
		{pattern: `^[\w--\d]+$`, line: "abc1"},
		{pattern: `[[:alpha:]]`, line: "é"},
		{pattern: `[[:^alpha:]]`, line: "é", want: true},
		{pattern: `[[:]x]`, line: "]", want: false},
		{pattern: `[[:]x]`, line: ":", want: true},
		{pattern: `[]a]`, line: "]", want: true},
		{pattern: `[a-]`, line: "-", want: true},
		{pattern: `[\]]`, line: "]", want: true},
		{pattern: `\p{Greek}`, line: "α", want: true},
		{pattern: `\p{Lu}`, line: "a"},
		{pattern: `\p{Uppercase_Letter}`, line: "A", want: true},
		{pattern: `\p{script=Han}`, line: "漢", want: true},
		{pattern: `\PL`, line: "abc"},
		{pattern: `\x41\u0042\U00000043\x{44}`, line: "ABCD", want: true},
		{pattern: `(?P<n>a)(?<m>b)`, line: "ab", want: true},
		{pattern: `(foo|bar)baz`, line: "xbarbaz", want: true},
		{pattern: `(foo|bar)baz`, line: "xbar baz"},
		{pattern: `a{,2}b`, line: "b", want: true},
		{pattern: `interface{}`, line: "x interface{} y", want: true},
		{pattern: `x*`, line: "", want: true},
		{pattern: `\r`, line: "a\rb", want: true},
		{pattern: `a\r$`, line: "a\r", want: true},
		{pattern: `\<foo\>`, line: "a foo b", want: true},
		{pattern: `a(?i)b`, line: "aB", want: true},
		{pattern: `(a(?i)b)c`, line: "aBC"},
		{pattern: `(?i:a)b`, line: "Ab", want: true},
		{pattern: `(?i:a)b`, line: "AB"},
	} {
		m, err := pattern.Compile(c.pattern, c.o)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, before := range []string{"", "\n\nzzz\n"} {
			text := before + c.line + "\nzzz\n"
			want := 1 + strings.Count(before, "\n")
			got := false
			for _, n := range lines(m, text) {
				got = got || n == want
			}
			if got != c.want {
				t.Errorf("%q on %q: %v, want %v", c.pattern, text, got, c.want)
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for p, part := range map[string]string{
		`foo(?=bar)`: "look-around", `(?<!a)b`: "look-around", `(a)\1`: "back-references", `\k<x>`: "back-references",
		`(?>a)`: "atomic", `[a-`: "class", `[z-a]`: "range", `(a`: "not closed", `a)`: "opening", `*a`: "nothing to repeat",
		`a{2,1}`: "repetition count", `a{1,2000}`: "1000", "a\nb": "line break", `a\nb`: "line break", `\y`: "unknown escape",
		`\p{Klingon}`: "Klingon", `a\`: "backslash", `[[:foo:]]`: "foo", `(?z)a`: "flag", `(?x)a b`: "x",
	} {
		if _, err := pattern.Compile(p, pattern.Options{}); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %v, want one about %q", p, err, part)
		}
	}
	if _, err := pattern.Compile("a\nb", pattern.Options{Literal: true}); err == nil {
		t.Error("a literal line break was accepted")
	}
}

// TestAgainstRegexp compares with the standard library on patterns that mean the same in both syntaxes.
func TestAgainstRegexp(t *testing.T) {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "é", ".", "[ab]", "[^a]", "^", "$", "(a|bé)", "(?:b|)", "c*", "b+", "a?",
		"x{2}", "(ab){1,3}", "(?i:A)", "(?i:éb)", "[x-z]", "漢"})
	rapid.Check(t, func(t *rapid.T) {
		expr := strings.Join(rapid.SliceOfN(atom, 0, 5).Draw(t, "atoms"), "")
		if rapid.Bool().Draw(t, "alternate") {
			expr += "|" + strings.Join(rapid.SliceOfN(atom, 1, 3).Draw(t, "more"), "")
		}
		fold := rapid.Bool().Draw(t, "fold")
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ababxyzécAÉ漢k \n\n")), 0, 60, -1).Draw(t, "text")
		if rapid.Bool().Draw(t, "long") { // long enough to be cut into lanes, with few or many matches
			filler := rapid.SampledFrom([]string{"-", "-\n", "--- -- ---- --\n", "é-\n"}).Draw(t, "filler")
			half := strings.Repeat(filler, rapid.IntRange(0, 3000).Draw(t, "before"))
			text = half + text + strings.Repeat(filler, rapid.IntRange(0, 3000).Draw(t, "after")) + text
		}
		m, err := pattern.Compile(expr, pattern.Options{IgnoreCase: fold})
		if err != nil {
			t.Fatalf("%q: %v", expr, err)
		}
		prefix := "(?m)"
		if fold {
			prefix = "(?mi)"
		}
		std := regexp.MustCompile(prefix + expr)
		var want []int
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if text != "" && std.MatchString(line) {
				want = append(want, i+1)
			}
		}
		got := lines(m, text)
		if len(got) != len(want) {
			t.Fatalf("%q fold=%v on %q: lines %v, want %v", expr, fold, clip(text), got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%q fold=%v on %q: lines %v, want %v", expr, fold, clip(text), got, want)
			}
		}
		if len(text) < 200 {
			inPieces(t, m, text, want)
		}
	})
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:200] + "…" + s[len(s)-200:]
	}
	return s
}

// inPieces feeds each line in small pieces.
func inPieces(t *rapid.T, m *pattern.Matcher, text string, want []int) {
	if text == "" {
		return
	}
	s := m.NewScanner()
	size := rapid.IntRange(1, 5).Draw(t, "size")
	for i, line := range bytes.Split([]byte(strings.TrimSuffix(text, "\n")), []byte("\n")) {
		s.Begin()
		var rest []byte
		for at := 0; at < len(line); at += size {
			rest = append(rest, line[at:min(at+size, len(line))]...)
			rest = rest[s.Feed(rest):]
		}
		got := s.End(rest, true)
		expected := false
		for _, n := range want {
			expected = expected || n == i+1
		}
		if got != expected {
			t.Fatalf("line %q in pieces of %d: %v, want %v", line, size, got, expected)
		}
	}
}

// TestLongLastLine has a last line without LF that is longer than what is looked at in one piece.
func TestLongLastLine(t *testing.T) {
	for _, n := range []int{1, 2000, 50000} {
		for _, before := range []string{"", "x\n", strings.Repeat("x\n", 5000)} {
			text := before + strings.Repeat("ab", n)
			m, err := pattern.Compile(`[b]$`, pattern.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(m, text); len(got) != 1 || got[0] != strings.Count(text, "\n")+1 {
				t.Errorf("%d bytes behind %d lines: matches %v", 2*n, strings.Count(before, "\n"), got)
			}
		}
	}
}

// TestManyStates runs a pattern whose full automaton would be huge: states are forgotten, answers stay right.
func TestManyStates(t *testing.T) {
	const expr = `[ab]*a[ab]{14}c`
	m, err := pattern.Compile(expr, pattern.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	x := uint32(1)
	for range 3000 {
		for range 80 {
			x = x*1664525 + 1013904223
			text.WriteByte("aabbabac"[x>>29])
		}
		text.WriteByte('\n')
	}
	std := regexp.MustCompile(expr)
	var want []int
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		if std.MatchString(line) {
			want = append(want, i+1)
		}
	}
	got := lines(m, text.String())
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("%d matching lines, want %d", len(got), len(want))
	}
}

func FuzzCompile(f *testing.F) {
	for _, p := range []string{`a`, `[a-z&&[^b]]`, `(?i)\p{L}+`, `\x{41}`, `(?P<n>x){2,3}`, `[[:alpha:]-]`, `(?-u:\w)`, `[^]`, `(?`, `\`, `[a[:]]`, `[[:x[:]]`} {
		f.Add(p, "some text\nabc\xff\r\n")
	}
	f.Fuzz(func(t *testing.T, p, text string) {
		m, err := pattern.Compile(p, pattern.Options{})
		if err != nil {
			return
		}
		lines(m, text)
	})
}

func benchText() []byte {
	line := "\tif err := client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, obj); err != nil {\n"
	return []byte(strings.Repeat(line, 1<<20/len(line)))
}

func BenchmarkFind(b *testing.B) {
	text := benchText()
	for _, p := range []string{"needle", "(?i)needle", "needle|thread|spool", `\w+needle\d+`, `[A-Z][a-z]+[0-9]`, `\bfo+\b`} {
		b.Run(p, func(b *testing.B) {
			m, err := pattern.Compile(p, pattern.Options{})
			if err != nil {
				b.Fatal(err)
			}
			s := m.NewScanner()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, _, ok := s.Find(text); ok {
					b.Fatal("found")
				}
			}
		})
	}
}
