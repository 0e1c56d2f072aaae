package replace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// A file that comes up between the last check and the rename is not replaced.
func TestRenameOfANewFileReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	p := New(Target{Path: path, Revision: Missing}, []byte("new"), &engine.Result{})
	for name, content := range map[string]string{path: "came up", p.TempPath("a"): "new"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.rename(p.TempPath("a")); engine.ReasonOf(err) != engine.RevisionConflict {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "came up" || err != nil {
		t.Errorf("file holds %q, %v", b, err)
	}
}
