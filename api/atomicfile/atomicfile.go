package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// staleAge is how old what an attempt left must be so that no writer is still at it.
const staleAge = time.Hour

// Write makes the file at path hold content, whether there is one or not.
func Write(path string, content []byte, mode fs.FileMode) error {
	return put(path, content, mode, os.Rename)
}

// Create makes the file unless there is one: then the error is fs.ErrExist, and of several writers one wins.
func Create(path string, content []byte, mode fs.FileMode) error {
	return put(path, content, mode, func(from, to string) error { return errors.Join(os.Link(from, to), os.Remove(from)) })
}

func put(path string, content []byte, mode fs.FileMode, name func(from, to string) error) error {
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+".new-"
	sweep(dir, prefix)
	f, err := os.CreateTemp(dir, prefix+"*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = name(f.Name(), path)
	}
	if err == nil {
		err = syncDirectory(dir)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it may have its name; the first error counts
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// sweep removes what writers that were killed have left; what it cannot remove harms nobody.
func sweep(dir, prefix string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if len(e.Name()) <= len(prefix) || e.Name()[:len(prefix)] != prefix {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleAge {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// syncDirectory makes names in a directory last. One that cannot be opened for reading leaves that to its file system.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
