package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// The index of active objects is a range of keys of its own: for each durable object that is not dormant its key
// behind activePrefix, without a value. It is written in the transaction of the object, so both have the same fate,
// and with every write of an active object, so that it does not depend on the fate of an earlier write either. What
// it names is looked at before it is believed: it may name objects that are dormant or gone, and never lacks one
// that is active.
const activePrefix = "active:"

// indexFile says that the index is complete, for as long as the revision mark is the one it names. A build that does
// not know the index writes other marks, and what is damaged is not trusted: then the index is made anew.
const indexFile = "ACTIVE"

// indexMark is the content of indexFile.
type indexMark struct {
	// Limit is that of the revision mark it belongs to.
	Limit uint64
	// Since is the revision from which on the index can be read.
	Since uint64
}

func (m indexMark) encode() []byte {
	return summed(fmt.Appendf(nil, "limit %d\nsince %d\n", m.Limit, m.Since))
}

// readIndexMark returns the mark of the index; ok is false if there is none that can be trusted.
func readIndexMark(dir string) (m indexMark, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err != nil {
		return m, false
	}
	var sum uint32
	_, err = fmt.Sscanf(string(text), "limit %d\nsince %d\nsum %x\n", &m.Limit, &m.Since, &sum)
	return m, err == nil && bytes.Equal(m.encode(), text)
}

// writeMarks replaces the revision mark and with it that of the index. Where this is cut off they do not fit, and the
// index is made anew; so the mark of the index is neither synced nor missed.
func (db *DB) writeMarks(m mark) error {
	path := filepath.Join(db.opts.Dir, indexFile)
	text := indexMark{Limit: m.Limit, Since: db.indexedSince}.encode()
	return writeMark(db.opts.Dir, m, func() {
		if os.WriteFile(path+".new", text, 0o600) == nil {
			_ = os.Rename(path+".new", path)
		}
	})
}

// openIndex makes the index complete if it is not known to be, before there are readers and writers.
func (db *DB) openIndex(found examination) error {
	if m, ok := readIndexMark(db.opts.Dir); ok && found.markErr == nil && m.Limit == found.mark.Limit && !db.report.damaged() {
		db.indexedSince = m.Since
		return nil
	}
	// All is written at the highest revision there is, so that no revision is used for it.
	rev := max(db.disk.MaxVersion(), firstRevision)
	if err := db.buildIndex(rev); err != nil {
		return fmt.Errorf("index the object store: %w", err)
	}
	db.indexedSince = rev
	return nil
}

// buildIndex writes what the index lacks and removes what it has too much.
func (db *DB) buildIndex(rev uint64) error {
	txn := db.disk.NewTransactionAt(rev, false)
	defer txn.Discard()
	objects := txn.NewIterator(badger.IteratorOptions{Prefix: []byte("/")})
	defer objects.Close()
	index := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(activePrefix)})
	defer index.Close()
	objects.Rewind()
	index.Rewind()
	out := db.disk.NewWriteBatchAt(rev)
	defer out.Cancel()
	for {
		for objects.Valid() && objects.Item().UserMeta()&dormantMark != 0 {
			objects.Next()
		}
		if !objects.Valid() && !index.Valid() {
			return out.Flush()
		}
		order := -1
		switch {
		case !objects.Valid():
			order = 1
		case index.Valid():
			order = bytes.Compare(objects.Item().Key(), index.Item().Key()[len(activePrefix):])
		}
		var err error
		if order < 0 {
			err = out.SetEntryAt(badger.NewEntry(activeKey(objects.Item().Key()), nil), rev)
		} else if order > 0 {
			err = out.DeleteAt(index.Item().KeyCopy(nil), rev)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			objects.Next()
		}
		if order >= 0 {
			index.Next()
		}
	}
}

func activeKey[K string | []byte](key K) []byte { return append([]byte(activePrefix), key...) }

// putIndex adds to the transaction of e what the index is to say.
func putIndex(txn *badger.Txn, e *event) error {
	switch {
	case e.kind != eventDeleted && !e.dormant:
		return txn.SetEntry(badger.NewEntry(activeKey(e.key), nil))
	case e.kind != eventAdded && !e.prev.dormant:
		return txn.Delete(activeKey(e.key))
	}
	return nil
}

// activeRecords returns a function that returns the next active object from key from on, one without a key at the end,
// and another that ends it. The caller has checked that the index covers the revision of txn.
func activeRecords(txn *badger.Txn, prefix, from string) (next func() (record, error), end func()) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: activeKey(prefix)})
	it.Seek(activeKey(from))
	return func() (record, error) {
		for ; it.Valid(); it.Next() {
			key := it.Item().Key()[len(activePrefix):]
			item, err := txn.Get(key)
			if errors.Is(err, badger.ErrKeyNotFound) || err == nil && item.UserMeta()&dormantMark != 0 {
				continue
			}
			var r record
			if err == nil {
				r, err = recordOf(item)
			}
			if err != nil {
				return record{}, fmt.Errorf("read %s from the object store: %w", key, err)
			}
			it.Next()
			return r, nil
		}
		return record{}, nil
	}, it.Close
}

// recordOf copies what badger has found.
func recordOf(item *badger.Item) (r record, err error) {
	r = record{key: string(item.Key()), rev: item.Version(), dormant: item.UserMeta()&dormantMark != 0}
	r.value, err = item.ValueCopy(nil)
	return r, err
}
