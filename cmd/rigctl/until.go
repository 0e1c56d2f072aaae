package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// reached says whether an object is as wanted; it gets nil when there is no such object.
type reached func(*unstructured.Unstructured) (bool, error)

// errTimedOut says that something did not come about in time.
var errTimedOut = errors.New("timed out waiting for the condition")

// until watches one object until it is as wanted. It goes on when the daemon restarts meanwhile.
func (c *connection) until(ctx context.Context, mapping *meta.RESTMapping, name string, done reached) error {
	client, err := c.client(mapping.GroupVersionKind.GroupVersion())
	if err != nil {
		return err
	}
	wait := firstWait
	for {
		ok, err := c.look(ctx, client, mapping, name, done)
		var broken *url.Error // the daemon ended while it was asked
		switch down := new(notRunningError); {
		case ok:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w on %s/%s", errTimedOut, mapping.Resource.Resource, name)
		case err == nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			wait = firstWait
			continue
		case !errors.As(err, &down) && !errors.As(err, &broken):
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, lastWait)
		}
	}
}

// look lists and watches until the object is as wanted (true) or the watch ends.
func (c *connection) look(ctx context.Context, client rest.Interface, mapping *meta.RESTMapping, name string, done reached) (bool, error) {
	request := func(o metav1.ListOptions) *rest.Request {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		return client.Get().NamespaceIfScoped(c.namespace, true).Resource(mapping.Resource.Resource).VersionedParams(&o, metav1.ParameterCodec)
	}
	got, err := request(metav1.ListOptions{}).Do(ctx).Get()
	if err != nil {
		return false, err
	}
	list, ok := got.(*unstructured.UnstructuredList)
	if !ok {
		return false, fmt.Errorf("the server sent %T where a list was asked for", got)
	}
	var obj *unstructured.Unstructured
	if len(list.Items) > 0 {
		obj = &list.Items[0]
	}
	if ok, err := done(obj); ok || err != nil {
		return ok, err
	}
	w, err := request(metav1.ListOptions{Watch: true, ResourceVersion: list.GetResourceVersion()}).Watch(ctx)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		switch e.Type {
		case watch.Error:
			return false, apierrors.FromObject(statusOf(e.Object))
		case watch.Bookmark:
			continue
		case watch.Deleted:
			obj = nil
		default:
			obj = asUnstructured(e.Object)
		}
		if ok, err := done(obj); ok || err != nil {
			return ok, err
		}
	}
	return false, c.reachable(ctx)
}

// isGone waits for an object's end; another of the same name is not it.
func isGone(before metav1.Object) reached {
	return func(u *unstructured.Unstructured) (bool, error) {
		return u == nil || u.GetUID() != before.GetUID(), nil
	}
}
