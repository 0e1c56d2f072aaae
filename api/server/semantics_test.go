package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func TestCreateGetDelete(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		p := newProject("one")
		gone(t, c, newProject("one"))
		create(t, c, p)
		if p.UID == "" || p.ResourceVersion == "" || p.CreationTimestamp.IsZero() || p.Generation != 1 || p.Spec.DisplayName != "demo" {
			t.Errorf("the created object lacks what the server fills in: %+v", p)
		}
		if err := c.Create(t.Context(), newProject("one")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a second object of the same name: %v", err)
		}
		var got v1alpha1.Project
		if err := c.Get(t.Context(), Key("one"), &got); err != nil || got.UID != p.UID || got.ResourceVersion != p.ResourceVersion {
			t.Errorf("read %+v, %v; created %+v", got.ObjectMeta, err, p.ObjectMeta)
		}
		if err := c.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		gone(t, c, p)
		if err := c.Delete(t.Context(), p); !apierrors.IsNotFound(err) {
			t.Errorf("a second deletion: %v", err)
		}
		generated := newProject("")
		generated.GenerateName = "demo-"
		create(t, c, generated)
		if len(generated.Name) <= len("demo-") {
			t.Errorf("generated name %q", generated.Name)
		}
	})
}

func TestDryRunLeavesNothing(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		if err := c.Create(t.Context(), newProject("dry"), client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		gone(t, c, newProject("dry"))
		p := newProject("kept")
		create(t, c, p)
		if err := c.Delete(t.Context(), p, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		reread(t, c, p)
	})
}

func TestSpecAndStatusAreSeparate(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		p := newProject("apart")
		p.Status.Threads = 9
		create(t, c, p)
		if p.Status.Threads != 0 {
			t.Error("a new object brings its own status")
		}
		p.Spec.DisplayName, p.Status.Threads = "renamed", 9
		if err := c.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if p.Status.Threads != 0 || p.Spec.DisplayName != "renamed" || p.Generation != 2 {
			t.Errorf("an update of the main endpoint gave %+v, generation %d", p.Status, p.Generation)
		}
		p.Spec.DisplayName, p.Status.Threads, p.Labels = "again", 3, map[string]string{"a": "b"}
		if err := c.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if p.Status.Threads != 3 || p.Spec.DisplayName != "renamed" || p.Generation != 2 || len(p.Labels) != 0 {
			t.Errorf("an update of the status gave %+v, %+v, %v, generation %d", p.Status, p.Spec, p.Labels, p.Generation)
		}
		p.Labels = map[string]string{"a": "b"}
		if err := c.Update(t.Context(), p); err != nil || p.Generation != 2 || p.Labels["a"] != "b" {
			t.Errorf("labels are no change of intent: generation %d, %v, %v", p.Generation, p.Labels, err)
		}
		if err := c.Status().Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"displayName":"x"},"status":{"threads":4}}`))); err != nil {
			t.Fatal(err)
		}
		if p.Status.Threads != 4 || p.Spec.DisplayName != "renamed" {
			t.Errorf("a patch of the status gave %+v, %+v", p.Status, p.Spec)
		}
	})
}

func TestUpdateConflict(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		p := newProject("contended")
		create(t, c, p)
		stale := p.DeepCopy()
		p.Spec.DisplayName = "first"
		if err := c.Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		stale.Spec.DisplayName = "second"
		if err := c.Update(t.Context(), stale.DeepCopy()); !apierrors.IsConflict(err) {
			t.Errorf("an update of a stale object: %v", err)
		}
		if err := c.Status().Update(t.Context(), stale.DeepCopy()); !apierrors.IsConflict(err) {
			t.Errorf("a status of a stale object: %v", err)
		}
		changed := stale.DeepCopy()
		changed.Spec.DisplayName = "third"
		if err := c.Patch(t.Context(), changed, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
			t.Errorf("a patch that demands a stale resourceVersion: %v", err)
		}
		stale.ResourceVersion = ""
		if err := c.Update(t.Context(), stale); err != nil || stale.Spec.DisplayName != "second" {
			t.Errorf("an update without a resourceVersion is unconditional: %v", err)
		}
	})
}

func TestDeletePreconditions(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		p := newProject("guarded")
		create(t, c, p)
		other := types.UID("00000000-0000-0000-0000-000000000000")
		for name, pre := range map[string]client.Preconditions{"UID": {UID: &other}, "resourceVersion": {ResourceVersion: ptr.To("1")}} {
			if err := c.Delete(t.Context(), p, pre); !apierrors.IsConflict(err) {
				t.Errorf("deletion with another %s: %v", name, err)
			}
		}
		reread(t, c, p)
		if err := c.Delete(t.Context(), p, client.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion}); err != nil {
			t.Error(err)
		}
		gone(t, c, p)
	})
}

func TestPatches(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		o := newOperation("ws", "key", v1alpha1.ToolBash)
		create(t, c, o)
		before := o.DeepCopy()
		o.Spec.Cancel, o.Spec.CancelledBy = true, "person"
		if err := c.Patch(t.Context(), o, client.MergeFrom(before)); err != nil || !o.Spec.Cancel || o.Generation != 2 {
			t.Errorf("merge patch: %+v, %v", o.Spec, err)
		}
		if err := c.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`))); err != nil || o.Labels["seen"] != "yes" {
			t.Errorf("JSON patch: %v, %v", o.Labels, err)
		}
		failing := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/tool","value":"write"}]`))
		if err := c.Patch(t.Context(), o.DeepCopy(), failing); err == nil {
			t.Error("a JSON patch whose test fails succeeded")
		}
		back := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cancel":false}}`))
		if err := c.Patch(t.Context(), o.DeepCopy(), back); !apierrors.IsInvalid(err) {
			t.Errorf("taking a cancellation back: %v", err)
		}
		if err := c.Patch(t.Context(), newProject("nobody"), client.RawPatch(types.MergePatchType, []byte(`{}`))); !apierrors.IsNotFound(err) {
			t.Errorf("a patch of nothing: %v", err)
		}
	})
}

