package read_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/read"
)

// put writes a file into a fresh directory and returns an Env bound to that.
func put(t *testing.T, name string, content []byte) engine.Env {
	t.Helper()
	env := engine.Env{Cwd: t.TempDir(), Home: t.TempDir()}
	must(t, os.WriteFile(filepath.Join(env.Cwd, name), content, 0o644))
	return env
}

func mustRead(t *testing.T, env engine.Env, a read.Args) *engine.Result {
	t.Helper()
	res, err := read.Run(context.Background(), env, a)
	must(t, err)
	return res
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func revision(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestRanges(t *testing.T) {
	const three = "a\nb\nc\n"
	cases := []struct {
		name, content string
		args          read.Args
		want          string // or the message of OffsetBeyondEnd
		fails         bool
	}{
		{"empty file", "", read.Args{}, "", false},
		{"empty file from its first line", "", read.Args{Offset: 1, Limit: 5}, "", false},
		{"empty file beyond", "", read.Args{Offset: 2}, "Offset 2 is beyond end of file (1 lines total)", true},
		{"one line end", "\n", read.Args{Offset: 2}, "Offset 2 is beyond end of file (1 lines total)", true},
		{"negative offset and limit", three, read.Args{Offset: -5, Limit: -1}, three, false},
		{"last line", three, read.Args{Offset: 3}, "c\n", false},
		{"limit on the last line", three, read.Args{Offset: 3, Limit: 1}, "c", false},
		{"limit beyond the end", three, read.Args{Limit: 4}, three, false},
		{"limit before the last line", three, read.Args{Limit: 2}, "a\nb\n\n[1 more lines in file. Use offset=3 to continue.]", false},
		{"limit overflow", three, read.Args{Offset: 2, Limit: int(^uint(0) >> 1)}, "b\nc\n", false},
		{"no final line end", "a\nb", read.Args{Offset: 2, Limit: 1}, "b", false},
		{"blank lines", "\n\n\n", read.Args{Offset: 2, Limit: 1}, "\n\n[1 more lines in file. Use offset=3 to continue.]", false},
		{"CR is no line end", "a\rb\r\nc", read.Args{Limit: 1}, "a\rb\r\n\n[1 more lines in file. Use offset=2 to continue.]", false},
		{"U+2028 is no line end", "a\u2028b\u0085c\nd", read.Args{Limit: 1}, "a\u2028b\u0085c\n\n[1 more lines in file. Use offset=2 to continue.]", false},
		{"long line after the range", "a\n" + strings.Repeat("q", 99999), read.Args{Limit: 1}, "a\n\n[1 more lines in file. Use offset=2 to continue.]", false},
		{"only the final line end does not fit", strings.Repeat("q", engine.MaxBytes) + "\n", read.Args{}, strings.Repeat("q", engine.MaxBytes), false},
		{"bad bytes grow over the limit", strings.Repeat("\xff", 20000), read.Args{},
			"[Line 1 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '1p' FILE | head -c 51200]", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := put(t, "f", []byte(c.content))
			c.args.Path = "f"
			want := strings.ReplaceAll(c.want, "FILE", filepath.Join(env.Cwd, "f"))
			res, err := read.Run(context.Background(), env, c.args)
			if c.fails {
				if engine.ReasonOf(err) != engine.OffsetBeyondEnd || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				return
			}
			must(t, err)
			if res.Text != want {
				t.Errorf("got %q, want %q", res.Text, want)
			}
			if res.Revision != revision([]byte(c.content)) {
				t.Errorf("revision %s is not that of the file", res.Revision)
			}
		})
	}
}

// TestCharactersAcrossChunks has a character, whole or broken, on every place of the boundary between two
// pieces that are read.
func TestCharactersAcrossChunks(t *testing.T) {
	for _, char := range []string{"é", "€", "😀", "\xe2\x82", "\xf0\x9f\x98", "\xed\xa0\x80"} {
		for _, boundary := range []int{4100, 128 << 10, 128<<10 + 4100} {
			for shift := range 5 {
				content := strings.Repeat("x", boundary-shift-1) + "\n" + char + "\ntail"
				env := put(t, "f", []byte(content))
				res := mustRead(t, env, read.Args{Path: "f", Offset: 2})
				if want := engine.ValidText(char) + "\ntail"; res.Text != want {
					t.Errorf("%q at %d-%d: got %q, want %q", char, boundary, shift, res.Text, want)
				}
			}
		}
	}
}

func TestHintIsOneShellWord(t *testing.T) {
	env := put(t, "it's $HOME; a.txt", []byte(strings.Repeat("q", 60000)))
	res := mustRead(t, env, read.Args{Path: "it's $HOME; a.txt"})
	want := `sed -n '1p' '` + env.Cwd + `/it'\''s $HOME; a.txt' | head -c 51200]`
	if !strings.HasSuffix(res.Text, want) {
		t.Errorf("got %q, want it to end with %q", res.Text, want)
	}
}

// TestNearNames is case H1: a blank of another kind in the name of a screenshot.
func TestNearNames(t *testing.T) {
	const real = "Screenshot\u00a02026 at 9.41\u202fAM.txt"
	env := put(t, real, []byte("shot\n"))
	res := mustRead(t, env, read.Args{Path: "Screenshot 2026 at 9.41 AM.txt"})
	if res.Text != "shot\n" || res.Path != filepath.Join(env.Cwd, real) {
		t.Errorf("got %q from %q", res.Text, res.Path)
	}
	must(t, os.WriteFile(filepath.Join(env.Cwd, "Screenshot 2026 at 9.41\u202fAM.txt"), []byte("other\n"), 0o644))
	_, err := read.Run(context.Background(), env, read.Args{Path: "Screenshot 2026 at 9.41 AM.txt"})
	if engine.ReasonOf(err) != engine.FileNotFound || !strings.Contains(err.Error(), `Screenshot\u00a02026 at 9.41\u202fAM.txt`) {
		t.Errorf("with two such names: %v, want FileNotFound naming both", err)
	}
}

// TestSpecialFiles is cases H7 and Q10: nothing but a regular file is ever opened, so nothing waits, and no
// goroutine stays behind that could keep the process from ending.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(t, os.Symlink("fifo", filepath.Join(dir, "link")))
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer socket.Close()
	before := runtime.NumGoroutine()
	for _, path := range []string{"fifo", "link", "socket", ".", "/dev/zero", "/dev/null"} {
		done := make(chan error, 1)
		go func() {
			_, err := read.Run(context.Background(), engine.Env{Cwd: dir}, read.Args{Path: path})
			done <- err
		}()
		select {
		case err := <-done:
			if engine.ReasonOf(err) != engine.UnsupportedFile {
				t.Errorf("%s: %v, want UnsupportedFile", path, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: read does not answer", path)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines stayed behind", runtime.NumGoroutine()-before)
		}
	}
}

// allocated returns the bytes that fn allocates altogether.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// maxMemory is what reading a text may allocate in all, whatever the file, in bytes.
const maxMemory = 2 << 20

// TestEndOfHugeFile is case H7: 20 lines at the end of a file of 2 GB.
func TestEndOfHugeFile(t *testing.T) {
	env := put(t, "huge", nil)
	must(t, os.Truncate(filepath.Join(env.Cwd, "huge"), 2<<30))
	var err error
	used := allocated(func() {
		_, err = read.Run(context.Background(), env, read.Args{Path: "huge", Offset: 40_000_000, Limit: 20})
	})
	if engine.ReasonOf(err) != engine.FileTooLarge || !strings.Contains(err.Error(), "Use a bounded bash command") {
		t.Errorf("%v, want FileTooLarge with a hint", err)
	}
	if used > maxMemory {
		t.Errorf("allocated %d bytes", used)
	}
}

// TestHugeLine is case Q11: one line of 5 MB, and one of nearly 32 MB at the end of a file.
func TestHugeLine(t *testing.T) {
	for _, c := range []struct {
		head   string
		length int
		hint   string
	}{
		{"", 5 << 20, "[Line 1 is 5.0MB, exceeds 50.0KB limit. Use bash: sed -n '1p' "},
		{strings.Repeat("x\n", 99_999), 31 << 20, "[Line 100000 is 31.0MB, exceeds 50.0KB limit. Use bash: sed -n '100000p' "},
	} {
		env := put(t, "f", append([]byte(c.head), []byte(strings.Repeat("q", c.length))...))
		var res *engine.Result
		used := allocated(func() {
			res = mustRead(t, env, read.Args{Path: "f", Offset: 1 + strings.Count(c.head, "\n")})
		})
		if !strings.HasPrefix(res.Text, c.hint) || len(res.Text) > 1000 {
			t.Errorf("got %d bytes: %.200q", len(res.Text), res.Text)
		}
		if used > maxMemory {
			t.Errorf("allocated %d bytes", used)
		}
	}
}

// meddler is a context that runs fn the first times it is asked, which is between two pieces of a file.
type meddler struct {
	context.Context
	times atomic.Int32
	fn    func(n int)
}

func (m *meddler) Err() error {
	if n := m.times.Add(1); n <= 40 {
		m.fn(int(n))
	}
	return nil
}

// TestChangeWhileReading rewrites the file after its first piece was read: text and revision are those of the
// new content, never a mixture.
func TestChangeWhileReading(t *testing.T) {
	old, next := strings.Repeat("old line\n", 60_000), strings.Repeat("new line\n", 60_000)
	env := put(t, "f", []byte(old))
	ctx := &meddler{Context: context.Background(), fn: func(n int) {
		if n == 2 {
			must(t, os.WriteFile(filepath.Join(env.Cwd, "f"), []byte(next), 0o644))
		}
	}}
	res, err := read.Run(ctx, env, read.Args{Path: "f", Limit: 1})
	must(t, err)
	if res.Revision != revision([]byte(next)) || !strings.HasPrefix(res.Text, "new line\n") {
		t.Errorf("revision %s with %.20q", res.Revision, res.Text)
	}
}

// TestFileThatNeverRests still answers: a log in use must be readable.
func TestFileThatNeverRests(t *testing.T) {
	env := put(t, "log", []byte("begin\n"))
	f, err := os.OpenFile(filepath.Join(env.Cwd, "log"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	ctx := &meddler{Context: context.Background(), fn: func(n int) {
		_, err := fmt.Fprintf(f, "line %d\n", n)
		must(t, err)
	}}
	res, err := read.Run(ctx, env, read.Args{Path: "log"})
	must(t, err)
	if res.Revision != revision([]byte(res.Text)) {
		t.Error("revision and text are not of the same bytes")
	}
}

func TestGrowsTooLargeWhileReading(t *testing.T) {
	env := put(t, "f", make([]byte, 1<<20))
	ctx := &meddler{Context: context.Background(), fn: func(int) {
		must(t, os.Truncate(filepath.Join(env.Cwd, "f"), 100<<20))
	}}
	if _, err := read.Run(ctx, env, read.Args{Path: "f"}); engine.ReasonOf(err) != engine.FileTooLarge {
		t.Errorf("%v, want FileTooLarge", err)
	}
}

func TestCancelled(t *testing.T) {
	env := put(t, "f", []byte("x"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := read.Run(ctx, env, read.Args{Path: "f"}); engine.ReasonOf(err) != engine.Cancelled {
		t.Errorf("%v, want Cancelled", err)
	}
}

func TestFailures(t *testing.T) {
	env := put(t, "f", nil)
	must(t, os.Symlink("loop", filepath.Join(env.Cwd, "loop")))
	for path, want := range map[string]engine.Reason{
		"nope": engine.FileNotFound, "f/x": engine.NotADirectory, "loop": engine.TooManyLinks, "a\x00b": engine.InvalidPath,
		strings.Repeat("n", 300): engine.InvalidPath,
	} {
		if _, err := read.Run(context.Background(), env, read.Args{Path: path}); engine.ReasonOf(err) != want {
			t.Errorf("%.20q: %v, want %s", path, err, want)
		}
	}
}

// TestFileOfUnknownSize reads a file that says it is empty and is not.
func TestFileOfUnknownSize(t *testing.T) {
	res := mustRead(t, engine.Env{Cwd: "/"}, read.Args{Path: "/proc/self/status", Limit: 1})
	if !strings.HasPrefix(res.Text, "Name:") || !strings.Contains(res.Text, "more lines in file") {
		t.Errorf("got %q", res.Text)
	}
}

// FuzzRange compares with the plain way to do it: decode everything, split, cut out, truncate.
func FuzzRange(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), 2, 1)
	f.Add([]byte("a\xffb\r\n\n\xe2\x82"), 1, 2)
	f.Add([]byte(strings.Repeat("0123456789\n", 6000)), 7, 0)
	f.Add([]byte(strings.Repeat("\n", 2500)), 100, 2300)
	f.Add([]byte(strings.Repeat("q", 51201)+"\nx\n"), 1, 2)
	f.Add([]byte(strings.Repeat("q", 51200)+"\nx\n"), 1, 0)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte, offset, limit int) {
		if strings.HasPrefix(string(content), "GIF8") || strings.HasPrefix(string(content), "\xff\xd8\xff") {
			t.Skip("an image")
		}
		must(t, os.WriteFile(filepath.Join(dir, "f"), content, 0o644))
		res, err := read.Run(context.Background(), engine.Env{Cwd: dir}, read.Args{Path: "f", Offset: offset, Limit: limit})
		lines := strings.SplitAfter(engine.ValidText(string(content)), "\n")
		if n := len(lines); n > 1 && lines[n-1] == "" {
			lines = lines[:n-1]
		}
		first := max(offset, 1) - 1
		if first >= len(lines) {
			if engine.ReasonOf(err) != engine.OffsetBeyondEnd {
				t.Fatalf("%v, want OffsetBeyondEnd", err)
			}
			return
		}
		must(t, err)
		wanted := lines[first:]
		cut := limit > 0 && limit <= len(wanted)
		if cut {
			wanted = wanted[:limit]
		}
		text := strings.Join(wanted, "")
		if cut {
			text = strings.TrimSuffix(text, "\n")
		}
		kept := engine.TruncateHead(text, engine.MaxLines, engine.MaxBytes)
		if res.Revision != revision(content) {
			t.Fatal("revision is not that of the file")
		}
		switch {
		case kept.FirstLineExceedsLimit:
			if !strings.HasPrefix(res.Text, fmt.Sprintf("[Line %d is ", first+1)) {
				t.Fatalf("got %q, want the hint", res.Text)
			}
		case kept.OutputLines < kept.TotalLines:
			want := fmt.Sprintf("%s\n\n[Showing lines %d-%d of %d", kept.Content, first+1, first+kept.OutputLines, len(lines))
			if !strings.HasPrefix(res.Text, want) {
				t.Fatalf("text is not the slice of the file: %.80q, want %.80q", res.Text, want)
			}
		case cut && first+limit < len(lines):
			want := fmt.Sprintf("%s\n\n[%d more lines in file. Use offset=%d to continue.]", kept.Content, len(lines)-first-limit, first+limit+1)
			if res.Text != want {
				t.Fatalf("got %.80q, want %.80q", res.Text, want)
			}
		case res.Text != kept.Content:
			t.Fatalf("text is not the slice of the file: %.80q, want %.80q", res.Text, kept.Content)
		}
		if d, ok := res.Details.(*read.Details); ok {
			got := d.Truncation
			if got.Content, kept.Content = "", ""; got != kept {
				t.Fatalf("details %+v, want %+v", got, kept)
			}
		} else if kept.Truncated && kept.OutputLines < kept.TotalLines {
			t.Fatal("details are missing")
		}
	})
}

func BenchmarkSmallFile(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("some line of code\n", 200)), 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read.Run(context.Background(), engine.Env{Cwd: dir}, read.Args{Path: "f"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEndOf30MB(b *testing.B) {
	dir := b.TempDir()
	const lines = 600_000
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("a line of fifty characters, more or less, or so..\n", lines)), 0o644); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(50 * lines)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read.Run(context.Background(), engine.Env{Cwd: dir}, read.Args{Path: "f", Offset: lines - 20}); err != nil {
			b.Fatal(err)
		}
	}
}
