package dashboard

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

const (
	// keptOperations is how many finished operations of a workspace stay in the view.
	keptOperations = status.RecentCommands
	// keptWorkspaces is of how many workspaces they stay, those with the latest operations.
	keptWorkspaces = 64
	// keptOthers is how many runs that are over and handoffs that were read stay in the view.
	keptOthers = status.ReadHandoffs
	// pageSize is how many objects are listed at once.
	pageSize = 500
)

// view is what readers are shown, kept up to date by one watch of each kind. It begins with the first reader.
type view struct {
	client   client.WithWatch
	describe func(*v1alpha1.Operation) (string, bool)
	log      logr.Logger
	ctx      context.Context
	begin    sync.Once
	present  chan struct{} // closed when every kind has been listed

	mu      sync.Mutex
	entries map[types.UID]*entry
	groups  map[string][]*entry // that make room for each other, the newest first
	readers map[*reader]struct{}
}

// entry is the latest state of an object. It does not change.
type entry struct {
	kind        string
	object      client.Object // shared with the store's watch
	version     uint64
	description string
	group       string // empty: stays as long as it exists
	at          time.Time

	once *sync.Once
	line []byte
}

func newView(ctx context.Context, o Options) *view {
	return &view{client: o.Client, describe: o.Describe, log: o.Log, ctx: ctx, present: make(chan struct{}),
		entries: map[types.UID]*entry{}, groups: map[string][]*entry{}, readers: map[*reader]struct{}{}}
}

// lists makes an empty list of each kind that is shown.
var lists = map[string]func() client.ObjectList{
	"Project":   func() client.ObjectList { return &v1alpha1.ProjectList{} },
	"Thread":    func() client.ObjectList { return &v1alpha1.ThreadList{} },
	"Workspace": func() client.ObjectList { return &v1alpha1.WorkspaceList{} },
	"Operation": func() client.ObjectList { return &v1alpha1.OperationList{} },
	"Run":       func() client.ObjectList { return &v1alpha1.RunList{} },
	"Handoff":   func() client.ObjectList { return &v1alpha1.HandoffList{} },
	"Tunnel":    func() client.ObjectList { return &v1alpha1.TunnelList{} },
}

// start begins to watch, once, and waits until the view holds the present.
func (v *view) start(ctx context.Context) error {
	v.begin.Do(func() {
		var listed sync.WaitGroup
		for kind := range lists {
			listed.Add(1)
			go v.keep(kind, sync.OnceFunc(listed.Done))
		}
		go func() {
			listed.Wait()
			close(v.present)
		}()
	})
	select {
	case <-v.present:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-v.ctx.Done():
		return v.ctx.Err()
	}
}

