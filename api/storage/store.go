package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// store is one resource of a DB.
type store struct {
	db        *DB
	cfg       StoreConfig
	stream    *stream
	versioner storage.APIObjectVersioner
	transform value.Transformer // nil: none
	stats     *statistics
}

var _ storage.Interface = (*store)(nil)

// Store returns the storage of one resource. Stores with the same prefix share
// their objects and events, and must agree on codec and types.
func (db *DB) Store(c StoreConfig) (storage.Interface, error) {
	st, err := db.newStore(c)
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (db *DB) newStore(c StoreConfig) (*store, error) {
	switch {
	case c.Codec == nil, c.NewFunc == nil, c.NewListFunc == nil:
		return nil, errors.New("a store needs a codec, a function for new objects and one for new lists")
	case !strings.HasPrefix(c.ResourcePrefix, "/"), strings.Trim(c.ResourcePrefix, "/") == "":
		return nil, fmt.Errorf("the resource prefix %q must be a slash and a name", c.ResourcePrefix)
	}
	if !strings.HasSuffix(c.ResourcePrefix, "/") {
		c.ResourcePrefix += "/"
	}
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.leave()
	db.streamsMu.Lock()
	defer db.streamsMu.Unlock()
	s, ok := db.streams[c.ResourcePrefix]
	if !ok {
		s = newStream(db, c.ResourcePrefix)
		db.streams[c.ResourcePrefix] = s
	}
	if c.Volatile != nil {
		s.memory.Store(true)
	}
	return &store{db: db, cfg: c, stream: s, stats: &s.stats, transform: c.Transformer}, nil
}

// Versioner implements storage.Interface.
func (st *store) Versioner() storage.Versioner { return st.versioner }

func (st *store) prepareKey(key string, recursive bool) (string, error) {
	return storage.PrepareKey(st.cfg.ResourcePrefix, key, recursive)
}

// keyContext authenticates stored data to a transformer.
type keyContext string

// AuthenticatedData returns the key.
func (k keyContext) AuthenticatedData() []byte { return []byte(k) }

// seal encodes obj, which must have been prepared for storage, and checks its
// size. plain is the codec's output, stored what goes to the tier.
func (st *store) seal(ctx context.Context, key string, obj runtime.Object) (plain, stored []byte, err error) {
	if plain, err = runtime.Encode(st.cfg.Codec, obj); err != nil {
		return nil, nil, err
	}
	stored = plain
	if st.transform != nil {
		if stored, err = st.transform.TransformToStorage(ctx, plain, keyContext(key)); err != nil {
			return nil, nil, storage.NewInternalError(err)
		}
	}
	if limit := st.db.opts.MaxObjectBytes; len(stored) > limit {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("the object takes %d bytes, %d are allowed", len(stored), limit))
	}
	return plain, stored, nil
}

// unseal undoes the transformer. stale says that the data should be rewritten.
func (st *store) unseal(ctx context.Context, key string, stored []byte) (plain []byte, stale bool, err error) {
	if st.transform == nil {
		return stored, false, nil
	}
	plain, stale, err = st.transform.TransformFromStorage(ctx, stored, keyContext(key))
	if err != nil {
		return nil, false, storage.NewInternalError(err)
	}
	return plain, stale, nil
}

// decode decodes plain into obj and sets its resource version.
func (st *store) decode(plain []byte, obj runtime.Object, rev uint64) error {
	if _, _, err := st.cfg.Codec.Decode(plain, nil, obj); err != nil {
		return err
	}
	return st.versioner.UpdateObject(obj, rev)
}

// own returns an object of the caller's own with the content of v and the
// resource version rev.
func (st *store) own(ctx context.Context, key string, v version, rev uint64) (runtime.Object, error) {
	if v.obj != nil && st.transform == nil {
		obj := v.obj.DeepCopyObject()
		if rev == v.rev {
			return obj, nil
		}
		return obj, st.versioner.UpdateObject(obj, rev)
	}
	plain, _, err := st.unseal(ctx, key, v.value)
	if err != nil {
		return nil, err
	}
	obj := st.cfg.NewFunc()
	return obj, st.decode(plain, obj, rev)
}

