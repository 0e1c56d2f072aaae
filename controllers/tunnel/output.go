package tunnel

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Bounds of what is kept of a client's output.
const (
	outputLine = 4 << 10   // bytes of one line
	outputFile = 512 << 10 // bytes of the file, of which one predecessor is kept
	outputRate = 64 << 10  // bytes a second
)

// output writes what a client says to a file: without secrets, of bounded size, at a bounded rate. What is left
// out is counted.
type output struct {
	path    string
	secrets []string
	now     func() time.Time

	file    *os.File
	size    int64
	window  time.Time // the second that is being counted
	written int       // bytes in it
	dropped int       // lines
}

// openOutput opens the file. What is in it stays.
func openOutput(path string, secrets []string, now func() time.Time) (*output, error) {
	o := &output{path: path, now: now}
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) >= 8 {
			o.secrets = append(o.secrets, s)
		}
	}
	return o, o.open()
}

func (o *output) open() error {
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the client's log: %w", err)
	}
	if err := f.Chmod(0o600); err != nil {
		return errors.Join(fmt.Errorf("keep others off the client's log: %w", err), f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	o.file, o.size = f, info.Size()
	return nil
}

// copy takes lines until the reader ends. It never stops reading before, so that the client does not wait.
func (o *output) copy(r io.Reader) {
	in := bufio.NewReaderSize(r, outputLine+maxSecret)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			o.line(bytes.TrimSuffix(line, []byte("\n")))
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			break
		}
	}
	o.tellDropped()
	_ = o.file.Close() // nothing depends on it
}

func (o *output) line(line []byte) {
	if now := o.now(); now.Sub(o.window) >= time.Second || now.Before(o.window) {
		o.tellDropped()
		o.window, o.written = now, 0
	}
	if o.written+min(len(line), outputLine) > outputRate {
		o.dropped++
		return
	}
	for _, s := range o.secrets {
		line = bytes.ReplaceAll(line, []byte(s), []byte("[secret]"))
	}
	o.write(append(line[:min(len(line), outputLine):min(len(line), outputLine)], '\n'))
}

func (o *output) tellDropped() {
	if o.dropped > 0 {
		o.write(fmt.Appendf(nil, "[%d lines left out: too many at once]\n", o.dropped))
		o.dropped = 0
	}
}

// write adds to the file and begins a new one when it is full. What a full disk refuses is lost.
func (o *output) write(b []byte) {
	if o.size+int64(len(b)) > outputFile {
		_ = o.file.Close()
		_ = os.Rename(o.path, o.path+".1") // else the file is opened again and grows by one line
		if err := o.open(); err != nil {
			o.file, o.size = nil, 0
		}
	}
	n, _ := o.file.Write(b) // a nil file refuses
	o.size += int64(n)
	o.written += len(b)
}
