package walk

// Offsets in the records of getdents64: inode 8 bytes, offset 8, record length 2, type 1, name.
const (
	direntType = 18
	direntName = 19
)
