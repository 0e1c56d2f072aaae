package project

import "golang.org/x/sys/unix"

// local holds the types of file systems that are this machine's own, on which a directory's time changes with its
// entries and a file's with its content, to the second at least.
var local = map[uint32]bool{
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.EXT4_SUPER_MAGIC:      true, // ext2 and ext3, too
	unix.F2FS_SUPER_MAGIC:      true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
	unix.TMPFS_MAGIC:           true,
	unix.XFS_SUPER_MAGIC:       true,
	0x2fc12fc1:                 true, // ZFS
	0xca451a4e:                 true, // bcachefs
}

func isLocal(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && local[uint32(st.Type)]
}
