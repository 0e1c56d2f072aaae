package textdiff_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine/textdiff"
)

func TestDisplay(t *testing.T) {
	for _, tc := range []struct {
		name, before, after, want string
		first                     int
	}{
		{"equal", "a\n", "a\n", "", 0},
		{"deletions come before insertions", "a\nb\n", "c\nd\n", "-1 a\n-2 b\n+1 c\n+2 d", 1},
		{"final newline added", "a\nb", "a\nb\n", " 1 a\n-2 b\n+2 b", 2},
		{"from nothing", "", "a\n", "+1 a", 1},
		{"to nothing", "a\n", "", "-1 a", 1},
		{"equal neighbours: the last one is new", "x\nx\n", "x\nx\nx\n", " 1 x\n 2 x\n+3 x", 3},
		{"eight lines between are shown", seq(1, 10), strings.NewReplacer("1\n", "A\n", "10\n", "B\n").Replace(seq(1, 10)),
			"- 1 1\n+ 1 A\n  2 2\n  3 3\n  4 4\n  5 5\n  6 6\n  7 7\n  8 8\n  9 9\n-10 10\n+10 B", 1},
		{"nine are not", seq(1, 11), "A\n" + seq(2, 10) + "B\n",
			"- 1 1\n+ 1 A\n  2 2\n  3 3\n  4 4\n  5 5\n    ...\n  7 7\n  8 8\n  9 9\n 10 10\n-11 11\n+11 B", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := textdiff.Compare(tc.before, tc.after)
			if got := d.Display(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if got := d.FirstChangedLine(); got != tc.first {
				t.Errorf("first changed line %d, want %d", got, tc.first)
			}
		})
	}
}

func TestPatchOfEqualTextsIsEmpty(t *testing.T) {
	if p := textdiff.Compare("a\n", "a\n").Patch("f"); p != "" {
		t.Errorf("patch %q", p)
	}
}

// The patch must lead from the old text to the new one, and be no longer than a shortest script.
func TestPatchApplies(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "}\n"})
	end := rapid.SampledFrom([]string{"", "a", "z"})
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "before"), "") + end.Draw(t, "end")
		after := strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "after"), "") + end.Draw(t, "end")
		patch := textdiff.Compare(before, after).Patch("f")
		got, changed := apply(t, before, patch)
		if got != after {
			t.Fatalf("before %q\nafter %q\napplied %q\n%s", before, after, got, patch)
		}
		if want := distance(before, after); changed != want {
			t.Fatalf("%d changed lines, %d are enough\n%s", changed, want, patch)
		}
	})
}

// A text that is replaced as a whole must cost little, however long it is.
func TestLargeRewriteIsBounded(t *testing.T) {
	const n = 20000
	var before, after strings.Builder
	for i := range n {
		fmt.Fprintf(&before, "old %d\n", i)
		fmt.Fprintf(&after, "new %d\n", i)
	}
	for name, tc := range map[string]struct {
		before, after string
		changed       int
	}{
		"total rewrite":           {before.String(), after.String(), 2 * n},
		"rewrite with a tail":     {before.String() + "end\n", after.String() + "end\n", 2 * n},
		"one line":                {before.String(), strings.Replace(before.String(), "old 19990\n", "X\n", 1), 2},
		"lines moved to the end":  {"x\ny\n" + before.String(), before.String() + "x\ny\n", 4},
		"every hundredth changed": {before.String(), strings.ReplaceAll(before.String(), "00\n", "00!\n"), 2 * (n/100 - 1)},
	} {
		start := time.Now()
		patch := textdiff.Compare(tc.before, tc.after).Patch("f")
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%s took %v", name, d)
		}
		got, changed := apply(t, tc.before, patch)
		if got != tc.after || changed != tc.changed {
			t.Errorf("%s: %d changed lines, want %d; applies: %v", name, changed, tc.changed, got == tc.after)
		}
	}
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// apply applies a unified patch to a text and counts its deleted and inserted lines.
func apply(t fataler, before, patch string) (after string, changed int) {
	t.Helper()
	old := split(before)
	at := 0
	var out []string
	var last byte
	for _, l := range split(patch) {
		sign := last
		last = l[0]
		switch {
		case changed == 0 && (strings.HasPrefix(l, "--- f") || strings.HasPrefix(l, "+++ f")):
		case strings.HasPrefix(l, "@@"):
			var a, b, c, d int
			if _, err := fmt.Sscanf(l, "@@ -%d,%d +%d,%d @@", &a, &b, &c, &d); err != nil {
				t.Fatalf("hunk header %q: %v", l, err)
			}
			if b > 0 {
				a--
			}
			out = append(out, old[at:a]...)
			at = a
			if d > 0 {
				c--
			}
			if len(out) != c {
				t.Fatalf("hunk %q begins at new line %d", l, len(out)+1)
			}
		case l[0] == '\\' && sign == '-':
		case l[0] == '\\':
			out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\n")
		case l[0] == '+':
			out = append(out, l[1:])
			changed++
		default:
			if strings.TrimSuffix(old[at], "\n") != strings.TrimSuffix(l[1:], "\n") {
				t.Fatalf("row %q does not match line %d", l, at+1)
			}
			if l[0] == ' ' {
				out = append(out, old[at])
			} else {
				changed++
			}
			at++
		}
	}
	return strings.Join(append(out, old[at:]...), ""), changed
}

func split(s string) []string {
	l := strings.SplitAfter(s, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

// distance is the length of a shortest script, by the textbook table.
func distance(before, after string) int {
	a, b := split(before), split(after)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			best := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				best = diagonal
			}
			diagonal, row[j+1] = row[j+1], best
		}
	}
	return row[len(b)]
}

func seq(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

// A second, independent implementation agrees on the form of a patch when the change is unambiguous.
func TestPatchAgreesWithDifflib(t *testing.T) {
	before := seq(1, 60)
	after := strings.NewReplacer("5\n", "five\n", "23\n", "").Replace(before)
	want, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(before), B: difflib.SplitLines(after), FromFile: "f", ToFile: "f", Context: 4})
	if err != nil {
		t.Fatal(err)
	}
	if got := textdiff.Compare(before, after).Patch("f"); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
