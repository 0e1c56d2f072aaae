package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// snapshot copies the directory of an open database: what another process finds
// after this one was killed.
func snapshot(t testing.TB, db *DB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.CopyFS(dir, os.DirFS(db.opts.Dir)))
	return dir
}

// logFile returns the newest file of dir with the extension.
func newestFile(t testing.TB, dir, ext string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"+ext))
	require.NoError(t, err)
	require.NotEmpty(t, found, "no %s in %s", ext, dir)
	slices.Sort(found)
	return found[len(found)-1]
}

// used returns where the zeros at the end of a log begin.
func used(t testing.TB, path string) int64 {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return int64(len(bytes.TrimRight(content, "\x00")))
}

func flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 0x41
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
}

// written opens a database with an early part that lies below mark in the
// newest log, and a late part above it, and returns a copy of its directory.
func written(t testing.TB) (dir string, mark int64, rev uint64) {
	t.Helper()
	db := openTest(t)
	st := openStore(t, db)
	for n := range 20 {
		create(t, st, fmt.Sprintf("early%02d", n))
	}
	mark = used(t, newestFile(t, db.opts.Dir, ".mem"))
	for n := range 40 {
		create(t, st, fmt.Sprintf("late%02d", n))
	}
	return snapshot(t, db), mark, db.CurrentRevision()
}

// reopened opens dir and checks that everything from before the damage is
// there, that revisions do not go back, and that the store can be written.
func reopened(t testing.TB, dir string, rev uint64) (*DB, []string) {
	t.Helper()
	db, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	st := openStore(t, db)
	checkIndex(t, openStore(t, db, withDrowsy), true)
	found := names(list(t, st, storage.ListOptions{}))
	require.GreaterOrEqual(t, len(found), 20)
	for n := range 20 {
		require.Equal(t, fmt.Sprintf("early%02d", n), found[n])
	}
	require.GreaterOrEqual(t, db.CurrentRevision(), rev)
	require.Greater(t, create(t, st, "after"), rev, "a revision was used twice")
	require.NoError(t, db.WaitDurable(t.Context(), db.CurrentRevision()))
	return db, found
}

func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	dir, _, rev := written(t)
	db, found := reopened(t, dir, rev)
	require.Len(t, found, 60)
	require.Empty(t, db.Recovery().Sentences)
}

func TestTruncatedLog(t *testing.T) {
	t.Parallel()
	for _, cut := range []int64{1, 2, 3, 7, 20, 100, 333, 1000, 2500, 4000} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			dir, mark, rev := written(t)
			log := newestFile(t, dir, ".mem")
			end := used(t, log) - cut
			require.Greater(t, end, mark)
			require.NoError(t, os.Truncate(log, end))
			content, err := os.ReadFile(log)
			require.NoError(t, err)
			db, found := reopened(t, dir, rev)
			require.Less(t, len(found), 60)
			report := db.Recovery()
			if readable, cause := scanLog(content); cause == nil {
				// Cut between two writes: nothing in the file tells of it.
				require.EqualValues(t, readable, len(content))
				return
			}
			require.Equal(t, 1, report.Logs)
			require.Len(t, report.Sentences, 1)
			require.Contains(t, report.Sentences[0], filepath.Base(log))
			kept, err := os.ReadFile(filepath.Join(report.Backup, filepath.Base(log)))
			require.NoError(t, err)
			require.Equal(t, bytes.TrimRight(content, "\x00"), kept)
		})
	}
}

// TestTruncatedSpace: the end of a log that was never used may go missing.
func TestTruncatedSpace(t *testing.T) {
	t.Parallel()
	dir, _, rev := written(t)
	log := newestFile(t, dir, ".mem")
	info, err := os.Stat(log)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(log, info.Size()-4000))
	db, found := reopened(t, dir, rev)
	require.Len(t, found, 60)
	require.Empty(t, db.Recovery().Sentences)
}

func TestFlippedByteInLog(t *testing.T) {
	t.Parallel()
	for _, where := range []float64{0, 0.2, 0.5, 0.9, 0.999} {
		t.Run(fmt.Sprint(where), func(t *testing.T) {
			t.Parallel()
			dir, mark, rev := written(t)
			log := newestFile(t, dir, ".mem")
			end := used(t, log)
			flip(t, log, mark+int64(where*float64(end-mark)))
			db, found := reopened(t, dir, rev)
			require.Less(t, len(found), 60)
			report := db.Recovery()
			require.Equal(t, 1, report.Logs)
			require.Positive(t, report.LostBytes)
			require.FileExists(t, filepath.Join(report.Backup, filepath.Base(log)))
			wantGone(t, startWatch(t, openStore(t, db), rev-1)) // events may be missing
		})
	}
}