func TestListByPage(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		const all = 25
		for i := range all {
			create(t, c, newRead("ws", fmt.Sprintf("read-%02d", i)), newOperation("ws", fmt.Sprint(i), v1alpha1.ToolBash))
		}
		names, pages := map[string]bool{}, 0
		var page v1alpha1.OperationList
		for {
			if err := c.List(t.Context(), &page, client.InNamespace(v1alpha1.Namespace), client.Limit(7), client.Continue(page.Continue)); err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > 7 {
				t.Errorf("a page of %d objects", len(page.Items))
			}
			for _, o := range page.Items {
				if names[o.Name] {
					t.Errorf("%s is on two pages", o.Name)
				}
				names[o.Name] = true
			}
			if pages++; page.Continue == "" {
				break
			}
		}
		if len(names) != 2*all || pages < 2*all/7 {
			t.Errorf("%d of %d objects on %d pages", len(names), 2*all, pages)
		}
	})
}

func TestSelectors(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		over := newOperation("a", "1", v1alpha1.ToolBash)
		labelled := newOperation("b", "2", v1alpha1.ToolWrite)
		labelled.Labels = map[string]string{"team": "red"}
		create(t, c, over, labelled, newRead("b", "reading"))
		finish(t, c, over)
		for selector, want := range map[string][]string{
			"spec.workspaceRef.name=b": {"write", "read"}, "spec.tool=bash": {"bash"}, "spec.tool!=bash": {"write", "read"},
			"status.active=true": {"write", "read"}, "status.active=false": {"bash"}, "status.phase=Succeeded": {"bash"},
			"metadata.name=reading": {"read"}, "spec.tool=bash,status.active=true": nil,
		} {
			s, err := fields.ParseSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			if got := tools(t, c, client.MatchingFieldsSelector{Selector: s}); !sameTools(got, want) {
				t.Errorf("%s selects %v, want %v", selector, got, want)
			}
		}
		if got := tools(t, c, client.MatchingLabels{"team": "red"}); !sameTools(got, []string{"write"}) {
			t.Errorf("the label selects %v", got)
		}
		if err := c.DeleteAllOf(t.Context(), &v1alpha1.Operation{}, client.InNamespace(v1alpha1.Namespace), client.MatchingFields{"status.active": "false"}); err != nil {
			t.Fatal(err)
		}
		if got := tools(t, c); !sameTools(got, []string{"write", "read"}) {
			t.Errorf("after deleting what is over there are %v", got)
		}
	})
}

func tools(t *testing.T, c client.Client, opts ...client.ListOption) (names []string) {
	t.Helper()
	var list v1alpha1.OperationList
	if err := c.List(t.Context(), &list, append(opts, client.InNamespace(v1alpha1.Namespace))...); err != nil {
		t.Fatal(err)
	}
	for _, o := range list.Items {
		names = append(names, string(o.Spec.Tool))
	}
	return names
}

func sameTools(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func TestDeletedWorkspaceWaitsForItsFinalizer(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		w := newWorkspace("closing")
		create(t, c, w)
		if !slices.Contains(w.Finalizers, v1alpha1.Finalizer) {
			t.Fatalf("finalizers %v", w.Finalizers)
		}
		if err := c.Delete(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		reread(t, c, w)
		if w.DeletionTimestamp.IsZero() {
			t.Fatal("a deleted workspace does not say so")
		}
		w.Finalizers = nil
		if err := c.Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		gone(t, c, w)
	})
}

func TestDeletedOperationWaitsForItsOutcome(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		active := newOperation("ws", "active", v1alpha1.ToolBash)
		create(t, c, active)
		if err := c.Delete(t.Context(), active); err != nil {
			t.Fatal(err)
		}
		reread(t, c, active)
		if active.DeletionTimestamp.IsZero() {
			t.Error("a deleted operation does not say so")
		}
		finish(t, c, active)
		gone(t, c, active)

		over := newOperation("ws", "over", v1alpha1.ToolBash)
		create(t, c, over)
		finish(t, c, over)
		reread(t, c, over)
		if len(over.Finalizers) != 0 {
			t.Errorf("a receipt is held by %v", over.Finalizers)
		}
		if err := c.Delete(t.Context(), over); err != nil {
			t.Fatal(err)
		}
		gone(t, c, over)

		volatile := newRead("ws", "reading")
		create(t, c, volatile)
		if err := c.Delete(t.Context(), volatile); err != nil {
			t.Fatal(err)
		}
		gone(t, c, volatile)
	})
}

