package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// diskMB is what a directory takes on the disk, in MiB: the blocks that are there, not the lengths of files with
// holes.
func diskMB(dir string) (float64, error) {
	var blocks int64
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			blocks += st.Blocks
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look at the disk: %w", err)
	}
	return float64(blocks) * 512 / megabyte, nil
}
