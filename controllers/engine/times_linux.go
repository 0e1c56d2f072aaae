package engine

import "syscall"

// Times are when a file's content and its inode changed last.
func Times(st *syscall.Stat_t) (content, inode syscall.Timespec) { return st.Mtim, st.Ctim }
