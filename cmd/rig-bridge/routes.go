package main

import (
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rigbridge/rigbridge/api/dashboard"
	"github.com/rigbridge/rigbridge/cmd/internal/searchpath"
	"github.com/rigbridge/rigbridge/mcpserver/transport/security"
)

// overTCP routes requests on the port: all but the health checks and the login page need the bearer, or,
// for what the dashboard reads, its cookie.
func (d *daemon) overTCP() http.Handler {
	mux := http.NewServeMux()
	mcp := security.Guard(d.mcp, security.GuardOptions{Port: d.port(), RefuseOrigin: true, Token: d.token})
	mux.Handle("/mcp", mcp)
	ours := security.GuardOptions{Port: d.port(), Token: d.token}
	page := security.GuardOptions{Port: d.port(), Token: d.token, Admit: d.dashboard.Admit}
	for _, path := range apiPaths {
		mux.Handle(path, security.Guard(d.dashboard.Protect(d.api.Handler), page))
	}
	for pattern, h := range d.dashboard.API() {
		mux.Handle(pattern, security.Guard(d.dashboard.Protect(h), page))
	}
	for pattern, h := range d.dashboard.Owner() {
		mux.Handle(pattern, security.Guard(h, ours))
	}
	mux.Handle("/metrics", security.Guard(promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}), ours))
	open := security.GuardOptions{Port: d.port(), Admit: func(*http.Request) bool { return true }}
	alive := func() bool { return !d.mcp.Stopping() }
	mux.Handle("/healthz", security.Guard(security.Health("live", "stopping", alive), open))
	mux.Handle("/readyz", security.Guard(security.Health("ready", "stopping", alive), open))
	for pattern, h := range d.dashboard.Page() {
		mux.Handle(pattern, security.Guard(h, open))
	}
	return security.WellKnown(mux)
}

// overUnix routes requests on the socket, whose peers have been checked.
func (d *daemon) overUnix() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", d.mcp)
	mux.Handle(stdioPath, d.mcp.Upgrade())
	for _, path := range apiPaths {
		mux.Handle(path, d.api.Handler)
	}
	for _, routes := range []dashboard.Routes{d.dashboard.API(), d.dashboard.Owner()} {
		for pattern, h := range routes {
			mux.Handle(pattern, h)
		}
	}
	mux.HandleFunc("GET "+searchpath.Route, d.programs.serve)
	mux.HandleFunc("/", notFound)
	return mux
}

// apiPaths belong to the Kubernetes-style API: events are under /api/v1, where Kubernetes has them, all else under
// /apis.
var apiPaths = []string{"/api", "/api/v1", "/api/v1/", "/apis", "/apis/", "/openapi/", "/version", "/version/"}

func notFound(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "Not found\n") // the client is told or gone
}

// quietLog passes on what net/http complains about, as detail: clients that hang up are everyday life.
func quietLog(l logr.Logger) *log.Logger {
	return log.New(logWriter{l}, "", 0)
}

type logWriter struct{ log logr.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.V(1).Info("HTTP", "reason", strings.TrimSpace(string(p)))
	return len(p), nil
}
