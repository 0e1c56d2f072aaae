package server

import "golang.org/x/sys/unix"

// socketUID asks for the peer of a socket (SO_PEERCRED, unix(7)).
func socketUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
