package grep_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/grep"
)

// otherwise names the vectors whose recorded answer is a fault that the reference has and we must not.
var otherwise = map[string]struct {
	why        string
	text, path string
}{
	"grep-029-at-path": {why: "the path shown must exist: the argument's @ was dropped to find it",
		text: "c.ts:2: alpha();", path: "src/deep"},
	"grep-030-unicode-space-path": {why: "the path shown must exist: it has a plain blank",
		text: "a.txt:1: needle", path: "my dir"},
	"grep-048-glob-overrides-ignore": {why: "a glob narrows the search, it does not override ignore files",
		text: "No matches found\n\n[1 ignored match: x.log]"},
}

func TestGolden(t *testing.T) {
	for _, c := range enginetest.Load(t, "grep") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			if c.Better != nil && c.Better.Content != nil {
				c.Better.Note = "" // where the better text is given it is ours to the letter
			}
			if c.Compare == "error-only" {
				c.Expected.Structured = nil // the words are our own
			}
			env := engine.Env{Cwd: c.WorkDir(w), Home: w.Home, ConfigHome: filepath.Join(w.Home, ".config")}
			res, err := grep.Run(context.Background(), env, arguments(c.Arguments(t, w)))
			if o, ok := otherwise[c.ID]; ok {
				path := ""
				if o.path != "" {
					path = filepath.Join(env.Cwd, o.path)
				}
				if err != nil || res.Text != o.text || res.Path != path {
					t.Errorf("%s: got %+v, %v", o.why, res, err)
				}
				return
			}
			got := enginetest.Got{IsError: err != nil, Structured: map[string]any{"details": nil}}
			if err != nil {
				got.Text = err.Error()
				got.Structured["code"], got.Structured["message"] = "EXECUTION_FAILED", err.Error()
			} else {
				got.Text = res.Text
				got.Structured["details"] = res.Details
				if res.Path != "" {
					got.Structured["path"] = res.Path
				}
			}
			c.Check(t, w, got)
		})
	}
}

func arguments(args map[string]any) grep.Args {
	var a grep.Args
	a.Pattern, _ = args["pattern"].(string)
	a.Path, _ = args["path"].(string)
	a.Glob, _ = args["glob"].(string)
	a.IgnoreCase, _ = args["ignoreCase"].(bool)
	a.Literal, _ = args["literal"].(bool)
	if n, ok := args["limit"].(float64); ok {
		a.Limit = int(n)
	}
	if n, ok := args["context"].(float64); ok {
		a.Context = int(n)
	}
	return a
}
