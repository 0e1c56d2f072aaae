package server

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/rigbridge/rigbridge/api/registry"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Client is a controller-runtime client that calls the registry in process: no HTTP, and no encoding but the
// store's own. Objects that it returns are the caller's; events of Watch are shared and must not be changed.
type Client struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	byKind map[schema.GroupVersionKind]*registry.Resource
}

var _ client.WithWatch = &Client{}

func newClient(scheme *runtime.Scheme, mapper meta.RESTMapper, resources []*registry.Resource) *Client {
	c := &Client{scheme: scheme, mapper: mapper, byKind: map[schema.GroupVersionKind]*registry.Resource{}}
	for _, r := range resources {
		c.byKind[r.GVK] = r
		c.byKind[r.GVK.GroupVersion().WithKind(r.GVK.Kind+"List")] = r
	}
	return c
}

// Scheme returns the scheme of the kinds served.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }

// RESTMapper returns the mapper of the kinds served.
func (c *Client) RESTMapper() meta.RESTMapper { return c.mapper }

// GroupVersionKindFor returns the kind of an object.
func (c *Client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.scheme)
}

// IsObjectNamespaced is true for all our kinds.
func (c *Client) IsObjectNamespaced(runtime.Object) (bool, error) { return true, nil }

// Get reads one object. It returns NotFound when there is none.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r, err := c.resource(obj)
	if err != nil {
		return err
	}
	o := &client.GetOptions{}
	o.ApplyOptions(opts)
	got, err := r.Main.Get(inNamespace(ctx, key.Namespace), key.Name, o.AsGetOptions())
	return assign(obj, got, err)
}

// List reads objects, by page if Limit is set.
func (c *Client) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r, err := c.resource(list)
	if err != nil {
		return err
	}
	ns, o := listOptions(opts)
	got, err := r.Main.List(inNamespace(ctx, ns), o)
	return assign(list, got, err)
}

// Watch reports changes of a kind from the given resourceVersion on.
func (c *Client) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	r, err := c.resource(list)
	if err != nil {
		return nil, err
	}
	ns, o := listOptions(opts)
	return r.Main.Watch(inNamespace(ctx, ns), o)
}

// Create makes an object. It returns AlreadyExists when the name is taken.
func (c *Client) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	r, err := c.resource(obj)
	if err != nil {
		return err
	}
	o := &client.CreateOptions{}
	o.ApplyOptions(opts)
	got, err := r.Main.Create(inNamespace(ctx, obj.GetNamespace()), obj.DeepCopyObject(), rest.ValidateAllObjectFunc, o.AsCreateOptions())
	return assign(obj, got, err)
}

// Update changes everything but the status of an object.
func (c *Client) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	r, err := c.resource(obj)
	if err != nil {
		return err
	}
	o := &client.UpdateOptions{}
	o.ApplyOptions(opts)
	return c.update(ctx, r.Main, obj, rest.DefaultUpdatedObjectInfo(obj), o.AsUpdateOptions())
}

// Patch changes an object by a JSON or merge patch.
func (c *Client) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	r, err := c.resource(obj)
	if err != nil {
		return err
	}
	o := &client.PatchOptions{}
	o.ApplyOptions(opts)
	return c.patch(ctx, r.Main, obj, patch, o.DryRun)
}

// Delete deletes an object; one with finalizers goes when they are gone.
func (c *Client) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	r, err := c.resource(obj)
	if err != nil {
		return err
	}
	o := &client.DeleteOptions{}
	o.ApplyOptions(opts)
	_, _, err = r.Main.Delete(inNamespace(ctx, obj.GetNamespace()), obj.GetName(), rest.ValidateAllObjectFunc, o.AsDeleteOptions())
	return err
}

// DeleteAllOf deletes all objects that the options select.
func (c *Client) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	r, err := c.resource(obj)
	if err != nil {
		return err
	}
	o := &client.DeleteAllOfOptions{}
	o.ApplyOptions(opts)
	ns, list := listOptions([]client.ListOption{&o.ListOptions})
	_, err = r.Main.DeleteCollection(inNamespace(ctx, ns), rest.ValidateAllObjectFunc, o.AsDeleteOptions(), list)
	return err
}

