package bash

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reader reads the two streams of a command, each in a goroutine of its own; what arrives on both at the same
// time may change places.
type reader struct {
	take  func(stream int, chunk []byte)
	end   func(stream int)
	ended chan struct{} // closed when nobody can write any more
	mu    sync.Mutex    // held while a chunk or an end is given away
	pipe  [2]*os.File
}

// newReader makes two pipes and returns their writing ends. Every chunk will be given to take and every end of
// a stream to end, never two at a time.
func newReader(take func(stream int, chunk []byte), end func(stream int)) (r *reader, writers [2]*os.File, err error) {
	r = &reader{take: take, end: end, ended: make(chan struct{})}
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

// run reads until nobody can write any more.
func (r *reader) run() {
	var both sync.WaitGroup
	for stream := range r.pipe {
		both.Go(func() {
			defer r.pipe[stream].Close()
			for r.chunk(stream) {
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.end(stream)
		})
	}
	both.Wait()
	close(r.ended)
}

// catchUp lets run read what lies in the pipes now.
func (r *reader) catchUp() {
	for deadline := time.Now().Add(time.Second); r.waiting() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// chunk reads once from a stream and says whether there may be more. A buffer is held only while there is
// something to read.
func (r *reader) chunk(stream int) bool {
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
			r.mu.Lock()
			defer r.mu.Unlock()
			r.take(stream, buf[:n])
		}
		return true
	})
	return err == nil && n > 0
}

// waiting says whether something lies in the pipes.
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
