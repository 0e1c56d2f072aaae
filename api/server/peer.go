package server

import "net"

// peerUID returns the user id of a connection's other end.
func peerUID(c *net.UnixConn) (uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) { uid, err = socketUID(int(fd)) })
	if cerr != nil {
		return 0, cerr
	}
	return uid, err
}
