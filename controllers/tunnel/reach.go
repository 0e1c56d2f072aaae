package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Settings of the client that it takes from its environment, and so from ours.
const (
	// ControlPlaneVariable holds the address of the control plane.
	ControlPlaneVariable = "CONTROL_PLANE_BASE_URL"
	proxyVariable        = "CONTROL_PLANE_HTTP_PROXY"
	controlPlaneDefault  = "https://api.openai.com"
)

// dialWait is how long a connection to the control plane may take.
const dialWait = 5 * time.Second

// controlPlane returns the host and port to which the client of a tunnel connects: those of the control plane, or
// of the proxy that leads there.
func controlPlane(t *v1alpha1.Tunnel) (string, error) {
	u, err := url.Parse(cmp.Or(t.Spec.ControlPlaneURL, os.Getenv(ControlPlaneVariable), controlPlaneDefault))
	if err != nil {
		return "", errors.New("the address of the control plane cannot be understood")
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	if given := os.Getenv(proxyVariable); given != "" {
		proxy, err = url.Parse(given)
	}
	if err != nil {
		return "", errors.New("the address of the proxy cannot be understood")
	}
	if proxy != nil {
		u = proxy
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(port, "443")), nil
}

// reach makes a connection to the control plane and drops it. The error is in our words.
func (r *Reconciler) reach(ctx context.Context, t *v1alpha1.Tunnel) error {
	address, err := controlPlane(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	conn, err := r.dial(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("no connection to %s can be made", address)
	}
	_ = conn.Close() // nothing was written
	return nil
}

func (r *Reconciler) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if r.Dial != nil {
		return r.Dial(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}
