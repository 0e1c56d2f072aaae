package edit

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FuzzViews checks the way back: what a range of a view stands for, viewed again, is that range with the rest of the
// characters that it cuts.
func FuzzViews(f *testing.F) {
	for _, s := range []string{"a\r\nb\rc\n", "ﬁrst x²… \n“a”\u00a0\t\n\n  ", "e\u0301 \u1112\u1161\u11ab\r\n", "\xff–\xfe \ufeff", "   \n", "½ﷺ"} {
		f.Add([]byte(s), uint(0), uint(3))
		f.Add([]byte(s), uint(2), uint(9))
	}
	f.Fuzz(func(t *testing.T, source []byte, at, n uint) {
		l := withLF(source)
		if got, want := string(l.text), lf(string(source)); got != want {
			t.Fatalf("line ends: %q, want %q", got, want)
		}
		roundTrip(t, l, source, at, n, func(b []byte) string { return lf(string(b)) })
		v := normalised(l.text)
		if utf8.Valid(l.text) && !marked(l.text) {
			if want := plainly(string(l.text)); string(v.text) != want {
				t.Fatalf("normalised: %q, want %q", v.text, want)
			}
		}
		roundTrip(t, v, l.text, at, n, func(b []byte) string { return string(normalised(b).text) })
	})
}

// roundTrip maps text[at:at+n] to the source and views that again. Blanks at the end of the piece are set aside: alone,
// it ends a line.
func roundTrip(t *testing.T, v *view, source []byte, at, n uint, again func([]byte) string) {
	t.Helper()
	if len(v.text) == 0 {
		return
	}
	a := int(at % uint(len(v.text)))
	b := a + 1 + int(n%uint(len(v.text)-a))
	from, lead := v.begin(a)
	to, tail := v.finish(b)
	if from < 0 || to > len(source) || from > to {
		t.Fatalf("range %d-%d of %q is %d-%d of %q", a, b, v.text, from, to, source)
	}
	piece := string(lead) + string(v.text[a:b]) + string(tail)
	if !utf8.ValidString(piece) || marked(source) {
		return // cut inside a character
	}
	trim := func(s string) string { return strings.TrimRightFunc(s, isBlank) }
	if got := again(source[from:to]); trim(got) != trim(piece) {
		t.Fatalf("range %d-%d of %q is %q, which is %q and not %q", a, b, v.text, source[from:to], got, piece)
	}
}

// plainly is the normalised form, line by line and without a way back.
func plainly(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		l = strings.TrimRightFunc(norm.NFKC.String(l), isBlank)
		lines[i] = string(bytes.Map(plain, []byte(l)))
	}
	return strings.Join(lines, "\n")
}

// marked says that a text has so many combining marks in a row that composing piece by piece differs on purpose.
func marked(b []byte) bool {
	run := 0
	for len(b) > 0 {
		p := norm.NFKD.Properties(b)
		if p.Size() == 0 {
			return true
		}
		if run++; p.CCC() == 0 {
			run = 0
		}
		if run > 20 {
			return true
		}
		b = b[p.Size():]
	}
	return false
}
