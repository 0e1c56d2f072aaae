package edit_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/edit"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
)

// saysNormalised are the vectors in which the reference matched in normalised form and kept silent about it. That is
// fault C.8 of the contract; ours adds a sentence on a line of its own.
var saysNormalised = map[string]bool{
	"edit-068-crlf-fuzzy":                   true,
	"edit-073-fuzzy-double-quotes":          true,
	"edit-075-fuzzy-single-quotes":          true,
	"edit-077-fuzzy-dashes":                 true,
	"edit-079-fuzzy-nbsp":                   true,
	"edit-081-fuzzy-trailing-file":          true,
	"edit-084-fuzzy-touched-line-rewritten": true,
	"edit-085-fuzzy-nfkc-line-damage":       true,
	"edit-086-fuzzy-ligature":               true,
	"edit-088-fuzzy-ellipsis":               true,
	"edit-089-fuzzy-nfd-file":               true,
	"edit-090-fuzzy-nfd-old":                true,
	"edit-092-fuzzy-trailing-odd":           true,
	"edit-094-fuzzy-multi-mixed":            true,
	"edit-102-fuzzy-blank-last-line":        true,
}

// absolutePath are the vectors that call the bare tool with a relative path, which it shows as given. Ours has one
// path rule for all calls and shows the absolute path; everything else must agree.
var absolutePath = map[string]bool{
	"edit-045-empty-old-multi": true,
	"edit-139-relative-direct": true,
}

func TestVectors(t *testing.T) {
	for _, c := range enginetest.Load(t, "edit") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			got := run(t, c, w)
			if got.IsError {
				got = firstLine(got)
			} else if said := strings.Contains(got.Text, "matched after normalising"); said != saysNormalised[c.ID] {
				t.Errorf("says that it normalised: %v; text: %s", said, got.Text)
			} else if said {
				got = firstLine(got)
			}
			if absolutePath[c.ID] {
				got = relative(t, w, got)
			}
			c.Check(t, w, got)
		})
	}
}

// firstLine keeps the first line of the text. In failures and notes the vectors bind what is on it; what follows is
// the help that the contract demands beyond the reference: what to do next, lines, counts.
func firstLine(got enginetest.Got) enginetest.Got {
	got.Text, _, _ = strings.Cut(got.Text, "\n")
	if got.IsError {
		got.Structured["message"] = got.Text
	}
	return got
}

func relative(t *testing.T, w *enginetest.World, got enginetest.Got) enginetest.Got {
	t.Helper()
	b, err := json.Marshal(got.Structured)
	if err != nil {
		t.Fatal(err)
	}
	got.Structured = nil
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(b), w.Cwd+"/", "")), &got.Structured); err != nil {
		t.Fatal(err)
	}
	got.Text = strings.ReplaceAll(got.Text, w.Cwd+"/", "")
	return got
}

// run makes the call of a vector: prepare, then commit.
func run(t *testing.T, c enginetest.Case, w *enginetest.World) enginetest.Got {
	t.Helper()
	b, err := json.Marshal(c.Arguments(t, w))
	if err != nil {
		t.Fatal(err)
	}
	var a edit.Args
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
		return enginetest.Got{IsError: true, Text: failed.Message, Structured: map[string]any{
			"code": "EXECUTION_FAILED", "message": failed.Message, "details": failed.Details}}
	}
	if err != nil {
		t.Fatalf("untyped error: %v", err)
	}
	return enginetest.Got{Text: r.Text, Structured: map[string]any{
		"path": r.Path, "changed_paths": r.ChangedPaths, "revision": r.Revision, "details": r.Details}}
}

// do prepares and commits.
func do(env engine.Env, a edit.Args) (*engine.Result, error) {
	p, err := edit.Prepare(context.Background(), env, a)
	if err != nil {
		return nil, err
	}
	if p.Path != p.Result.Path || !filepath.IsAbs(p.Path) || p.After != p.Result.Revision {
		return nil, errors.New("the plan and its result disagree")
	}
	r, err := p.Commit(context.Background(), uuid.NewString())
	if err != nil {
		return nil, err
	}
	if v, err := replace.Decide(p.Path, p.After, p.Before); v != replace.Planned || err != nil {
		return nil, errors.New("after the commit the file is not as planned")
	}
	return r, nil
}
