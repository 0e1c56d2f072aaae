package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

const (
	markFile = "REVISION"
	// markStep is how many revisions are reserved at once: one small file
	// written and synced for every so many writes.
	markStep = 10000
)

// mark is the high-water mark of the revision counter, kept in a file of its
// own and written ahead: no revision above Limit is handed out before a higher
// Limit is on disk. After a crash the counter starts at Limit, so a lost tail
// never makes two states share a revision.
type mark struct {
	// Limit is the highest revision that may have been handed out.
	Limit uint64
	// Floor is the oldest revision that is still completely readable.
	Floor uint64
	// Clean says that the store was closed in order: Limit was the last
	// revision exactly, and nothing is missing below it.
	Clean bool
}

func (m mark) encode() []byte {
	return summed(fmt.Appendf(nil, "limit %d\nfloor %d\nclean %t\n", m.Limit, m.Floor, m.Clean))
}

// summed appends a line with the checksum of what stands before it.
func summed(body []byte) []byte {
	return fmt.Appendf(body, "sum %08x\n", crc32.ChecksumIEEE(body))
}

var errBadMark = errors.New("the revision mark is damaged")

func decodeMark(text []byte) (m mark, err error) {
	var sum uint32
	if _, err := fmt.Sscanf(string(text), "limit %d\nfloor %d\nclean %t\nsum %x\n", &m.Limit, &m.Floor, &m.Clean, &sum); err != nil {
		return mark{}, fmt.Errorf("%w: %w", errBadMark, err)
	}
	if string(m.encode()) != string(text) {
		return mark{}, fmt.Errorf("%w: checksum differs", errBadMark)
	}
	return m, nil
}

// readMark returns the mark of dir. A missing file is os.ErrNotExist, an
// unreadable one errBadMark.
func readMark(dir string) (mark, error) {
	text, err := os.ReadFile(filepath.Join(dir, markFile))
	if err != nil {
		return mark{}, fmt.Errorf("read the revision mark: %w", err)
	}
	return decodeMark(text)
}

// writeMark replaces the mark of dir, calls then, and returns once the new names are durable.
func writeMark(dir string, m mark, then func()) error {
	path := filepath.Join(dir, markFile)
	if err := writeSynced(path+".new", m.encode()); err != nil {
		return fmt.Errorf("write the revision mark: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the revision mark: %w", err)
	}
	then()
	if err := syncPath(dir); err != nil {
		return fmt.Errorf("write the revision mark: %w", err)
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncPath syncs a directory, so that names created in it survive a power cut.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
