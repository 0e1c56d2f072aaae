package ls_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/ls"
)

func list(t *testing.T, dir string, a ls.Args) string {
	t.Helper()
	res, err := ls.Run(context.Background(), engine.Env{Cwd: dir, Home: dir}, a)
	if err != nil {
		t.Fatal(err)
	}
	return res.Text
}

// TestLinksThatLoop is case H5: links to a parent, to themselves and to each other are entries like others.
func TestLinksThatLoop(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	for link, target := range map[string]string{"a/b/up": "..", "self": "self", "x": "y", "y": "x"} {
		must(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	if got, want := list(t, dir, ls.Args{}), "a/\nself\nx\ny"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := list(t, dir, ls.Args{Path: "a/b/up/b/up/b"}), "up/"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err := ls.Run(context.Background(), engine.Env{Cwd: dir}, ls.Args{Path: "self"})
	if engine.ReasonOf(err) != engine.TooManyLinks {
		t.Errorf("listing a link to itself: %v, want TooManyLinks", err)
	}
}

func TestEveryKindOfEntry(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "bad\xff\xfename"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "closed"), 0))
	if got, want := list(t, dir, ls.Args{}), "bad\ufffd\ufffdname\nclosed/\nfifo"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dead")))
	for path, want := range map[string]struct {
		reason  engine.Reason
		message string
	}{
		"nope":   {engine.FileNotFound, "Path not found: " + dir + "/nope"},
		"file/x": {engine.FileNotFound, "Path not found: " + dir + "/file/x"},
		"dead":   {engine.FileNotFound, "Path not found: " + dir + "/dead"},
		"file":   {engine.NotADirectory, "Not a directory: " + dir + "/file"},
		"fifo":   {engine.NotADirectory, "Not a directory: " + dir + "/fifo"},
		"a\x00b": {engine.InvalidPath, "The path contains a NUL character. Remove it and try again."},
	} {
		_, err := ls.Run(context.Background(), engine.Env{Cwd: dir}, ls.Args{Path: path})
		if engine.ReasonOf(err) != want.reason || err.Error() != want.message {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ls.Run(ctx, engine.Env{Cwd: dir}, ls.Args{}); engine.ReasonOf(err) != engine.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
}

// TestOrder compares the two limits: what a smaller one shows is the beginning of what a larger one shows.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%c%d-\u00e9%d", 'A'+i*7%58, i*37%11, i)), nil, 0o644))
	}
	all := strings.Split(list(t, dir, ls.Args{}), "\n")
	for _, limit := range []int{1, 7, 299} {
		got := strings.Split(list(t, dir, ls.Args{Limit: limit}), "\n")
		if !slices.Equal(got[:limit], all[:limit]) {
			t.Errorf("limit %d shows other entries", limit)
		}
		if want := fmt.Sprintf("[%d entries limit reached. Use limit=%d for more]", limit, 2*limit); got[len(got)-1] != want {
			t.Errorf("notice %q, want %q", got[len(got)-1], want)
		}
	}
}

// TestHugeDirectory lists 100,000 entries in bounded time.
func TestHugeDirectory(t *testing.T) {
	dir := t.TempDir()
	const n = 100_000
	for i := range n { // hard links are made fastest, but a file may have only so many
		path := filepath.Join(dir, fmt.Sprintf("some_file_name_%06d.txt", i))
		if i%10_000 == 0 {
			must(t, os.WriteFile(path, nil, 0o644))
			continue
		}
		must(t, os.Link(filepath.Join(dir, fmt.Sprintf("some_file_name_%06d.txt", i/10_000*10_000)), path))
	}
	start := time.Now()
	got := list(t, dir, ls.Args{Limit: 2})
	elapsed := time.Since(start)
	if want := "some_file_name_000000.txt\nsome_file_name_000001.txt\n\n[2 entries limit reached. Use limit=4 for more]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Logf("%d entries in %v", n, elapsed)
	if elapsed > time.Minute {
		t.Errorf("took %v", elapsed)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