// Apply is not offered in process: a reconciler owns the whole status that it writes.
func (c *Client) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return fmt.Errorf("server-side apply is served over HTTP only: %w", errNotInProcess)
}

// Status writes status.
func (c *Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client of a subresource; in process there is only status.
func (c *Client) SubResource(name string) client.SubResourceClient {
	return statusClient{c: c, name: name}
}

func (c *Client) resource(obj runtime.Object) (*registry.Resource, error) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	r, ok := c.byKind[gvk]
	if !ok {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return r, nil
}

// update stores what info makes; info copies the object that it is given.
func (c *Client) update(ctx context.Context, u rest.Updater, obj client.Object, info rest.UpdatedObjectInfo, o *metav1.UpdateOptions) error {
	got, _, err := u.Update(inNamespace(ctx, obj.GetNamespace()), obj.GetName(), info,
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, o)
	return assign(obj, got, err)
}

func (c *Client) patch(ctx context.Context, u rest.Updater, obj client.Object, patch client.Patch, dryRun []string) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		return patched(old, patch.Type(), data)
	})
	return c.update(ctx, u, obj, info, &metav1.UpdateOptions{DryRun: dryRun})
}

func patched(old runtime.Object, kind types.PatchType, data []byte) (runtime.Object, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch kind {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, data)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(data); err == nil {
			after, err = p.Apply(before)
		}
	default:
		err = fmt.Errorf("patch type %s: %w", kind, errNotInProcess)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	out := reflect.New(reflect.TypeOf(old).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(after, out); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

var errNotInProcess = fmt.Errorf("not offered in process")

// statusClient writes the status subresource.
type statusClient struct {
	c    *Client
	name string
}

func (s statusClient) status(obj runtime.Object) (*registry.StatusREST, error) {
	if s.name != "status" {
		return nil, fmt.Errorf("subresource %q: %w", s.name, errNotInProcess)
	}
	r, err := s.c.resource(obj)
	if err != nil {
		return nil, err
	}
	if r.Status == nil {
		return nil, fmt.Errorf("status of %s: %w", r.GVK.Kind, errNotInProcess)
	}
	return r.Status, nil
}

func (s statusClient) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return fmt.Errorf("get of subresource %q: %w", s.name, errNotInProcess)
}

func (s statusClient) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return fmt.Errorf("create of subresource %q: %w", s.name, errNotInProcess)
}

func (s statusClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return fmt.Errorf("apply of subresource %q: %w", s.name, errNotInProcess)
}

func (s statusClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	r, err := s.status(obj)
	if err != nil {
		return err
	}
	o := &client.SubResourceUpdateOptions{}
	o.ApplyOptions(opts)
	return s.c.update(ctx, r, obj, rest.DefaultUpdatedObjectInfo(obj), o.AsUpdateOptions())
}

func (s statusClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	r, err := s.status(obj)
	if err != nil {
		return err
	}
	o := &client.SubResourcePatchOptions{}
	o.ApplyOptions(opts)
	return s.c.patch(ctx, r, obj, patch, o.DryRun)
}

// assign hands the object that the registry made to the caller, without a copy.
func assign(to, from runtime.Object, err error) error {
	if err != nil {
		return err
	}
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
	return nil
}

func inNamespace(ctx context.Context, namespace string) context.Context {
	return apirequest.WithNamespace(apirequest.WithUser(ctx, owner), namespace)
}

func listOptions(opts []client.ListOption) (namespace string, _ *metainternalversion.ListOptions) {
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	out := &metainternalversion.ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector, Limit: o.Limit, Continue: o.Continue}
	if r := o.Raw; r != nil {
		out.ResourceVersion, out.ResourceVersionMatch = r.ResourceVersion, r.ResourceVersionMatch
		out.AllowWatchBookmarks, out.SendInitialEvents, out.TimeoutSeconds = r.AllowWatchBookmarks, r.SendInitialEvents, r.TimeoutSeconds
	}
	return o.Namespace, out
}

// Key returns the key of an object in the one local namespace.
func Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: v1alpha1.Namespace, Name: name}
}
