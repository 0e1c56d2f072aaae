package grep

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine/grep/pattern"
)

func compile(t interface{ Fatal(...any) }, expr string) *pattern.Matcher {
	m, err := pattern.Compile(expr, pattern.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func dump(rows []row) string {
	var b []byte
	for _, r := range rows {
		b = append(r.append(b, "f"), '\n')
	}
	return string(b)
}

// simple is what a scan must give, written the plain way.
func simple(text, needle string, context, most int) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	matches := 0
	due := make([]bool, len(lines))
	hit := make([]bool, len(lines))
	for i, line := range lines {
		if matches < most && strings.Contains(line, needle) {
			matches++
			hit[i] = true
			for j := max(0, i-context); j <= min(len(lines)-1, i+context); j++ {
				due[j] = true
			}
		}
	}
	var rows []row
	for i, line := range lines {
		if due[i] {
			rows = append(rows, newRow(i+1, []byte(line), hit[i]))
		}
	}
	return dump(rows)
}

// TestScanInPieces compares with the plain way for lines shorter and longer than the buffer, for readers that
// give little at a time, and for all amounts of context.
func TestScanInPieces(t *testing.T) {
	m := map[string]*pattern.Matcher{"needle": compile(t, "needle"), "n(e)*dle": compile(t, "n(e)*dle")}
	rapid.Check(t, func(t *rapid.T) {
		s := newScan(m[rapid.SampledFrom([]string{"needle", "n(e)*dle"}).Draw(t, "pattern")])
		s.buf = make([]byte, rapid.IntRange(headBytes+8, 3*headBytes).Draw(t, "buffer"))
		line := rapid.SampledFrom([]string{"", "a", "needle", "x needle y", strings.Repeat("é", 300), strings.Repeat("long", 2000),
			strings.Repeat("pad ", 1500) + "needle" + strings.Repeat(" pad", 900), "needle" + strings.Repeat(" x", 4000)})
		text := strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "lines"), "\n")
		if rapid.Bool().Draw(t, "end") && text != "" {
			text += "\n"
		}
		var src io.Reader = strings.NewReader(text)
		if rapid.Bool().Draw(t, "slow") {
			src = iotest.HalfReader(src)
		}
		context, most := rapid.IntRange(0, 4).Draw(t, "context"), rapid.IntRange(1, 6).Draw(t, "most")
		rows, _, err := s.run(src, rules{context: context, most: most, stopped: func() bool { return false }})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := dump(rows), simple(text, "needle", context, most); got != want {
			t.Fatalf("context %d, most %d:\n got %q\nwant %q", context, most, got, want)
		}
	})
}

func TestRowText(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		in, want string
		cut      bool
	}{
		{"plain", "plain", false},
		{"a\rb\r", "ab", false},
		{x(500), x(500), false},
		{x(501), x(500) + cutMark, true},
		{x(500) + "\r", x(500), false},
		{x(499) + "😀", x(499) + cutMark, true},
		{x(498) + "😀", x(498) + "😀", false},
		{x(498) + "😀!", x(498) + "😀" + cutMark, true},
		{strings.Repeat("漢", 500), strings.Repeat("漢", 500), false},
		{strings.Repeat("漢", 501), strings.Repeat("漢", 500) + cutMark, true},
		{"bad \xe2\x82 \xed\xa0\x80", "bad \ufffd \ufffd\ufffd\ufffd", false},
		{strings.Repeat("\xff", 501), strings.Repeat("\ufffd", 500) + cutMark, true},
	} {
		got, cut := rowText([]byte(c.in))
		if got != c.want || cut != c.cut {
			t.Errorf("%.20q (%d bytes): %.60q, %v", c.in, len(c.in), got, cut)
		}
	}
}

// TestBinary: a NUL in the first block drops a file, a later one ends the search with the block before it.
func TestBinary(t *testing.T) {
	m := compile(t, "needle")
	fill := strings.Repeat("filler line\n", 20000)
	for _, c := range []struct {
		name, text string
		whole      bool
		want       int
	}{
		{"none", "needle\n" + fill + "needle\n", false, 2},
		{"first block", "needle\n\x00\n" + fill, false, 0},
		{"late", "needle\n" + fill + "\x00\nneedle\n", false, 1},
		{"same block", fill[:binaryBlock-100] + "\n" + strings.Repeat("y\n", 100) + "needle\n\x00\n", false, 0},
		{"named by path", "needle\n\x00\n" + fill + "needle\n", true, 2},
		{"one line", strings.Repeat("needle ", 100000) + "\x00", false, 0},
	} {
		s := newScan(m)
		_, n, err := s.run(strings.NewReader(c.text), rules{most: 10, whole: c.whole, stopped: func() bool { return false }})
		if err != nil || n != c.want {
			t.Errorf("%s: %d matches, %v; want %d", c.name, n, err, c.want)
		}
	}
}

// TestEncodings decodes UTF-16 of both byte orders across buffers and drops the mark of UTF-8.
func TestEncodings(t *testing.T) {
	var text strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&text, "line é😀 %d\n", i)
	}
	text.WriteString("the needle\n")
	for name, encode := range map[string]func(string) []byte{
		"little": func(s string) []byte { return utf16Bytes(s, 0, 1) },
		"big":    func(s string) []byte { return utf16Bytes(s, 1, 0) },
		"utf-8":  func(s string) []byte { return []byte("\ufeff" + s) },
	} {
		s := newScan(compile(t, "^(line é😀 7|the needle)$"))
		rows, n, err := s.run(bytes.NewReader(encode(text.String())), rules{most: 10, stopped: func() bool { return false }})
		if err != nil || n != 2 || rows[1].line != 40001 || rows[1].text != "the needle" {
			t.Errorf("%s: %d matches, %v", name, n, err)
		}
		s = newScan(compile(t, "^line"))
		rows, _, err = s.run(bytes.NewReader(encode("line")), rules{most: 1, context: 1, stopped: func() bool { return false }})
		if err != nil || len(rows) != 1 || rows[0].text != "line" {
			t.Errorf("%s, first line: %+v, %v", name, rows, err)
		}
	}
}

func utf16Bytes(s string, lo, hi int) []byte {
	var out []byte
	unit := func(u uint16) {
		b := [2]byte{}
		b[lo], b[hi] = byte(u), byte(u>>8)
		out = append(out, b[:]...)
	}
	unit(0xFEFF)
	for _, r := range s {
		if r > 0xFFFF {
			r -= 0x10000
			unit(0xD800 + uint16(r>>10))
			unit(0xDC00 + uint16(r&0x3FF))
			continue
		}
		unit(uint16(r))
	}
	return out
}
