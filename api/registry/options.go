package registry

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// restOptions gives the generic registry our store in place of etcd.
type restOptions struct {
	open    OpenFunc
	backend Backend
	codec   runtime.Codec // copies an object for a dry run
	owners  bool          // a deletion may say what is to become of what the objects own
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (r restOptions) GetRESTOptions(gr schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:           &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: r.codec}, GroupResource: gr},
		Decorator:               r.decorate,
		DeleteCollectionWorkers: 1,
		EnableGarbageCollection: r.owners,
		ResourcePrefix:          r.backend.ResourcePrefix,
	}, nil
}

func (r restOptions) decorate(_ *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error),
	_, _ func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	s, err := r.open(r.backend)
	return s, func() {}, err
}
