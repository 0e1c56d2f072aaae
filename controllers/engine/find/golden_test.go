package find_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/find"
)

// otherwise names the vectors whose recorded answer is a fault that the reference has and we must not.
var otherwise = map[string]struct {
	why        string
	text, path string
}{
	"find-074-at-path": {why: "the path shown must exist: the argument's @ was dropped to find it",
		text: "c.spec.ts\nc.ts\ndeep/d.spec.ts\ndeep/d.ts", path: "src"},
	"find-088-nfd-name": {why: "both spellings of an accented name match (case H3)", text: "cafe\u0301.txt"},
}

func TestGolden(t *testing.T) {
	for _, c := range enginetest.Load(t, "find") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			if c.Better != nil && c.Better.Content != nil {
				c.Better.Note = "" // where the better text is given it is ours to the letter
			}
			if c.Compare == "error-only" {
				c.Expected.Structured = nil // the words are our own
			}
			env := engine.Env{Cwd: c.WorkDir(w), Home: w.Home, ConfigHome: filepath.Join(w.Home, ".config")}
			args := c.Arguments(t, w)
			var a find.Args
			a.Pattern, _ = args["pattern"].(string)
			a.Path, _ = args["path"].(string)
			if n, ok := args["limit"].(float64); ok {
				a.Limit = int(n)
			}
			res, err := find.Run(context.Background(), env, a)
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
			c.Check(t, w, got)
		})
	}
}