// keep holds one kind up to date: list, then watch; again when the watch ends.
func (v *view) keep(kind string, listed func()) {
	for v.ctx.Err() == nil {
		version, err := v.list(kind)
		if err == nil {
			listed()
			err = v.follow(kind, version)
		}
		if err != nil && v.ctx.Err() == nil {
			v.log.Error(err, "The dashboard could not read", "kind", kind)
		}
		select {
		case <-v.ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (v *view) list(kind string) (version string, err error) {
	here := map[types.UID]bool{}
	o := &client.ListOptions{Namespace: v1alpha1.Namespace, Limit: pageSize}
	for {
		page := lists[kind]()
		if err := v.client.List(v.ctx, page, o); err != nil {
			return "", err
		}
		err := meta.EachListItem(page, func(item runtime.Object) error {
			object := item.DeepCopyObject().(client.Object) // a kept object would keep its page
			here[object.GetUID()] = true
			v.put(kind, object)
			return nil
		})
		if err != nil {
			return "", err
		}
		version = page.GetResourceVersion()
		if o.Continue = page.GetContinue(); o.Continue == "" {
			break
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, e := range v.entries {
		if e.kind == kind && !here[uid] {
			v.drop(e)
		}
	}
	return version, nil
}

// follow takes in changes until the watch ends.
func (v *view) follow(kind, version string) error {
	w, err := v.client.Watch(v.ctx, lists[kind](), &client.ListOptions{Namespace: v1alpha1.Namespace, Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		object, ok := e.Object.(client.Object)
		switch {
		case !ok: // the watch was cut off
			return nil
		case e.Type == watch.Deleted:
			v.remove(object.GetUID())
		case e.Type == watch.Added || e.Type == watch.Modified:
			v.put(kind, object)
		}
	}
	return nil
}

func (v *view) put(kind string, object client.Object) {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	e := &entry{kind: kind, object: object, version: version, once: &sync.Once{}}
	e.place()
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.entries[object.GetUID()]
	if before != nil && before.version >= version {
		return
	}
	if op, ok := object.(*v1alpha1.Operation); ok {
		e.description = v.about(op, before)
	}
	if before != nil {
		v.leaveGroup(before)
	}
	v.entries[object.GetUID()] = e
	v.tell(e, false)
	v.joinGroup(e)
}

// about describes an operation. Who knows may forget it when the operation is over, so what was once known is kept.
func (v *view) about(op *v1alpha1.Operation, before *entry) string {
	if before != nil && before.description != "" {
		return before.description
	}
	text, _ := v.describe(op)
	return text
}

// place says which group an object belongs to and where in it.
func (e *entry) place() {
	switch o := e.object.(type) {
	case *v1alpha1.Operation:
		if o.Over() && len(o.Status.Leftovers) == 0 {
			e.group, e.at = "Operation/"+o.Spec.WorkspaceRef.Name, status.Began(o)
			if o.Status.CompletionTime != nil {
				e.at = o.Status.CompletionTime.Time
			}
		}
	case *v1alpha1.Run:
		if !o.Working() {
			e.group, e.at = "Run", o.Began()
		}
	case *v1alpha1.Handoff:
		if o.Spec.Acknowledged {
			e.group, e.at = "Handoff", o.CreationTimestamp.Time
		}
	}
}

// joinGroup puts an entry into its group; the oldest makes room.
func (v *view) joinGroup(e *entry) {
	if e.group == "" {
		return
	}
	g := v.groups[e.group]
	i, _ := slices.BinarySearchFunc(g, e, func(a, b *entry) int { return b.at.Compare(a.at) })
	v.groups[e.group] = slices.Insert(g, i, e)
	limit := keptOthers
	if e.kind == "Operation" {
		limit = keptOperations
	}
	for len(v.groups[e.group]) > limit {
		v.drop(v.groups[e.group][limit])
	}
	if len(v.groups) > keptWorkspaces+2 {
		v.dropOldestWorkspace()
	}
}

func (v *view) dropOldestWorkspace() {
	oldest := ""
	for name, g := range v.groups {
		if g[0].kind == "Operation" && (oldest == "" || g[0].at.Before(v.groups[oldest][0].at)) {
			oldest = name
		}
	}
	for _, e := range slices.Clone(v.groups[oldest]) {
		v.drop(e)
	}
}

func (v *view) leaveGroup(e *entry) {
	g, ok := v.groups[e.group]
	if !ok {
		return
	}
	if g = slices.DeleteFunc(g, func(o *entry) bool { return o == e }); len(g) == 0 {
		delete(v.groups, e.group)
	} else {
		v.groups[e.group] = g
	}
}

func (v *view) remove(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[uid]; e != nil {
		v.drop(e)
	}
}

// drop takes an entry out of the view.
func (v *view) drop(e *entry) {
	v.leaveGroup(e)
	delete(v.entries, e.object.GetUID())
	v.tell(e, true)
}

func (v *view) tell(e *entry, gone bool) {
	for r := range v.readers {
		r.changed(e, gone)
	}
}

// all returns the entries, in no order.
func (v *view) all() []*entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.copied()
}

func (v *view) copied() []*entry {
	all := make([]*entry, 0, len(v.entries))
	for _, e := range v.entries {
		all = append(all, e)
	}
	return all
}

// encoded returns the entry's line of the stream. It is made once for all readers.
func (e *entry) encoded() []byte {
	e.once.Do(func() {
		object := e.object.DeepCopyObject().(client.Object)
		object.SetManagedFields(nil)
		object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(e.kind))
		l := struct {
			Type        string        `json:"type"`
			Object      client.Object `json:"object"`
			Description string        `json:"description,omitempty"`
		}{"MODIFIED", object, e.described()}
		b, err := json.Marshal(l)
		if err != nil { // our own types always encode
			panic(err)
		}
		e.line = append(b, '\n')
	})
	return e.line
}

// described is what the operation is about, or as much as its object tells.
func (e *entry) described() string {
	op, ok := e.object.(*v1alpha1.Operation)
	if !ok || e.description != "" {
		return e.description
	}
	text := string(op.Spec.Tool)
	for _, p := range op.Spec.Paths {
		text += " " + p
	}
	return text
}

// farewell is the line that says that the entry has left the view.
func (e *entry) farewell() []byte {
	l := map[string]any{"type": "DELETED", "object": map[string]any{
		"kind": e.kind, "metadata": map[string]any{"name": e.object.GetName(), "uid": e.object.GetUID()}}}
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // names and ids always encode
	}
	return append(b, '\n')
}