func TestWatchBeginsWithWhatIsThere(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		create(t, c, newProject("one"), newProject("two"))
		w, err := c.Watch(t.Context(), &v1alpha1.ProjectList{}, client.InNamespace(v1alpha1.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{
			SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		var names []string
		for {
			e := nextOfAny(t, w)
			if e.Type == watch.Bookmark {
				if p := e.Object.(*v1alpha1.Project); p.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
					t.Errorf("the bookmark after the initial events says %v", p.Annotations)
				}
				break
			}
			names = append(names, string(e.Type)+" "+nameOf(t, e))
		}
		if slices.Sort(names); !slices.Equal(names, []string{"ADDED one", "ADDED two"}) {
			t.Errorf("initial events %v", names)
		}
		create(t, c, newProject("three"))
		if e := next(t, w); e.Type != watch.Added || nameOf(t, e) != "three" {
			t.Errorf("then %s %s", e.Type, nameOf(t, e))
		}
	})
}

func TestWatchFromAState(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		o := newOperation("ws", "key", v1alpha1.ToolBash)
		create(t, c, o)
		active := client.MatchingFields{"status.active": "true"}
		w, err := c.Watch(t.Context(), &v1alpha1.OperationList{}, active, &client.ListOptions{Namespace: v1alpha1.Namespace, Raw: &metav1.ListOptions{ResourceVersion: o.ResourceVersion}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		o.Spec.Cancel = true
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		finish(t, c, o)
		if e := next(t, w); e.Type != watch.Modified || !e.Object.(*v1alpha1.Operation).Spec.Cancel {
			t.Errorf("first %s %s", e.Type, nameOf(t, e))
		}
		if e := next(t, w); e.Type != watch.Deleted || nameOf(t, e) != o.Name {
			t.Errorf("what leaves the selection is %s %s", e.Type, nameOf(t, e))
		}
	})
}

func TestInvalidObjectsNameTheirFields(t *testing.T) {
	bothWaysIn(t, func(t *testing.T, c client.WithWatch) {
		misnamed := newOperation("ws", "key", v1alpha1.ToolWrite)
		misnamed.Name = "other"
		unknown := newRead("ws", "unknown")
		unknown.Spec.Tool = "format_disk"
		for name, broken := range map[string]struct {
			object client.Object
			field  string
		}{
			"relative path":  {&v1alpha1.Workspace{ObjectMeta: named("w"), Spec: v1alpha1.WorkspaceSpec{ThreadRef: v1alpha1.LocalReference{Name: "t"}, Cwd: "demo"}}, "spec.cwd"},
			"no thread":      {&v1alpha1.Run{ObjectMeta: named("r")}, "spec.threadRef.name"},
			"another name":   {misnamed, "metadata.name"},
			"unknown tool":   {unknown, "spec.tool"},
			"no credential":  {&v1alpha1.Tunnel{ObjectMeta: named("t"), Spec: v1alpha1.TunnelSpec{TunnelID: "x"}}, "spec.credential.file"},
			"unknown reason": {&v1alpha1.Handoff{ObjectMeta: named("h"), Spec: v1alpha1.HandoffSpec{Reason: "Bored", Summary: "x", ThreadRef: v1alpha1.LocalReference{Name: "t"}, RunRef: v1alpha1.LocalReference{Name: "r"}}}, "spec.reason"},
		} {
			err := c.Create(t.Context(), broken.object)
			if !apierrors.IsInvalid(err) || !hasCause(err, broken.field) {
				t.Errorf("%s: %v, want one about %s", name, err, broken.field)
			}
		}
		w := newWorkspace("fixed")
		create(t, c, w)
		w.Spec.Cwd = "/elsewhere"
		if err := c.Update(t.Context(), w); !apierrors.IsInvalid(err) || !hasCause(err, "spec") {
			t.Errorf("a workspace that moves: %v", err)
		}
	})
}

func hasCause(err error, field string) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// What HTTP says must be what the in-process client says, byte for byte where it is JSON.
func TestBothWaysReadTheSame(t *testing.T) {
	e := newEnv(t)
	remote := e.remote(t)
	o := newOperation("ws", "key", v1alpha1.ToolBash)
	create(t, e.Client, o)
	finish(t, remote, o)
	var near, far v1alpha1.Operation
	for c, into := range map[client.Client]*v1alpha1.Operation{e.Client: &near, remote: &far} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), into); err != nil {
			t.Fatal(err)
		}
		into.TypeMeta, into.ManagedFields = metav1.TypeMeta{}, nil
	}
	a, _ := json.Marshal(near)
	b, _ := json.Marshal(far)
	if string(a) != string(b) {
		t.Errorf("in process:\n%s\nover HTTP:\n%s", a, b)
	}
}
