package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"
)

// Waits between two attempts to reach a daemon that has ended grow between these.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// follower prints changes of one kind, over restarts of the daemon.
type follower struct {
	*get
	mapping *meta.RESTMapping
	client  rest.Interface
	fields  string
	name    string // of the one object that is watched, if it is one
	show    printers.ResourcePrinter
	align   flusher // keeps the widths of columns over events; nil for what is no table

	resource string                       // the resourceVersion from which to go on
	seen     map[types.UID]runtime.Object // what was last printed of each object
}

// flusher is a writer that holds lines back until it knows how wide their columns are.
type flusher interface {
	io.Writer
	Flush() error
}

// follow prints a list and then each change, until the process is ended.
func (g *get) follow(ctx context.Context, args []string) error {
	if g.sortBy != "" {
		return errors.New("what is watched cannot be sorted: leave --sort-by or --watch away")
	}
	f, err := g.newFollower(args)
	if err != nil {
		return err
	}
	if err := f.list(ctx, !g.watchOnly); err != nil {
		return err
	}
	if f.name != "" && len(f.seen) == 0 && !g.ignoreNotFound {
		return apierrors.NewNotFound(f.mapping.Resource.GroupResource(), f.name)
	}
	wait := firstWait
	for {
		began := f.resource
		err := f.stream(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			err = f.list(ctx, true)
		}
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Code < 500 {
			return err
		}
		if f.resource != began {
			wait = firstWait
		}
		if err == nil {
			continue
		}
		if down := new(notRunningError); wait == firstWait && errors.As(err, &down) {
			fmt.Fprintln(g.streams.ErrOut, "rigctl: rig-bridge has ended; waiting for it to come back")
		}
		time.Sleep(wait)
		wait = min(2*wait, lastWait)
	}
}

func (g *get) newFollower(args []string) (*follower, error) {
	kind, names := args[0], args[1:]
	if t, name, ok := strings.Cut(kind, "/"); ok {
		kind, names = t, append([]string{name}, names...)
	}
	if strings.Contains(kind, ",") || len(names) > 1 {
		return nil, errors.New("only one type and one name can be watched at a time")
	}
	f := &follower{get: g, fields: g.fields, seen: map[types.UID]runtime.Object{}}
	if len(names) == 1 {
		f.name = names[0]
		f.fields = fields.OneTermEqualSelector(metav1.ObjectNameField, names[0]).String()
	}
	var err error
	if f.mapping, err = g.mappingFor(kind); err != nil {
		return nil, err
	}
	if f.client, err = g.client(f.mapping.GroupVersionKind.GroupVersion()); err != nil {
		return nil, err
	}
	if g.table() {
		f.show = g.tablePrinter(f.mapping.GroupVersionKind.GroupKind(), false, g.all)
		f.align = printers.GetNewTabWriter(g.streams.Out)
		return f, nil
	}
	f.show, err = g.printer()
	return f, err
}

