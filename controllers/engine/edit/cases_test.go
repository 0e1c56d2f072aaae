package edit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/edit"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/write"
)

// file is a fresh file in a fresh working directory.
type file struct {
	t    testing.TB
	env  engine.Env
	path string
}

func newFile(t testing.TB, content string) *file {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	f := &file{t: t, env: engine.Env{Cwd: dir}, path: filepath.Join(dir, "f")}
	check(t, os.WriteFile(f.path, []byte(content), 0o644))
	return f
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *file) content() string {
	b, err := os.ReadFile(f.path)
	check(f.t, err)
	return string(b)
}

// edit makes a call with the current revision; texts alternate between old and new.
func (f *file) edit(texts ...string) (*engine.Result, error) {
	a := edit.Args{Path: f.path, ExpectedRevision: enginetest.Revision(f.path)}
	for i := 0; i < len(texts); i += 2 {
		a.Edits = append(a.Edits, edit.Edit{OldText: texts[i], NewText: texts[i+1]})
	}
	return do(f.env, a)
}

// becomes makes a call that must succeed and checks all bytes.
func (f *file) becomes(want string, texts ...string) *engine.Result {
	f.t.Helper()
	r, err := f.edit(texts...)
	check(f.t, err)
	if got := f.content(); got != want {
		f.t.Errorf("file is\n%q, want\n%q", got, want)
	}
	return r
}

// refuses makes a call that must fail, leaves the file alone and says what is wanted.
func (f *file) refuses(reason engine.Reason, says string, texts ...string) string {
	f.t.Helper()
	before := f.content()
	_, err := f.edit(texts...)
	var e *engine.Error
	if !errors.As(err, &e) || e.Reason != reason || e.EffectsMayHaveOccurred {
		f.t.Fatalf("error %+v, want %s", err, reason)
	}
	if !regexp.MustCompile(says).MatchString(e.Message) {
		f.t.Errorf("message %q does not match %q", e.Message, says)
	}
	if f.content() != before {
		f.t.Error("the file has changed")
	}
	return e.Message
}

func TestA1SecondSessionWithAStaleRevision(t *testing.T) {
	f := newFile(t, "one\ntwo\n")
	seen := enginetest.Revision(f.path)
	a := edit.Args{Path: f.path, ExpectedRevision: seen, Edits: []edit.Edit{{OldText: "one", NewText: "A"}}}
	b := edit.Args{Path: f.path, ExpectedRevision: seen, Edits: []edit.Edit{{OldText: "two", NewText: "B"}}}
	late, err := edit.Prepare(context.Background(), f.env, b) // prepared before the other one commits
	check(t, err)
	_, err = do(f.env, a)
	check(t, err)
	_, atCommit := late.Commit(context.Background(), uuid.NewString())
	_, atPrepare := do(f.env, b)
	for _, err := range []error{atCommit, atPrepare} {
		var e *engine.Error
		now := enginetest.Revision(f.path)
		if !errors.As(err, &e) || e.Reason != engine.RevisionConflict || e.CurrentRevision != now || !strings.Contains(e.Message, now) {
			t.Errorf("error %+v", err)
		}
	}
	if f.content() != "A\ntwo\n" {
		t.Errorf("file is %q", f.content())
	}
}

func TestA6EditIsNotAppliedOnTopOfItself(t *testing.T) {
	f := newFile(t, "list:\n")
	a := edit.Args{Path: f.path, ExpectedRevision: enginetest.Revision(f.path),
		Edits: []edit.Edit{{OldText: "list:", NewText: "list:\n- a"}}}
	_, err := do(f.env, a)
	check(t, err)
	_, err = do(f.env, a)
	if engine.ReasonOf(err) != engine.RevisionConflict || f.content() != "list:\n- a\n" {
		t.Errorf("error %v, file %q", err, f.content())
	}
}

func TestB1AndQ15MixedLineEndsStay(t *testing.T) {
	newFile(t, "a\r\nb\r\nc\nd\r\n").becomes("A\r\nb\r\nc\nd\r\n", "a", "A")
	newFile(t, "a\nb\nc\r\nd\n").becomes("A\nb\nc\r\nd\n", "a", "A")
	newFile(t, "a\r\nb\rc\nd").becomes("a\r\nB\rc\nd", "b", "B")
}

