package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestGolden runs the vectors of the seven tools through MCP, those of the bare tools too. Cases that depend on the server's HOME,
// TMPDIR or environment get a daemon of their own; all others share one.
func TestGolden(t *testing.T) {
	shared := daemon.Start(t, daemon.Options{})
	for _, tool := range []string{"read", "ls", "find", "grep", "write", "edit", "bash"} {
		for _, c := range enginetest.Load(t, tool) {
			if c.HasTag("below-schema-minimum") || c.HasTag("above-schema-maximum") {
				continue // the schema refuses these, see TestBadArguments; the engines' own tests run them
			}
			t.Run(c.ID, func(t *testing.T) { runCase(t, shared, c) })
		}
	}
}

func runCase(t *testing.T, shared *daemon.Daemon, c enginetest.Case) {
	if c.HasTag("needs-root") && os.Getuid() != 0 {
		t.Skip("needs root")
	}
	if len(c.Other) > 0 {
		t.Skip("informative: other versions of the reference's search programs answer differently")
	}
	w := c.Setup(t)
	d := shared
	if ownServer(t, c) {
		d = daemon.Start(t, daemon.Options{Home: w.Home, Env: serverEnv(c, w)})
	}
	client := d.Client()
	workspace := client.Open(t, c.WorkDir(w))
	defer client.OK(t, "workspace_close", daemon.Args{"workspace_id": workspace})
	args := completed(t, c, w, workspace)
	began := time.Now()
	r := callCase(t, client, c, args)
	if limit := time.Duration(c.Control.MaxElapsedMS) * time.Millisecond; limit > 0 && time.Since(began) > limit {
		t.Errorf("took %v, the vector allows %v", time.Since(began), limit)
	}
	time.Sleep(time.Duration(c.Control.SettleMS) * time.Millisecond)
	got := answered(w, r)
	if o, deliberate := ours[c.ID]; deliberate {
		o.apply(&c)
	}
	dropAdditions(&c, w, &got)
	c.Check(t, w, got)
}

// ours are the vectors in which the reference shows a fault that the contract forbids: what we answer.
var ours = map[string]deviation{
	"ls-020-unicode-space-path":      {why: "the path shown is the one that was listed", path: "${CWD}/my dir"},
	"ls-021-file-url-path":           {why: "the path shown is the one that was listed", path: "${CWD}/u r"},
	"find-074-at-path":               {why: "the path shown is the one that was searched", path: "${CWD}/src"},
	"find-088-nfd-name":              {why: "both spellings of an accented name match", text: "cafe\u0301.txt"},
	"grep-029-at-path":               {why: "the path shown is the one that was searched", path: "${CWD}/src/deep"},
	"grep-030-unicode-space-path":    {why: "the path shown is the one that was searched", path: "${CWD}/my dir"},
	"grep-048-glob-overrides-ignore": {why: "a glob narrows the search and overrides no ignore file", text: "No matches found\n\n[1 ignored match: x.log]"},
	"write-002-new-direct":           {why: "messages show the absolute path", text: "Successfully wrote to ${CWD}/a.txt"},
	"write-005-nested-direct":        {why: "messages show the absolute path", text: "Successfully wrote to ${CWD}/x/y/a.txt"},
	"edit-139-relative-direct":       {why: "messages show the absolute path", text: "Successfully replaced 1 block(s) in ${CWD}/sub/x.txt.", without: "details"},
	"read-098-missing-direct":        {why: "errors of the system are told in our own words", text: "No such file or directory: ${CWD}/nope.txt. Check the path with ls or find."},
	"write-023-directory-direct":     {why: "errors of the system are told in our own words", wording: true},
	"bash-112-bg-setsid-timeout":     {why: "a timeout ends what escaped into another session, too", unchanged: true},
}

// deviation replaces parts of what a vector expects.
type deviation struct {
	why, text, path string
	without         string // a structured field that is not compared
	unchanged       bool   // no file changes
	wording         bool   // the text is free
}

func (d deviation) apply(c *enginetest.Case) {
	quoted := func(s string) json.RawMessage {
		b, _ := json.Marshal(s) // a string always encodes
		return b
	}
	if d.text != "" {
		c.Expected.Content = []enginetest.Block{{Type: "text", Text: quoted(d.text)}}
	}
	if d.path != "" {
		c.Expected.Structured["path"] = quoted(d.path)
	}
	delete(c.Expected.Structured, d.without)
	if d.wording {
		c.Compare = "error-only"
	}
	if d.unchanged {
		c.Expected.FilesChanged = []enginetest.Change{}
	}
}

