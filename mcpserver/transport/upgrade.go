package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// stdioProtocol is the HTTP Upgrade token of a connection that carries the
// lines of ServeStdio.
const stdioProtocol = "mcp-stdio"

// Upgrade is the endpoint for Forward: it turns a connection into a
// conversation of ServeStdio. It belongs behind the same guard as Handler.
func (h *Handler) Upgrade() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.Header.Get("Upgrade"), stdioProtocol) || r.Method != http.MethodGet {
			w.Header().Set("Upgrade", stdioProtocol)
			refuse(w, nil, &rpcError{status: http.StatusUpgradeRequired, code: codeServer, message: "This endpoint speaks " + stdioProtocol + " only"})
			return
		}
		if h.calls.stopped() {
			refuse(w, nil, &rpcError{status: http.StatusServiceUnavailable, code: codeServer, message: "The bridge is stopping"})
			return
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			refuse(w, nil, &rpcError{status: http.StatusInternalServerError, code: codeServer, message: "The connection cannot be upgraded"})
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Time{}) // fails only on a connection that is gone
		if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", stdioProtocol); err != nil {
			return
		}
		if err := h.ServeStdio(context.WithoutCancel(r.Context()), buffered, conn); err != nil {
			h.o.Log.V(1).Info("Stdio connection ended", "err", err.Error())
		}
	})
}

// Forward joins in and out to the Upgrade endpoint of a daemon: it asks for the
// upgrade at path on conn and copies both ways until the daemon has answered
// everything after the end of in, or ctx ends. authorization, if not empty, is
// the Authorization header. A read of in that is under way at the end is left
// behind. It closes conn.
func Forward(ctx context.Context, conn net.Conn, path, authorization string, in io.Reader, out io.Writer) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	from, err := upgrade(conn, path, authorization)
	if err == nil {
		go func() {
			_, _ = io.Copy(conn, in) // a daemon that is gone shows below
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		}()
		_, err = io.Copy(out, from)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("forward stdio: %w", context.Cause(ctx))
	case err != nil && !errors.Is(err, net.ErrClosed):
		return fmt.Errorf("forward stdio: %w", err)
	default:
		return nil
	}
}

// upgrade asks for the protocol and returns what the daemon says from then on.
func upgrade(conn net.Conn, path, authorization string) (*bufio.Reader, error) {
	req, err := http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		req.Host = tcp.String()
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", stdioProtocol)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	from := bufio.NewReader(conn)
	resp, err := http.ReadResponse(from, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, fmt.Errorf("the daemon answered %s", resp.Status)
	}
	return from, nil
}
