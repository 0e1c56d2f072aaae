package replace

import "golang.org/x/sys/unix"

// renameToNew renames a file unless the new name is taken.
func renameToNew(from, to string) error { return unix.RenamexNp(from, to, unix.RENAME_EXCL) }
