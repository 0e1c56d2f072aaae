package garbage

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

const (
	// named is the number of runs that a thread names at most. One that names fewer has no others.
	named = 20
	// page is the number of objects that are read at once, and breath the pause after them.
	page   = 500
	breath = 20 * time.Millisecond
)

// release does for a deleted owner what its deletion asked for, and lets it go. It says whether it has to wait.
// Finalizers tell what was asked for; an owner without them is gone already.
func (r *Reconciler) release(ctx context.Context, owner client.Object) (waiting bool, err error) {
	orphan := controllerutil.ContainsFinalizer(owner, metav1.FinalizerOrphanDependents)
	if owner.GetDeletionTimestamp().IsZero() || !orphan && !controllerutil.ContainsFinalizer(owner, metav1.FinalizerDeleteDependents) {
		return false, nil
	}
	thread, _ := owner.(*v1alpha1.Thread)
	uid := owner.GetUID()
	dependents, err := r.dependents(ctx, owner)
	if err != nil {
		return false, err
	}
	switch {
	case orphan:
		for _, o := range dependents {
			if err := r.disown(ctx, o, uid); err != nil {
				return false, err
			}
		}
		if thread != nil {
			err = r.runsOf(ctx, thread, func(ctx context.Context, run *v1alpha1.Run) error { return r.disownRun(ctx, run, uid) })
		}
		if err != nil {
			return false, err
		}
		return false, r.letGo(ctx, owner, metav1.FinalizerOrphanDependents)
	default:
		for _, o := range dependents {
			if err := r.remove(ctx, o); err != nil {
				return false, err
			}
		}
		if len(dependents) > 0 { // as long as a workspace is there, runs may come
			return true, nil
		}
		if thread != nil {
			err = r.runsOf(ctx, thread, r.removeRun)
		}
		if err != nil {
			return false, err
		}
		return false, r.letGo(ctx, owner, metav1.FinalizerDeleteDependents)
	}
}

// dependents returns the threads of a project and the workspaces of a thread, by the API: one that the cache does not
// show yet would dangle once its owner is let go, and be removed though it was to stay.
func (r *Reconciler) dependents(ctx context.Context, owner client.Object) (all []client.Object, err error) {
	note := func(o client.Object) {
		if slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }) {
			all = append(all, o)
		}
	}
	if _, ok := owner.(*v1alpha1.Project); ok {
		threads := &v1alpha1.ThreadList{}
		err := r.pages(ctx, threads, client.MatchingFields{"spec.projectRef.name": owner.GetName()}, func() error {
			for i := range threads.Items {
				note(&threads.Items[i])
			}
			return nil
		})
		return all, err
	}
	workspaces := &v1alpha1.WorkspaceList{}
	err = r.pages(ctx, workspaces, client.MatchingFields{"spec.threadRef.name": owner.GetName()}, func() error {
		for i := range workspaces.Items {
			note(&workspaces.Items[i])
		}
		return nil
	})
	return all, err
}

// letGo removes a finalizer.
func (r *Reconciler) letGo(ctx context.Context, cached client.Object, finalizer string) error {
	return r.change(ctx, cached, func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, finalizer) })
}

// disown removes an owner reference.
func (r *Reconciler) disown(ctx context.Context, o client.Object, owner types.UID) error {
	return r.change(ctx, o, func(o client.Object) bool {
		refs := o.GetOwnerReferences()
		rest := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
		o.SetOwnerReferences(rest)
		return len(rest) < len(refs)
	})
}

func (r *Reconciler) disownRun(ctx context.Context, run *v1alpha1.Run, owner types.UID) error {
	if err := r.disown(ctx, run, owner); err != nil {
		return err
	}
	return r.disown(ctx, handoffOf(run), owner)
}

