package replace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
)

// folder is a fresh directory by its real name.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	return dir
}

func put(t *testing.T, path, content string, mode uint32) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(content), 0o600))
	check(t, syscall.Chmod(path, mode))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plan looks at the target and plans to replace it.
func plan(t *testing.T, path, content string) *replace.Plan {
	t.Helper()
	target, err := replace.Look(context.Background(), path, 0, nil)
	check(t, err)
	return replace.New(target, []byte(content), &engine.Result{Text: "done"})
}

// holds checks the bytes of a file and that nothing else lies in its folder.
func holds(t *testing.T, path, want string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != want {
		t.Errorf("%s holds %.40q (%d bytes, %v), want %.40q", path, b, len(b), err, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	check(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".rig-bridge-") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestCommitReplacesAndKeepsTheMode(t *testing.T) {
	for _, mode := range []uint32{0o644, 0o600, 0o755, 0o444, 0o6755, 0o1644, 0o2770} {
		t.Run(fmt.Sprintf("%o", mode), func(t *testing.T) {
			path := filepath.Join(folder(t), "f")
			put(t, path, "old", mode)
			if mode&0o200 == 0 && os.Geteuid() != 0 {
				return // TestReadOnlyFileIsRefused has it
			}
			p := plan(t, path, "new")
			r, err := p.Commit(context.Background(), uuid.NewString())
			check(t, err)
			holds(t, path, "new")
			var st syscall.Stat_t
			check(t, syscall.Stat(path, &st))
			if uint32(st.Mode)&0o7777 != mode {
				t.Errorf("mode %o, want %o", st.Mode&0o7777, mode)
			}
			if r.Path != path || r.Revision != p.After || len(r.ChangedPaths) != 1 || r.ChangedPaths[0] != path || r.Text != "done" {
				t.Errorf("result %+v", r)
			}
			if now, err := replace.Revision(path); now != p.After || err != nil {
				t.Errorf("revision %s (%v), planned %s", now, err, p.After)
			}
		})
	}
}

// A commit costs one sync of the file and one of its folder; each folder that had to be made costs one more.
func TestCommitSyncsTheFileAndItsFolderOnce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		exists bool
		want   []string
	}{
		{"f", true, []string{"temp", "."}},
		{"g", false, []string{"temp", "."}},
		{"a/b/f", false, []string{"temp", "a/b", ".", "a"}},
	} {
		dir := folder(t)
		path := filepath.Join(dir, tc.name)
		if tc.exists {
			put(t, path, "old", 0o644)
		}
		p := plan(t, path, "new")
		attempt := uuid.NewString()
		var synced []string
		p.Sync = func(f *os.File) error {
			name, err := filepath.Rel(dir, f.Name())
			if f.Name() == p.TempPath(attempt) {
				name = "temp"
			}
			synced = append(synced, name)
			return errors.Join(err, f.Sync())
		}
		_, err := p.Commit(context.Background(), attempt)
		check(t, err)
		if got, want := strings.Join(synced, " "), strings.Join(tc.want, " "); got != want {
			t.Errorf("%s: synced %s, want %s", tc.name, got, want)
		}
	}
}

// Case A1, engine part: two callers prepared from one revision, only the first may commit.
func TestA1SecondCommitFromOneRevisionIsRefused(t *testing.T) {
	path := filepath.Join(folder(t), "notes.md")
	put(t, path, "both read this", 0o644)
	a, b := plan(t, path, "A"), plan(t, path, "B")
	_, err := a.Commit(context.Background(), uuid.NewString())
	check(t, err)
	_, err = b.Commit(context.Background(), uuid.NewString())
	refused(t, err, engine.RevisionConflict)
	var e *engine.Error
	if errors.As(err, &e); e.CurrentRevision != a.After || !strings.Contains(e.Message, a.After) {
		t.Errorf("the conflict does not name the current revision: %+v", e)
	}
	holds(t, path, "A")
}

// refused checks the reason of an error and that it denies any effect.
func refused(t *testing.T, err error, reason engine.Reason) {
	t.Helper()
	var e *engine.Error
	if !errors.As(err, &e) || e.Reason != reason || e.EffectsMayHaveOccurred || e.Message == "" {
		t.Errorf("error %+v, want %s without effects", err, reason)
	}
}

func TestTargetThatChangedOrCameUpOrWentIsRefused(t *testing.T) {
	for name, meanwhile := range map[string]func(path string) error{
		"removed":     os.Remove,
		"other bytes": func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o644) },
	} {
		path := filepath.Join(folder(t), "f")
		put(t, path, "old", 0o644)
		p := plan(t, path, "new")
		p.Sync = func(f *os.File) error { return errors.Join(meanwhile(path), f.Sync()) } // the last step before the check
		_, err := p.Commit(context.Background(), uuid.NewString())
		t.Run(name, func(t *testing.T) { refused(t, err, engine.RevisionConflict) })
		if b, _ := os.ReadFile(path); name == "other bytes" && string(b) != "theirs" {
			t.Errorf("%s: file holds %q", name, b)
		}
	}
	path := filepath.Join(folder(t), "f")
	p := plan(t, path, "new")
	put(t, path, "came up", 0o644)
	_, err := p.Commit(context.Background(), uuid.NewString())
	refused(t, err, engine.RevisionConflict)
	holds(t, path, "came up")
}