func TestB3ByteOrderMarkStaysOnce(t *testing.T) {
	newFile(t, "\ufeffone\ntwo\n").becomes("\ufeffone\nTWO\n", "two", "TWO")
	newFile(t, "\ufeffone\ntwo\n").becomes("\ufeffONE\ntwo\n", "one", "ONE")
	newFile(t, "\ufeffone\ntwo\n").becomes("\ufeffONE\ntwo\n", "\ufeffone", "\ufeffONE")
	newFile(t, "\ufeffone\ntwo\n").becomes("\ufeffONE\ntwo\n", "\ufeffone", "ONE")
	newFile(t, "\ufeffone\ntwo\n").becomes("\ufeffONE\ntwo\n", "one", "\ufeffONE")
	newFile(t, "one\n").becomes("\ufeffone\n", "one", "\ufeffone")
}

func TestB5AndQ8AndQ15LegacyByteFarFromTheEditStays(t *testing.T) {
	var before strings.Builder
	before.WriteString("legacy \x99 byte\r\n")
	for i := 2; i <= 1200; i++ {
		fmt.Fprintf(&before, "line %d\n", i)
	}
	after := strings.Replace(before.String(), "line 1000\n", "LINE 1000\n", 1)
	newFile(t, before.String()).becomes(after, "line 1000\n", "LINE 1000\n")
	// In normalised form as well: a blank at the end of the line before.
	spaced := strings.Replace(before.String(), "line 999\n", "line 999 \n", 1)
	newFile(t, spaced).becomes(strings.Replace(after, "line 999\nLINE 1000", "joined", 1), "line 999\nline 1000", "joined")
}

func TestB7LatinFileChangesInTheEditedLinesOnly(t *testing.T) {
	f := newFile(t, "caf\xe9\nplain one\nna\xefve\nplain two\n\xfcber\n")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", f.env.Cwd, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("add", "f")
	git("commit", "-q", "-m", "before")
	f.becomes("caf\xe9\nplain 1\nna\xefve\nplain 2\n\xfcber\n", "plain one", "plain 1", "plain two", "plain 2")
	if got := git("diff", "--numstat"); got != "2\t2\tf\n" {
		t.Errorf("numstat %q", got)
	}
	f.refuses(engine.UnsupportedEncoding, `(?s)ISO-8859-1.*iconv -f ISO-8859-1`, "plain 1", "pläin")
	newFile(t, "price 5 \x80\n").refuses(engine.UnsupportedEncoding, "WINDOWS-1252", "price", "prix é")
	// One stray byte does not make a legacy file of UTF-8.
	newFile(t, "größe ßß \x99 one\n").becomes("größe ßß \x99 zwölf\n", "one", "zwölf")
}

func TestB8WriteOverMarkAndCRLFSaysSo(t *testing.T) {
	f := newFile(t, "\ufeffa\r\nb\r\n")
	p, err := write.Prepare(context.Background(), f.env, write.Args{Path: "f", Content: "c\nd\n", ExpectedRevision: enginetest.Revision(f.path)})
	check(t, err)
	r, err := p.Commit(context.Background(), uuid.NewString())
	check(t, err)
	if f.content() != "c\nd\n" || !strings.Contains(r.Text, "byte order mark") || !strings.Contains(r.Text, "CRLF") {
		t.Errorf("file %q, answer %q", f.content(), r.Text)
	}
}

func TestC1ReplacementIsNoPattern(t *testing.T) {
	const text = "$& $$ $' $1 \\1 ${x} $` %s \\n"
	newFile(t, "a (x+) b\n").becomes("a "+text+" b\n", "(x+)", text)
}

func TestC3LookAlikeIsRefusedAndNamed(t *testing.T) {
	f := newFile(t, "alpha(1)\nbeta(2)\nbeta(3)\n")
	f.refuses(engine.TextNotFound, `line 2: "beta\(2\)"\. It has "2" where oldText has "9"`, "beta(9)", "gamma")
}

