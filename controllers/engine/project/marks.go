package project

import (
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// marks are paths and a sum of what the file system said of each.
type marks struct {
	// dir is what relative paths refer to, empty if there are none.
	dir string
	// flags are those of fstatat(2).
	flags int
	paths []string
	sums  []uint64
}

// stamp changes whenever a file does; that of a file that is not there is zero.
type stamp struct {
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime int64
}

// before says whether the file was last changed in any way before a time.
func (s stamp) before(t time.Time) bool { return max(s.mtime, s.ctime) < t.UnixNano() }

var seed = maphash.MakeSeed()

func (s stamp) sum() uint64 { return maphash.Comparable(seed, s) }

// stampAt looks at a file, relative to an open directory.
func stampAt(dir int, path string, flags int) (stamp, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, path, &st, flags); {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return stamp{}, nil
	case err != nil:
		return stamp{}, err
	}
	return stamp{dev: uint64(st.Dev), ino: st.Ino, mode: uint32(st.Mode), size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}, nil
}

// open returns a descriptor of the directory, and what closes it.
func (m *marks) open() (int, func(), error) {
	if m.dir == "" {
		return unix.AT_FDCWD, func() {}, nil
	}
	fd, err := unix.Open(m.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, func() { _ = unix.Close(fd) }, err // it was only looked through
}

func (m *marks) add(path string, s stamp) {
	m.paths, m.sums = append(m.paths, path), append(m.sums, s.sum())
}

const (
	// portion is how many files one worker looks at before it takes the next ones.
	portion = 256
	// maxWorkers bounds how many look at once.
	maxWorkers = 8
)

// hold says whether all files are as they were. It is false if there is no time to find out.
func (m *marks) hold(ctx context.Context) bool {
	dir, done, err := m.open()
	if err != nil {
		return false
	}
	defer done()
	var next atomic.Int64
	var changed atomic.Bool
	work := func() {
		for !changed.Load() {
			if ctx.Err() != nil {
				changed.Store(true)
				return
			}
			from := int(next.Add(portion)) - portion
			if from >= len(m.paths) {
				return
			}
			for i := from; i < min(from+portion, len(m.paths)); i++ {
				if s, err := stampAt(dir, m.paths[i], m.flags); err != nil || s.sum() != m.sums[i] {
					changed.Store(true)
					return
				}
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxWorkers, (len(m.paths)+portion-1)/portion) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return !changed.Load()
}