// TestDamagedLogHeader: nothing of the log can be read, but it is kept, and
// what earlier logs held is there.
func TestDamagedLogHeader(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, log string){
		"flipped":   func(t *testing.T, log string) { flip(t, log, 3) },
		"truncated": func(t *testing.T, log string) { require.NoError(t, os.Truncate(log, 12)) },
		"empty":     func(t *testing.T, log string) { require.NoError(t, os.Truncate(log, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := Open(Options{Dir: filepath.Join(t.TempDir(), "state")})
			require.NoError(t, err)
			st := openStore(t, first)
			for n := range 20 {
				create(t, st, fmt.Sprintf("early%02d", n))
			}
			require.NoError(t, first.Close())
			second, err := Open(Options{Dir: first.opts.Dir})
			require.NoError(t, err)
			rev := create(t, openStore(t, second), "late")
			dir := snapshot(t, second)
			require.NoError(t, second.Close())
			log := newestFile(t, dir, ".mem")
			spoil(t, log)
			db, found := reopened(t, dir, rev)
			require.Len(t, found, 20)
			if name == "empty" {
				return
			}
			require.Equal(t, 1, db.Recovery().Logs)
			require.FileExists(t, filepath.Join(db.Recovery().Backup, filepath.Base(log)))
		})
	}
}

func TestDamagedValueLog(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, log string){
		"flipped header": func(t *testing.T, log string) { flip(t, log, 2) },
		"truncated":      func(t *testing.T, log string) { require.NoError(t, os.Truncate(log, 5)) },
		"empty":          func(t *testing.T, log string) { require.NoError(t, os.Truncate(log, 0)) },
		"garbage":        func(t *testing.T, log string) { flip(t, log, 200) },
		"missing":        func(t *testing.T, log string) { require.NoError(t, os.Remove(log)) },
		"statistics cut": func(t *testing.T, log string) {
			require.NoError(t, os.Truncate(filepath.Join(filepath.Dir(log), "DISCARD"), 7))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, rev := written(t)
			spoil(t, newestFile(t, dir, ".vlog"))
			_, found := reopened(t, dir, rev)
			require.Len(t, found, 60)
		})
	}
}

// tabled returns the directory of a closed database: all objects in a table.
func tabled(t testing.TB) string {
	t.Helper()
	db, err := Open(Options{Dir: filepath.Join(t.TempDir(), "state")})
	require.NoError(t, err)
	st := openStore(t, db)
	for n := range 200 {
		create(t, st, fmt.Sprintf("a%03d", n))
	}
	require.NoError(t, db.Close())
	return db.opts.Dir
}

// TestDamagedDatabaseIsRefused: what was safe on disk and cannot be read any
// more is an error with a way out. Nothing is changed by the attempt.
func TestDamagedDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	size := func(t *testing.T, path string) int64 {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Size()
	}
	for name, spoil := range map[string]func(t *testing.T, dir string) string{
		"manifest magic": func(t *testing.T, dir string) string { flip(t, filepath.Join(dir, "MANIFEST"), 1); return "MANIFEST" },
		"manifest record": func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "MANIFEST")
			flip(t, path, size(t, path)-2)
			return "MANIFEST"
		},
		"manifest cut": func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "MANIFEST")
			require.NoError(t, os.Truncate(path, size(t, path)-3))
			return "MANIFEST"
		},
		"manifest empty": func(t *testing.T, dir string) string {
			require.NoError(t, os.Truncate(filepath.Join(dir, "MANIFEST"), 0))
			return "MANIFEST"
		},
		"manifest gone": func(t *testing.T, dir string) string {
			require.NoError(t, os.Remove(filepath.Join(dir, "MANIFEST")))
			return "MANIFEST"
		},
		"table block": func(t *testing.T, dir string) string {
			path := newestFile(t, dir, ".sst")
			flip(t, path, 100)
			return filepath.Base(path)
		},
		"table index": func(t *testing.T, dir string) string {
			path := newestFile(t, dir, ".sst")
			flip(t, path, size(t, path)-40)
			return filepath.Base(path)
		},
		"table footer": func(t *testing.T, dir string) string {
			path := newestFile(t, dir, ".sst")
			flip(t, path, size(t, path)-4)
			return filepath.Base(path)
		},
		"table cut": func(t *testing.T, dir string) string {
			path := newestFile(t, dir, ".sst")
			require.NoError(t, os.Truncate(path, size(t, path)/2))
			return filepath.Base(path)
		},
		"table empty": func(t *testing.T, dir string) string {
			path := newestFile(t, dir, ".sst")
			require.NoError(t, os.Truncate(path, 0))
			return filepath.Base(path)
		},
		"table gone": func(t *testing.T, dir string) string {
			path := newestFile(t, dir, ".sst")
			require.NoError(t, os.Remove(path))
			return filepath.Base(path)
		},
		"key registry": func(t *testing.T, dir string) string {
			require.NoError(t, os.Truncate(filepath.Join(dir, "KEYREGISTRY"), 7))
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tabled(t)
			file := spoil(t, dir)
			before := contents(t, dir)
			_, err := Open(Options{Dir: dir})
			var refused *DamagedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, file, refused.File)
			require.Contains(t, err.Error(), "mv "+dir+" "+refused.MoveTo)
			after := contents(t, dir)
			for path, content := range before {
				if strings.HasSuffix(path, ".mem") || strings.HasSuffix(path, ".vlog") {
					continue // empty logs come and go
				}
				require.Equal(t, content, after[path], path)
			}
			// The way out works.
			require.NoError(t, os.Rename(dir, refused.MoveTo))
			db, err := Open(Options{Dir: dir})
			require.NoError(t, err)
			require.NoError(t, db.Close())
		})
	}
}

