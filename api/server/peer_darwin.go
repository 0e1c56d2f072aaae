package server

import "golang.org/x/sys/unix"

// socketUID asks for the peer of a socket (LOCAL_PEERCRED, unix(4)).
func socketUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
