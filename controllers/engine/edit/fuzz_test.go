package edit_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/edit"
)

// FuzzEditBytes takes a piece of a file as oldText: bytes outside the piece never change, the piece becomes the new
// text, and the inverse edit restores the file. A piece that is no such thing must be refused with a reason.
func FuzzEditBytes(f *testing.F) {
	for _, seed := range []struct {
		before  string
		at, n   uint
		newText string
	}{
		{"a\r\nb\r\nc\nd\r\n", 0, 1, "A"},
		{"a\r\nb\nc\rd\n", 3, 1, "B\nB"},
		{"\ufeffone\ntwo\n", 0, 6, "1"},
		{"\ufeffone\r\ntwo", 3, 3, "\ufeff1"},
		{"caf\xe9\nplain\n", 5, 5, "PLAIN"},
		{"caf\xe9\nplain\n", 5, 5, "plän"},
		{"\x99 far\nline 1000\n", 6, 9, "LINE"},
		{"“x” – ﬁn  \n", 0, 3, "\"x\""},
		{"no final newline", 3, 5, "new\r\nline\r"},
		{"aaa\n", 0, 2, "b"},
		{"a\rb\n", 2, 1, ""},
		{"x\x00y", 0, 1, "z"},
		{"\xff\xfea\x00", 0, 1, "z"},
		{"1\r\n2\r\n3\r\n", 1, 1, "\n"},
		{"", 0, 0, "x"},
		{"\r\n\r\n", 1, 2, "$&"},
	} {
		f.Add(seed.before, seed.at, seed.n, seed.newText)
	}
	f.Fuzz(func(t *testing.T, before string, at, n uint, newText string) {
		at %= uint(len(before)) + 1
		n %= uint(len(before)) - at + 1
		start, end := int(at), int(at+n)
		old := before[start:end]
		if !utf8.ValidString(old) || !utf8.ValidString(newText) {
			return // JSON cannot carry it
		}
		w := newFile(t, before)
		if _, err := w.edit(old, newText); err != nil {
			typed(t, err)
			if got := w.content(); got != before {
				t.Fatalf("refused, but the file is %q, was %q", got, before)
			}
			return
		}
		after := w.content()
		start, end, newText = grown(before, start, end, newText)
		head, tail := before[:start], before[end:]
		if !strings.HasPrefix(after, head) || !strings.HasSuffix(after, tail) || len(after) < len(head)+len(tail) {
			t.Fatalf("bytes outside %q changed: %q to %q", old, before, after)
		}
		if middle := after[len(head) : len(after)-len(tail)]; unixEnds(middle) != unixEnds(newText) {
			t.Fatalf("%q became %q, want %q", old, middle, newText)
		}
		if strings.HasPrefix(newText, "\ufeff") {
			return // at the beginning it has become a byte order mark, which stays
		}
		if newText != "" && uniform(before) && uniform(after) && kind(before) == kind(after) {
			restores(t, w, before, newText, before[start:end])
		}
	})
}

// grown is the range that an edit of before[start:end] concerns: a CR LF belongs together and a byte order mark stays.
func grown(before string, start, end int, newText string) (int, int, string) {
	if start > 0 && start < len(before) && before[start-1] == '\r' && before[start] == '\n' {
		start--
	}
	if end > 0 && end < len(before) && before[end-1] == '\r' && before[end] == '\n' {
		end++
	}
	if rest, ok := strings.CutPrefix(before, "\ufeff"); ok {
		start = max(start, len(before)-len(rest))
		if start == len(before)-len(rest) {
			newText = strings.TrimPrefix(newText, "\ufeff")
		}
	}
	return start, end, newText
}

// restores makes the inverse edit. It may be refused, because the new text need not be unique.
func restores(t *testing.T, w *file, before, newText, old string) {
	t.Helper()
	between := w.content()
	if _, err := w.edit(newText, old); err != nil {
		typed(t, err)
		return
	}
	if got := w.content(); got != before && strings.Count(unixEnds(between), unixEnds(newText)) == 1 {
		t.Fatalf("the inverse edit made %q of %q, want %q", got, between, before)
	}
}

func unixEnds(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// kind is the form of the first line end; uniform says that all are of that form.
func kind(s string) string {
	n := strings.IndexAny(s, "\r\n")
	switch {
	case n < 0:
		return ""
	case strings.HasPrefix(s[n:], "\r\n"):
		return "\r\n"
	}
	return s[n : n+1]
}

func uniform(s string) bool {
	k := kind(s)
	return k == "" || !strings.ContainsAny(strings.ReplaceAll(s, k, ""), "\r\n")
}

// FuzzEdits makes calls of two arbitrary edits: nothing panics, a refusal is typed and has no effect, and a success
// changed something.
func FuzzEdits(f *testing.F) {
	f.Add("say “hi”\nend\n   ", "say \"hi\"", "x", "end", "y")
	f.Add("ﬁ…\u0301 x²\r\n", "i", "1", "f", "2")
	f.Add("aaaa\n", "aa", "b", "a\n", "c")
	f.Add("café\t\r\nb\rc", "cafe\u0301\nb", "x\ny", "c", "")
	f.Add("\ufeff\u00a0a\u00a0\n", " a", "b", "\n", "\r\n")
	f.Fuzz(func(t *testing.T, before, old1, new1, old2, new2 string) {
		for _, s := range []string{old1, new1, old2, new2} {
			if !utf8.ValidString(s) {
				return
			}
		}
		w := newFile(t, before)
		r, err := w.edit(old1, new1, old2, new2)
		after := w.content()
		if err != nil {
			typed(t, err)
		}
		if (err == nil) == (after == before) {
			t.Fatalf("error %v, file %q, was %q", err, after, before)
		}
		if err == nil {
			if d := r.Details.(edit.Details); d.FirstChangedLine < 1 || d.Patch == "" {
				t.Fatalf("details %+v", d)
			}
		}
	})
}

// typed checks that an error has a reason and a sentence, and that nothing was left beside the file.
func typed(t *testing.T, err error) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || e.Reason == "" || e.Message == "" || e.EffectsMayHaveOccurred || errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error %#v", err)
	}
}
