package storage

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// countingCodec counts what is decoded.
type countingCodec struct {
	runtime.Codec
	decoded atomic.Int64
}

func (c *countingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	c.decoded.Add(1)
	return c.Codec.Decode(data, defaults, into)
}

func asleep(obj runtime.Object) bool { return obj.(*example.Pod).Labels["n"] == "0" }

func awake(value string) storage.SelectionPredicate {
	return storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.OneTermEqualSelector("active", value),
		GetAttrs: func(obj runtime.Object) (labels.Set, fields.Set, error) {
			active := "true"
			if asleep(obj) {
				active = "false"
			}
			return nil, fields.Set{"active": active}, nil
		},
	}
}

// TestDormant: a list of active objects does not read the dormant ones, in this life and the next; every other list
// shows them.
func TestDormant(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	open := func(marks bool) (*store, *countingCodec) {
		codec := &countingCodec{Codec: podConfig().Codec}
		return openStore(t, openTest(t, func(o *Options) { o.Dir = dir }), func(c *StoreConfig) {
			c.Codec = codec
			if marks {
				c.Dormant, c.ActiveField = asleep, "active"
			}
		}), codec
	}
	st, _ := open(false) // a store that was written before there were marks
	create(t, st, "old")
	label(t, st, "old", 0)
	require.NoError(t, st.db.Close())

	st, codec := open(true)
	for _, name := range []string{"a", "b", "c", "v"} {
		create(t, st, name)
	}
	for _, name := range []string{"a", "b", "v"} { // v is in memory
		label(t, st, name, 0)
	}
	label(t, st, "b", 1) // awake again
	lists := func(read int64) {
		t.Helper()
		before := codec.decoded.Load()
		require.Equal(t, []string{"b", "c"}, names(list(t, st, storage.ListOptions{Predicate: awake("true")})))
		require.Equal(t, read, codec.decoded.Load()-before)
	}
	lists(3) // b, c and the old one; what is in memory needs no decoding
	require.Equal(t, []string{"a", "old", "v"}, names(list(t, st, storage.ListOptions{Predicate: awake("false")})))
	require.Equal(t, []string{"a", "b", "c", "old", "v"}, names(list(t, st, storage.ListOptions{})))

	yes := true
	pred := awake("true")
	pred.AllowWatchBookmarks = true
	w, err := st.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, SendInitialEvents: &yes, Predicate: pred})
	require.NoError(t, err)
	for _, name := range []string{"b", "c"} {
		require.Equal(t, name, (<-w.ResultChan()).Object.(*example.Pod).Name)
	}
	w.Stop()
	require.NoError(t, st.db.Close())

	st, codec = open(true)
	lists(3) // the same in the next life
	pod, err := get(st, "a")
	require.NoError(t, err)
	require.Equal(t, "0", pod.Labels["n"])
}