// Of many callers that create one file at once, exactly one succeeds, even without a lock.
func TestConcurrentCreationHasOneWinner(t *testing.T) {
	path := filepath.Join(folder(t), "sub", "f")
	const n = 16
	plans := make([]*replace.Plan, n)
	for i := range plans {
		plans[i] = plan(t, path, fmt.Sprint("content ", i))
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range plans {
		wg.Go(func() { _, errs[i] = plans[i].Commit(context.Background(), uuid.NewString()) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("both %d and %d succeeded", winner, i)
		case err == nil:
			winner = i
		default:
			refused(t, err, engine.RevisionConflict)
		}
	}
	if winner < 0 {
		t.Fatal("nobody succeeded")
	}
	holds(t, path, fmt.Sprint("content ", winner))
}

func TestFailureLeavesTheOldFileAndNothingElse(t *testing.T) {
	broken := errors.New("broken disk")
	t.Run("file cannot be synced", func(t *testing.T) {
		path := filepath.Join(folder(t), "f")
		put(t, path, "old", 0o644)
		p := plan(t, path, "new")
		p.Sync = func(*os.File) error { return broken }
		_, err := p.Commit(context.Background(), uuid.NewString())
		refused(t, err, engine.InputOutput)
		if !errors.Is(err, broken) {
			t.Errorf("the cause is lost: %v", err)
		}
		holds(t, path, "old")
	})
	t.Run("folders made for it go again", func(t *testing.T) {
		dir := folder(t)
		p := plan(t, filepath.Join(dir, "a", "b", "f"), "new")
		p.Sync = func(*os.File) error { return broken }
		_, err := p.Commit(context.Background(), uuid.NewString())
		refused(t, err, engine.InputOutput)
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		path := filepath.Join(folder(t), "f")
		put(t, path, "old", 0o644)
		ctx, cancel := context.WithCancel(context.Background())
		p := plan(t, path, "new")
		p.Sync = func(f *os.File) error { cancel(); return f.Sync() }
		_, err := p.Commit(ctx, uuid.NewString())
		refused(t, err, engine.Cancelled)
		holds(t, path, "old")
	})
	t.Run("folder is a file", func(t *testing.T) {
		dir := folder(t)
		put(t, filepath.Join(dir, "a"), "x", 0o644)
		p := plan(t, filepath.Join(dir, "b", "f"), "new")
		put(t, filepath.Join(dir, "b"), "came up", 0o644)
		_, err := p.Commit(context.Background(), uuid.NewString())
		refused(t, err, engine.NotADirectory)
	})
	t.Run("attempt is no name", func(t *testing.T) {
		path := filepath.Join(folder(t), "f")
		for _, attempt := range []string{"", "../x", "a/b", "/"} {
			if _, err := plan(t, path, "new").Commit(context.Background(), attempt); err == nil {
				t.Errorf("attempt %q was accepted", attempt)
			}
		}
	})
}

// After the rename a failure must not deny the effect.
func TestFolderThatCannotBeSyncedLeavesTheOutcomeOpen(t *testing.T) {
	path := filepath.Join(folder(t), "f")
	put(t, path, "old", 0o644)
	p := plan(t, path, "new")
	p.Sync = func(f *os.File) error {
		if st, err := f.Stat(); err != nil || st.IsDir() {
			return errors.Join(err, errors.New("broken disk"))
		}
		return f.Sync()
	}
	_, err := p.Commit(context.Background(), uuid.NewString())
	var e *engine.Error
	if !errors.As(err, &e) || !e.EffectsMayHaveOccurred {
		t.Errorf("error %+v", err)
	}
	if v, err := replace.Decide(path, p.After, p.Before); v != replace.Planned || err != nil {
		t.Errorf("verdict %s, %v", v, err)
	}
}

func TestHardLinkBreakIsReported(t *testing.T) {
	dir := folder(t)
	path, other := filepath.Join(dir, "f"), filepath.Join(dir, "g")
	put(t, path, "old", 0o644)
	check(t, os.Link(path, other))
	r, err := plan(t, path, "new").Commit(context.Background(), uuid.NewString())
	check(t, err)
	if !strings.HasPrefix(r.Text, "done\n") || !strings.Contains(r.Text, "2 hard links") {
		t.Errorf("text %q", r.Text)
	}
	holds(t, path, "new")
	holds(t, other, "old")
}

func TestDecide(t *testing.T) {
	path := filepath.Join(folder(t), "f")
	missing := replace.Missing
	a, b := replace.RevisionOf([]byte("a")), replace.RevisionOf([]byte("b"))
	verdict := func(planned, expected string, want replace.Verdict) {
		t.Helper()
		if v, err := replace.Decide(path, planned, expected); v != want || err != nil {
			t.Errorf("Decide(%s, %s) = %s, %v; want %s", planned, expected, v, err, want)
		}
	}
	verdict(a, missing, replace.Expected)
	verdict(a, b, replace.Other)
	put(t, path, "a", 0o644)
	verdict(a, missing, replace.Planned)
	verdict(a, a, replace.Planned)
	verdict(b, a, replace.Expected)
	verdict(b, missing, replace.Other)
	check(t, os.Remove(path))
	check(t, os.Mkdir(path, 0o755))
	if v, err := replace.Decide(path, a, b); v != replace.Other || err == nil {
		t.Errorf("a folder: %s, %v", v, err)
	}
}

func TestSweepRemovesOnlyTemporaryFiles(t *testing.T) {
	dir := folder(t)
	p := plan(t, filepath.Join(dir, "f"), "new")
	attempt := uuid.NewString()
	if want := filepath.Join(dir, ".rig-bridge-"+attempt+".tmp"); p.TempPath(attempt) != want {
		t.Errorf("temporary file %s, want %s", p.TempPath(attempt), want)
	}
	put(t, p.TempPath(attempt), "half", 0o600)
	put(t, filepath.Join(dir, "notes.tmp"), "mine", 0o600)
	check(t, os.Mkdir(filepath.Join(dir, ".rig-bridge-folder.tmp"), 0o755))
	for _, name := range []string{"notes.tmp", ".rig-bridge-folder.tmp", "absent", filepath.Base(p.TempPath(attempt))} {
		replace.Sweep(filepath.Join(dir, name))
	}
	entries, err := os.ReadDir(dir)
	check(t, err)
	if len(entries) != 2 {
		t.Errorf("left: %v", entries)
	}
}

func TestLookReadsOnceAndRefusesWhatIsNoFile(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "f")
	put(t, path, "bytes", 0o644)
	var seen bytes.Buffer
	target, err := replace.Look(context.Background(), path, 5, &seen)
	check(t, err)
	if seen.String() != "bytes" || target.Size != 5 || target.Links != 1 || target.Revision != replace.RevisionOf([]byte("bytes")) {
		t.Errorf("seen %q, target %+v", seen.String(), target)
	}
	check(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	check(t, os.Symlink("f", filepath.Join(dir, "link")))
	put(t, filepath.Join(dir, "long"), "6 here", 0o644)
	for name, want := range map[string]engine.Reason{
		"fifo": engine.UnsupportedFile, "link": engine.UnsupportedFile, ".": engine.IsADirectory, "long": engine.FileTooLarge,
	} {
		_, err := replace.Look(context.Background(), filepath.Join(dir, name), 5, nil)
		refused(t, err, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = replace.Look(ctx, path, 0, nil)
	refused(t, err, engine.Cancelled)
	target, err = replace.Look(context.Background(), filepath.Join(dir, "absent"), 0, nil)
	if err != nil || target.Revision != replace.Missing {
		t.Errorf("absent: %+v, %v", target, err)
	}
}
