package walk

import "golang.org/x/sys/unix"

// pseudo holds the types of file systems that show the kernel's state instead of files: reading them all may
// hang or never end.
var pseudo = map[uint32]bool{
	unix.ANON_INODE_FS_MAGIC:   true,
	unix.AUTOFS_SUPER_MAGIC:    true,
	unix.BINDERFS_SUPER_MAGIC:  true,
	unix.BINFMTFS_MAGIC:        true,
	unix.BPF_FS_MAGIC:          true,
	unix.CGROUP_SUPER_MAGIC:    true,
	unix.CGROUP2_SUPER_MAGIC:   true,
	unix.DEBUGFS_MAGIC:         true,
	unix.DEVPTS_SUPER_MAGIC:    true,
	unix.EFIVARFS_MAGIC:        true,
	unix.HUGETLBFS_MAGIC:       true,
	unix.NSFS_MAGIC:            true,
	unix.OPENPROM_SUPER_MAGIC:  true,
	unix.PROC_SUPER_MAGIC:      true,
	unix.PSTOREFS_MAGIC:        true,
	unix.RDTGROUP_SUPER_MAGIC:  true,
	unix.SECURITYFS_MAGIC:      true,
	unix.SELINUX_MAGIC:         true,
	unix.SMACK_MAGIC:           true,
	unix.SYSFS_MAGIC:           true,
	unix.TRACEFS_MAGIC:         true,
	unix.USBDEVICE_SUPER_MAGIC: true,
	0x19800202:                 true, // mqueue
	0x62656570:                 true, // configfs
	0x65735543:                 true, // fusectl
	0x67596969:                 true, // rpc_pipefs
	0x6e667364:                 true, // nfsd
}

// isPseudo says whether the open directory belongs to a pseudo file system.
func isPseudo(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && pseudo[uint32(st.Type)]
}

// Pseudo says whether path lies on a pseudo file system; its files have no true size and may never end.
func Pseudo(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && pseudo[uint32(st.Type)]
}