// look returns the object of v to be read only: that which all share, if there is
// one, or else one of the caller's own with the resource version rev.
func (st *store) look(ctx context.Context, key string, v version, rev uint64) (runtime.Object, error) {
	if v.obj != nil && st.transform == nil {
		return v.obj, nil
	}
	return st.own(ctx, key, v, rev)
}

// shared makes the object that an event carries: of what goes to disk the decoded
// plain, so that watchers see what later readers will; what stays in memory is
// never decoded, so a copy of from will do. It is nil with a transformer: then
// every watcher reads the stored bytes itself.
func (st *store) shared(from runtime.Object, plain []byte, memory bool) (runtime.Object, error) {
	if st.transform != nil {
		return nil, nil
	}
	obj := st.cfg.NewFunc()
	if memory && reflect.TypeOf(from) == reflect.TypeOf(obj) {
		return from.DeepCopyObject(), nil
	}
	_, _, err := st.cfg.Codec.Decode(plain, nil, obj)
	return obj, err
}

// fill sets out to the content of v.
func (st *store) fill(plain []byte, v version, rev uint64, out runtime.Object) error {
	if v.obj != nil && reflect.TypeOf(v.obj) == reflect.TypeOf(out) {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(v.obj.DeepCopyObject()).Elem())
		return st.versioner.UpdateObject(out, rev)
	}
	if _, err := conversion.EnforcePtr(out); err != nil {
		return fmt.Errorf("use the output object: %w", err)
	}
	return st.decode(plain, out, rev)
}

// find returns the current version of key; ok is false if there is none.
func (st *store) find(key string) (v version, memory, ok bool, err error) {
	if e := st.stream.recent(key); e != nil {
		return e.current(), e.memory, e.kind != eventDeleted, nil
	}
	if err := st.db.enter(); err != nil {
		return version{}, false, false, err
	}
	defer st.db.leave()
	r, ok, err := st.db.read(key, st.db.rev.Load())
	return r.version(), r.memory, ok, err
}

func (r record) version() version {
	return version{rev: r.rev, value: r.value, obj: r.obj, dormant: r.dormant}
}

// state is an object as an update sees it.
type state struct {
	version
	plain   []byte
	input   runtime.Object // the caller's own
	current bool           // read from the store, not suggested by the caller
	memory  bool           // known to be in the memory tier
	stale   bool
}

func (s *state) meta() storage.ResponseMeta { return storage.ResponseMeta{ResourceVersion: s.rev} }

// load reads the current state of key. With corrupt the object must be
// undecodable, and then input is nil.
func (st *store) load(ctx context.Context, key string, like reflect.Value, ignoreNotFound, corrupt bool) (*state, error) {
	v, memory, ok, err := st.find(key)
	if err != nil {
		return nil, err
	}
	s := &state{current: true, memory: memory, input: newLike(like)}
	if !ok {
		if !ignoreNotFound {
			return nil, storage.NewKeyNotFoundError(key, 0)
		}
		return s, runtime.SetZeroValue(s.input)
	}
	s.version = v
	s.plain, s.stale, err = st.unseal(ctx, key, v.value)
	if err == nil {
		err = st.fill(s.plain, v, v.rev, s.input)
	}
	switch {
	case corrupt && err != nil:
		s.input, s.plain, s.stale = nil, nil, true
		return s, nil
	case corrupt:
		return nil, storage.NewInvalidObjError(key, "unsafe deletion is not allowed because the object is decodable from storage")
	case err != nil:
		return nil, err
	}
	return s, nil
}

func newLike(v reflect.Value) runtime.Object {
	if u, ok := v.Addr().Interface().(runtime.Unstructured); ok {
		return u.NewEmptyInstance()
	}
	return reflect.New(v.Type()).Interface().(runtime.Object)
}

// suggested turns the caller's idea of the current object into a state.
func (st *store) suggested(obj runtime.Object) (*state, error) {
	rev, err := st.versioner.ObjectResourceVersion(obj)
	if err != nil {
		return nil, fmt.Errorf("read the resource version of the suggested object: %w", err)
	}
	if err := st.versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("prepare the suggested object: %w", err)
	}
	plain, err := runtime.Encode(st.cfg.Codec, obj)
	if err != nil {
		return nil, err
	}
	s := &state{version: version{rev: rev}, plain: plain, input: obj}
	return s, st.versioner.UpdateObject(obj, rev)
}

