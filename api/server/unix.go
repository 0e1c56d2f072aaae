package server

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/rigbridge/rigbridge/api/socket"
)

// ListenUnix listens on a socket that only the daemon's own account can use: its mode is 0600, and each peer's
// user id is checked. The caller holds the state directory's lock, so a socket that is there already is a
// leftover and is removed.
func ListenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	address, done, err := socket.Address(path)
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
