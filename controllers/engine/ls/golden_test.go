package ls_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/ls"
)

// realPath are vectors whose structured path names nothing: it repeats the argument where the tool listed
// another directory. Ours is the directory that was listed.
var realPath = map[string]string{
	"ls-020-unicode-space-path": "${CWD}/my dir",
	"ls-021-file-url-path":      "${CWD}/u r",
}

// better are vectors whose better text the common check leaves open.
var better = map[string]string{
	"ls-027-symlink-broken": "a.txt\ndead",
	"ls-029-symlink-loop":   "a\nloop",
	"ls-038-limit-0-direct": "a", // 0 is how an absent limit is written; the schema refuses it from clients
}

func TestGolden(t *testing.T) {
	for _, c := range enginetest.Load(t, "ls") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			got := run(t, engine.Env{Cwd: c.WorkDir(w), Home: w.Home}, c.Arguments(t, w))
			if path, ok := realPath[c.ID]; ok {
				if got.Structured["path"] != w.Expand(path) {
					t.Errorf("path %q, want %q", got.Structured["path"], path)
				}
				delete(c.Expected.Structured, "path")
			}
			if text, ok := better[c.ID]; ok && got.Text != text {
				t.Errorf("got %q, want %q", got.Text, text)
			}
			c.Check(t, w, got)
		})
	}
}

func run(t *testing.T, env engine.Env, args map[string]any) enginetest.Got {
	t.Helper()
	path, _ := args["path"].(string)
	limit, _ := args["limit"].(float64)
	res, err := ls.Run(context.Background(), env, ls.Args{Path: path, Limit: int(limit)})
	if err != nil {
		var e *engine.Error
		if !errors.As(err, &e) {
			t.Fatalf("%v is not an *engine.Error", err)
		}
		return enginetest.Got{IsError: true, Text: e.Message,
			Structured: map[string]any{"code": "EXECUTION_FAILED", "message": e.Message}}
	}
	got := enginetest.Got{Text: res.Text, Structured: map[string]any{"details": res.Details}}
	if res.Path != "" {
		got.Structured["path"] = res.Path
	}
	return got
}
