package crash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// renames counts, by name, the files that were renamed within a directory: each is one effect of a write or an edit.
// The kernel counts, so nothing between two looks is missed. It would merge like events that follow each other; those
// of the temporary names, of which each is another, stand between.
type renames struct {
	fd     int
	mu     sync.Mutex
	counts map[string]int
}

func watchRenames(t testing.TB, dir string) *renames {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_MOVED_FROM); err != nil {
		t.Fatal(err)
	}
	return &renames{fd: fd, counts: map[string]int{}}
}

// of returns how often a file was renamed to the name so far.
func (r *renames) of(t testing.TB, name string) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(r.fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			return r.counts[name]
		}
		if err != nil {
			t.Fatal(err)
		}
		for rest := buf[:n]; len(rest) > 0; {
			mask := binary.NativeEndian.Uint32(rest[unsafe.Offsetof(unix.InotifyEvent{}.Mask):])
			size := int(binary.NativeEndian.Uint32(rest[unsafe.Offsetof(unix.InotifyEvent{}.Len):]))
			if mask&unix.IN_Q_OVERFLOW != 0 {
				t.Fatal("the kernel lost events")
			}
			named := rest[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+size]
			if mask&unix.IN_MOVED_TO != 0 {
				r.counts[string(bytes.TrimRight(named, "\x00"))]++
			}
			rest = rest[unix.SizeofInotifyEvent+size:]
		}
	}
}

// TestRenamesAreCounted: the counter sees each of many renames to one name.
func TestRenamesAreCounted(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	r := watchRenames(t, dir)
	for n := range 100 {
		from := filepath.Join(dir, fmt.Sprintf(".rig-bridge-%d.tmp", n))
		put(t, from, "x")
		if err := os.Rename(from, filepath.Join(dir, "target")); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.of(t, "target"); n != 100 {
		t.Errorf("%d of 100 renames were counted", n)
	}
}
