package bash

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// Times after the end of the shell.
const (
	// silence is how long the pipes may say nothing before the command counts as over.
	silence = 100 * time.Millisecond
	// patience is how often silence is put down to a busy machine: some child waits for the processor.
	patience = 3
	// chatter is how long background children that go on writing are listened to.
	chatter = time.Second
	// settling is how long a child that has closed its output may take to end before it counts as left over.
	settling = 50 * time.Millisecond
	// drainPause slows the reading of what a background child writes without pause after the command ended.
	drainPause = 10 * time.Millisecond
)

const chunkSize = 64 << 10

var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// take adds a chunk to the output. After the end of the command reading goes on, so that nobody dies of a
// closed pipe, and slowly, so that it costs nothing.
func (c *Command) take(stream int, chunk []byte) {
	if !c.output.take(stream, chunk) && len(chunk) == chunkSize {
		time.Sleep(drainPause)
	}
}

func readFD(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// run follows the command to its end.
func (c *Command) run() {
	c.family.Await()
	if c.timer != nil {
		c.timer.Stop()
	}
	state, err := c.family.Reap()
	c.reader.catchUp()
	c.quiet()
	left := c.survivors()
	c.output.close()
	c.outcome = c.conclude(state, err, left)
	close(c.done)
}

// quiet waits until both streams have ended, or have been silent, or the time for chatter is over.
func (c *Command) quiet() {
	over := time.NewTimer(chatter)
	defer over.Stop()
	for size, patient := c.output.seen(), patience; ; {
		select {
		case <-c.reader.ended:
			return
		case <-over.C:
			return
		case <-c.halted:
			<-c.stopped
			select { // what is in the pipes still counts
			case <-c.reader.ended:
			case <-time.After(silence):
			}
			return
		case <-time.After(silence):
			c.reader.catchUp() // a busy machine may not have let the reader run
			now := c.output.seen()
			if now == size && (patient == 0 || !c.family.Busy()) {
				return
			}
			if now == size {
				patient--
			}
			size = now
		}
	}
}

// survivors lists what the command left running, after a short wait for what is just ending.
func (c *Command) survivors() []process.Info {
	deadline := time.Now().Add(settling)
	for pause := time.Millisecond; ; pause *= 2 {
		select {
		case <-c.halted:
			<-c.stopped
		default:
		}
		left := c.family.Survivors()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pause)
	}
}

// halt stops the family, once and in the background.
func (c *Command) halt() {
	c.haltOnce.Do(func() {
		close(c.halted)
		go func() {
			defer close(c.stopped)
			c.family.Stop(context.Background()) //nolint:errcheck // what could not be stopped is listed as left over
		}()
	})
}
