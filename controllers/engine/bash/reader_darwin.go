package bash

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// reader reads the two streams of a command, each in a goroutine of its own; what arrives on both at the same
// time may change places.
type reader struct {
	pipe [2]*os.File
}

// newReader makes two pipes and returns their writing ends.
func newReader() (r *reader, writers [2]*os.File, err error) {
	r = &reader{}
	for i := range writers {
		if r.pipe[i], writers[i], err = os.Pipe(); err != nil {
			closeAll(writers[:]...)
			r.abandon()
			return nil, [2]*os.File{}, fmt.Errorf("create pipe: %w", err)
		}
	}
	return r, writers, nil
}

// abandon closes a reader that will not run.
func (r *reader) abandon() { closeAll(r.pipe[:]...) }

// run gives every chunk to take, and every end of a stream to end, until nobody can write any more.
func (r *reader) run(take func(stream int, chunk []byte), end func(stream int)) {
	var both sync.WaitGroup
	for stream := range r.pipe {
		both.Go(func() {
			defer r.pipe[stream].Close()
			for r.chunk(stream, take) {
			}
			end(stream)
		})
	}
	both.Wait()
}

// chunk reads once from a stream and says whether there may be more. A buffer is held only while there is
// something to read.
func (r *reader) chunk(stream int, take func(stream int, chunk []byte)) bool {
	raw, err := r.pipe[stream].SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Read(func(fd uintptr) bool {
		buf := chunks.Get().(*[chunkSize]byte)
		defer chunks.Put(buf)
		var rerr error
		if n, rerr = readFD(int(fd), buf[:]); rerr == syscall.EAGAIN {
			return false
		}
		if n > 0 {
			take(stream, buf[:n])
		}
		return true
	})
	return err == nil && n > 0
}

// waiting says whether something lies in the pipes, as on a machine too busy to let run read it.
func (r *reader) waiting() bool {
	waiting := false
	for _, f := range r.pipe {
		raw, err := f.SyscallConn()
		if err != nil {
			continue
		}
		raw.Control(func(fd uintptr) { //nolint:errcheck // closed: nothing waits
			ask := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(ask, 0)
			waiting = waiting || err == nil && n > 0 && ask[0].Revents&unix.POLLIN != 0
		})
	}
	return waiting
}
