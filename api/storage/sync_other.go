//go:build !linux

package storage

import "os"

// fdatasync makes the content of f durable.
func fdatasync(f *os.File) error { return f.Sync() }
