package bash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// TestOutputEqualsWholeText compares the bounded output with the plain functions on the whole text, for random
// texts in random chunks, and checks what the cursor gives on the way.
func TestOutputEqualsWholeText(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		whole := randomText(r)
		o := &Output{full: fullOutput{dir: t.TempDir(), limit: FullOutputLimit}}
		var cursor int64
		for rest := whole; rest != ""; {
			n := min(1+r.IntN(1+r.IntN(chunkSize)), len(rest))
			o.take(0, []byte(rest[:n]))
			rest = rest[n:]
			cursor = checkRead(t, o, whole, cursor, r)
		}
		o.close()
		checkRead(t, o, whole, cursor, r)
		checkSummary(t, o, whole, seed)
		if t.Failed() {
			t.Fatalf("seed %d, %d bytes", seed, len(whole))
		}
	}
}

func checkRead(t *testing.T, o *Output, whole string, cursor int64, r *rand.Rand) int64 {
	t.Helper()
	if r.IntN(3) == 0 {
		return cursor // a slow reader
	}
	text, next, missed := o.Read(cursor, 1+r.IntN(1<<uint(r.IntN(19))))
	if at := cursor + missed; whole[at:at+int64(len(text))] != text || next != at+int64(len(text)) || !utf8.ValidString(text) {
		t.Errorf("read at %d: %d bytes, next %d, missed %d", cursor, len(text), next, missed)
	}
	if size, _ := o.Size(); text == "" && cursor < size {
		t.Errorf("nothing read at %d of %d", cursor, size)
	}
	if size, _ := o.Size(); missed > 0 && size-cursor-missed < TailBytes-utf8.UTFMax {
		t.Errorf("missed %d of %d at %d: less is kept than promised", missed, size, cursor)
	}
	return next
}

func checkSummary(t *testing.T, o *Output, whole string, seed uint64) {
	t.Helper()
	got, want := o.summarize(), engine.TruncateTail(whole, engine.MaxLines, engine.MaxBytes)
	if !want.Truncated {
		if got.text != whole || got.truncation != nil || o.full.path != "" {
			t.Errorf("seed %d: cut though within the limits", seed)
		}
		return
	}
	if got.truncation == nil || *got.truncation != want || got.text != want.Content {
		t.Errorf("truncation %+v, want %+v", got.truncation, want)
	}
	lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
	if last := int64(len(lines[len(lines)-1])); got.lastLine != last {
		t.Errorf("last line %d, want %d", got.lastLine, last)
	}
	if !strings.HasPrefix(whole, got.head) || len(got.head) < HeadBytes-utf8.UTFMax && len(whole) > HeadBytes {
		t.Errorf("head of %d bytes", len(got.head))
	}
	if b, err := os.ReadFile(o.full.path); err != nil || string(b) != whole {
		t.Errorf("full output: %v, %d bytes of %d", err, len(b), len(whole))
	}
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	letters := []rune("aé漢😀")[:1+r.IntN(4)]
	lineLength := []int{0, 3, 60, 5000, 200_000, 1 << 30}[r.IntN(6)]
	for size := r.IntN([]int{100, 60_000, 600_000}[r.IntN(3)]); b.Len() < size; {
		if lineLength == 0 || r.IntN(lineLength) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
	}
	return b.String()
}

// TestFullOutputLimit: the file stops growing, the text does not suffer, the notice says so.
func TestFullOutputLimit(t *testing.T) {
	o := &Output{full: fullOutput{dir: filepath.Join(t.TempDir(), "new", "dir"), limit: 60_000}}
	for range 10 {
		o.take(0, []byte(strings.Repeat("x", 9_999)+"\n"))
	}
	o.close()
	if want := "Full output: " + o.full.path + " (only the first 58.6KB)"; o.full.notice() != want {
		t.Errorf("notice %q, want %q", o.full.notice(), want)
	}
	if st, err := os.Stat(o.full.path); err != nil || st.Size() != 60_000 || st.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", st, err)
	}
	if st, err := os.Stat(o.full.dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", st, err)
	}
	if s := o.summarize(); s.truncation.TotalBytes != 100_000 {
		t.Errorf("total %d", s.truncation.TotalBytes)
	}
}

// TestFullOutputImpossible: a command does not fail because its output cannot be kept.
func TestFullOutputImpossible(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Start(engine.Env{Cwd: t.TempDir(), OutputDir: file}, Args{Command: "seq 1 3000"})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	o := c.Outcome()
	if want := "\n3000\n\n[Showing lines 1001-3000 of 3000. The full output could not be kept: not a directory]"; o.Err != nil || !strings.HasSuffix(o.Result.Text, want) || o.FullOutputPath != "" {
		t.Errorf("%v, %q", o.Err, o.Result.Text[len(o.Result.Text)-200:])
	}
}

func TestPruneOutputs(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	put := func(name string, size int, age time.Duration) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	log := func(n int) string { return fmt.Sprintf("pi-bash-%016x.log", n) }
	put(log(1), 10, time.Hour)
	put(log(2), 100, 2*time.Hour)
	put(log(3), 100, 3*time.Hour)
	put(log(4), 1, 4*time.Hour)
	put(log(5), 0, 50*time.Hour)
	put("pi-bash-other.log", 500, 90*time.Hour)
	put("notes.log", 500, 90*time.Hour)
	left := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(e.Name(), "pi-bash-000000000000000"), ".log"))
		}
		return strings.Join(names, " ")
	}
	for _, step := range []struct {
		age   time.Duration
		total int64
		want  string
	}{
		{48 * time.Hour, 1000, "notes 1 2 3 4 pi-bash-other"},
		{48 * time.Hour, 150, "notes 1 2 pi-bash-other"},
		{90 * time.Minute, 150, "notes 1 pi-bash-other"},
		{time.Hour * 2, 0, "notes pi-bash-other"},
	} {
		if err := PruneOutputs(dir, step.age, step.total); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != step.want {
			t.Errorf("after %v, %d: %s, want %s", step.age, step.total, got, step.want)
		}
	}
	if err := PruneOutputs(filepath.Join(dir, "missing"), 0, 0); err != nil {
		t.Error(err)
	}
}
