package storage

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Free space, in bytes, below which the store refuses to write. badger writes
// through mappings of files that have no blocks yet: on a full disk the kernel
// would end the process. A log, its table and a compaction need some 40 MB.
// Deletions, which make room, may go further. Opening writes as well: logs of
// an unclean end become tables.
const (
	spaceForWrites    = 64 << 20
	spaceForDeletions = 48 << 20
	spaceToOpen       = 40 << 20
)

// roomToOpen refuses to open on a disk on which badger would end the process.
func roomToOpen(o Options) error {
	free, err := o.FreeSpace(o.Dir)
	if err != nil {
		return err
	}
	if free < spaceToOpen {
		return fmt.Errorf("the disk of %s is nearly full: %d MB are free, the object store needs %d to open; make room and start again",
			o.Dir, free>>20, uint64(spaceToOpen)>>20)
	}
	return nil
}

// freeSpace returns how many bytes an unprivileged process may still write to
// the file system of dir.
func freeSpace(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("look for free space in %s: %w", dir, err)
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil
}

// Of so much free space, in bytes, no disk loses enough in plentyFor for a write
// to be in danger.
const (
	plenty    = 4 << 30
	plentyFor = 100 * time.Millisecond
)

// seldom asks free once in a while as long as it says that there is plenty. The
// directory is always the same one.
func seldom(free func(dir string) (uint64, error)) func(dir string) (uint64, error) {
	var mu sync.Mutex
	var last uint64
	var until time.Time
	return func(dir string) (uint64, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Now().Before(until) {
			return last, nil
		}
		n, err := free(dir)
		if err == nil && n >= plenty {
			last, until = n, time.Now().Add(plentyFor)
		}
		return n, err
	}
}

// room refuses a write to the disk tier when the disk is nearly full.
func (db *DB) room(e *event) error {
	free, err := db.opts.FreeSpace(db.opts.Dir)
	if err != nil {
		return err
	}
	need := uint64(spaceForWrites)
	if e.kind == eventDeleted {
		need = spaceForDeletions
	}
	if free < need {
		return apierrors.NewServiceUnavailable(fmt.Sprintf(
			"the disk of %s is nearly full: %d MB are free, the object store needs %d; make room and try again",
			db.opts.Dir, free>>20, need>>20))
	}
	return nil
}
