package replace

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// keepAttributes gives f the owner, group, extended attributes (ACL included) and mode of the file at path. Owner,
// group and attributes are kept as far as the account may set them. A set-id bit stays only with its owner or
// group, so that it never lends somebody else's rights.
func keepAttributes(path string, f *os.File) error {
	var old, now unix.Stat_t
	if err := unix.Lstat(path, &old); errors.Is(err, unix.ENOENT) {
		return nil // the check before the rename reports it
	} else if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	fd := int(f.Fd())
	if err := unix.Fchown(fd, int(old.Uid), int(old.Gid)); err != nil {
		unix.Fchown(fd, -1, int(old.Gid)) //nolint:errcheck // best effort
	}
	if err := unix.Fstat(fd, &now); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	mode := old.Mode & 0o7777
	if now.Uid != old.Uid {
		mode &^= unix.S_ISUID
	}
	if now.Gid != old.Gid {
		mode &^= unix.S_ISGID
	}
	copyAttributes(path, fd)
	if err := unix.Fchmod(fd, uint32(mode)); err != nil { // last: a change of owner or ACL alters the mode
		return fmt.Errorf("chmod: %w", err)
	}
	return nil
}

// copyAttributes copies extended attributes, best effort: what the file system or the account does not allow is
// left out, and so are signatures over the old bytes.
func copyAttributes(path string, fd int) {
	size, err := unix.Llistxattr(path, nil)
	if err != nil || size == 0 {
		return
	}
	names := make([]byte, size)
	if size, err = unix.Llistxattr(path, names); err != nil {
		return
	}
	for _, name := range strings.Split(strings.TrimRight(string(names[:size]), "\x00"), "\x00") {
		if name == "" || name == "security.ima" || name == "security.evm" {
			continue
		}
		n, err := unix.Lgetxattr(path, name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, n)
		if n, err = unix.Lgetxattr(path, name, value); err == nil {
			unix.Fsetxattr(fd, name, value[:n], 0) //nolint:errcheck // best effort
		}
	}
}