// stillRunning is how an answer lists what a command left behind, which the reference does not tell.
var stillRunning = regexp.MustCompile(`\n\n\[Still running: [^\n]*\]$`)

// dropAdditions takes out what we say beyond the reference: what a command left behind, and the sentences
// after an error or after the success of a write or an edit that say where and what to do next.
func dropAdditions(c *enginetest.Case, w *enginetest.World, got *enginetest.Got) {
	got.Text = stillRunning.ReplaceAllString(got.Text, "")
	want := c.Expected
	if c.Better != nil && c.Better.Content != nil {
		want.Content = c.Better.Content
	}
	var line string
	if len(want.Content) == 0 || json.Unmarshal(want.Content[0].Text, &line) != nil || line == "" {
		return
	}
	if !got.IsError && c.Tool != "write" && c.Tool != "edit" {
		return
	}
	for _, text := range []string{w.Expand(line), line} {
		rest, more := strings.CutPrefix(got.Text, text)
		if more && rest != "" && (got.IsError || rest[0] == '\n') {
			got.Text = text
			if _, has := got.Structured["message"]; has {
				got.Structured["message"] = text
			}
			return
		}
	}
}

// ownServer says whether the case looks at the server's own environment or home.
func ownServer(t *testing.T, c enginetest.Case) bool {
	files, err := json.Marshal(c.Files)
	if err != nil {
		t.Fatal(err)
	}
	world := string(files) + string(c.Args)
	for _, sign := range []string{"HOME", "TMP", "~", ".config"} {
		if strings.Contains(world, sign) {
			return true
		}
	}
	return len(c.Env) > 0
}

func serverEnv(c enginetest.Case, w *enginetest.World) []string {
	env := []string{"TMPDIR=" + w.Tmp, "XDG_CONFIG_HOME=" + filepath.Join(w.Home, ".config"), "LANG=C.UTF-8"}
	for name, value := range c.Env {
		env = append(env, name+"="+w.Expand(value))
	}
	return env
}

// completed adds what every call through the bridge needs besides the tool's own arguments.
func completed(t *testing.T, c enginetest.Case, w *enginetest.World, workspace string) daemon.Args {
	args := daemon.Args(c.Arguments(t, w))
	if args == nil {
		args = daemon.Args{}
	}
	args["workspace_id"] = workspace
	switch c.Tool {
	case "write", "edit":
		if _, given := args["expected_revision"]; !given {
			path, _ := args["path"].(string)
			args["expected_revision"] = enginetest.Revision(absolute(c, w, path))
		}
		fallthrough
	case "bash":
		args["request_key"] = daemon.Key()
	}
	return args
}

func absolute(c enginetest.Case, w *enginetest.World, path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		return w.Home + rest
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.WorkDir(w), path)
}

// callCase calls the tool and, where the vector says so, cancels it meanwhile.
func callCase(t *testing.T, client *daemon.Client, c enginetest.Case, args daemon.Args) daemon.Result {
	t.Helper()
	ctx := bounded(t, 3*time.Minute)
	if c.Control.AbortAfterMS > 0 {
		if args["request_key"] == nil {
			t.Fatalf("the vector cancels %s, which has no key", c.Tool)
		}
		var cancelling sync.WaitGroup
		defer cancelling.Wait()
		cancelling.Go(func() {
			time.Sleep(time.Duration(c.Control.AbortAfterMS) * time.Millisecond)
			r, err := client.Call(ctx, "operation_cancel", daemon.Args{"workspace_id": args["workspace_id"], "request_key": args["request_key"]})
			if err != nil || r.IsError {
				t.Errorf("cancel: %v %s", err, r.Text())
			}
		})
	}
	r, err := client.Call(ctx, c.Tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answered turns a result into the harness's form. The full-output file lies in the state directory, not
// in the temporary one, so its path is replaced by the reference's form wherever it is named.
func answered(w *enginetest.World, r daemon.Result) enginetest.Got {
	got := enginetest.Got{IsError: r.IsError, Text: r.Text(), Structured: r.Structured}
	for _, b := range r.Content {
		if b.Type == "image" {
			got.Images = append(got.Images, enginetest.GotImage{MimeType: b.MIMEType, Data: b.Data})
		}
	}
	details, _ := r.Structured["details"].(map[string]any)
	got.FullOutputPath, _ = details["fullOutputPath"].(string)
	if got.FullOutputPath != "" {
		as := filepath.Join(w.Tmp, "pi-bash-0123456789abcdef.log")
		got.Text = strings.ReplaceAll(got.Text, got.FullOutputPath, as)
		details["fullOutputPath"] = as
	}
	return got
}
