package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Bounds of what status reads and shows.
const (
	pageSize       = 500
	receiptPages   = 10 // of finished operations, which are kept by the hundred thousand
	recentCommands = 20
	recentRuns     = 20
	readHandoffs   = 100
)

// world is everything that status tells about, by name of what it belongs to.
type world struct {
	projects   []v1alpha1.Project
	workspaces []v1alpha1.Workspace
	threads    map[string][]v1alpha1.Thread    // of a project
	runs       map[string][]v1alpha1.Run       // of a thread, latest first
	operations map[string][]v1alpha1.Operation // of a workspace, latest first
	handoffs   []v1alpha1.Handoff              // latest first
	projectOf  map[string]string               // of a thread
	arguments  map[string]map[string]any       // of an operation, while the daemon has them in memory
}

func (c *connection) readWorld(ctx context.Context) (*world, error) {
	client, err := c.typedClient()
	if err != nil {
		return nil, err
	}
	r := &reader{connection: c, ctx: ctx, client: client}
	w := &world{
		projects:   all(r, "projects", "", 0, func(l *v1alpha1.ProjectList) []v1alpha1.Project { return l.Items }),
		workspaces: all(r, "workspaces", "", 0, func(l *v1alpha1.WorkspaceList) []v1alpha1.Workspace { return l.Items }),
		handoffs:   all(r, "handoffs", "", 0, func(l *v1alpha1.HandoffList) []v1alpha1.Handoff { return l.Items }),
		projectOf:  map[string]string{}, arguments: map[string]map[string]any{},
	}
	threads := all(r, "threads", "", 0, func(l *v1alpha1.ThreadList) []v1alpha1.Thread { return l.Items })
	runs := all(r, "runs", "", 0, func(l *v1alpha1.RunList) []v1alpha1.Run { return l.Items })
	items := func(l *v1alpha1.OperationList) []v1alpha1.Operation { return l.Items }
	operations := append(all(r, "operations", "status.active=true", 0, items), all(r, "operations", "status.active=false", receiptPages, items)...)
	if r.err != nil {
		return nil, r.err
	}
	slices.SortStableFunc(operations, func(a, b v1alpha1.Operation) int { return began(&b).Compare(began(&a)) })
	slices.SortStableFunc(runs, func(a, b v1alpha1.Run) int { return b.Began().Compare(a.Began()) })
	slices.SortStableFunc(w.handoffs, func(a, b v1alpha1.Handoff) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	w.threads = groupBy(threads, func(t *v1alpha1.Thread) string { return t.Spec.ProjectRef.Name })
	w.runs = groupBy(runs, func(r *v1alpha1.Run) string { return r.Spec.ThreadRef.Name })
	w.operations = groupBy(operations, func(o *v1alpha1.Operation) string { return o.Spec.WorkspaceRef.Name })
	for _, t := range threads {
		w.projectOf[t.Name] = t.Spec.ProjectRef.Name
	}
	for i := range w.workspaces {
		latest := true
		for _, o := range w.operations[w.workspaces[i].Name] {
			if !o.Over() || latest {
				w.arguments[o.Name] = c.request(ctx, client, o.Name)
			}
			latest = latest && !o.Over()
		}
	}
	return w, nil
}

// reader keeps the first error of several reads.
type reader struct {
	*connection
	ctx    context.Context
	client rest.Interface
	err    error
}

// list is a pointer to a list of one of our kinds.
type list[L any] interface {
	*L
	runtime.Object
	metav1.ListInterface
}

// all reads a resource by page, at most so many pages if pages is not 0.
func all[L, T any, P list[L]](r *reader, resource, selector string, pages int, items func(*L) []T) (found []T) {
	o := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	for page := 1; r.err == nil; page++ {
		var l L
		if r.err = r.list(r.ctx, r.client, resource, o, P(&l)); r.err != nil {
			return nil
		}
		found = append(found, items(&l)...)
		if o.Continue = P(&l).GetContinue(); o.Continue == "" || page == pages {
			break
		}
	}
	return found
}

func groupBy[T any](items []T, key func(*T) string) map[string][]T {
	groups := map[string][]T{}
	for i := range items {
		k := key(&items[i])
		groups[k] = append(groups[k], items[i])
	}
	return groups
}

func began(o *v1alpha1.Operation) time.Time {
	if o.Status.StartTime != nil {
		return o.Status.StartTime.Time
	}
	return o.CreationTimestamp.Time
}

func lastUsed(t *metav1.MicroTime, created metav1.Time) time.Time {
	if t != nil {
		return t.Time
	}
	return created.Time
}

func newestFirst[T any](items []T, used func(T) int64) {
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(used(b), used(a)) })
}
