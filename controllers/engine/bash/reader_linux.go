package bash

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reader reads the two streams of a command in the order in which they became readable, which the kernel keeps
// in an epoll instance. Two goroutines, one a stream, would show a message of an error before or after the
// line it belongs to as the scheduler pleases.
type reader struct {
	take  func(stream int, chunk []byte)
	end   func(stream int)
	ended chan struct{} // closed when nobody can write any more

	ready *os.File // the epoll instance
	mu    sync.Mutex
	ep    int // its descriptor, valid while open is not 0
	fd    [2]int
	open  int
}

// newReader makes two pipes and returns their writing ends. Every chunk will be given to take and every end of
// a stream to end, never two at a time.
func newReader(take func(stream int, chunk []byte), end func(stream int)) (r *reader, writers [2]*os.File, err error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, writers, fmt.Errorf("create epoll: %w", err)
	}
	unix.SetNonblock(ep, true) //nolint:errcheck // without it a thread waits instead of the runtime
	r = &reader{take: take, end: end, ended: make(chan struct{}), ready: os.NewFile(uintptr(ep), "epoll"), ep: ep,
		fd: [2]int{-1, -1}, open: 2}
	for i := range writers {
		var p [2]int
		if err = unix.Pipe2(p[:], unix.O_CLOEXEC); err == nil {
			r.fd[i], writers[i] = p[0], os.NewFile(uintptr(p[1]), "|1")
			if err = unix.SetNonblock(p[0], true); err == nil {
				err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, p[0], &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)})
			}
		}
		if err != nil {
			closeAll(writers[:]...)
			r.abandon()
			return nil, [2]*os.File{}, fmt.Errorf("create pipe: %w", err)
		}
	}
	return r, writers, nil
}

// abandon closes a reader that will not run.
func (r *reader) abandon() {
	for stream := range r.fd {
		r.shut(stream)
	}
	r.ready.Close()
}

func (r *reader) shut(stream int) {
	if r.fd[stream] >= 0 {
		// Closing alone would leave it there while a child between fork and exec has it open, too (epoll(7)).
		unix.EpollCtl(r.ep, unix.EPOLL_CTL_DEL, r.fd[stream], nil) //nolint:errcheck // of a reader whose making failed it is not there
		unix.Close(r.fd[stream])
		r.fd[stream] = -1
	}
}

// run reads until nobody can write any more.
func (r *reader) run() {
	defer r.ready.Close()
	raw, err := r.ready.SyscallConn()
	if err != nil {
		return
	}
	for over := false; !over; {
		err := raw.Read(func(uintptr) bool {
			var read bool
			read, over = r.step()
			return read || over
		})
		if err != nil {
			return
		}
	}
}

// catchUp reads what lies in the pipes now, up to a few megabytes, in the caller's goroutine: it need not wait
// for run to get the processor.
func (r *reader) catchUp() {
	for range 64 {
		read, over := r.step()
		if over {
			r.ready.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // ends run, if it has not ended
		}
		if over || !read {
			return
		}
	}
}

// step reads once from each stream that is readable.
func (r *reader) step() (read, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == 0 {
		return false, true
	}
	var events [2]unix.EpollEvent
	n := pollEvents(r.ep, events[:])
	for _, event := range events[:n] {
		stream := int(event.Fd)
		if r.chunk(stream) {
			continue
		}
		r.shut(stream)
		r.end(stream)
		if r.open--; r.open == 0 {
			close(r.ended)
		}
	}
	return n > 0, r.open == 0
}

// chunk reads once from a stream and says whether there may be more. A buffer is held only meanwhile.
func (r *reader) chunk(stream int) bool {
	buf := chunks.Get().(*[chunkSize]byte)
	defer chunks.Put(buf)
	n, err := readFD(r.fd[stream], buf[:])
	if n > 0 {
		r.take(stream, buf[:n])
		return true
	}
	return err == unix.EAGAIN
}

// pollEvents returns how many streams are readable, without waiting.
func pollEvents(ep int, events []unix.EpollEvent) int {
	for {
		n, err := unix.EpollWait(ep, events, 0)
		if err != unix.EINTR {
			return max(n, 0)
		}
	}
}
