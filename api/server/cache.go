package server

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/registry"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// NewCache returns a cache whose informers list and watch the registry in process. Of operations it holds those
// that are active, of runs those that are working, and of handoffs those that nobody has read: the others are
// kept by the hundred thousand and read from the store by name or by page.
// Its objects are shared and must be copied before they are changed.
func (s *Server) NewCache() (cache.Cache, error) {
	shared, prompt := true, &promptCache{}
	c, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: s.Scheme, Mapper: s.Mapper,
		DefaultUnsafeDisableDeepCopy: &shared,
		NewInformer: func(_ toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return prompt.add(toolscache.NewSharedIndexInformer(s.listerWatcher(example), example, resync, indexers))
		},
	})
	prompt.Cache = c
	return prompt, err
}

// promptCache waits for its informers and not for a clock: client-go's own wait looks ten times a second.
type promptCache struct {
	cache.Cache

	mu        sync.Mutex
	informers []toolscache.SharedIndexInformer
}

func (c *promptCache) add(i toolscache.SharedIndexInformer) toolscache.SharedIndexInformer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.informers = append(c.informers, i)
	return i
}

// WaitForCacheSync waits until the cache has started and its informers have read what exists. It returns false if ctx is
// done first.
func (c *promptCache) WaitForCacheSync(ctx context.Context) bool {
	c.mu.Lock()
	checkers := make([]toolscache.DoneChecker, 0, len(c.informers))
	for _, i := range c.informers {
		checkers = append(checkers, i.HasSyncedChecker())
	}
	c.mu.Unlock()
	return toolscache.WaitFor(ctx, "", checkers...) && c.Cache.WaitForCacheSync(ctx) // at once now, unless it has yet to start
}

func (s *Server) listerWatcher(example runtime.Object) toolscache.ListerWatcher {
	selector := fields.Everything()
	switch example.(type) {
	case *v1alpha1.Operation, *v1alpha1.Run, *v1alpha1.Handoff:
		selector = fields.OneTermEqualSelector(registry.FieldActive, "true")
	}
	list, err := s.newList(example)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err != nil {
				return nil, err
			}
			out := list()
			return out, s.Client.List(ctx, out, selected(selector, o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err != nil {
				return nil, err
			}
			return s.Client.Watch(ctx, list(), selected(selector, o))
		},
	}
}

func selected(selector fields.Selector, o metav1.ListOptions) client.ListOption {
	return &client.ListOptions{FieldSelector: selector, Limit: o.Limit, Continue: o.Continue, Raw: &o}
}

// newList returns a maker of lists of an example's kind.
func (s *Server) newList(example runtime.Object) (func() client.ObjectList, error) {
	gvk, err := s.Client.GroupVersionKindFor(example)
	if err != nil {
		return nil, err
	}
	obj, err := s.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(client.ObjectList); !ok {
		return nil, fmt.Errorf("%T is not a list", obj)
	}
	t := reflect.TypeOf(obj).Elem()
	return func() client.ObjectList { return reflect.New(t).Interface().(client.ObjectList) }, nil
}

// cachedClient reads from a cache and does everything else through the API.
type cachedClient struct {
	*Client
	cache client.Reader
}

// NewCachedClient returns a client for reconcilers: it reads from the cache, whose objects are shared and must
// be copied before they are changed, and writes to the API.
func NewCachedClient(c *Client, cache client.Reader) client.Client {
	return cachedClient{Client: c, cache: cache}
}

// Get reads one object from the cache.
func (c cachedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.cache.Get(ctx, key, obj, opts...)
}

// List reads objects from the cache.
func (c cachedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cache.List(ctx, list, opts...)
}
