package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// typed turns an object of any kind into one of ours.
func typed[T any](u *unstructured.Unstructured) (*T, error) {
	o := new(T)
	return o, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o)
}

// ownClient returns a client that takes and gives our kinds.
func (c *connection) ownClient() (rest.Interface, error) {
	return c.typedClient(v1alpha1.AddToScheme, v1alpha1.GroupVersion)
}

// typedClient returns a client that takes and gives the kinds of a group.
func (c *connection) typedClient(add func(*runtime.Scheme) error, gv schema.GroupVersion) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, err
	}
	cfg := c.config()
	cfg.APIPath, cfg.GroupVersion = apiPath(gv), &gv
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(cfg)
}

// list reads one page of a resource.
func (c *connection) list(ctx context.Context, client rest.Interface, resource string, o metav1.ListOptions, into runtime.Object) error {
	return client.Get().Namespace(c.namespace).Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(into)
}
