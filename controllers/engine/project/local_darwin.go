package project

import "golang.org/x/sys/unix"

// local holds the names of file systems that are this machine's own, on which a directory's time changes with its
// entries and a file's with its content, to the second at least.
var local = map[string]bool{"apfs": true, "hfs": true}

func isLocal(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && local[unix.ByteSliceToString(st.Fstypename[:])]
}
