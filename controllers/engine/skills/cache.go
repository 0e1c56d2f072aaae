package skills

import (
	"io"
	"io/fs"
	"os"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

const (
	// maxFileSize is how much of a file is read, in bytes; the rest does not count.
	maxFileSize = 1 << 20
	// maxEntries is how many entries of a directory are looked at.
	maxEntries = 10_000
	// maxCached is how many files and directories are remembered, and maxCachedBytes how many bytes of them.
	maxCached      = 8192
	maxCachedBytes = 32 << 20
	// settle is how long a file must have been left alone before its stamp is trusted: a later change within
	// the same tick of the file system's clock would not show.
	settle = 2 * time.Second
)

// shared remembers files and directories for the whole process.
var shared = newCache(settle)

// cache remembers what was made of files and directories for as long as their stamps stay the same.
type cache struct {
	settle time.Duration

	mu    sync.Mutex
	known map[cacheKey]cacheEntry
	bytes int64
	reads int // files and directories read, for tests
}

// cacheKey is a path and what was made of it: one file may be wanted as a skill and as a text.
type cacheKey struct {
	path string
	kind kind
}

type kind int

const (
	kindDir kind = iota
	kindSkill
	kindText
	kindIgnore
)

type cacheEntry struct {
	stamp stamp
	value any
	size  int64
}

// fileID tells files apart whatever they are called.
type fileID struct{ dev, ino uint64 }

// stamp changes whenever a file does.
type stamp struct {
	id           fileID
	size         int64
	mtime, ctime syscall.Timespec
}

func newCache(settle time.Duration) *cache {
	return &cache{settle: settle, known: map[cacheKey]cacheEntry{}}
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.id = fileID{uint64(st.Dev), st.Ino}
		s.mtime, s.ctime = engine.Times(st)
	}
	return s
}

// age is the time since the file last changed in any way.
func (s stamp) age() time.Duration {
	latest := max(s.mtime.Nano(), s.ctime.Nano())
	return time.Since(time.Unix(0, latest))
}

func (c *cache) get(key cacheKey, s stamp) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.known[key]
	return e.value, ok && e.stamp == s
}

// put remembers a value unless the file was changed so lately that another change might go unnoticed. When
// there is no more room everything is forgotten: it is read again as it is needed.
func (c *cache) put(key cacheKey, s stamp, value any, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if s.age() < c.settle {
		return
	}
	if c.bytes+size > maxCachedBytes || len(c.known) >= maxCached {
		clear(c.known)
		c.bytes = 0
	}
	c.bytes += size - c.known[key].size
	c.known[key] = cacheEntry{s, value, size}
}

// file returns what parse makes of the text of a regular file, links followed, and which file it is.
func file[T any](c *cache, k kind, path string, parse func(text string) T) (value T, id fileID, err error) {
	key := cacheKey{path, k}
	info, err := os.Stat(path)
	if err != nil {
		return value, id, err
	}
	if v, ok := c.get(key, stampOf(info)); ok {
		return v.(T), stampOf(info).id, nil
	}
	f, info, err := engine.OpenRegular(path)
	if err != nil {
		return value, id, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize))
	if err != nil {
		return value, id, err
	}
	value = parse(engine.ValidText(string(text)))
	before := stampOf(info)
	if after, err := f.Stat(); err == nil && stampOf(after) == before {
		c.put(key, before, value, int64(len(text)))
	}
	return value, before.id, nil
}

// dir returns the entries of a directory in byte order, and which directory it is.
func (c *cache) dir(path string) ([]fs.DirEntry, fileID, error) {
	key := cacheKey{path, kindDir}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileID{}, err
	}
	before := stampOf(info)
	if v, ok := c.get(key, before); ok {
		return v.([]fs.DirEntry), before.id, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, before.id, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if err != nil && err != io.EOF {
		return nil, before.id, err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	if after, err := f.Stat(); err == nil && stampOf(after) == before {
		c.put(key, before, entries, int64(64*len(entries)))
	}
	return entries, before.id, nil
}
