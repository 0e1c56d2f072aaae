package registry

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Object is a pointer to one of our kinds.
type Object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// Kind is what is particular to one kind. The functions never get a nil object.
type Kind[T any, P Object[T]] struct {
	// Plural and Singular are the resource's names.
	Plural, Singular string
	// NewList returns an empty list.
	NewList func() runtime.Object
	// Spec and Status return pointers into the object.
	Spec, Status func(P) any
	// SetSpec and SetStatus copy one part from another object.
	SetSpec, SetStatus func(to, from P)
	// Default fills in what the author left out; optional.
	Default func(P)
	// Validate and ValidateUpdate check an object.
	Validate       func(P) field.ErrorList
	ValidateUpdate func(obj, old P) field.ErrorList
	// Fields are what can be selected by, beside metadata.name and metadata.namespace; optional.
	Fields func(P) fields.Set
	// Settle is called on a status change before it is stored; optional.
	Settle func(P)
	// Volatile says whether a new object lives in memory only; optional.
	Volatile func(P) bool
	// Owner says that objects own others, so that a deletion may say what is to become of those: see
	// controllers/garbage.
	Owner bool
	// Dormant says whether FieldActive is "false"; lists of active objects do not read those. Optional.
	Dormant func(P) bool
}

// strategy implements the REST strategies of a kind's main endpoint.
type strategy[T any, P Object[T]] struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind Kind[T, P]
}

var _ interface {
	rest.RESTCreateUpdateStrategy
	rest.RESTDeleteStrategy
	rest.ResetFieldsStrategy
} = &strategy[v1alpha1.Project, *v1alpha1.Project]{}

func (*strategy[T, P]) NamespaceScoped() bool                         { return true }
func (*strategy[T, P]) AllowCreateOnUpdate(context.Context) bool      { return false }
func (*strategy[T, P]) AllowUnconditionalUpdate(context.Context) bool { return true }
func (*strategy[T, P]) Canonicalize(runtime.Object)                   {}

func (s *strategy[T, P]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	o := obj.(P)
	s.kind.SetStatus(o, P(new(T)))
	o.SetGeneration(1)
	if s.kind.Default != nil {
		s.kind.Default(o)
	}
}

func (s *strategy[T, P]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.kind.Validate(obj.(P))
}

func (*strategy[T, P]) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

func (s *strategy[T, P]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, was := obj.(P), old.(P)
	s.kind.SetStatus(o, was)
	o.SetGeneration(was.GetGeneration())
	if !apiequality.Semantic.DeepEqual(s.kind.Spec(o), s.kind.Spec(was)) {
		o.SetGeneration(was.GetGeneration() + 1)
	}
}

func (s *strategy[T, P]) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.kind.ValidateUpdate(obj.(P), old.(P))
}

func (*strategy[T, P]) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (*strategy[T, P]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return reset("status")
}

// statusStrategy implements the REST strategies of a kind's status endpoint.
type statusStrategy[T any, P Object[T]] struct {
	*strategy[T, P]
}

func (s statusStrategy[T, P]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, was := obj.(P), old.(P)
	s.kind.SetSpec(o, was)
	keepMetadata(o, was)
	if s.kind.Settle != nil {
		s.kind.Settle(o)
	}
}

func (s statusStrategy[T, P]) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

func (statusStrategy[T, P]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return reset("spec", "metadata")
}

// keepMetadata takes all metadata from old except what identifies the change itself.
func keepMetadata(o, old metav1.Object) {
	o.SetLabels(old.GetLabels())
	o.SetAnnotations(old.GetAnnotations())
	o.SetFinalizers(old.GetFinalizers())
	o.SetOwnerReferences(old.GetOwnerReferences())
	o.SetGeneration(old.GetGeneration())
	o.SetDeletionTimestamp(old.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
}

func reset(parts ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, p := range parts {
		set.Insert(fieldpath.MakePathOrDie(p))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(v1alpha1.GroupVersion.String()): set}
}

// attributes returns what the kind can be selected by.
func (s *strategy[T, P]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o := obj.(P)
	set := fields.Set{}
	if s.kind.Fields != nil {
		set = s.kind.Fields(o)
	}
	set["metadata.name"] = o.GetName()
	set["metadata.namespace"] = o.GetNamespace()
	return o.GetLabels(), set, nil
}

// selectable returns the names of the kind's own fields that can be selected by.
func (k Kind[T, P]) selectable() []string {
	if k.Fields == nil {
		return nil
	}
	var names []string
	for name := range k.Fields(P(new(T))) {
		names = append(names, name)
	}
	return names
}
