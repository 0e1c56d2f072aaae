package server

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	apifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apiopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientrest "k8s.io/client-go/rest"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/openapi"
	"github.com/rigbridge/rigbridge/api/registry"
	"github.com/rigbridge/rigbridge/api/storage"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Options are what the API is made of.
type Options struct {
	// DB is the open store.
	DB *storage.DB
	// Exchange has the output of running commands, for the log subresource.
	Exchange *exchange.Exchange
	// Version is the daemon's own version, shown to clients.
	Version string
}

// Server is the assembled API.
type Server struct {
	// Handler serves /apis, /openapi and /version. It does not ask who calls.
	Handler http.Handler
	// Client calls the API in process.
	Client *Client
	// Scheme and Mapper know the kinds.
	Scheme *runtime.Scheme
	Mapper meta.RESTMapper

	db      *storage.DB
	generic *genericapiserver.GenericAPIServer
}

// NewScheme returns a scheme that knows our kinds, Kubernetes' events and the API machinery's own.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		panic(err) // a programming error: two types under one name
	}
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Event{}, &corev1.EventList{})
	s.AddUnversionedTypes(corev1.SchemeGroupVersion, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{},
		&metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}

// newServingScheme returns a scheme in which the kinds also stand for the internal version, which server-side
// apply converts through. It is for serving alone: a client could not tell which version a type has.
func newServingScheme() *runtime.Scheme {
	s := NewScheme()
	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}
	for kind, t := range s.KnownTypes(v1alpha1.GroupVersion) {
		if t.PkgPath() == ownPackage {
			s.AddKnownTypeWithName(internal.WithKind(kind), reflect.New(t).Interface().(runtime.Object))
		}
	}
	s.AddKnownTypes(schema.GroupVersion{Version: runtime.APIVersionInternal}, &corev1.Event{}, &corev1.EventList{})
	return s
}

var ownPackage = reflect.TypeFor[v1alpha1.Operation]().PkgPath()

// New assembles the API on an open store.
func New(o Options) (*Server, error) {
	scheme := newServingScheme()
	codecs := serializer.NewCodecFactory(scheme)
	resources, err := registry.Build(scheme, opener(o.DB, codecs))
	if err != nil {
		return nil, err
	}
	generic, err := genericServer(scheme, codecs, o.Version)
	if err != nil {
		return nil, err
	}
	if err := install(generic, scheme, codecs, resources, o.Exchange); err != nil {
		return nil, err
	}
	generic.PrepareRun()
	mapper, plain := newMapper(resources), NewScheme()
	return &Server{
		Handler: generic.Handler, Scheme: plain, Mapper: mapper, db: o.DB, generic: generic,
		Client: newClient(plain, mapper, resources),
	}, nil
}

// install serves the resources: ours under /apis, events under /api, where Kubernetes has them.
func install(s *genericapiserver.GenericAPIServer, scheme *runtime.Scheme, codecs serializer.CodecFactory, resources []*registry.Resource, e *exchange.Exchange) error {
	parameters := runtime.NewParameterCodec(scheme)
	ours, core := map[string]rest.Storage{}, map[string]rest.Storage{}
	for _, r := range resources {
		if r.GVK.Group == corev1.GroupName {
			core[r.GVR.Resource] = r.Main
			continue
		}
		ours[r.GVR.Resource] = r.Main
		ours[r.GVR.Resource+"/status"] = r.Status
		if r.GVR.Resource == "operations" {
			ours["operations/log"] = &logREST{operations: r.Main, exchange: e}
			ours["operations/request"] = &requestREST{operations: r.Main, exchange: e}
			ours["operations/result"] = &resultREST{operations: r.Main, exchange: e}
		}
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, scheme, parameters, codecs)
	group.VersionedResourcesStorageMap[v1alpha1.GroupVersion.Version] = ours
	if err := s.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("install %s: %w", v1alpha1.GroupVersion, err)
	}
	legacy := genericapiserver.NewDefaultAPIGroupInfo(corev1.GroupName, scheme, parameters, codecs)
	legacy.VersionedResourcesStorageMap[corev1.SchemeGroupVersion.Version] = core
	if err := s.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &legacy); err != nil {
		return fmt.Errorf("install events: %w", err)
	}
	return nil
}

