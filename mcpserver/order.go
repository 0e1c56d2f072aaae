package mcpserver

import (
	"iter"
	"sync"

	"github.com/google/btree"
	"k8s.io/client-go/tools/cache"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// candidate is a thread in its place.
type candidate struct {
	position
	thread *v1alpha1.Thread // the cache's, not to be changed
}

func before(a, b candidate) bool { return a.compare(b.position) < 0 }

// order keeps the threads in the order of the list, so that a page costs what it shows and not what there is. It
// follows the cache's informer. The zero value is empty.
type order struct {
	mu       sync.Mutex
	tree     *btree.BTreeG[candidate]
	byName   map[string]candidate
	projects map[string]use
}

// use is how many threads a project has and when one of them was last used, in microseconds since 1970.
type use struct {
	threads int
	last    int64
}

var _ cache.ResourceEventHandler = &order{}

// OnAdd enters a thread.
func (o *order) OnAdd(obj any, _ bool) { o.put(obj) }

// OnUpdate moves a thread to its new place.
func (o *order) OnUpdate(_, obj any) { o.put(obj) }

// OnDelete takes a thread out.
func (o *order) OnDelete(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if t, ok := obj.(*v1alpha1.Thread); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.remove(t.Name)
	}
}

func (o *order) put(obj any) {
	t, ok := obj.(*v1alpha1.Thread)
	if !ok {
		return
	}
	c := candidate{position{lastUsed(t).UnixMicro(), t.Name}, t}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tree == nil {
		o.tree, o.byName, o.projects = btree.NewG(32, before), map[string]candidate{}, map[string]use{}
	}
	o.remove(t.Name)
	o.tree.ReplaceOrInsert(c)
	o.byName[t.Name] = c
	u := o.projects[t.Spec.ProjectRef.Name]
	o.projects[t.Spec.ProjectRef.Name] = use{u.threads + 1, max(u.last, c.used)}
}

func (o *order) remove(name string) {
	c, ok := o.byName[name]
	if !ok {
		return
	}
	o.tree.Delete(c)
	delete(o.byName, name)
	u := o.projects[c.thread.Spec.ProjectRef.Name]
	u.threads--
	o.projects[c.thread.Spec.ProjectRef.Name] = u
}

// get returns a thread in its place.
func (o *order) get(name string) (candidate, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.byName[name]
	return c, ok
}

// of returns what is known of a project's threads.
func (o *order) of(project string) use {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.projects[project]
}

// snapshot returns the order as it is now and the number of threads. It costs next to nothing: later changes copy
// what they touch.
func (o *order) snapshot() (*btree.BTreeG[candidate], int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tree == nil {
		return btree.NewG(2, before), 0
	}
	return o.tree.Clone(), o.tree.Len()
}

// from yields the threads of an order that come after a place, nil for all. Those in moved are where moved says,
// which is sorted.
func from(tree *btree.BTreeG[candidate], after *position, moved []candidate) iter.Seq[candidate] {
	elsewhere := make(map[string]bool, len(moved))
	for _, c := range moved {
		elsewhere[c.name] = true
	}
	start := candidate{}
	start.used = 1<<63 - 1
	if after != nil {
		start.position = *after
	}
	comes := func(c candidate) bool { return after == nil || after.compare(c.position) < 0 }
	return func(yield func(candidate) bool) {
		going := true
		tree.AscendGreaterOrEqual(start, func(c candidate) bool {
			if elsewhere[c.name] || !comes(c) {
				return true
			}
			for ; going && len(moved) > 0 && before(moved[0], c); moved = moved[1:] {
				going = !comes(moved[0]) || yield(moved[0])
			}
			going = going && yield(c)
			return going
		})
		for ; going && len(moved) > 0; moved = moved[1:] {
			going = !comes(moved[0]) || yield(moved[0])
		}
	}
}
