package registry

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/config/crd"
)

// Backend is what a resource asks of the store.
type Backend struct {
	NewFunc, NewListFunc func() runtime.Object
	GroupResource        schema.GroupResource
	ResourcePrefix       string
	// Volatile says whether a new object lives in memory only; nil means that all are durable.
	Volatile func(runtime.Object) bool
	// Dormant says whether an object's FieldActive is "false" for good or nearly so; nil means that none is marked.
	Dormant func(runtime.Object) bool
}

// OpenFunc opens the store of one resource.
type OpenFunc func(Backend) (storage.Interface, error)

// Resource is a served resource: the main endpoint and its status; events have none.
type Resource struct {
	GVK    schema.GroupVersionKind
	GVR    schema.GroupVersionResource
	Main   *REST
	Status *StatusREST
}

// REST is a resource's main endpoint.
type REST struct {
	*genericregistry.Store
	shortNames, categories []string
}

// ShortNames are the abbreviations that kubectl accepts.
func (r *REST) ShortNames() []string { return r.shortNames }

// Categories are the groups of kinds, such as "rig", that kubectl accepts.
func (r *REST) Categories() []string { return r.categories }

// StatusREST is a resource's status endpoint.
type StatusREST struct {
	store *genericregistry.Store
	reset rest.ResetFieldsStrategy
}

var (
	_ rest.ShortNamesProvider  = &REST{}
	_ rest.CategoriesProvider  = &REST{}
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New returns an empty object.
func (s *StatusREST) New() runtime.Object { return s.store.New() }

// Destroy does nothing: the main endpoint owns the store.
func (s *StatusREST) Destroy() {}

// Get reads the object.
func (s *StatusREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, o)
}

// Update changes the object's status alone.
func (s *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, info, create, update, false, o)
}

// GetResetFields names what this endpoint never changes.
func (s *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.reset.GetResetFields()
}

// ConvertToTable renders the columns of the kind.
func (s *StatusREST) ConvertToTable(ctx context.Context, obj, opts runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, obj, opts)
}

// Build makes the resources of all kinds, and of events, and teaches the scheme what can be selected by.
func Build(scheme *runtime.Scheme, open OpenFunc) ([]*Resource, error) {
	steps := []func() (*Resource, error){
		func() (*Resource, error) { return build(scheme, open, "Project", projects) },
		func() (*Resource, error) { return build(scheme, open, "Thread", threads) },
		func() (*Resource, error) { return build(scheme, open, "Workspace", workspaces) },
		func() (*Resource, error) { return build(scheme, open, "Operation", operations) },
		func() (*Resource, error) { return build(scheme, open, "Run", runs) },
		func() (*Resource, error) { return build(scheme, open, "Handoff", handoffs) },
		func() (*Resource, error) { return build(scheme, open, "Tunnel", tunnels) },
		func() (*Resource, error) { return buildEvents(scheme, open) },
	}
	var all []*Resource
	for _, step := range steps {
		r, err := step()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func build[T any, P Object[T]](scheme *runtime.Scheme, open OpenFunc, kindName string, k Kind[T, P]) (*Resource, error) {
	def, err := crd.Load(k.Plural)
	if err != nil {
		return nil, err
	}
	table, err := tableconvertor.New(def.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", k.Plural, err)
	}
	s := &strategy[T, P]{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, kind: k}
	group := v1alpha1.Resource(k.Plural)
	backend := Backend{
		NewFunc:       func() runtime.Object { return P(new(T)) },
		NewListFunc:   k.NewList,
		GroupResource: group, ResourcePrefix: "/" + v1alpha1.GroupName + "/" + k.Plural,
	}
	if k.Volatile != nil {
		backend.Volatile = func(o runtime.Object) bool { return k.Volatile(o.(P)) }
	}
	if k.Dormant != nil {
		backend.Dormant = func(o runtime.Object) bool { return k.Dormant(o.(P)) }
	}
	store := &genericregistry.Store{
		NewFunc: backend.NewFunc, NewListFunc: backend.NewListFunc,
		DefaultQualifiedResource:  group,
		SingularQualifiedResource: v1alpha1.Resource(k.Singular),
		CreateStrategy:            s, UpdateStrategy: s, DeleteStrategy: s, ResetFieldsStrategy: s,
		TableConvertor: table,
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.GroupVersion)
	err = store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: restOptions{open: open, backend: backend, codec: codec, owners: k.Owner}, AttrFunc: s.attributes,
	})
	if err != nil {
		return nil, fmt.Errorf("store of %s: %w", k.Plural, err)
	}
	gvk := v1alpha1.GroupVersion.WithKind(kindName)
	if err := addFieldLabels(scheme, gvk, k.selectable()); err != nil {
		return nil, err
	}
	status := *store
	st := statusStrategy[T, P]{s}
	status.UpdateStrategy, status.ResetFieldsStrategy = st, st
	return &Resource{
		GVK: gvk, GVR: v1alpha1.GroupVersion.WithResource(k.Plural),
		Main:   &REST{Store: store, shortNames: def.Spec.Names.ShortNames, categories: def.Spec.Names.Categories},
		Status: &StatusREST{store: &status, reset: st},
	}, nil
}

func addFieldLabels(scheme *runtime.Scheme, gvk schema.GroupVersionKind, selectable []string) error {
	known := map[string]bool{"metadata.name": true, "metadata.namespace": true}
	for _, name := range selectable {
		known[name] = true
	}
	return scheme.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) {
		if known[label] {
			return label, value, nil
		}
		return "", "", fmt.Errorf("%q is not a known field selector of %s", label, gvk.Kind)
	})
}
