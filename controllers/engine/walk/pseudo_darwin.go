package walk

import "golang.org/x/sys/unix"

// pseudo holds the names of file systems that show the kernel's state instead of files: reading them all may
// hang or never end.
var pseudo = map[string]bool{"autofs": true, "devfs": true, "fdesc": true}

// isPseudo says whether the open directory belongs to a pseudo file system.
func isPseudo(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && pseudo[unix.ByteSliceToString(st.Fstypename[:])]
}

// Pseudo says whether path lies on a pseudo file system; its files have no true size and may never end.
func Pseudo(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && pseudo[unix.ByteSliceToString(st.Fstypename[:])]
}
