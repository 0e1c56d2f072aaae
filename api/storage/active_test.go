package storage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// drowsy makes a third of all labelled pods dormant.
func drowsy(obj runtime.Object) bool {
	n, err := strconv.Atoi(obj.(*example.Pod).Labels["n"])
	return err == nil && n%3 == 0
}

func withDrowsy(c *StoreConfig) { c.Dormant, c.ActiveField = drowsy, "active" }

// keysOf lists the durable objects that are not dormant, by a walk over all of them, and what the index names.
func keysOf(t require.TestingT, db *DB) (active, index []string) {
	txn := db.disk.NewTransactionAt(db.rev.Load(), false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := string(it.Item().Key())
		if name, ok := strings.CutPrefix(key, activePrefix); ok {
			index = append(index, name)
		} else if it.Item().UserMeta()&dormantMark == 0 {
			active = append(active, key)
		}
	}
	return active, index
}

// checkIndex compares the index, and what is read by it, with a walk over all objects. Only after a power cut may it
// name more than there is.
func checkIndex(t require.TestingT, st *store, exact bool) {
	active, index := keysOf(t, st.db)
	if exact {
		require.Equal(t, active, index)
	} else {
		require.Subset(t, index, active)
	}
	found, more, err := st.page("/pods/", "/pods/", st.db.rev.Load(), true, true, 1<<20)
	require.NoError(t, err)
	require.False(t, more)
	var read []string
	for _, r := range found {
		if !r.memory {
			require.False(t, r.dormant)
			require.NotEmpty(t, r.value)
			read = append(read, r.key)
		}
	}
	require.Equal(t, active, read)
}

// TestIndexOfActive: an object is in the index while it is active, and no longer.
func TestIndexOfActive(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	open := func() *store {
		return openStore(t, openTest(t, func(o *Options) { o.Dir = dir }), withDrowsy)
	}
	index := func(st *store, want ...string) {
		t.Helper()
		_, found := keysOf(t, st.db)
		for i := range want {
			want[i] = podKey(want[i])
		}
		require.Equal(t, want, found)
		checkIndex(t, st, true)
	}
	st := open()
	for _, name := range []string{"a", "b", "c", "d", "v"} {
		create(t, st, name)
	}
	index(st, "a", "b", "c", "d")
	label(t, st, "a", 0)
	label(t, st, "b", 1)
	label(t, st, "c", 0)
	label(t, st, "c", 2) // awake again
	remove(t, st, "d")
	before := st.db.CurrentRevision()
	index(st, "b", "c")
	label(t, st, "a", 3) // dormant as before
	remove(t, st, "a")
	label(t, st, "b", 3)
	create(t, st, "d")
	index(st, "c", "d")
	found, _, err := st.page("/pods/", "/pods/", before, true, true, 10)
	require.NoError(t, err)
	require.Len(t, found, 3, "at an earlier revision; v is in memory")
	require.Equal(t, podKey("b"), found[0].key)
	require.Equal(t, podKey("c"), found[1].key)
	found, more, err := st.page("/pods/", podKey("c")+"\x00", st.db.CurrentRevision(), true, true, 1)
	require.NoError(t, err)
	require.Len(t, found, 1, "from a key on")
	require.Equal(t, podKey("d"), found[0].key)
	require.True(t, more, "v comes from memory")
	require.NoError(t, st.db.Close())
	st = open()
	index(st, "c", "d")
	checkIndex(t, openStore(t, openKilled(t, st.db), withDrowsy), true)
}

// openKilled opens what another process finds after that of db was killed.
func openKilled(t *testing.T, db *DB) *DB {
	t.Helper()
	killed, err := Open(Options{Dir: snapshot(t, db)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, killed.Close()) })
	return killed
}

// olderBuild writes to a database as a build that does not know the index does.
func olderBuild(t *testing.T, dir string, write func(*badger.Txn)) {
	t.Helper()
	m, err := readMark(dir)
	require.NoError(t, err)
	disk, err := openBadger(dir, Options{}.Logger)
	require.NoError(t, err)
	m.Limit, m.Clean = m.Limit+markStep, false
	require.NoError(t, writeMark(dir, m, func() {}))
	txn := disk.NewTransactionAt(disk.MaxVersion(), true)
	defer txn.Discard()
	write(txn)
	rev := disk.MaxVersion() + 1
	require.NoError(t, txn.CommitAt(rev, nil))
	require.NoError(t, disk.Close())
	require.NoError(t, writeMark(dir, mark{Limit: rev, Floor: m.Floor, Clean: true}, func() {}))
}

// TestOlderBuildLeavesNoFalseIndex: a store that an older build has written to, before or in between, is indexed anew.
func TestOlderBuildLeavesNoFalseIndex(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	open := func() *store {
		return openStore(t, openTest(t, func(o *Options) { o.Dir = dir }), withDrowsy)
	}
	st := open()
	for n := range 5000 { // more than fits into one transaction
		require.NoError(t, st.Create(context.Background(), podKey(fmt.Sprint("n", n)), newPod(fmt.Sprint("n", n)), nil, 0))
	}
	label(t, st, "n7", 0)
	require.NoError(t, st.db.Close())

	var stored []byte
	olderBuild(t, dir, func(txn *badger.Txn) {
		item, err := txn.Get([]byte(podKey("n1")))
		require.NoError(t, err)
		stored, err = item.ValueCopy(nil)
		require.NoError(t, err)
		require.NoError(t, txn.Set([]byte(podKey("older")), stored))
		require.NoError(t, txn.Delete([]byte(podKey("n2"))))
		require.NoError(t, txn.Set([]byte(podKey("n7")), stored))
		require.NoError(t, txn.SetEntry(badger.NewEntry([]byte(podKey("n3")), stored).WithMeta(dormantMark)))
	})
	st = open()
	checkIndex(t, st, true)
	active, _ := keysOf(t, st.db)
	require.Len(t, active, 5000-2+1)
	require.Subset(t, active, []string{podKey("older"), podKey("n7")})
	rev := st.db.CurrentRevision()
	checkIndex(t, openStore(t, openKilled(t, st.db), withDrowsy), true)
	require.NoError(t, st.db.Close())

	// A store of before there was an index at all.
	require.NoError(t, os.Remove(filepath.Join(dir, indexFile)))
	olderBuild(t, dir, func(txn *badger.Txn) {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(activePrefix)})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			require.NoError(t, txn.Delete(it.Item().KeyCopy(nil)))
		}
	})
	st = open()
	require.Equal(t, rev+1, st.db.CurrentRevision(), "the index took revisions")
	checkIndex(t, st, true)
}

