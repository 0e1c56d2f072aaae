// Package socket says where the daemon's socket is and reaches it however long its path is. The daemon listens
// through it and clients such as rigctl dial through it; it imports nothing but the standard library, so that
// a client does not get the server with it.
package socket

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// File is the name of the socket in the state directory.
const File = "rig-bridge.sock"

// maxPath is what fits into a socket address on every system we run on, in bytes (unix(7)).
const maxPath = 100

// Dial connects to the socket at a path, which may be longer than a socket address.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	address, done, err := Address(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", address)
}

// Address returns an address for the socket at a path; a long one is reached through its open directory. The
// caller calls done when it has used the address, which is then of no more use.
func Address(path string) (address string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path of the socket %s is longer than %d bytes; choose a shorter --state-dir", path, maxPath)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, fmt.Errorf("open the directory of the socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}
