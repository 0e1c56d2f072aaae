package walk

// Offsets in the records of getdirentries: inode 8 bytes, offset 8, record length 2, name length 2, type 1, name.
const (
	direntType = 20
	direntName = 21
)
