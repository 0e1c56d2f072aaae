package walk

import (
	"encoding/binary"
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// Type is the kind of a directory entry.
type Type uint8

// The kinds that searches tell apart.
const (
	Other Type = iota
	File
	Directory
	Link
)

// direntLength is where a record of a directory has its length, two bytes of it, on every system.
const direntLength = 16

// listing is the raw content of one directory. It is reused.
type listing struct {
	raw  []byte
	n    int
	text string // raw[:n]
}

// bigEndian is the byte order of the record length.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

const (
	minListing = 64 << 10
	maxKept    = 1 << 20 // a larger buffer is not kept for the next directory
)

// read fills the listing from an open directory. stop is asked between system calls.
func (l *listing) read(fd int, stop func() bool) error {
	if cap(l.raw) == 0 || cap(l.raw) > maxKept {
		l.raw = make([]byte, minListing)
	}
	l.raw = l.raw[:cap(l.raw)]
	l.n, l.text = 0, ""
	for !stop() {
		if len(l.raw)-l.n < minListing/2 {
			l.raw = append(l.raw, make([]byte, len(l.raw))...)
			l.raw = l.raw[:cap(l.raw)]
		}
		n, err := unix.ReadDirent(fd, l.raw[l.n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n <= 0:
			l.text = string(l.raw[:l.n])
			return nil
		}
		l.n += n
	}
	return nil
}

// each calls f for every entry but "." and "..". The names share one string.
func (l *listing) each(f func(name string, t Type)) {
	for buf := l.text; len(buf) > direntName; {
		size := int(buf[direntLength]) | int(buf[direntLength+1])<<8
		if bigEndian {
			size = int(buf[direntLength])<<8 | int(buf[direntLength+1])
		}
		if size <= direntName || size > len(buf) {
			return
		}
		name := buf[direntName:size]
		name, _, _ = strings.Cut(name, "\x00")
		if name != "." && name != ".." {
			f(name, typeOf(buf[direntType]))
		}
		buf = buf[size:]
	}
}

// unknown marks an entry whose kind the file system does not tell.
const unknown Type = 255

func typeOf(d byte) Type {
	switch d {
	case unix.DT_REG:
		return File
	case unix.DT_DIR:
		return Directory
	case unix.DT_LNK:
		return Link
	case unix.DT_UNKNOWN:
		return unknown
	}
	return Other
}

func lookUp(path string) Type {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return Other
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Link
	}
	return Other
}

// IsFile says whether path is a regular file, links not followed.
func IsFile(path string) bool { return lookUp(path) == File }