func TestC6WrongCharacterInALargeFileIsFoundFast(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 20000; i++ {
		fmt.Fprintf(&b, "\tcase %d: return handle(ctx, request%d, \"option %d\")\n", i, i*7, i%13)
	}
	f := newFile(t, b.String())
	line := func(i int) string {
		return fmt.Sprintf("\tcase %d: return handle(ctx, request%d, \"option %d\")", i, i*7, i%13)
	}
	for name, tc := range map[string]struct{ old, says string }{
		"one line":            {strings.Replace(line(19950), "handle", "hamdle", 1), `line 19950: .*It has "n" where oldText has "m"`},
		"part of a line":      {"139650, \"optiom 8\")", `line 19950: .*It has "n" where oldText has "m"`},
		"middle of a block":   {line(19900) + "\n" + strings.Replace(line(19901), "ctx", "ctz", 1) + "\n" + line(19902), `line 19901: .*It has "x" where oldText has "z"`},
		"missing character":   {strings.Replace(line(19950), "handle", "hande", 1), `line 19950: .*It has "l", which oldText lacks`},
		"superfluous":         {strings.Replace(line(19950), "handle", "handlle", 1), `line 19950: .*It lacks "l", which oldText has`},
		"blanks for the tab":  {strings.Replace(line(19950), "\t", "    ", 1), `line 19950: .*It has "\\t" where oldText has "    "`},
		"capital":             {strings.Replace(line(19950), "return", "Return", 1), `line 19950: .*It has "r" where oldText has "R"`},
		"block of 2000 lines": {strings.Replace(strings.Join(strings.SplitAfter(b.String(), "\n")[17000:19000], ""), "case 18000:", "case 18O00:", 1), `line 18000: .*It has "0" where oldText has "O"`},
	} {
		start := time.Now()
		f.refuses(engine.TextNotFound, tc.says, tc.old, "x")
		if d := time.Since(start); d > 10*time.Second { // far from the second it should take, also under the race detector
			t.Errorf("%s took %v", name, d)
		}
	}
}

func TestC7LongFileIsKeptAndBatchIsAllOrNothing(t *testing.T) {
	var b strings.Builder
	for i := 1; i <= 5000; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	f := newFile(t, b.String())
	after := strings.Replace(b.String(), "line 4900\n", "LINE 4900\n", 1)
	f.becomes(after, "line 4900\n", "LINE 4900\n")
	f.refuses(engine.TextNotFound, `^Could not find edits\[1\] in `, "line 1\n", "x\n", "line 9999\n", "y\n", "line 3\n", "z\n")
	f.refuses(engine.TextAmbiguous, `^Found 11 occurrences of edits\[2\] in [^\n]*\n.*lines 499, 4990, 4991, `,
		"line 1\n", "x\n", "line 3\n", "z\n", "line 499", "z")
}

func TestC9FourMistakesFourErrors(t *testing.T) {
	f := newFile(t, "one two\nthree\none four\nfive\n")
	f.refuses(engine.NoChange, `^No changes made (?s).*line 2`, "three", "three")
	f.refuses(engine.TextAmbiguous, `^Found 2 occurrences (?s).*lines 1, 3\.`, "one", "1")
	f.refuses(engine.EditsOverlap, `^edits\[0\] and edits\[1\] overlap (?s).*edits\[0\] covers lines 1-2, edits\[1\] covers lines 2-3`,
		"two\nthree", "2\n3", "three\none", "3\n1")
	f.refuses(engine.InvalidEdit, `^oldText must not be empty in `, "", "x")
	f.refuses(engine.InvalidEdit, `^Edit tool input is invalid`)
	f.refuses(engine.TextNotFound, `^Could not find the exact text`, "six", "6")
	many := newFile(t, strings.Repeat("same\n", 25))
	many.refuses(engine.TextAmbiguous, `^Found 25 occurrences (?s).*lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 15 more`, "same", "x")
}

func TestI1ExecutableBitStays(t *testing.T) {
	f := newFile(t, "#!/bin/sh\necho hi\n")
	check(t, os.Chmod(f.path, 0o755))
	f.becomes("#!/bin/sh\necho ho\n", "hi", "ho")
	p, err := write.Prepare(context.Background(), f.env, write.Args{Path: "f", Content: "#!/bin/sh\n", ExpectedRevision: enginetest.Revision(f.path)})
	check(t, err)
	_, err = p.Commit(context.Background(), uuid.NewString())
	check(t, err)
	st, err := os.Stat(f.path)
	check(t, err)
	if st.Mode() != 0o755 {
		t.Errorf("mode %v", st.Mode())
	}
}