func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	found := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		found[e.Name()] = string(bytes.TrimRight(content, "\x00"))
	}
	return found
}

func TestRevisionMark(t *testing.T) {
	t.Parallel()
	m := mark{Limit: 12345, Floor: 17, Clean: true}
	got, err := decodeMark(m.encode())
	require.NoError(t, err)
	require.Equal(t, m, got)
	for i := range m.encode() {
		spoilt := m.encode()
		spoilt[i] ^= 1
		_, err := decodeMark(spoilt)
		require.ErrorIs(t, err, errBadMark, "byte %d", i)
	}
}

// TestLostMark: without the mark the counter moves on far enough, and says so.
func TestLostMark(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"gone":   os.Remove,
		"spoilt": func(path string) error { return os.WriteFile(path, []byte("limit 3\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, _, rev := written(t)
			require.NoError(t, spoil(filepath.Join(dir, markFile)))
			db, found := reopened(t, dir, rev+markStep)
			require.Len(t, found, 60)
			require.Len(t, db.Recovery().Sentences, 1)
		})
	}
}

// TestCleanRestartKeepsTheCounter: an orderly restart wastes no revisions, and a
// watch of durable objects goes on where it was.
func TestCleanRestartKeepsTheCounter(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	durableOnly := func(c *StoreConfig) { c.Volatile = nil }
	first, err := Open(o)
	require.NoError(t, err)
	seen := create(t, openStore(t, first, durableOnly), "a")
	next := label(t, openStore(t, first, durableOnly), "a", 1)
	require.NoError(t, first.Close())
	second, err := Open(o)
	require.NoError(t, err)
	defer second.Close()
	require.Equal(t, next, second.CurrentRevision())
	st := openStore(t, second, durableOnly)
	w := startWatch(t, st, seen)
	wantEvent(t, w, "MODIFIED", "a", next)
	wantEvent(t, w, "MODIFIED", "a", label(t, st, "a", 2))
}

// TestRestartForgetsVolatileObjects: they are gone, and who watched them before
// is told to list again, since nobody can tell of their end.
func TestRestartForgetsVolatileObjects(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	first, err := Open(o)
	require.NoError(t, err)
	st := openStore(t, first)
	create(t, st, "a")
	seen := create(t, st, "v")
	create(t, st, "b")
	require.NoError(t, first.Close())
	second, err := Open(o)
	require.NoError(t, err)
	defer second.Close()
	st = openStore(t, second)
	require.Equal(t, []string{"a", "b"}, names(list(t, st, storage.ListOptions{})))
	wantGone(t, startWatch(t, st, seen))
}

// TestRevisionsOfALostTailAreNotTrusted: a client that saw what a crash then
// lost must list again; revisions never repeat.
func TestRevisionsOfALostTailAreNotTrusted(t *testing.T) {
	t.Parallel()
	dir, mark, rev := written(t)
	log := newestFile(t, dir, ".mem")
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	// The tail never reached the disk: its pages are zero.
	clear(content[mark:])
	require.NoError(t, os.WriteFile(log, content, 0o600))
	db, found := reopened(t, dir, rev)
	require.Len(t, found, 20)
	require.Empty(t, db.Recovery().Sentences, "losing what was never durable is no damage")
	st := openStore(t, db, func(c *StoreConfig) { c.Volatile = nil })
	wantGone(t, startWatch(t, st, rev))
	err = st.GetList(t.Context(), "/pods/", exactly(rev), &example.PodList{})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

// FuzzScanLog: whatever a log holds, scanning ends within it, and what it calls
// readable is found readable again.
func FuzzScanLog(f *testing.F) {
	db, err := Open(Options{Dir: f.TempDir()})
	require.NoError(f, err)
	create(f, openStore(f, db), "a")
	create(f, openStore(f, db), "b")
	content, err := os.ReadFile(newestFile(f, db.opts.Dir, ".mem"))
	require.NoError(f, err)
	require.NoError(f, db.Close())
	content = append(bytes.TrimRight(content, "\x00"), make([]byte, 30)...)
	_, cause := scanLog(content)
	require.NoError(f, cause)
	f.Add(content)
	f.Add(content[:len(content)-40])
	f.Add(content[:logHeaderSize])
	f.Add([]byte{})
	f.Add(append(make([]byte, logHeaderSize), bytes.Repeat([]byte{0xff}, 60)...))
	f.Fuzz(func(t *testing.T, log []byte) {
		end, cause := scanLog(log)
		require.LessOrEqual(t, end, len(log))
		if cause != nil && end < logHeaderSize {
			return
		}
		again, cause := scanLog(log[:end])
		require.NoError(t, cause)
		require.Equal(t, end, again)
	})
}
