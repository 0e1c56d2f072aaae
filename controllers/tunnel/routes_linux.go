package tunnel

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Times of the watch: changes that follow each other closely are one, and a watch that failed is begun again.
const (
	routeQuiet = 500 * time.Millisecond
	routeRetry = 5 * time.Second
)

// elsewhere are addresses for documentation. Nothing is sent to them: the kernel is asked by which way it would
// be, over whatever tables, rules and VPNs there are.
var elsewhere = []net.IP{net.ParseIP("192.0.2.1").To4(), net.ParseIP("2001:db8::1")}

// NewRoutes returns the routes of the calling thread's network namespace, as the kernel has them.
func NewRoutes() Routes { return &kernelRoutes{} }

type kernelRoutes struct{ handle *netlink.Handle } // nil: the process's own namespace

func (*kernelRoutes) Watched() bool { return true }

// Current names, for each address family, device, gateway and own address of the way elsewhere.
func (k *kernelRoutes) Current() string {
	h := k.handle
	if h == nil {
		own, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return ""
		}
		defer own.Close()
		h = own
	}
	var all []string
	for _, ip := range elsewhere {
		routes, err := h.RouteGet(ip)
		if err != nil || len(routes) == 0 {
			continue // no way there
		}
		r := routes[0]
		all = append(all, fmt.Sprintf("dev %d via %v src %v", r.LinkIndex, r.Gw, r.Src))
	}
	return strings.Join(all, ", ")
}

// Watch follows the kernel's announcements of routes.
func (k *kernelRoutes) Watch(ctx context.Context, changed func()) {
	for {
		k.watchOnce(ctx, changed)
		select {
		case <-ctx.Done():
			return
		case <-time.After(routeRetry):
		}
		changed() // whatever was missed
	}
}

// watchOnce returns when the watch fails or ctx is done.
func (*kernelRoutes) watchOnce(ctx context.Context, changed func()) {
	ctx, cancel := context.WithCancel(ctx)
	updates := make(chan netlink.RouteUpdate, 64)
	ignore := func(error) {} // what ends the watch closes the channel
	if err := netlink.RouteSubscribeWithOptions(updates, ctx.Done(), netlink.RouteSubscribeOptions{ErrorCallback: ignore}); err != nil {
		cancel()
		return
	}
	defer func() {
		cancel()
		for range updates { // until it is closed: its sender must not wait for us
		}
	}()
	quiet := time.NewTimer(routeQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-updates:
			if !open {
				return
			}
			quiet.Reset(routeQuiet)
		case <-quiet.C:
			changed()
		}
	}
}