// Create implements storage.Interface. ttl is ignored: a reconciler deletes
// what has had its time, so that every deletion has an event.
func (st *store) Create(ctx context.Context, key string, obj, out runtime.Object, _ uint64) error {
	key, err := st.prepareKey(key, false)
	if err != nil {
		return err
	}
	if rev, err := st.versioner.ObjectResourceVersion(obj); err == nil && rev != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	if err := st.versioner.PrepareObjectForStorage(obj); err != nil {
		return fmt.Errorf("prepare the object for storage: %w", err)
	}
	plain, e, err := st.newEvent(ctx, key, obj, st.isVolatile(obj))
	if err != nil {
		return err
	}
	ok, err := st.commit(e, 0)
	if err != nil {
		return err
	}
	if !ok {
		return storage.NewKeyExistsError(key, 0)
	}
	if out == nil {
		return nil
	}
	return st.fill(plain, version{rev: e.rev, obj: e.obj}, e.rev, out)
}

func (st *store) isVolatile(obj runtime.Object) bool {
	return st.db.disk == nil || st.cfg.Volatile != nil && st.cfg.Volatile(obj)
}

func (st *store) isDormant(obj runtime.Object) bool {
	return st.cfg.Dormant != nil && st.cfg.Dormant(obj)
}

// activeOnly says whether a predicate matches no dormant object.
func (st *store) activeOnly(pred storage.SelectionPredicate) bool {
	if st.cfg.Dormant == nil || pred.Field == nil {
		return false
	}
	value, demanded := pred.Field.RequiresExactMatch(st.cfg.ActiveField)
	return demanded && value == "true"
}

func (st *store) newEvent(ctx context.Context, key string, obj runtime.Object, memory bool) (plain []byte, e *event, err error) {
	plain, stored, err := st.seal(ctx, key, obj)
	if err != nil {
		return nil, nil, err
	}
	e, err = st.eventOf(key, obj, plain, stored, memory)
	return plain, e, err
}

func (st *store) eventOf(key string, obj runtime.Object, plain, stored []byte, memory bool) (*event, error) {
	shared, err := st.shared(obj, plain, memory)
	if err != nil {
		return nil, err
	}
	return &event{key: key, value: stored, obj: shared, memory: memory, dormant: st.isDormant(obj), setRV: st.versioner.UpdateObject}, nil
}

// commit writes e if the current revision of its key is still expect, 0 meaning
// that there is no object. It decides what kind of event it is; for an existing
// object it keeps the tier.
func (st *store) commit(e *event, expect uint64) (bool, error) {
	db := st.db
	db.write.Lock()
	defer db.write.Unlock()
	cur, memory, exists, err := st.find(e.key)
	if err != nil {
		return false, err
	}
	if !exists {
		cur.rev = 0
	}
	if cur.rev != expect || !exists && e.kind == eventDeleted {
		return false, nil
	}
	if exists {
		e.memory, e.prev = memory, cur
		if e.kind != eventDeleted {
			e.kind = eventModified
		}
	}
	if err := db.enter(); err != nil {
		return false, err
	}
	defer db.leave()
	err = db.apply(st.stream, e)
	return err == nil, err
}

// Get implements storage.Interface.
func (st *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := st.prepareKey(key, false)
	if err != nil {
		return err
	}
	if err := st.db.enter(); err != nil {
		return err
	}
	st.db.leave()
	if err := st.checkMinimum(opts.ResourceVersion, st.db.rev.Load()); err != nil {
		return err
	}
	v, _, ok, err := st.find(key)
	if err != nil {
		return err
	}
	if !ok {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(key, 0)
	}
	plain, _, err := st.unseal(ctx, key, v.value)
	if err != nil {
		return err
	}
	return st.fill(plain, v, v.rev, out)
}

// checkMinimum refuses a request for data newer than there is.
func (st *store) checkMinimum(minimum string, current uint64) error {
	if minimum == "" {
		return nil
	}
	rev, err := st.versioner.ParseResourceVersion(minimum)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if rev > current {
		return storage.NewTooLargeResourceVersionError(rev, current, 0)
	}
	return nil
}

