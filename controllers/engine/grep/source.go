package grep

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/sys/unix"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// descriptor reads an open file without the runtime's poller, which regular files do not need.
type descriptor int

// Read is read(2); a file that would block, as some of /proc do, counts as ended.
func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, io.EOF
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func open(path string) (descriptor, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return descriptor(fd), err
		}
	}
}

// decoded returns a reader of UTF-8 if head, the start of what src gives, has the mark of UTF-16, else nil.
func decoded(head []byte, src io.Reader) io.Reader {
	var e unicode.Endianness
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		e = unicode.LittleEndian
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		e = unicode.BigEndian
	default:
		return nil
	}
	all := io.MultiReader(bytes.NewReader(bytes.Clone(head)), src)
	return transform.NewReader(all, unicode.UTF16(e, unicode.ExpectBOM).NewDecoder())
}

func (d descriptor) close() { _ = unix.Close(int(d)) } // nothing was written
