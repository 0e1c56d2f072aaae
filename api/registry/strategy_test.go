package registry

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// build makes all resources on a store in memory.
func buildAll(t *testing.T) (*runtime.Scheme, map[string]*Resource) {
	t.Helper()
	db, err := storage.Open(storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Event{}, &corev1.EventList{})
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.GroupVersion, corev1.SchemeGroupVersion)
	all, err := Build(scheme, func(b Backend) (apistorage.Interface, error) {
		return db.Store(storage.StoreConfig{Codec: codec, NewFunc: b.NewFunc, NewListFunc: b.NewListFunc, GroupResource: b.GroupResource, ResourcePrefix: b.ResourcePrefix, Volatile: b.Volatile})
	})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Resource{}
	for _, r := range all {
		byName[r.GVR.Resource] = r
	}
	return scheme, byName
}

// parts are the fields of a kind's own that an object has beside its metadata.
func parts(o any) (spec, status reflect.Value) {
	v := reflect.ValueOf(o).Elem()
	return v.FieldByName("Spec"), v.FieldByName("Status")
}

func checkKind[T any, P Object[T]](t *testing.T, k Kind[T, P]) {
	t.Helper()
	full, empty := P(new(T)), P(new(T))
	randfill.NewWithSeed(1).NilChance(0).NumElements(1, 2).MaxDepth(10).Fill(full)
	spec, status := parts(full)
	if k.Spec(full) != spec.Addr().Interface() || k.Status != nil && k.Status(full) != status.Addr().Interface() {
		t.Errorf("%s: Spec or Status is not the object's own", k.Plural)
	}
	k.SetSpec(empty, full)
	gotSpec, gotStatus := parts(empty)
	if !reflect.DeepEqual(gotSpec.Interface(), spec.Interface()) || !gotStatus.IsZero() {
		t.Errorf("%s: SetSpec does not copy the spec and only that", k.Plural)
	}
	empty = P(new(T))
	k.SetStatus(empty, full)
	gotSpec, gotStatus = parts(empty)
	if !reflect.DeepEqual(gotStatus.Interface(), status.Interface()) || !gotSpec.IsZero() {
		t.Errorf("%s: SetStatus does not copy the status and only that", k.Plural)
	}
}

func TestKindsCopyWholeParts(t *testing.T) {
	checkKind(t, projects)
	checkKind(t, threads)
	checkKind(t, workspaces)
	checkKind(t, operations)
	checkKind(t, runs)
	checkKind(t, handoffs)
	checkKind(t, tunnels)
}

func TestFieldLabels(t *testing.T) {
	scheme, all := buildAll(t)
	known := map[string][]string{
		"projects": {"spec.identity"}, "threads": {"spec.projectRef.name"}, "workspaces": {"spec.threadRef.name"},
		"operations": {"spec.threadRef.name", "spec.workspaceRef.name", "spec.tool", "status.phase", FieldActive},
		"runs":       {"spec.threadRef.name", "status.phase"}, "handoffs": {"spec.threadRef.name", "spec.acknowledged", FieldActive}, "tunnels": nil,
		"events": {"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid", "reason", "type"},
	}
	if len(all) != len(known) {
		t.Errorf("%d kinds are served, %d are expected", len(all), len(known))
	}
	for name, r := range all {
		for _, label := range append(slices.Clone(known[name]), "metadata.name", "metadata.namespace") {
			if _, _, err := scheme.ConvertFieldLabel(r.GVK, label, "x"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, _, err := scheme.ConvertFieldLabel(r.GVK, "spec.nonsense", "x"); err == nil || !strings.Contains(err.Error(), r.GVK.Kind) {
			t.Errorf("%s: an unknown field gives %v", name, err)
		}
	}
}

// Each endpoint says which fields it never changes, so that server-side apply does not make anybody their owner.
func TestResetFields(t *testing.T) {
	_, all := buildAll(t)
	version := fieldpath.APIVersion(v1alpha1.GroupVersion.String())
	has := func(r rest.ResetFieldsStrategy, part string) bool {
		return r.GetResetFields()[version].Has(fieldpath.MakePathOrDie(part))
	}
	for name, r := range all {
		if r.Status == nil { // events
			continue
		}
		if !has(r.Main.ResetFieldsStrategy, "status") || has(r.Main.ResetFieldsStrategy, "spec") || !has(r.Status, "spec") || has(r.Status, "status") {
			t.Errorf("%s: the main endpoint resets %v, status %v", name, r.Main.GetResetFields()[version], r.Status.GetResetFields()[version])
		}
	}
}

func inDefault() context.Context {
	return apirequest.WithNamespace(context.Background(), v1alpha1.Namespace)
}

// A status never touches metadata, whatever the object brings, except for the finalizer that an outcome releases.
func TestStatusKeepsMetadata(t *testing.T) {
	_, all := buildAll(t)
	r := all["operations"]
	o := &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.Namespace, Name: v1alpha1.OperationName("w", "k"), Labels: map[string]string{"a": "b"}, Finalizers: []string{"example.dev/other"}},
		Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: "w"}, Tool: v1alpha1.ToolBash, RequestKey: "k", ArgumentsDigest: "hmac-sha256:" + strings.Repeat("0", 64)}}
	made, err := r.Main.Create(inDefault(), o, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := made.(*v1alpha1.Operation).DeepCopy()
	if !slices.Contains(changed.Finalizers, v1alpha1.Finalizer) {
		t.Fatalf("finalizers %v", changed.Finalizers)
	}
	changed.Labels, changed.Annotations, changed.Finalizers, changed.Generation = nil, map[string]string{"x": "y"}, nil, 99
	changed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: "1"}}
	got := updateStatus(t, r, changed)
	if got.Labels["a"] != "b" || len(got.Annotations)+len(got.OwnerReferences) != 0 || len(got.Finalizers) != 2 || got.Generation != 1 {
		t.Errorf("a status changed metadata: %+v", got.ObjectMeta)
	}
	got.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "TimedOut", LastTransitionTime: metav1.Now()}}
	if got = updateStatus(t, r, got); !slices.Equal(got.Finalizers, []string{"example.dev/other"}) {
		t.Errorf("after the outcome the finalizers are %v", got.Finalizers)
	}
}

func updateStatus(t *testing.T, r *Resource, o *v1alpha1.Operation) *v1alpha1.Operation {
	t.Helper()
	got, created, err := r.Status.Update(inDefault(), o.Name, rest.DefaultUpdatedObjectInfo(o), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil || created {
		t.Fatalf("created %v: %v", created, err)
	}
	return got.(*v1alpha1.Operation)
}

// Each definition's validation is wired to its own kind.
func TestEachKindIsValidated(t *testing.T) {
	_, all := buildAll(t)
	for name, r := range all {
		if r.Status == nil { // events have no spec
			continue
		}
		obj := r.Main.NewFunc()
		r.Main.CreateStrategy.PrepareForCreate(inDefault(), obj)
		errs := r.Main.CreateStrategy.Validate(inDefault(), obj)
		if !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.HasPrefix(e.Field, "spec.") }) {
			t.Errorf("%s: an empty object gives %v", name, errs.ToAggregate())
		}
	}
}