// Delete implements storage.Interface.
func (st *store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, suggestion runtime.Object, opts storage.DeleteOptions) error {
	key, err := st.prepareKey(key, false)
	if err != nil {
		return err
	}
	like, err := conversion.EnforcePtr(out)
	if err != nil {
		return fmt.Errorf("use the output object: %w", err)
	}
	corrupt := opts.ExpectTransformOrDecodeError && utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
	load := func() (*state, error) { return st.load(ctx, key, like, false, corrupt) }
	var cur *state
	if suggestion != nil && !corrupt {
		cur, err = st.suggested(suggestion)
	} else {
		cur, err = load()
	}
	for {
		if err != nil {
			return err
		}
		if err = st.mayDelete(ctx, key, cur, preconditions, validate); err != nil {
			cur, err = reload(cur, err, load)
			continue
		}
		e := &event{key: key, kind: eventDeleted}
		done, err2 := st.commit(e, cur.rev)
		if err2 != nil {
			return err2
		}
		if done {
			if corrupt {
				return nil
			}
			return st.fill(cur.plain, version{obj: cur.obj}, e.rev, out)
		}
		cur, err = load()
	}
}

func (st *store) mayDelete(ctx context.Context, key string, cur *state, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc) error {
	if preconditions != nil {
		if err := preconditions.Check(key, cur.input); err != nil {
			return err
		}
	}
	return validate(ctx, cur.input)
}

// reload answers a refusal that may come from a suggestion being out of date:
// it returns the current state to try again with, or the refusal if it stands.
func reload(cur *state, refusal error, load func() (*state, error)) (*state, error) {
	if cur.current {
		return nil, refusal
	}
	fresh, err := load()
	if err != nil {
		return nil, err
	}
	if fresh.rev == cur.rev {
		return nil, refusal
	}
	return fresh, nil
}

// GuaranteedUpdate implements storage.Interface. A time to live returned by
// tryUpdate is ignored, as in Create.
func (st *store) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, suggestion runtime.Object) error {
	key, err := st.prepareKey(key, false)
	if err != nil {
		return err
	}
	like, err := conversion.EnforcePtr(out)
	if err != nil {
		return fmt.Errorf("use the output object: %w", err)
	}
	load := func() (*state, error) { return st.load(ctx, key, like, ignoreNotFound, false) }
	var cur *state
	if suggestion != nil {
		cur, err = st.suggested(suggestion)
	} else {
		cur, err = load()
	}
	for {
		if err != nil {
			return err
		}
		if err = preconditions.Check(key, cur.input); err != nil {
			if cur.current {
				return err
			}
			cur, err = load()
			continue
		}
		next, _, err2 := tryUpdate(cur.input, cur.meta())
		if err2 != nil {
			cur, err = reload(cur, err2, load)
			continue
		}
		done, err2 := st.tryWrite(ctx, key, cur, next, out)
		if done || err2 != nil {
			return err2
		}
		cur, err = load()
	}
}

// tryWrite stores next over cur and sets out. It writes nothing if next is what
// is stored already. false means that cur is out of date.
func (st *store) tryWrite(ctx context.Context, key string, cur *state, next, out runtime.Object) (bool, error) {
	if err := st.versioner.PrepareObjectForStorage(next); err != nil {
		return false, fmt.Errorf("prepare the object for storage: %w", err)
	}
	plain, stored, err := st.seal(ctx, key, next)
	if err != nil {
		return false, err
	}
	if !cur.stale && bytes.Equal(plain, cur.plain) {
		if !cur.current {
			return false, nil // look at what is stored before saying so
		}
		return true, st.fill(cur.plain, cur.version, cur.rev, out)
	}
	e, err := st.eventOf(key, next, plain, stored, cur.memory || cur.rev == 0 && st.isVolatile(next))
	if err != nil {
		return false, err
	}
	if done, err := st.commit(e, cur.rev); !done || err != nil {
		return false, err
	}
	return true, st.fill(plain, version{rev: e.rev, obj: e.obj}, e.rev, out)
}
