package storage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dgraph-io/badger/v4"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// read returns the version of key valid at rev; ok is false if there is none.
// The caller has entered the DB.
func (db *DB) read(key string, rev uint64) (r record, ok bool, err error) {
	if r, ok := db.memory.get(key, rev); ok && !r.deleted {
		return r, true, nil
	}
	if db.disk == nil {
		return record{}, false, nil
	}
	txn := db.disk.NewTransactionAt(rev, false)
	defer txn.Discard()
	item, err := txn.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return record{}, false, nil
	}
	if err == nil {
		r, err = recordOf(item)
	}
	if err != nil {
		return record{}, false, fmt.Errorf("read %s from the object store: %w", key, err)
	}
	return r, true, nil
}

// prefixEnd returns the first key after all keys that start with prefix, which
// ends in a slash.
func prefixEnd(prefix string) string {
	return prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1)
}

// scan calls fn for the objects under prefix as of rev, from key from on, in
// key order across both tiers, until fn returns false. hint is how many it will
// want. The caller has entered the DB.
func (st *store) scan(prefix, from string, rev uint64, hint int, activeOnly bool, fn func(record) (bool, error)) error {
	db, end := st.db, prefixEnd(prefix)
	disk := func() (record, error) { return record{}, nil }
	if db.disk != nil {
		txn := db.disk.NewTransactionAt(rev, false)
		defer txn.Discard()
		var end func()
		if activeOnly && rev >= db.indexedSince {
			disk, end = activeRecords(txn, prefix, from)
		} else {
			disk, end = diskRecords(txn, prefix, from, hint, activeOnly)
		}
		defer end()
	}
	memory := db.memory.snapshot()
	// Checked after both were taken: nothing can be dropped from them any more.
	if err := st.readable(rev); err != nil {
		return err
	}
	d, err := disk()
	m, inMemory := memory.next(from, end, rev)
	for err == nil && (d.key != "" || inMemory) {
		var r record
		if inMemory && (d.key == "" || m.key < d.key) {
			r = m
			m, inMemory = memory.next(r.key+"\x00", end, rev)
		} else {
			r = d
			d, err = disk()
			if err != nil {
				break
			}
		}
		if more, err := fn(r); err != nil || !more {
			return err
		}
	}
	return err
}

// diskRecords returns a function that returns the next durable object under prefix from key from on, with activeOnly
// the next that is not dormant, and one without a key at the end; and another function that ends it.
func diskRecords(txn *badger.Txn, prefix, from string, hint int, activeOnly bool) (next func() (record, error), end func()) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(prefix), PrefetchValues: hint > 1 && !activeOnly, PrefetchSize: min(hint, 100)})
	it.Seek([]byte(from))
	return func() (record, error) {
		for activeOnly && it.Valid() && it.Item().UserMeta()&dormantMark != 0 {
			it.Next()
		}
		if !it.Valid() {
			return record{}, nil
		}
		r, err := recordOf(it.Item())
		if err != nil {
			return record{}, fmt.Errorf("read %s from the object store: %w", it.Item().Key(), err)
		}
		it.Next()
		return r, nil
	}, it.Close
}

// errCompacted says that a revision cannot be read completely any more.
var errCompacted = errors.New("the revision is too old")

// readable refuses revisions below the floor, and those of an earlier process
// of which some may have been lost.
func (st *store) readable(rev uint64) error {
	if rev < st.stream.floor() || rev > st.db.trusted && rev < st.db.opened {
		return errCompacted
	}
	return nil
}

// page returns up to limit objects at revision rev from key from on, and
// whether there are more.
func (st *store) page(key, from string, rev uint64, recursive, activeOnly bool, limit int) (found []record, more bool, err error) {
	if err := st.db.enter(); err != nil {
		return nil, false, err
	}
	defer st.db.leave()
	if !recursive {
		r, ok, err := st.db.read(key, rev)
		if err == nil {
			err = st.readable(rev)
		}
		if ok && err == nil {
			found = append(found, r)
		}
		return found, false, tooOldForWatch(err)
	}
	err = st.scan(key, from, rev, limit, activeOnly, func(r record) (bool, error) {
		if len(found) == limit {
			more = true
			return false, nil
		}
		found = append(found, r)
		return true, nil
	})
	return found, more, tooOldForWatch(err)
}

