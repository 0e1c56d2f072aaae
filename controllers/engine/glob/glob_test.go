package glob_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine/glob"
)

func TestSegment(t *testing.T) {
	for _, c := range []struct {
		pattern string
		d       glob.Dialect
		yes, no []string
	}{
		{"*", glob.Dialect{}, []string{"", "a", ".x"}, nil},
		{"a*", glob.Dialect{}, []string{"a", "ab"}, []string{"", "ba"}},
		{"*.go", glob.Dialect{}, []string{".go", "x.go"}, []string{"go", "x.goo", "X.GO"}},
		{"*.go", glob.Dialect{Fold: true}, []string{"x.GO"}, nil},
		{"?", glob.Dialect{}, []string{"a", "é", "😀", "\xff"}, []string{"", "ab"}},
		{"?", glob.Dialect{Git: true}, []string{"a"}, []string{"é"}},
		{"[abc]", glob.Dialect{}, []string{"a", "c"}, []string{"d", "A", ""}},
		{"[abc]", glob.Dialect{Fold: true}, []string{"A"}, nil},
		{"[!a]", glob.Dialect{}, []string{"b", "日"}, []string{"a"}},
		{"[^a-c]x", glob.Dialect{}, []string{"dx"}, []string{"bx"}},
		{"[]a]", glob.Dialect{}, []string{"]", "a"}, []string{"b"}},
		{"[a-]", glob.Dialect{}, []string{"-", "a"}, []string{"b"}},
		{"[[:digit:]]", glob.Dialect{Git: true}, []string{"5"}, []string{"a", ":"}},
		{`\*`, glob.Dialect{}, []string{"*"}, []string{"a", `\*`}},
		{"a**b", glob.Dialect{}, []string{"ab", "axxb"}, []string{"ba"}},
		{"*a*b*c*", glob.Dialect{}, []string{"abc", "xaybzc."}, []string{"acb"}},
		{"a?c*e", glob.Dialect{}, []string{"abcde", "aéce"}, []string{"ace"}},
		{"日*", glob.Dialect{}, []string{"日本"}, []string{"本"}},
	} {
		s, err := glob.CompileSegment(c.pattern, c.d)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, n := range c.yes {
			if !s.Match(n) {
				t.Errorf("%q does not match %q", c.pattern, n)
			}
		}
		for _, n := range c.no {
			if s.Match(n) {
				t.Errorf("%q matches %q", c.pattern, n)
			}
		}
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"src/*.ts", []string{"src/a.ts"}, []string{"a.ts", "src/b/a.ts", "x/src/a.ts"}},
		{"**/src/*.ts", []string{"src/a.ts", "x/src/a.ts", "x/y/src/a.ts"}, []string{"src/b/a.ts"}},
		{"src/**", []string{"src/a", "src/a/b"}, []string{"src", "x/src/a"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/x"}},
		{"**", []string{"a", "a/b"}, nil},
		{"**/*", []string{"a", "a/b"}, nil},
		{"a/**/**/b", []string{"a/b", "a/x/b"}, nil},
		{"**/a/**/b/**", []string{"a/b/c", "x/a/y/b/z"}, []string{"a/b"}},
		{"a/[b/c]d", []string{"a/bd"}, []string{"a/b/cd"}},
		{"a//b", nil, []string{"a/b"}},
		{"a/", nil, []string{"a", "a/b"}},
	} {
		p, err := glob.CompilePath(c.pattern, glob.Dialect{})
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for _, n := range c.yes {
			if !p.Match(n) {
				t.Errorf("%q does not match %q", c.pattern, n)
			}
		}
		for _, n := range c.no {
			if p.Match(n) {
				t.Errorf("%q matches %q", c.pattern, n)
			}
		}
	}
}

// TestOpen: a walk leaves directories in which nothing can match.
func TestOpen(t *testing.T) {
	p, err := glob.CompilePath("a/b*/c", glob.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Step(p.Start(), "x"); p.Open(s) {
		t.Error("x is open")
	}
	s := p.Step(p.Step(p.Start(), "a"), "bb")
	if !p.Open(s) || p.Done(s) {
		t.Error("a/bb is not open")
	}
	if s = p.Step(s, "c"); p.Open(s) || !p.Done(s) {
		t.Error("a/bb/c is not the end")
	}
}

func TestExpandBraces(t *testing.T) {
	for pattern, want := range map[string][]string{
		"a":             {"a"},
		"*.{ts,js}":     {"*.ts", "*.js"},
		"a{,.bak}":      {"a", "a.bak"},
		"{a,b{c,d}}e":   {"ae", "bce", "bde"},
		"{a,b}{1,2}":    {"a1", "a2", "b1", "b2"},
		`\{a,b\}`:       {`\{a,b\}`},
		"[{,}]":         {"[{,}]"},
		"a,b":           {"a,b"},
		"{src,lib}/*.c": {"src/*.c", "lib/*.c"},
		"{}":            {""},
	} {
		got, err := glob.ExpandBraces(pattern)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", pattern, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for pattern, want := range map[string]error{
		"{a": glob.ErrUnclosedBrace, "a}": glob.ErrStrayBrace, "[a": glob.ErrUnclosedClass, `a\`: glob.ErrDangling,
		"{a,{b}": glob.ErrUnclosedBrace, strings.Repeat("{a,b}", 20): glob.ErrTooMany, strings.Repeat("{", 50): glob.ErrTooMany,
	} {
		if _, err := glob.ExpandBraces(pattern); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", pattern, err, want)
		}
	}
	if _, err := glob.CompileSegment("[z-a]", glob.Dialect{}); !errors.Is(err, glob.ErrBadRange) {
		t.Errorf("[z-a]: %v", err)
	}
	if _, err := glob.CompilePath(strings.Repeat("a/", 100), glob.Dialect{}); !errors.Is(err, glob.ErrTooDeep) {
		t.Errorf("100 parts: %v", err)
	}
}

// TestManyStars takes time in proportion to pattern times name; trying all splits would take years.
func TestManyStars(t *testing.T) {
	s, err := glob.CompileSegment(strings.Repeat("*a", 60)+"b", glob.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if s.Match(strings.Repeat("a", 255)) {
		t.Error("matches")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

func FuzzGlob(f *testing.F) {
	for _, p := range []string{"a*b?[c-d]", "{a,{b,c}}/**", `\[`, "[[:alpha:]-]", "**/x/**", "[!]]", "é[日-本]"} {
		f.Add(p, "dir/name.txt")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		for _, d := range []glob.Dialect{{}, {Fold: true}, {Git: true}} {
			alternatives, err := glob.ExpandBraces(pattern)
			if err != nil {
				alternatives = []string{pattern}
			}
			for _, a := range alternatives {
				if p, err := glob.CompilePath(a, d); err == nil {
					p.Match(path)
				}
			}
		}
	})
}
