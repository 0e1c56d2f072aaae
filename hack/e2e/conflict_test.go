package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// A revision conflict says what has changed since this caller read the file, and only what this caller has read.
func TestConflictTellsTheDifference(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	c := d.Client()
	dir := t.TempDir()
	one, other := c.Open(t, dir), c.Open(t, dir)
	path := filepath.Join(dir, "a.txt")
	change := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change("one\ntwo\nthree\n")
	revision := c.OK(t, "read", daemon.Args{"workspace_id": one, "path": "a.txt"}).String("revision")
	change("one\nTWO\nthree\n")
	edit := func(ws string) daemon.Result {
		t.Helper()
		return c.Fails(t, "REVISION_CONFLICT", "edit", daemon.Args{"workspace_id": ws, "request_key": daemon.Key(), "path": "a.txt",
			"expected_revision": revision, "edits": []daemon.Args{{"oldText": "three", "newText": "3"}}})
	}
	got := edit(one)
	current := c.OK(t, "read", daemon.Args{"workspace_id": other, "path": "a.txt", "limit": 1}).String("revision")
	patch, _ := got.Structured["details"].(map[string]any)["patch"].(string)
	if got.String("current_revision") != current || !strings.Contains(patch, "-two\n+TWO\n") || !strings.Contains(got.Text(), patch) || !strings.Contains(got.String("output"), patch) {
		t.Errorf("the conflict tells %s", got.Raw)
	}
	if got := edit(other); strings.Contains(got.Text(), "TWO") || got.Structured["details"] != nil {
		t.Errorf("who read one line only is told %s", got.Raw)
	}
	written := c.OK(t, "write", daemon.Args{"workspace_id": other, "request_key": daemon.Key(), "path": "a.txt", "expected_revision": current, "content": "mine\n"})
	change("theirs\n")
	got = c.Fails(t, "REVISION_CONFLICT", "write", daemon.Args{"workspace_id": other, "request_key": daemon.Key(), "path": "a.txt", "expected_revision": written.String("revision"), "content": "x"})
	if !strings.Contains(got.Text(), "-mine\n+theirs\n") {
		t.Errorf("after a write the conflict tells %s", got.Raw)
	}
	change(strings.Repeat("long line\n", 6000))
	got = c.Fails(t, "REVISION_CONFLICT", "write", daemon.Args{"workspace_id": other, "request_key": daemon.Key(), "path": "a.txt", "expected_revision": written.String("revision"), "content": "x"})
	if got.Structured["details"] != nil || !strings.HasPrefix(got.String("current_revision"), "sha256:") {
		t.Errorf("with a large file the conflict tells %s", got.Raw)
	}
}
