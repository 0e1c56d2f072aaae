package storage

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync makes the content of f durable, including pages written through a
// shared mapping of the same file.
func fdatasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}
