package bash

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestReaderEndsBesideAFork: between fork and exec a child of another command has every descriptor too, so closing ours
// does not take a pipe out of the epoll instance. Each stream must end once all the same, and the reader with them.
func TestReaderEndsBesideAFork(t *testing.T) {
	ends := [2]int{}
	r, writers, err := newReader(func(int, []byte) {}, func(stream int) { ends[stream]++ })
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range r.fd {
		inChild, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(inChild)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run()
	}()
	writers[0].Close()
	for r.waits(0) { // one stream has ended, the other has not
		time.Sleep(time.Millisecond)
	}
	select {
	case <-r.ended:
		t.Error("ended while a stream was open")
	default:
	}
	writers[1].Close()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the reader waits for ever")
	}
	if ends != [2]int{1, 1} {
		t.Errorf("the streams ended %v times", ends)
	}
}

// waits says whether a stream has not ended.
func (r *reader) waits(stream int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fd[stream] >= 0
}
