package crash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// renames counts, by name, the files that were renamed into a directory: each is one effect of a write or an
// edit. The kernel counts, so nothing between two looks is missed.
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
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO); err != nil {
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
			r.counts[string(bytes.TrimRight(named, "\x00"))]++
			rest = rest[unix.SizeofInotifyEvent+size:]
		}
	}
}
