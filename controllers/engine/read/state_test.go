package read

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStateAfter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	stat := func() fs.FileInfo {
		t.Helper()
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	written := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	written("x", old)
	before := stat()
	if got := stateAfter(before, stat()); got != settled {
		t.Errorf("left alone for an hour: %d, want settled", got)
	}
	written("xx", old)
	if got := stateAfter(before, stat()); got != changing {
		t.Errorf("another size: %d, want changing", got)
	}
	before = stat()
	written("yy", old.Add(time.Second))
	if got := stateAfter(before, stat()); got != changing {
		t.Errorf("another time: %d, want changing", got)
	}
	written("yy", time.Now().Add(time.Hour)) // the clock of another machine
	before = stat()
	if got := stateAfter(before, stat()); got != fresh {
		t.Errorf("written just now: %d, want fresh", got)
	}
}
