package walk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// lister lists everything; a directory is wanted too.
type lister struct {
	weight int
	visit  func(w *walk.Worker, name string)
	enters atomic.Int64
}

func (l *lister) Wants(*walk.Dir, string, walk.Type) bool { return true }
func (l *lister) Weight(string) int                       { return max(1, l.weight) }
func (l *lister) Enter(*walk.Dir, string) (any, bool)     { l.enters.Add(1); return nil, true }
func (l *lister) Visit(w *walk.Worker, d *walk.Dir, items []walk.Item) []string {
	var out []string
	for _, it := range items {
		if l.visit != nil {
			l.visit(w, it.Name)
		}
		out = append(out, d.Rel+it.Name)
	}
	return out
}

func seeds(root string) []walk.Seed { return []walk.Seed{{Dir: walk.NewRoot(root, nil, nil)}} }

func byParts(list []string) {
	slices.SortFunc(list, func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
}

func plainWalk(t interface{ Fatal(...any) }, root string) []string {
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if path != root && err == nil {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	byParts(out)
	return out
}

// TestOrderAndLimit compares with a plain walk for all kinds of batches, limits and numbers of workers.
func TestOrderAndLimit(t *testing.T) {
	base := t.TempDir()
	name := rapid.SampledFrom([]string{"a", "b", "a.x", "a-b", "B", "ab", "z", "é", "\x01", "0"})
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(base, "tree")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 6), 0, 60).Draw(rt, "paths") {
			path := filepath.Join(append([]string{root}, parts...)...)
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = os.WriteFile(path, nil, 0o644) // a directory of that name may be there already
			}
		}
		want := plainWalk(rt, root)
		o := walk.Options{Workers: rapid.IntRange(1, 8).Draw(rt, "workers"), Batch: rapid.IntRange(0, 4).Draw(rt, "batch"),
			Limit: rapid.IntRange(0, 12).Draw(rt, "limit")}
		out, err := walk.Run(context.Background(), seeds(root), &lister{}, o)
		if err != nil {
			rt.Fatal(err)
		}
		got := out.Results
		if o.Limit > 0 && len(want) > o.Limit {
			if len(got) <= o.Limit {
				rt.Fatalf("%d results do not show that there are more than %d", len(got), o.Limit)
			}
			got, want = got[:o.Limit], want[:o.Limit]
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v: %q, want %q", o, got, want)
		}
	})
}