func TestI8LinksStayAndTargetChanges(t *testing.T) {
	f := newFile(t, "0\n")
	dir := f.env.Cwd
	check(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	links := map[string]string{"sub/relative": "../f", "absolute": f.path, "chain1": "chain2", "chain2": "sub/relative"}
	for name, to := range links {
		check(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	n := 0
	for name := range links {
		old := fmt.Sprintf("%d\n", n)
		a := edit.Args{Path: name, ExpectedRevision: enginetest.Revision(f.path), Edits: []edit.Edit{{OldText: old, NewText: fmt.Sprintf("%d\n", n+1)}}}
		r, err := do(f.env, a)
		check(t, err)
		if r.Path != f.path {
			t.Errorf("edit through %s names %s", name, r.Path)
		}
		p, err := write.Prepare(context.Background(), f.env, write.Args{Path: name, Content: fmt.Sprintf("%d\n", n+2), ExpectedRevision: r.Revision})
		check(t, err)
		_, err = p.Commit(context.Background(), uuid.NewString())
		check(t, err)
		n += 2
		if f.content() != fmt.Sprintf("%d\n", n) {
			t.Errorf("after %s the target holds %q", name, f.content())
		}
	}
	for name, to := range links {
		if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != to {
			t.Errorf("%s is no longer a link to %s: %q, %v", name, to, got, err)
		}
	}
}

func TestH10TwoSpellingsAreOneFile(t *testing.T) {
	f := newFile(t, "one\ntwo\n")
	check(t, os.Mkdir(filepath.Join(f.env.Cwd, "real"), 0o755))
	real := filepath.Join(f.env.Cwd, "real", "f")
	check(t, os.Rename(f.path, real))
	check(t, os.Symlink("real", filepath.Join(f.env.Cwd, "link")))
	seen := enginetest.Revision(real)
	direct, err := edit.Prepare(context.Background(), f.env, edit.Args{Path: "real/f", ExpectedRevision: seen, Edits: []edit.Edit{{OldText: "one", NewText: "1"}}})
	check(t, err)
	linked, err := edit.Prepare(context.Background(), engine.Env{Cwd: filepath.Join(f.env.Cwd, "link")},
		edit.Args{Path: "f", ExpectedRevision: seen, Edits: []edit.Edit{{OldText: "two", NewText: "2"}}})
	check(t, err)
	if direct.Path != linked.Path || direct.Before != linked.Before {
		t.Errorf("%s and %s, %s and %s", direct.Path, linked.Path, direct.Before, linked.Before)
	}
	_, err = linked.Commit(context.Background(), uuid.NewString())
	check(t, err)
	if _, err = direct.Commit(context.Background(), uuid.NewString()); engine.ReasonOf(err) != engine.RevisionConflict {
		t.Errorf("error %v", err)
	}
}

func TestQ5PureCRLFFileStaysCRLF(t *testing.T) {
	newFile(t, "one\r\ntwo\r\nthree\r\n").becomes("one\r\nTWO\r\nthree\r\n", "two", "TWO")
	newFile(t, "one\r\ntwo\r\nthree").becomes("one\r\nTWO\r\nand\r\nthree", "two\nthree", "TWO\nand\nthree")
}

func TestLineEndsOfTheReplacement(t *testing.T) {
	for _, tc := range []struct{ name, before, old, text, after string }{
		{"line by line", "a\r\nb\nc\rd", "a\nb\nc\nd", "1\n2\n3\n4", "1\r\n2\n3\r4"},
		{"CRLF given for LF", "a\nb\n", "a\r\nb", "1\r\n2", "1\n2\n"},
		{"lone CR given", "a\nb\n", "a\rb", "1\r2", "1\n2\n"},
		{"unchanged lines at the end keep theirs", "a\nb\nc\r\nd\n", "a\nb\nc\n", "a\nnew\nb\nc\n", "a\nnew\nb\nc\r\nd\n"},
		{"more lines than before: the last form", "a\r\nb\r\n", "a\n", "1\n2\n3\n", "1\r\n2\r\n3\r\nb\r\n"},
		{"split line: its own end", "a\nb\r\n", "b", "1\n2", "a\n1\r\n2\r\n"},
		{"split last line: the end before", "a\r\nb", "b", "1\n2", "a\r\n1\r\n2"},
		{"after a lone CR", "a\rb", "b", "1\n2", "a\r1\r2"},
		{"no line end anywhere", "b", "b", "1\n2", "1\n2"},
		{"final newline stays away", "a\nb", "a", "A", "A\nb"},
	} {
		t.Run(tc.name, func(t *testing.T) { newFile(t, tc.before).becomes(tc.after, tc.old, tc.text) })
	}
	newFile(t, "a\rb\nc").refuses(engine.InvalidEdit, "lone CR", "b", "")
}

func TestNormalisedMatches(t *testing.T) {
	for _, tc := range []struct{ name, before, old, text, after string }{
		{"exact match wins over a look-alike", "foo–bar\nfoo-bar\n", "foo-bar", "x", "foo–bar\nx\n"},
		{"blanks around the match stay", "  say “hi”  \nnext\n", "say \"hi\"", "x", "  x  \nnext\n"},
		{"blanks at line ends inside it go", "a  \nb\t\nc\n", "a\nb\nc", "x", "x\n"},
		{"blanks in oldText only", "a\nb\n", "a  \nb\t", "x", "x\n"},
		{"part of a ligature", "the ﬁrst\n", "irst", "X", "the fX\n"},
		{"end in a ligature", "a “b” ﬁx\n", "a \"b\" f", "X", "Xix\n"},
		{"byte order mark stays", "\ufeff“a”\n", "\"a\"", "x", "\ufeffx\n"},
		{"CRLF stays", "k\r\n“a”\r\nz\r\n", "\"a\"\nz", "x\ny", "k\r\nx\r\ny\r\n"},
		{"bytes that are not UTF-8 beside it", "\xff “a” \xfe\n", "\"a\"", "x", "\xff x \xfe\n"},
		{"full-width letters", "ＡＢＣ = 1\n", "ABC = 1", "x", "x\n"},
		{"jamo", "\u1112\u1161\u11ab글\n", "한글", "x", "x\n"},
		{"last line of blanks without an end", "“a”\n   ", "\"a\"", "x", "x\n   "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFile(t, tc.before)
			r := f.becomes(tc.after, tc.old, tc.text)
			d := r.Details.(edit.Details)
			if exact := strings.Contains(tc.before, tc.old); exact == (len(d.Normalized) == 1) || exact == strings.Contains(r.Text, "normalising") {
				t.Errorf("normalised: %v; text %q", d.Normalized, r.Text)
			}
		})
	}
	f := newFile(t, "“a” one\ntwo\n“b” three\n")
	r := f.becomes("1 one\n2\n3 three\n", "\"a\"", "1", "two", "2", "\"b\"", "3")
	if !strings.Contains(r.Text, "\n(edits[0] and edits[2] matched after normalising") {
		t.Errorf("text %q", r.Text)
	}
	newFile(t, "“x”\n").refuses(engine.NoChange, "line 1", "\"x\"", "\"x\"")
	newFile(t, "“x”\n“x”\n").refuses(engine.TextAmbiguous, "lines 1, 2", "\"x\"", "y")
	newFile(t, "ﬁ end\n").refuses(engine.EditsOverlap, "overlap", "f", "1", "i end", "2")
}

func TestBlankOldTextIsCountedRight(t *testing.T) {
	newFile(t, "a  b\n").becomes("a_b\n", "  ", "_")
	newFile(t, "a\tb c\n").becomes("a b c\n", "\t", " ")
	newFile(t, "a    b\n").refuses(engine.TextAmbiguous, "^Found 3 occurrences", "  ", "_")
	newFile(t, "a\n\nb\n").becomes("a\nb\n", "\n\n", "\n")
	newFile(t, "a\n  \nb\n").becomes("a\nb\n", "\n\n", "\n")
	newFile(t, "a\n").refuses(engine.TextNotFound, "blanks only", "  \n", "x")
	newFile(t, "word word\n").refuses(engine.TextNotFound, "blanks only", "\t", "_")
	newFile(t, "").refuses(engine.TextNotFound, "The file is empty", " ", "_")
}

func TestEncodingsThatAreRefused(t *testing.T) {
	newFile(t, "\xff\xfea\x00b\x00").refuses(engine.UnsupportedEncoding, `UTF-16(?s).*iconv`, "a", "b")
	newFile(t, "\xfe\xff\x00a\x00b").refuses(engine.UnsupportedEncoding, `UTF-16(?s).*iconv`, "a", "b")
	newFile(t, "text\x00more").refuses(engine.UnsupportedEncoding, `NUL byte at offset 4`, "text", "b")
	newFile(t, "caf\xe9\n").refuses(engine.TextNotFound, `U\+FFFD`, "caf\ufffd", "x")
}

func TestFilesThatAreRefused(t *testing.T) {
	f := newFile(t, "x")
	dir := f.env.Cwd
	check(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	check(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	check(t, os.WriteFile(filepath.Join(dir, "huge"), nil, 0o644))
	check(t, os.Truncate(filepath.Join(dir, "huge"), edit.MaxFileSize+1))
	for path, want := range map[string]engine.Reason{
		".": engine.IsADirectory, "fifo": engine.UnsupportedFile, "/dev/null": engine.UnsupportedFile, "huge": engine.FileTooLarge,
		"absent": engine.FileNotFound, "f/x": engine.NotADirectory, "loop": engine.TooManyLinks, "a\x00": engine.InvalidPath,
	} {
		_, err := do(f.env, edit.Args{Path: path, ExpectedRevision: "missing", Edits: []edit.Edit{{OldText: "x", NewText: "y"}}})
		if got := engine.ReasonOf(err); got != want {
			t.Errorf("%q: %s (%v), want %s", path, got, err, want)
		}
	}
}

// The long lines of a text may be the ones that the file has everywhere; the rare ones tell the place.
func TestPlaceIsFoundByItsRareLines(t *testing.T) {
	block := func(i int) string {
		return fmt.Sprintf("// id %d\n\tlog.Printf(\"the same words everywhere\")\n\treturn theSameCallEverywhere(ctx, nil)\n"+
			"\tpanic(\"the same end everywhere\")\n\tn = %d\n", i, i*i)
	}
	var b strings.Builder
	for i := range 60 {
		b.WriteString(block(i))
	}
	f := newFile(t, b.String())
	f.refuses(engine.TextNotFound, `line 205: "\\tn = 1600"\. It has "16" where oldText has "z"`, strings.Replace(block(40), "1600", "z00", 1), "x")
	f.refuses(engine.TextNotFound, `No line of the file resembles it`, "wholly unrelated 12345", "x")
}

func TestDifferenceInsideAVeryLongLineIsNamed(t *testing.T) {
	var b strings.Builder
	for i := range 12000 {
		fmt.Fprintf(&b, "item%d,", i*17)
	}
	newFile(t, "first\n"+b.String()+"\nlast\n").refuses(engine.TextNotFound,
		`line 2: "item153000,item153017"\. It has "3" where oldText has "8"`, "item153000,item158017", "x")
}

// Repetitive text must not make the search slow.
func TestWorstCasesAreBounded(t *testing.T) {
	f := newFile(t, strings.Repeat("a", 8<<20)+"\n")
	start := time.Now()
	f.refuses(engine.TextAmbiguous, "Found 8339609 occurrences", strings.Repeat("a", 49000), "b")
	f.refuses(engine.TextNotFound, "", strings.Repeat("a", 49000)+"b", "c")
	if d := time.Since(start); d > time.Minute { // quadratic work would take hours
		t.Errorf("took %v", d)
	}
}

func TestLargestFile(t *testing.T) {
	line := strings.Repeat("x", 62) + "\r\n"
	before := strings.Repeat(line, edit.MaxFileSize/64-1) + strings.Repeat("y", 62) + "\r\n"
	f := newFile(t, before)
	f.becomes(strings.Repeat(line, edit.MaxFileSize/64-1)+"z\r\n", strings.Repeat("y", 62), "z")
	f.refuses(engine.TextNotFound, "", "no such text here", "z")
}