// WaitDurable waits until everything up to the resourceVersion of an object is on disk. It is what a write to a
// remote API implies; whoever acts on or answers with a state calls it first.
func (s *Server) WaitDurable(ctx context.Context, resourceVersion string) error {
	rev, err := apistorage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		return err
	}
	return s.db.WaitDurable(ctx, rev)
}

// Ready returns nil while the store takes writes, and why not otherwise.
func (s *Server) Ready() error {
	return s.Client.byKind[v1alpha1.GroupVersion.WithKind("Operation")].Main.ReadinessCheck()
}

// Close ends the API's background work. The store is its owner's to close.
func (s *Server) Close() { s.generic.Destroy() }

func opener(db *storage.DB, codecs serializer.CodecFactory) registry.OpenFunc {
	codec := codecs.LegacyCodec(v1alpha1.GroupVersion, corev1.SchemeGroupVersion)
	return func(b registry.Backend) (apistorage.Interface, error) {
		return db.Store(storage.StoreConfig{
			Codec: codec, NewFunc: b.NewFunc, NewListFunc: b.NewListFunc, GroupResource: b.GroupResource,
			ResourcePrefix: b.ResourcePrefix, Volatile: b.Volatile, Dormant: b.Dormant, ActiveField: registry.FieldActive,
		})
	}
}

func genericServer(scheme *runtime.Scheme, codecs serializer.CodecFactory, own string) (*genericapiserver.GenericAPIServer, error) {
	// Values that the generic server wants and that have no meaning for a server without a TLS listener.
	c := genericapiserver.NewRecommendedConfig(codecs)
	c.ExternalAddress = "127.0.0.1:443"
	c.LoopbackClientConfig = &clientrest.Config{}
	c.EffectiveVersion = effectiveVersion{compatibility.DefaultBuildEffectiveVersion(), own}
	c.FeatureGate = utilfeature.DefaultFeatureGate
	c.BuildHandlerChainFunc = handlerChain
	c.EnableProfiling, c.EnableMetrics, c.EnableIndex = false, false, false
	c.StorageObjectCountTracker = nil
	c.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("log"))
	c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer() // asked by apply when it creates
	namer := apiopenapi.NewDefinitionNamer(scheme)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.Definitions, namer)
	c.OpenAPIConfig.Info.Title = "Rig Bridge"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.Definitions, namer)
	c.OpenAPIV3Config.Info.Title = "Rig Bridge"
	c.SkipOpenAPIInstallation = true
	s, err := c.Complete().New("rig-bridge", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("assemble the API server: %w", err)
	}
	serveOpenAPI(s, c)
	return s, nil
}

// handlerChain is the part of the usual chain that one owner on one machine needs: authentication happens in
// front of it, authorization, admission, audit and fairness have nothing to decide.
func handlerChain(h http.Handler, c *genericapiserver.Config) http.Handler {
	h = asOwner(h)
	h = apifilters.WithWarningRecorder(h)
	h = apifilters.WithRequestDeadline(h, c.AuditBackend, c.AuditPolicyRuleEvaluator, c.LongRunningFunc, c.Serializer, c.RequestTimeout)
	h = letLeave(h, c.LongRunningFunc)
	h = apifilters.WithCacheControl(h)
	h = apifilters.WithLatencyTrackers(h)
	h = apifilters.WithRequestInfo(h, c.RequestInfoResolver)
	h = apifilters.WithRequestReceivedTimestamp(h)
	h = genericfilters.WithPanicRecovery(h, c.RequestInfoResolver)
	return apifilters.WithAuditInit(h)
}

// owner is the one user of a local daemon.
var owner = &user.DefaultInfo{Name: "owner", Groups: []string{user.AllAuthenticated}}

func asOwner(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(apirequest.WithUser(r.Context(), owner)))
	})
}

func newMapper(resources []*registry.Resource) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion, corev1.SchemeGroupVersion})
	for _, r := range resources {
		m.Add(r.GVK, meta.RESTScopeNamespace)
	}
	return m
}
