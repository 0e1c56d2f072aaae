package server

import (
	"net/http"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
)

// serveOpenAPI serves /openapi/v2 and /openapi/v3. The documents are made at the first request: no call needs them, and
// they would be a third of the work of a start.
func serveOpenAPI(s *genericapiserver.GenericAPIServer, c *genericapiserver.RecommendedConfig) {
	documents := sync.OnceValue(func() http.Handler {
		m := mux.NewPathRecorderMux("openapi")
		o := routes.OpenAPI{Config: c.OpenAPIConfig, V3Config: c.OpenAPIV3Config}
		o.InstallV2(s.Handler.GoRestfulContainer, m)
		o.InstallV3(s.Handler.GoRestfulContainer, m)
		return m
	})
	s.Handler.NonGoRestfulMux.HandlePrefix("/openapi/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		documents().ServeHTTP(w, r)
	}))
}
