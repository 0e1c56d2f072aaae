package engine

import (
	"io/fs"
	"os"
	"syscall"
)

// OpenRegular opens a regular file for reading, links followed, and returns what fstat says about it.
// Everything else is refused with UnsupportedFile before it is opened, so that no FIFO is waited for and no
// device is touched; the open itself does not block either, should the name change its meaning in between.
// Errors of the system come as they are, for SystemError.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, unsupported(path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err = f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = unsupported(path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

func unsupported(path string) error {
	return &Error{Reason: UnsupportedFile, Path: path, Message: "Use bash to inspect devices and special files"}
}