// TestIndexIsTrusted: a start does not make the index again if it is known to be complete; and what the index names is
// looked at before it is believed.
func TestIndexIsTrusted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	open := func() *store {
		return openStore(t, openTest(t, func(o *Options) { o.Dir = dir }), withDrowsy)
	}
	st := open()
	create(t, st, "a")
	create(t, st, "b")
	label(t, st, "b", 3)
	txn := st.db.disk.NewTransactionAt(st.db.rev.Load(), true)
	require.NoError(t, txn.Set(activeKey(podKey("b")), nil))    // dormant
	require.NoError(t, txn.Set(activeKey(podKey("gone")), nil)) // not there
	require.NoError(t, txn.CommitAt(st.db.rev.Load(), nil))
	snapshot := snapshot(t, st.db)
	require.NoError(t, st.db.Close())
	for _, again := range []string{dir, snapshot} { // after a clean end and after a crash
		dir = again
		st = open()
		_, index := keysOf(t, st.db)
		require.Len(t, index, 3, "the index was made again")
		checkIndex(t, st, false)
		require.NoError(t, st.db.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, indexFile), []byte("limit 1\nsince 1\nsum 0\n"), 0o600))
		st = open()
		checkIndex(t, st, true)
	}
}

// TestIndexOutlivesALostWrite: a power cut may lose the transaction that made an object active and keep a later one.
func TestIndexOutlivesALostWrite(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(st *store){
		"created":    func(st *store) { create(t, st, "x") },
		"woken":      func(st *store) { label(t, st, "y", 1) },
		"put asleep": func(st *store) { label(t, st, "z", 3) },
		"removed":    func(st *store) { remove(t, st, "z") },
	} {
		t.Run(name, func(t *testing.T) {
			db := openTest(t)
			st := openStore(t, db, withDrowsy)
			create(t, st, "y")
			label(t, st, "y", 3)
			create(t, st, "z")
			log := newestFile(t, db.opts.Dir, ".mem")
			start := used(t, log)
			change(st)
			end := used(t, log)
			switch name {
			case "created":
				label(t, st, "x", 1)
			case "woken":
				label(t, st, "y", 2)
			case "put asleep":
				label(t, st, "z", 6)
			case "removed":
				create(t, st, "z")
			}
			dir := snapshot(t, db)
			log = filepath.Join(dir, filepath.Base(log))
			content, err := os.ReadFile(log)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(log, append(content[:start:start], content[end:]...), 0o600))
			after, err := Open(Options{Dir: dir})
			require.NoError(t, err)
			defer after.Close()
			require.Empty(t, after.Recovery().Sentences, "nothing may tell of it")
			_, ok := readIndexMark(dir)
			require.True(t, ok)
			checkIndex(t, openStore(t, after, withDrowsy), false)
		})
	}
}

// TestDamageMakesTheIndexAnew: what was cut off a log may be what an entry was written with.
func TestDamageMakesTheIndexAnew(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	st := openStore(t, db, withDrowsy)
	for n := range 20 {
		create(t, st, fmt.Sprintf("n%02d", n))
	}
	txn := db.disk.NewTransactionAt(db.rev.Load(), true)
	require.NoError(t, txn.Delete(activeKey(podKey("n03"))))
	require.NoError(t, txn.CommitAt(db.rev.Load(), nil))
	create(t, st, "last")
	dir := snapshot(t, db)
	log := newestFile(t, dir, ".mem")
	require.NoError(t, os.Truncate(log, used(t, log)-1))
	after, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	defer after.Close()
	require.NotEmpty(t, after.Recovery().Sentences)
	checkIndex(t, openStore(t, after, withDrowsy), true)
	active, _ := keysOf(t, after)
	require.Contains(t, active, podKey("n03"))
}

// TestIndexReadsOnlyWhatIsActive counts what a start reads of a store full of dormant objects.
func TestIndexReadsOnlyWhatIsActive(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	open := func() *store {
		return openStore(t, openTest(t, func(o *Options) { o.Dir = dir }), withDrowsy)
	}
	st := open()
	for n := range 3000 {
		name := fmt.Sprintf("n%04d", n)
		pod := newPod(name)
		pod.Labels = map[string]string{"n": "0"}
		pod.Annotations = map[string]string{"filler": strings.Repeat(name, 300)}
		require.NoError(t, st.Create(context.Background(), podKey(name), pod, nil, 0))
	}
	create(t, st, "only")
	require.NoError(t, st.db.Close())
	st = open()
	read := func(pred storage.SelectionPredicate) int64 {
		before := st.db.disk.BlockCacheMetrics().Misses()
		list(t, st, storage.ListOptions{Predicate: pred})
		return int64(st.db.disk.BlockCacheMetrics().Misses() - before)
	}
	few := read(awake("true"))
	require.Greater(t, read(storage.Everything), 20*max(few, 1))
}
