package storage

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

func newPod(name string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "11111111-2222-3333-4444-555555555555"}}
}

func podKey(name string) string { return "/pods/ns/" + name }

// volatileByName sends pods whose name starts with v to the memory tier.
func volatileByName(obj runtime.Object) bool { return obj.(*example.Pod).Name[0] == 'v' }

func openStore(t testing.TB, db *DB, change ...func(*StoreConfig)) *store {
	t.Helper()
	cfg := podConfig()
	cfg.Volatile = volatileByName
	for _, c := range change {
		c(&cfg)
	}
	st, err := db.newStore(cfg)
	require.NoError(t, err)
	return st
}

func create(t testing.TB, st *store, name string) uint64 {
	t.Helper()
	out := &example.Pod{}
	require.NoError(t, st.Create(context.Background(), podKey(name), newPod(name), out, 0))
	return revisionOf(t, out)
}

// label sets the label "n" of a pod.
func label(t testing.TB, st *store, name string, n int) uint64 {
	t.Helper()
	rev, err := tryLabel(st, name, n)
	require.NoError(t, err)
	return rev
}

func tryLabel(st *store, name string, n int) (uint64, error) {
	out := &example.Pod{}
	err := st.GuaranteedUpdate(context.Background(), podKey(name), out, false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		pod := obj.(*example.Pod)
		pod.Labels = map[string]string{"n": strconv.Itoa(n)}
		return pod, nil
	}), nil)
	if err != nil {
		return 0, err
	}
	return st.versioner.ObjectResourceVersion(out)
}

func remove(t testing.TB, st *store, name string) uint64 {
	t.Helper()
	out := &example.Pod{}
	require.NoError(t, st.Delete(context.Background(), podKey(name), out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}))
	return revisionOf(t, out)
}

func get(st *store, name string) (*example.Pod, error) {
	out := &example.Pod{}
	return out, st.Get(context.Background(), podKey(name), storage.GetOptions{}, out)
}

func list(t testing.TB, st *store, opts storage.ListOptions) *example.PodList {
	t.Helper()
	out := &example.PodList{}
	opts.Recursive = true
	if opts.Predicate.Label == nil {
		limit, next := opts.Predicate.Limit, opts.Predicate.Continue
		opts.Predicate = storage.Everything
		opts.Predicate.Limit, opts.Predicate.Continue = limit, next
	}
	require.NoError(t, st.GetList(context.Background(), "/pods/", opts, out))
	return out
}

func names(l *example.PodList) []string {
	found := []string{}
	for _, p := range l.Items {
		found = append(found, p.Name)
	}
	return found
}

func revisionOf(t testing.TB, obj runtime.Object) uint64 {
	t.Helper()
	rev, err := storage.APIObjectVersioner{}.ObjectResourceVersion(obj)
	require.NoError(t, err)
	return rev
}
