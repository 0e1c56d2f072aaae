package atomicfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/atomicfile"
)

func holds(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || string(b) != want || info.Mode() != mode {
		t.Errorf("%s holds %q with mode %v, %v; want %q, %v", path, b, info.Mode(), err, want, mode)
	}
}

func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("beside it: %v, %v", entries, err)
	}
}

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	old := syscall.Umask(0o277)
	defer syscall.Umask(old)
	for content, mode := range map[string]fs.FileMode{"first": 0o600, "": 0o755, "third": 0o644} {
		if err := atomicfile.Write(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		holds(t, path, content, mode)
	}
	alone(t, path)
}

// A link that lies where the file shall be is replaced, not followed.
func TestWriteReplacesALink(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "key")
	other := filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(other, []byte("other's"), 0o644), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(path, []byte("own"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link counts as a file, but: %v", err)
	}
	if err := atomicfile.Write(path, []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, other, "other's", 0o644)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
	alone(t, path)
}

// A failed attempt changes nothing and leaves nothing.
func TestWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"write": atomicfile.Write, "create": atomicfile.Create} {
		if err := write(path, []byte("x"), 0o600); err == nil {
			t.Errorf("%s: a folder was replaced", name)
		}
		if err := write(filepath.Join(path, "none", "key"), []byte("x"), 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: no folder: %v", name, err)
		}
	}
	alone(t, path)
}

// Of several writers one wins, and everybody sees its content from the first moment.
func TestCreateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	var won atomic.Int64
	var wait sync.WaitGroup
	for n := range byte(8) {
		wait.Go(func() {
			err := atomicfile.Create(path, bytes.Repeat([]byte{'a' + n}, 4096), 0o600)
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
			b, err := os.ReadFile(path)
			if err != nil || len(b) != 4096 || !bytes.Equal(b, bytes.Repeat(b[:1], 4096)) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	wait.Wait()
	if won.Load() != 1 {
		t.Errorf("%d have won", won.Load())
	}
	alone(t, path)
}

// What a killed writer left goes away, what another is about to write stays.
func TestLeftoversAreSwept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	long := time.Now().Add(-2 * time.Hour)
	for name, stays := range map[string]bool{".key.new-1": false, ".key.new-": true, ".key.news": true, ".keys.new-1": true} {
		stale := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(stale, nil, 0o600), os.Chtimes(stale, long, long)); err != nil {
			t.Fatal(err)
		}
		if err := atomicfile.Write(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(stale); (err == nil) != stays {
			t.Errorf("%s stays: %v", name, err == nil)
		}
	}
	fresh := filepath.Join(dir, ".key.new-2")
	if err := errors.Join(os.WriteFile(fresh, nil, 0o600), atomicfile.Write(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Error(err)
	}
}
