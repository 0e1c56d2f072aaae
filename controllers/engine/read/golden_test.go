package read_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/controllers/engine/read"
)

// elsewise are vectors of the bare tool whose expected value our rules turn into another one.
var elsewise = map[string]struct{ text, why string }{
	"read-029-limit-0-direct": {"a\nb\n", "0 is how an absent limit is written; the schema refuses it from clients"},
}

func TestGolden(t *testing.T) {
	for _, c := range enginetest.Load(t, "read") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			got := run(t, engine.Env{Cwd: c.WorkDir(w), Home: w.Home, ConfigHome: w.Home + "/.config"}, c.Arguments(t, w))
			if other, ok := elsewise[c.ID]; ok {
				if got.IsError || got.Text != other.text {
					t.Errorf("got %q, want %q: %s", got.Text, other.text, other.why)
				}
				return
			}
			c.Check(t, w, got)
		})
	}
}

// TestGoldenBetter holds the vectors whose better text the common check leaves open.
func TestGoldenBetter(t *testing.T) {
	want := map[string]string{
		"read-018-limit-exact-newline": "a\nb",
		"read-033-lines-2001-newline":  "\n\n[Showing lines 1-2000 of 2001. Use offset=2001 to continue.]",
		"read-069-apng":                "Read image file [image/png]",
		"read-078-text-riff":           "RIFFxxxxWEBP is a container\n",
		"read-084-png-zero":            "Multiply coordinates by 5.00 to map to original image.]",
		"read-111-nbsp-name":           "x\n",
	}
	for _, c := range enginetest.Load(t, "read") {
		suffix, ok := want[c.ID]
		if !ok {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			got := run(t, engine.Env{Cwd: c.WorkDir(w), Home: w.Home}, c.Arguments(t, w))
			if got.IsError || len(got.Text) < len(suffix) || got.Text[len(got.Text)-len(suffix):] != suffix {
				t.Errorf("got %q, want it to end with %q", got.Text, suffix)
			}
		})
	}
}

func run(t *testing.T, env engine.Env, args map[string]any) enginetest.Got {
	t.Helper()
	number := func(key string) int {
		n, _ := args[key].(float64)
		return int(n)
	}
	path, _ := args["path"].(string)
	res, err := read.Run(context.Background(), env, read.Args{Path: path, Offset: number("offset"), Limit: number("limit")})
	if err != nil {
		return failure(t, err)
	}
	got := enginetest.Got{Text: res.Text, Structured: map[string]any{"path": res.Path, "revision": res.Revision, "details": res.Details}}
	for _, img := range res.Images {
		got.Images = append(got.Images, enginetest.GotImage{MimeType: img.MIMEType, Data: img.Data})
	}
	return got
}

func failure(t *testing.T, err error) enginetest.Got {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an *engine.Error", err)
	}
	code := map[engine.Reason]string{engine.UnsupportedFile: "UNSUPPORTED_FILE", engine.FileTooLarge: "FILE_TOO_LARGE",
		engine.InvalidPath: "INVALID_PATH"}[e.Reason]
	if code == "" {
		code = "EXECUTION_FAILED"
	}
	return enginetest.Got{IsError: true, Text: e.Message, Structured: map[string]any{"code": code, "message": e.Message}}
}

// TestDetailsShape pins the keys that clients see.
func TestDetailsShape(t *testing.T) {
	b, err := json.Marshal(&read.Details{Truncation: engine.Truncation{Content: "x", Truncated: true, TruncatedBy: engine.ByLines}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"truncation":{"truncated":true,"truncatedBy":"lines","totalLines":0,"totalBytes":0,"outputLines":0,` +
		`"outputBytes":0,"lastLinePartial":false,"firstLineExceedsLimit":false,"maxLines":0,"maxBytes":0}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}