func tooOldForWatch(err error) error {
	if errors.Is(err, errCompacted) {
		return errTooOld
	}
	return err
}

// changes lists the versions that w wants after since, in revision order and
// without their values, and the revision up to which the list is complete.
func (st *store) changes(w *watcher, since uint64) (found []record, upto uint64, err error) {
	if err := st.db.enter(); err != nil {
		return nil, 0, err
	}
	defer st.db.leave()
	upto = st.db.rev.Load()
	end := w.key + "\x00"
	if w.recursive {
		end = prefixEnd(w.key)
	}
	st.db.memory.snapshot().each(w.key, end, since, upto, func(r record) {
		found = append(found, record{key: r.key, rev: r.rev, deleted: r.deleted, memory: true})
	})
	if st.db.disk != nil {
		txn := st.db.disk.NewTransactionAt(upto, false)
		defer txn.Discard()
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(w.key), AllVersions: true, SinceTs: since})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			item := it.Item()
			if !w.recursive && !bytes.Equal(item.Key(), []byte(w.key)) || item.Version() <= since {
				continue
			}
			found = append(found, record{key: string(item.Key()), rev: item.Version(), deleted: item.IsDeletedOrExpired()})
		}
	}
	slices.SortFunc(found, func(a, b record) int { return cmp.Compare(a.rev, b.rev) })
	return found, upto, tooOldForWatch(st.readable(since))
}

// recall rebuilds the events of changes, all of which came after since.
func (st *store) recall(changes []record, since uint64) (events []*event, err error) {
	if err := st.db.enter(); err != nil {
		return nil, err
	}
	defer st.db.leave()
	for _, c := range changes {
		e, err := st.db.recall(c)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, tooOldForWatch(st.readable(since)) // after reading: nothing was missing then
}

func (db *DB) recall(c record) (*event, error) {
	e := &event{rev: c.rev, key: c.key, memory: c.memory, kind: eventDeleted}
	before, existed, err := db.read(c.key, c.rev-1)
	if err != nil {
		return nil, err
	}
	if existed {
		e.prev = before.version()
	}
	if c.deleted {
		return e, nil
	}
	now, _, err := db.read(c.key, c.rev)
	if err != nil {
		return nil, err
	}
	e.value, e.obj, e.kind = now.value, now.obj, eventAdded
	if existed {
		e.kind = eventModified
	}
	return e, nil
}

// GetList implements storage.Interface.
func (st *store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	prefix, err := st.prepareKey(key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return err
	}
	v, err := conversion.EnforcePtr(items)
	if err != nil || v.Kind() != reflect.Slice {
		return fmt.Errorf("the list has no slice of items: %w", err)
	}
	withRev, from, err := storage.ValidateListOptions(prefix, st.versioner, opts)
	if err != nil {
		return err
	}
	if err := st.db.enter(); err != nil {
		return err
	}
	defer st.db.leave()
	l := &listing{st: st, ctx: ctx, pred: opts.Predicate, items: v, newItem: itemFunc(listObj, v), errs: newListErrors(st.cfg.GroupResource)}
	l.count = st.cfg.RemainingItemCount && opts.Predicate.Empty()
	rev, err := l.run(prefix, from, uint64(withRev), opts)
	if err != nil {
		return listError(err, opts, from, prefix)
	}
	next, remaining, err := storage.PrepareContinueToken(l.lastKey, prefix, int64(rev), l.seen, l.more, opts)
	if err != nil {
		return err
	}
	if !l.count {
		remaining = nil
	}
	if v.IsNil() {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	return st.versioner.UpdateList(listObj, rev, next, remaining)
}

// listRevision returns the revision a list reads at; exact is 0 for the newest.
func (st *store) listRevision(exact uint64, opts storage.ListOptions) (uint64, error) {
	current := st.db.rev.Load()
	if exact == 0 {
		if opts.Predicate.Continue == "" {
			return current, st.checkMinimum(opts.ResourceVersion, current)
		}
		return current, nil
	}
	if exact > current {
		return 0, storage.NewTooLargeResourceVersionError(exact, current, 0)
	}
	return exact, nil
}

// Messages of list errors, as clients of the Kubernetes API know them.
const (
	listTooOld     = "The resourceVersion for the provided list is too old."
	continueTooOld = "The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response " +
		"to retrieve the remainder of the results, which may then show changes made since the first part."
)

// listError turns a read below the floor into what a client can act on: a
// paged list gets a token that goes on at the newest revision.
func listError(err error, opts storage.ListOptions, from, prefix string) error {
	if !errors.Is(err, errCompacted) {
		return err
	}
	if opts.Predicate.Continue == "" {
		return apierrors.NewResourceExpired(listTooOld)
	}
	expired := apierrors.NewResourceExpired(continueTooOld)
	if token, err := storage.EncodeContinue(from, prefix, -1); err == nil {
		expired.ErrStatus.ListMeta.Continue = token
	}
	return expired
}

// itemFunc returns how to make an item of the list.
func itemFunc(list runtime.Object, items reflect.Value) func() runtime.Object {
	if u, ok := list.(*unstructured.UnstructuredList); ok && u.GetAPIVersion() != "" {
		return func() runtime.Object {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion()}}
		}
	}
	elem := items.Type().Elem()
	return func() runtime.Object { return reflect.New(elem).Interface().(runtime.Object) }
}

