package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
)

// maxSocketPath is what fits into a socket address on every system we run on, in bytes (unix(7)).
const maxSocketPath = 100

// ListenUnix listens on a socket that only the daemon's own account can use: its mode is 0600, and each peer's
// user id is checked. The caller holds the state directory's lock, so a socket that is there already is a
// leftover and is removed.
func ListenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	address, done, err := socketAddress(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // its address may be short-lived; the next start removes it
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("restrict the socket: %w", err), l.Close())
	}
	return &ownerListener{UnixListener: l, path: path}, nil
}

// DialUnix connects to a socket whose path may be longer than a socket address.
func DialUnix(path string) (net.Conn, error) {
	address, done, err := socketAddress(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return net.Dial("unix", address)
}

// socketAddress returns an address for a socket path; a long one is reached through its open directory.
func socketAddress(path string) (address string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("the path of the socket %s is longer than %d bytes; choose a shorter --state-dir", path, maxSocketPath)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, fmt.Errorf("open the directory of the socket: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// ownerListener accepts connections of the daemon's own account only.
type ownerListener struct {
	*net.UnixListener
	path string
}

// Accept waits for the next connection of the own account; others are closed at once.
func (l *ownerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(c); err == nil && (uid == os.Getuid() || uid == 0) {
			return c, nil
		}
		_ = c.Close()
	}
}

// Close ends the listener and removes the socket.
func (l *ownerListener) Close() error {
	err := l.UnixListener.Close()
	if rerr := os.Remove(l.path); !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}
