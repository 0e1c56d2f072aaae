package transport

import (
	"net/http"
	"time"
)

// HTTPServer returns a server for handler with the limits that lie outside a
// handler's reach: headers of 32 KiB that arrive within 5 s, and idle
// connections that stay open for two minutes, so that clients which pause are
// not reset. It sets no ReadTimeout and no WriteTimeout: Handler has its own
// for each body and each write, and its streams last.
func HTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
}
