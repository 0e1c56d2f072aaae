package bash

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reader reads the two streams of a command in the order in which they became readable, which the kernel keeps
// in an epoll instance. Two goroutines, one a stream, would show a message of an error before or after the
// line it belongs to as the scheduler pleases.
type reader struct {
	ready *os.File // the epoll instance
	fd    [2]int   // only run uses them
}

// newReader makes two pipes and returns their writing ends.
func newReader() (r *reader, writers [2]*os.File, err error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, writers, fmt.Errorf("create epoll: %w", err)
	}
	unix.SetNonblock(ep, true) //nolint:errcheck // without it a thread waits instead of the runtime
	r = &reader{ready: os.NewFile(uintptr(ep), "epoll"), fd: [2]int{-1, -1}}
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
		unix.Close(r.fd[stream]) // this takes it out of the epoll instance
		r.fd[stream] = -1
	}
}

// run gives every chunk to take, and every end of a stream to end, until nobody can write any more. A buffer
// is held only while there is something to read.
func (r *reader) run(take func(stream int, chunk []byte), end func(stream int)) {
	defer r.ready.Close()
	raw, err := r.ready.SyscallConn()
	if err != nil {
		return
	}
	for open := len(r.fd); open > 0; {
		var events [2]unix.EpollEvent
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n = pollEvents(int(fd), events[:])
			return n > 0
		})
		if err != nil {
			return
		}
		for _, event := range events[:n] {
			if stream := int(event.Fd); !r.chunk(stream, take) {
				r.shut(stream)
				end(stream)
				open--
			}
		}
	}
}

// chunk reads once from a stream and says whether there may be more.
func (r *reader) chunk(stream int, take func(stream int, chunk []byte)) bool {
	buf := chunks.Get().(*[chunkSize]byte)
	defer chunks.Put(buf)
	n, err := readFD(r.fd[stream], buf[:])
	if n > 0 {
		take(stream, buf[:n])
		return true
	}
	return err == unix.EAGAIN
}

// waiting says whether something lies in the pipes, as on a machine too busy to let run read it.
func (r *reader) waiting() bool {
	raw, err := r.ready.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	raw.Control(func(fd uintptr) { //nolint:errcheck // closed: nothing waits
		var events [2]unix.EpollEvent
		n = pollEvents(int(fd), events[:])
	})
	return n > 0
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
