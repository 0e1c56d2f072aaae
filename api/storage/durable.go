package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/storage"
)

// durability answers WaitDurable. Callers that wait at the same time share one
// round of syncs; a round covers what was written before it began.
type durability struct {
	logs   *walFiles
	synced atomic.Uint64 // all disk writes up to here are durable
	failed atomic.Pointer[error]

	mu      sync.Mutex
	running *syncRound // being synced now
	next    *syncRound // begins when running ends
	rounds  sync.WaitGroup
}

type syncRound struct {
	upto uint64
	done chan struct{}
	err  error
}

func (d *durability) init(dir string, sync func(*os.File) error) {
	d.logs = &walFiles{dir: dir, sync: sync, sealed: map[string]bool{}}
}

// failure returns the error that ended durability, if any. After a failed
// fdatasync the kernel may have dropped the pages, so a later success proves
// nothing: the store refuses writes until it is opened again.
func (d *durability) failure() error {
	if p := d.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// fail records the first failure and returns err.
func (d *durability) fail(err error) error {
	d.failed.CompareAndSwap(nil, &err)
	return err
}

// close waits for the rounds that run.
func (d *durability) close() error {
	d.rounds.Wait()
	return d.logs.close()
}

// WaitDurable returns when every durable object written at or before revision
// rev will survive a power cut. Waiters share fdatasync calls; none is made if
// the revision is durable already. Volatile objects are never durable and never
// waited for. An error, other than the context's, means that nothing written
// since the last success can be relied on, and that the store takes no more
// writes until it is opened again.
func (db *DB) WaitDurable(ctx context.Context, rev uint64) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.leave()
	if current := db.rev.Load(); rev > current {
		return storage.NewTooLargeResourceVersionError(rev, current, 0)
	}
	if db.disk == nil {
		return nil
	}
	round, err := db.durable.join(rev, &db.diskRev)
	if round == nil || err != nil {
		return err
	}
	select {
	case <-round.done:
		return round.err
	case <-ctx.Done():
		return fmt.Errorf("wait until revision %d is durable: %w", rev, ctx.Err())
	}
}

// join finds or starts the round of syncs that covers rev. It returns nil if
// none is needed. written is the newest revision on the disk tier.
func (d *durability) join(rev uint64, written *atomic.Uint64) (*syncRound, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.failure(); err != nil {
		return nil, err
	}
	newest := written.Load()
	need := min(rev, newest)
	switch {
	case need <= d.synced.Load():
		return nil, nil
	case d.running == nil:
		d.running = &syncRound{upto: newest, done: make(chan struct{})}
		d.rounds.Add(1)
		go d.run(written)
		return d.running, nil
	case need <= d.running.upto:
		return d.running, nil
	case d.next == nil:
		d.next = &syncRound{done: make(chan struct{})}
	}
	return d.next, nil
}

// run syncs round after round until nobody waits.
func (d *durability) run(written *atomic.Uint64) {
	defer d.rounds.Done()
	for {
		d.mu.Lock()
		round := d.running
		d.mu.Unlock()
		err := d.logs.syncAll()
		d.mu.Lock()
		if err != nil {
			err = d.fail(fmt.Errorf("make the object store durable: %w", err))
			round.err = err
		} else {
			d.synced.Store(round.upto)
		}
		close(round.done)
		d.running, d.next = d.next, nil
		if d.running == nil {
			d.mu.Unlock()
			return
		}
		if err != nil {
			d.running.err = err
			close(d.running.done)
			d.running = nil
			d.mu.Unlock()
			return
		}
		d.running.upto = written.Load()
		d.mu.Unlock()
	}
}

// walFiles syncs the write-ahead logs of badger's memtables. badger's own Sync
// reaches only the newest one; a write may still be in an older log whose
// memtable has not reached a table file. They are opened by name, since syncing
// a file writes back the pages of every mapping of it.
//
// badger numbers its logs one after the other and starts a new one only after
// the last write to the one before, so as long as the next number does not
// exist, the newest log known is the only one with anything to sync.
type walFiles struct {
	dir    string
	sync   func(*os.File) error
	sealed map[string]bool // logs seen before; true once synced and complete
	newest *os.File        // kept open
	next   string          // the path of the log that will follow it
}

func (w *walFiles) syncAll() error {
	if w.newest != nil {
		if _, err := os.Lstat(w.next); errors.Is(err, os.ErrNotExist) {
			return w.sync(w.newest)
		}
	}
	return w.syncNew()
}

// syncNew syncs every log that is not known to be complete and durable, and the
// directory, in which there are new names.
func (w *walFiles) syncNew() error {
	names, err := w.list()
	if err != nil {
		return err
	}
	sealed := make(map[string]bool, len(names))
	for i, name := range names {
		last := i == len(names)-1
		if !w.sealed[name] {
			err := w.syncFile(filepath.Join(w.dir, name), last)
			if err != nil && (last || !errors.Is(err, os.ErrNotExist)) {
				return err
			} // an older one that is gone became a table, synced by badger
		}
		sealed[name] = !last
	}
	w.sealed = sealed
	return w.syncFile(w.dir, false)
}

// list returns the names of the logs, oldest first.
func (w *walFiles) list() (names []string, err error) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".mem") {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { // numbers of five digits or more
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return names, nil
}

// syncFile syncs a file or directory. The newest log stays open.
func (w *walFiles) syncFile(path string, newest bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	if !newest {
		return errors.Join(w.sync(f), f.Close())
	}
	number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".mem"))
	if err != nil {
		return errors.Join(fmt.Errorf("a log with the name %s: %w", path, err), f.Close())
	}
	if err := w.close(); err != nil {
		return errors.Join(err, f.Close())
	}
	w.newest = f
	w.next = filepath.Join(w.dir, fmt.Sprintf("%05d.mem", number+1))
	return w.sync(f)
}

func (w *walFiles) close() error {
	if w.newest == nil {
		return nil
	}
	f := w.newest
	w.newest = nil
	return f.Close()
}