// change changes the metadata of an object as it is stored now. One that is gone is left alone.
func (r *Reconciler) change(ctx context.Context, o client.Object, to func(client.Object) bool) error {
	key, now := client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.Live.Get(ctx, key, now); err != nil {
			return err
		}
		if !to(now) {
			return nil
		}
		return r.Client.Update(ctx, now)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change the metadata of %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// removeDangling deletes an object if each of its owners is gone. What the cache shows is only a reason to look: the
// object may just have been taken away from its owner.
func (r *Reconciler) removeDangling(ctx context.Context, seen client.Object) error {
	if dangles, err := r.dangles(ctx, seen); err != nil || !dangles {
		return err
	}
	key, now := client.ObjectKeyFromObject(seen), seen.DeepCopyObject().(client.Object)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := r.Live.Get(ctx, key, now); err != nil {
			return err
		}
		if dangles, err := r.dangles(ctx, now); err != nil || !dangles || !now.GetDeletionTimestamp().IsZero() {
			return err
		}
		uid, version := now.GetUID(), now.GetResourceVersion()
		return r.Client.Delete(ctx, now, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove %T %s: %w", seen, seen.GetName(), err)
	}
	return nil
}

// dangles says whether an object had owners and has none any more.
func (r *Reconciler) dangles(ctx context.Context, o client.Object) (bool, error) {
	for _, ref := range o.GetOwnerReferences() {
		if gone, err := r.gone(ctx, o.GetNamespace(), ref); err != nil || !gone {
			return false, err
		}
	}
	return len(o.GetOwnerReferences()) > 0, nil
}

// gone says whether an owner is not there any more. Of kinds that are not ours nothing is known.
func (r *Reconciler) gone(ctx context.Context, namespace string, ref metav1.OwnerReference) (bool, error) {
	if ref.APIVersion != v1alpha1.GroupVersion.String() {
		return false, nil
	}
	var owner client.Object
	switch ref.Kind {
	case "Project":
		owner = &v1alpha1.Project{}
	case "Thread":
		owner = &v1alpha1.Thread{}
	default:
		return false, nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	if err := r.Client.Get(ctx, key, owner); err == nil && owner.GetUID() == ref.UID {
		return false, nil
	}
	err := r.Live.Get(ctx, key, owner) // the cache may be behind
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look for %s %s: %w", ref.Kind, ref.Name, err)
	}
	return err != nil || owner.GetUID() != ref.UID, nil
}

// remove deletes an object, if it is still the one that was seen.
func (r *Reconciler) remove(ctx context.Context, o client.Object) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	var options []client.DeleteOption
	if uid := o.GetUID(); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	err := r.Client.Delete(ctx, o.DeepCopyObject().(client.Object), options...)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) { // made anew under its name
		return fmt.Errorf("remove %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// removeRun deletes a run and its handoff.
func (r *Reconciler) removeRun(ctx context.Context, run *v1alpha1.Run) error {
	if err := r.remove(ctx, handoffOf(run)); err != nil {
		return err
	}
	return r.remove(ctx, run)
}

func (r *Reconciler) removeDanglingRun(ctx context.Context, run *v1alpha1.Run) error {
	if err := r.removeDangling(ctx, run); err != nil {
		return err
	}
	return r.removeDanglingHandoff(ctx, v1alpha1.HandoffName(run.Name))
}

func (r *Reconciler) removeDanglingHandoff(ctx context.Context, name string) error {
	h := &v1alpha1.Handoff{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: v1alpha1.Namespace, Name: name}, h)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.removeDangling(ctx, h)
}

// handoffOf returns the handoff that a run has if it was handed off: its name alone.
func handoffOf(run *v1alpha1.Run) *v1alpha1.Handoff {
	return &v1alpha1.Handoff{ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: v1alpha1.HandoffName(run.Name)}}
}

// runsOf calls do for each run of a thread.
func (r *Reconciler) runsOf(ctx context.Context, t *v1alpha1.Thread, do func(context.Context, *v1alpha1.Run) error) error {
	now := &v1alpha1.Thread{} // the cache may not name the latest run
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(t), now); err == nil && now.UID == t.UID {
		t = now
	}
	if len(t.Status.Runs) >= named {
		return r.eachRun(ctx, client.MatchingFields{"spec.threadRef.name": t.Name}, do)
	}
	for _, ref := range t.Status.Runs {
		run := &v1alpha1.Run{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: t.Namespace, Name: ref.Name}, run)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = do(ctx, run)
		}
		if err != nil {
			return fmt.Errorf("runs of thread %s: %w", t.Name, err)
		}
	}
	return nil
}

// runsOfDeleted removes the runs of threads that are gone. One look at all runs serves all threads that may have more
// than they name.
func (r *Reconciler) runsOfDeleted(ctx context.Context, threads []*v1alpha1.Thread) error {
	many := map[string]bool{}
	for _, t := range threads {
		if len(t.Status.Runs) >= named {
			many[t.Name] = true
		} else if err := r.runsOf(ctx, t, r.removeDanglingRun); err != nil {
			return err
		}
	}
	if len(many) == 0 {
		return nil
	}
	return r.eachRun(ctx, client.MatchingFields{}, func(ctx context.Context, run *v1alpha1.Run) error {
		if !many[run.Spec.ThreadRef.Name] {
			return nil
		}
		return r.removeDanglingRun(ctx, run)
	})
}

// danglingRuns removes all runs and handoffs whose owners are gone.
func (r *Reconciler) danglingRuns(ctx context.Context) error {
	err := r.eachRun(ctx, client.MatchingFields{}, func(ctx context.Context, run *v1alpha1.Run) error { return r.removeDangling(ctx, run) })
	if err != nil {
		return err
	}
	handoffs := &v1alpha1.HandoffList{}
	return r.pages(ctx, handoffs, client.MatchingFields{}, func() error {
		for i := range handoffs.Items {
			if err := r.removeDangling(ctx, &handoffs.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *Reconciler) eachRun(ctx context.Context, fields client.MatchingFields, do func(context.Context, *v1alpha1.Run) error) error {
	runs := &v1alpha1.RunList{}
	return r.pages(ctx, runs, fields, func() error {
		for i := range runs.Items {
			if err := do(ctx, &runs.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// pages reads a list by page and calls do after each.
func (r *Reconciler) pages(ctx context.Context, list client.ObjectList, fields client.MatchingFields, do func() error) error {
	for next := ""; ; {
		err := r.Live.List(ctx, list, client.InNamespace(v1alpha1.Namespace), fields, client.Limit(page), client.Continue(next))
		if err == nil {
			err = do()
		}
		if err != nil {
			return fmt.Errorf("look through %T: %w", list, err)
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(breath):
		}
	}
}