// mappingFor finds a kind by its plural, singular or short name.
func (c *connection) mappingFor(name string) (*meta.RESTMapping, error) {
	mapper, err := c.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	gvk, err := mapper.KindFor(schema.ParseGroupResource(name).WithVersion(""))
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the server doesn't have a resource type %q", name)
	}
	if err != nil {
		return nil, err
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

func (f *follower) request(o metav1.ListOptions) *rest.Request {
	o.LabelSelector, o.FieldSelector = f.labels, f.fields
	r := f.client.Get().NamespaceIfScoped(f.namespace, !f.all).Resource(f.mapping.Resource.Resource).
		VersionedParams(&o, metav1.ParameterCodec)
	if f.table() {
		f.asTables(r)
	}
	return r
}

// list reads all objects by page and prints what differs from what was printed before.
func (f *follower) list(ctx context.Context, show bool) error {
	gone := f.seen
	f.seen = map[types.UID]runtime.Object{}
	o := metav1.ListOptions{Limit: f.chunk}
	for {
		page, err := f.request(o).Do(ctx).Get()
		if err != nil {
			f.seen = gone
			return err
		}
		if err := f.page(page, gone, show); err != nil {
			return err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return err
		}
		if f.resource = list.GetResourceVersion(); list.GetContinue() == "" {
			break
		}
		o.Continue = list.GetContinue()
	}
	for _, obj := range gone {
		if err := f.print(watch.Deleted, obj); err != nil {
			return err
		}
	}
	return nil
}

// page prints the objects of a page that changed since and takes them out of those that are gone.
func (f *follower) page(page runtime.Object, gone map[types.UID]runtime.Object, show bool) error {
	objects, err := f.split(page)
	if err != nil {
		return err
	}
	var changed []runtime.Object
	for _, obj := range objects {
		m, err := identity(obj)
		if err != nil {
			return err
		}
		before, known := gone[m.GetUID()]
		delete(gone, m.GetUID())
		f.seen[m.GetUID()] = obj
		if known {
			if b, err := identity(before); err == nil && b.GetResourceVersion() == m.GetResourceVersion() {
				continue
			}
		}
		changed = append(changed, obj)
	}
	if !show {
		return nil
	}
	if f.table() && !f.outputWatchEvents {
		return f.print(watch.Added, joined(changed))
	}
	for _, obj := range changed {
		if err := f.print(watch.Added, obj); err != nil {
			return err
		}
	}
	return nil
}

// split takes a page apart: a list into its items, a table into tables of one row.
func (f *follower) split(page runtime.Object) (objects []runtime.Object, err error) {
	if !f.table() {
		err = meta.EachListItem(page, func(o runtime.Object) error {
			objects = append(objects, o)
			return nil
		})
		return objects, err
	}
	table, err := decodeTable(page)
	if err != nil {
		return nil, err
	}
	for _, row := range table.Rows {
		objects = append(objects, &metav1.Table{TypeMeta: table.TypeMeta, ColumnDefinitions: table.ColumnDefinitions, Rows: []metav1.TableRow{row}})
	}
	return objects, nil
}

// joined puts the rows of tables together, so that the first list is aligned.
func joined(tables []runtime.Object) *metav1.Table {
	all := &metav1.Table{}
	for _, t := range tables {
		table := t.(*metav1.Table)
		all.TypeMeta, all.ColumnDefinitions = table.TypeMeta, table.ColumnDefinitions
		all.Rows = append(all.Rows, table.Rows...)
	}
	return all
}

// identity returns the metadata of an object or of a table's only row.
func identity(obj runtime.Object) (metav1.Object, error) {
	if t, ok := obj.(*metav1.Table); ok && len(t.Rows) == 1 && t.Rows[0].Object.Object != nil {
		obj = t.Rows[0].Object.Object
	}
	return meta.Accessor(obj)
}

// stream prints changes from the last known state on. It returns nil when the connection has ended.
func (f *follower) stream(ctx context.Context) error {
	w, err := f.request(metav1.ListOptions{Watch: true, ResourceVersion: f.resource, AllowWatchBookmarks: true}).Watch(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if err := f.event(e); err != nil {
			return err
		}
	}
	return f.reachable(ctx)
}

func (f *follower) event(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(statusOf(e.Object))
	}
	obj := e.Object
	if u := asUnstructured(obj); u != nil && u.GetKind() == "Table" {
		table, err := decodeTable(u)
		if err != nil {
			return err
		}
		if len(table.Rows) == 0 { // a bookmark
			if table.ResourceVersion != "" {
				f.resource = table.ResourceVersion
			}
			return nil
		}
		obj = table
	}
	m, err := identity(obj)
	if err != nil {
		return err
	}
	f.resource = m.GetResourceVersion()
	switch e.Type {
	case watch.Bookmark:
		return nil
	case watch.Deleted:
		delete(f.seen, m.GetUID())
	default:
		f.seen[m.GetUID()] = obj
	}
	return f.print(e.Type, obj)
}

func (f *follower) print(kind watch.EventType, obj runtime.Object) error {
	if t, ok := obj.(*metav1.Table); ok {
		obj = &metav1.Table{TypeMeta: t.TypeMeta, ColumnDefinitions: t.ColumnDefinitions, Rows: append([]metav1.TableRow{}, t.Rows...)}
	}
	if f.outputWatchEvents {
		obj = &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Object: obj}}
	}
	if f.align == nil {
		return f.show.PrintObj(obj, f.streams.Out)
	}
	if err := f.show.PrintObj(obj, f.align); err != nil {
		return err
	}
	return f.align.Flush()
}

// statusOf makes sense of an error event whatever it was decoded into.
func statusOf(obj runtime.Object) runtime.Object {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj
	}
	s := &metav1.Status{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
		return obj
	}
	return s
}
