package write_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/write"
)

// absolutePath are the vectors that call the bare tool with a relative path, which it shows as given. Ours has one
// path rule for all calls and shows the absolute path; everything else must agree.
var absolutePath = map[string]bool{
	"write-002-new-direct":    true,
	"write-005-nested-direct": true,
}

// saysMore are the vectors in whose success the reference is silent about something that ours says on a line of its
// own: that the new content has no byte order mark although the old file had one (case B8).
var saysMore = map[string]bool{"write-010-bom": true}

func TestVectors(t *testing.T) {
	for _, c := range enginetest.Load(t, "write") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			got := run(t, c, w)
			// In failures the vectors bind the beginning of the text: the contract demands help behind it.
			if want := expectedText(t, c); got.IsError && strings.HasPrefix(got.Text, want) {
				got.Text, got.Structured["message"] = want, want
			}
			if saysMore[c.ID] {
				var note string
				if got.Text, note, _ = strings.Cut(got.Text, "\n"); note == "" {
					t.Error("nothing is said")
				}
			}
			if absolutePath[c.ID] {
				got.Text = strings.ReplaceAll(got.Text, w.Cwd+"/", "")
			}
			c.Check(t, w, got)
		})
	}
}

func expectedText(t *testing.T, c enginetest.Case) (text string) {
	t.Helper()
	if err := json.Unmarshal(c.Expected.Content[0].Text, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

// run makes the call of a vector: prepare, then commit.
func run(t *testing.T, c enginetest.Case, w *enginetest.World) enginetest.Got {
	t.Helper()
	b, err := json.Marshal(c.Arguments(t, w))
	if err != nil {
		t.Fatal(err)
	}
	var a write.Args
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatal(err)
	}
	env := engine.Env{Cwd: c.WorkDir(w), Home: w.Home}
	path, err := env.ResolvePath(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	a.ExpectedRevision = enginetest.Revision(path)
	r, err := do(env, a)
	var failed *engine.Error
	if errors.As(err, &failed) {
		code := "EXECUTION_FAILED"
		if failed.Reason == engine.InvalidPath {
			code = "INVALID_PATH"
		}
		return enginetest.Got{IsError: true, Text: failed.Message, Structured: map[string]any{
			"code": code, "message": failed.Message, "details": failed.Details}}
	}
	if err != nil {
		t.Fatalf("untyped error: %v", err)
	}
	return enginetest.Got{Text: r.Text, Structured: map[string]any{
		"path": r.Path, "changed_paths": r.ChangedPaths, "revision": r.Revision, "details": r.Details}}
}

// do prepares and commits.
func do(env engine.Env, a write.Args) (*engine.Result, error) {
	p, err := write.Prepare(context.Background(), env, a)
	if err != nil {
		return nil, err
	}
	return p.Commit(context.Background(), uuid.NewString())
}

// overwrite puts content into a fresh file and then writes over it.
func overwrite(t *testing.T, before, after string) (text, path string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := do(engine.Env{Cwd: dir}, write.Args{Path: "f", Content: after, ExpectedRevision: enginetest.Revision(path)})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != after {
		t.Errorf("file holds %q, want %q", b, after)
	}
	return r.Text, path
}

// Case B8: content is taken literally, and what the old file loses by that is named.
func TestB8WholeRewriteNamesWhatIsLost(t *testing.T) {
	for _, tc := range []struct {
		name, before, after string
		says                []string
	}{
		{"mark and CRLF", "\ufeffa\r\nb\r\n", "c\nd\n", []string{"byte order mark", "CRLF"}},
		{"mark", "\ufeffa\n", "c\n", []string{"byte order mark"}},
		{"CRLF", "a\r\nb\r\n", "c\n", []string{"CRLF"}},
		{"CRLF astride two reads", strings.Repeat("x", 256<<10-1) + "\r\n", "c\n", []string{"CRLF"}},
		{"UTF-16", "\xff\xfea\x00\n\x00", "a\n", []string{"UTF-16"}},
		{"both kept", "\ufeffa\r\n", "\ufeffb\r\n", nil},
		{"nothing to lose", "a\n", "\ufeffb\r\n", nil},
		{"no line end in the new content", "a\r\n", "b", nil},
		{"mostly LF", "a\r\nb\nc\n", "b\n", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, path := overwrite(t, tc.before, tc.after)
			first, note, _ := strings.Cut(text, "\n")
			if first != "Successfully wrote to "+path {
				t.Errorf("first line %q", first)
			}
			for _, want := range tc.says {
				if !strings.Contains(note, want) {
					t.Errorf("note %q does not say %q", note, want)
				}
			}
			if (note == "") != (tc.says == nil) || strings.Contains(note, "\n") {
				t.Errorf("note %q", note)
			}
		})
	}
}

// Case A1, engine part: the revision that a second writer holds is stale, and it is told the current one.
func TestA1StaleRevisionIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.md")
	if err := os.WriteFile(path, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env, seen := engine.Env{Cwd: dir}, enginetest.Revision(path)
	if _, err := do(env, write.Args{Path: "notes.md", Content: "A\n", ExpectedRevision: seen}); err != nil {
		t.Fatal(err)
	}
	for name, expected := range map[string]string{"stale": seen, "missing": "missing", "empty": "", "nonsense": "sha256:xyz"} {
		_, err := do(env, write.Args{Path: "notes.md", Content: "B\n", ExpectedRevision: expected})
		var e *engine.Error
		current := enginetest.Revision(path)
		if !errors.As(err, &e) || e.Reason != engine.RevisionConflict || e.CurrentRevision != current ||
			!strings.Contains(e.Message, current) || e.EffectsMayHaveOccurred {
			t.Errorf("%s: %+v", name, err)
		}
	}
	if b, _ := os.ReadFile(path); string(b) != "A\n" {
		t.Errorf("file holds %q", b)
	}
	if _, err := do(env, write.Args{Path: "gone", Content: "B", ExpectedRevision: seen}); engine.ReasonOf(err) != engine.RevisionConflict {
		t.Errorf("a file that is gone: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]engine.Reason{
		"d":                      engine.IsADirectory,
		"":                       engine.IsADirectory,
		"/dev/null":              engine.UnsupportedFile,
		"a\x00b":                 engine.InvalidPath,
		"/dev/null/x":            engine.NotADirectory,
		strings.Repeat("n", 300): engine.InvalidPath,
	} {
		_, err := do(engine.Env{Cwd: dir}, write.Args{Path: path, Content: "x", ExpectedRevision: "missing"})
		if got := engine.ReasonOf(err); got != want {
			t.Errorf("%q: %s (%v), want %s", path, got, err, want)
		}
	}
}