// listing is a list under way.
type listing struct {
	st      *store
	ctx     context.Context
	pred    storage.SelectionPredicate
	items   reflect.Value
	newItem func() runtime.Object
	errs    listErrors
	count   bool // go on counting after the page is full

	lastKey string // the last key that was looked at
	seen    int64  // how many keys were, and would have been
	more    bool   // there are keys after lastKey
}

// run collects the list and returns the revision it shows; exact is 0 for the
// newest. The newest can always be listed: should a compaction overtake it
// before the first object is read, there is a newer one.
func (l *listing) run(key, from string, exact uint64, opts storage.ListOptions) (uint64, error) {
	for {
		rev, err := l.st.listRevision(exact, opts)
		if err != nil {
			return 0, err
		}
		err = l.collect(key, from, rev, opts.Recursive)
		if exact == 0 && errors.Is(err, errCompacted) && l.ctx.Err() == nil {
			continue
		}
		return rev, err
	}
}

func (l *listing) collect(key, from string, rev uint64, recursive bool) error {
	st := l.st
	if !recursive {
		r, ok, err := st.db.read(key, rev)
		if err == nil {
			err = st.readable(rev)
		}
		if ok && err == nil {
			_, err = l.add(r)
		}
		if err != nil {
			return err
		}
		return l.errs.aggregate()
	}
	if from == "" {
		from = key
	}
	hint := 100
	if l.pred.Limit > 0 && l.pred.Empty() {
		hint = int(min(l.pred.Limit+1, 100))
	}
	if err := st.scan(key, from, rev, hint, st.activeOnly(l.pred), l.add); err != nil {
		return err
	}
	return l.errs.aggregate()
}

// add takes the next object. It returns false when the list is complete.
func (l *listing) add(r record) (bool, error) {
	if l.pred.Limit > 0 && int64(l.items.Len()) >= l.pred.Limit {
		l.more = true
		l.seen++
		return l.count, nil
	}
	if l.ctx.Err() != nil {
		return false, storage.NewTimeoutError(r.key, "request did not complete within requested timeout")
	}
	l.lastKey = r.key
	l.seen++
	obj := l.newItem()
	if err := l.decode(r, obj); err != nil {
		return true, l.errs.add(r.key, err)
	}
	if ok, err := l.pred.Matches(obj); err == nil && ok {
		l.items.Set(reflect.Append(l.items, reflect.ValueOf(obj).Elem()))
	}
	return true, nil
}

func (l *listing) decode(r record, obj runtime.Object) error {
	if r.obj != nil && l.st.transform == nil {
		return l.st.fill(r.value, r.version(), r.rev, obj)
	}
	plain, _, err := l.st.unseal(l.ctx, r.key, r.value)
	if err != nil {
		return storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", r.key, err))
	}
	if err := l.st.decode(plain, obj, r.rev); err != nil {
		if l.errs.collect {
			return storage.NewCorruptObjError(r.key, err)
		}
		return err
	}
	return nil
}
