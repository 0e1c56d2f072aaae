package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/socket"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// apiClient returns a client of the running daemon's API, through its socket.
func apiClient(ctx context.Context, s *settings) (client.WithWatch, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, socketPath(s)) }
	conn, err := dial(ctx, "", "")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, notRunning(s)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the daemon: %w", err)
	}
	_ = conn.Close() // it was only to see
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	// The host is a name for the Host header: the socket is what is dialled.
	config := &rest.Config{Host: "http://rig-bridge", Dial: dial, QPS: -1, UserAgent: "rig-bridge/" + buildVersion()}
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
}