// wide makes n directories with a file and a sub-directory each.
func wide(t *testing.T, n int) string {
	t.Helper()
	root := t.TempDir()
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%05d", i))
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestLimitEndsEarly: a limited walk reads a small part of the tree.
func TestLimitEndsEarly(t *testing.T) {
	root := wide(t, 2000)
	for _, batch := range []int{0, 8} {
		l := &lister{}
		if _, err := walk.Run(context.Background(), seeds(root), l, walk.Options{Limit: 10, Batch: batch, Workers: 2}); err != nil {
			t.Fatal(err)
		}
		if n := l.enters.Load(); n > 2000+400 { // the root's own entries, and a few more
			t.Errorf("batch %d: %d directories were met", batch, n)
		}
	}
}

// TestMemoryOfLateResults: results behind a slow first one are dropped once there are enough of them.
func TestMemoryOfLateResults(t *testing.T) {
	root := wide(t, 500)
	var visited atomic.Int64
	release := make(chan struct{})
	l := &lister{visit: func(w *walk.Worker, name string) {
		if name == "d00000" {
			<-release // the first in order hangs until the others are through
		}
		if visited.Add(1) == 21 {
			close(release)
		}
	}}
	out, err := walk.Run(context.Background(), seeds(root), l, walk.Options{Limit: 20, Batch: 1, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Results) < 21 || out.Results[0] != "d00000" || len(out.Results) > 40 {
		t.Errorf("%d results, first %q", len(out.Results), out.Results[:1])
	}
	if n := visited.Load(); n > 100 {
		t.Errorf("%d of 1500 entries were visited", n)
	}
}

// TestCancelledInVisit: cancelling ends a walk although a worker hangs and never asks.
func TestCancelledInVisit(t *testing.T) {
	root := wide(t, 5)
	release := make(chan struct{})
	defer close(release)
	l := &lister{visit: func(*walk.Worker, string) { <-release }}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	start := time.Now()
	_, err := walk.Run(ctx, seeds(root), l, walk.Options{Batch: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestBudget: what is found in time is kept, what is unread is counted, and the results stay in order.
func TestBudget(t *testing.T) {
	root := wide(t, 50)
	l := &lister{visit: func(w *walk.Worker, name string) {
		for !w.Stopped() && name == "d00025" {
			time.Sleep(time.Millisecond)
		}
	}}
	o := walk.Options{Batch: 1, Workers: 1, Budget: 300 * time.Millisecond}
	out, err := walk.Run(context.Background(), seeds(root), l, o)
	if err != nil {
		t.Fatal(err)
	}
	if !out.TimedOut || out.Unread < 25 || len(out.Results) < 3*25 || !slices.IsSorted(out.Results) {
		t.Errorf("timed out %v, %d unread, %d results", out.TimedOut, out.Unread, len(out.Results))
	}
	want := fmt.Sprintf("incomplete: stopped after 0 seconds with %d directories unread. Narrow path or pattern", out.Unread)
	if got := out.Shortfalls(o); len(got) != 1 || got[0] != want {
		t.Errorf("notices %q", got)
	}
	// All directories were listed, but not all of their files were searched.
	inFiles := walk.Outcome[string]{TimedOut: true}
	want = "incomplete: stopped after 20 seconds with files not read to their end. Narrow path or pattern"
	if got := inFiles.Shortfalls(walk.Options{Budget: 20 * time.Second}); len(got) != 1 || got[0] != want {
		t.Errorf("notices %q", got)
	}
}

func TestRootIsGone(t *testing.T) {
	_, err := walk.Run(context.Background(), seeds(filepath.Join(t.TempDir(), "gone")), &lister{}, walk.Options{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestUnreadable: a directory that cannot be opened, here for the length of its path, is reported.
func TestUnreadable(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	name := strings.Repeat("n", 250)
	for range 20 {
		if err == nil {
			err = unix.Mkdirat(fd, name, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		var next int
		next, err = unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	out, err := walk.Run(context.Background(), seeds(root), &lister{}, walk.Options{})
	if err != nil || out.Unreadable != 1 || len(out.Results) < 10 {
		t.Fatalf("%d unreadable, %d results, %v", out.Unreadable, len(out.Results), err)
	}
	got := out.Shortfalls(walk.Options{})
	if len(got) != 1 || !strings.HasPrefix(got[0], "incomplete: 1 directory could not be read: nnn") {
		t.Errorf("notices %q", got)
	}
}

// TestLargeDirectory needs several rounds of getdents.
func TestLargeDirectory(t *testing.T) {
	root := t.TempDir()
	const n = 5000
	for i := range n {
		if err := syscall.Link(first(t, root), filepath.Join(root, fmt.Sprintf("%0100d", i))); err != nil {
			t.Fatal(err)
		}
	}
	out, err := walk.Run(context.Background(), seeds(root), &lister{}, walk.Options{})
	if err != nil || len(out.Results) != n+1 {
		t.Errorf("%d results, %v", len(out.Results), err)
	}
}

func first(t *testing.T, root string) string {
	path := filepath.Join(root, "first")
	if _, err := os.Lstat(path); err != nil {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestDisplay(t *testing.T) {
	for in, want := range map[string]string{"a/b": "a/b", "a\nb\rc": `a\nb\rc`, "x\xffy": "x\ufffdy", `a\b`: `a\b`} {
		if got := walk.Display(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestInGit(t *testing.T) {
	for path, want := range map[string]bool{"/a/.git": true, "/a/.git/hooks": true, "/a/.github": false, "/": false, "/a": false} {
		if walk.InGit(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
