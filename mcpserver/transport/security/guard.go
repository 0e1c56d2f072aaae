package security

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// GuardOptions say what a request needs to reach the guarded handler. What is
// left out is not asked for.
type GuardOptions struct {
	// Port is the port that Host and Origin must name. 0 leaves Host unchecked,
	// for listeners that no browser reaches, such as a unix socket.
	Port int
	// RefuseOrigin refuses every request with an Origin header; otherwise our
	// own origin is let through.
	RefuseOrigin bool
	// Token must be in Authorization.
	Token *Token
	// Admit lets a request in without the token, such as one with the
	// dashboard's cookie. It must not read the body.
	Admit func(*http.Request) bool
}

// Guard wraps next: Host, then Origin, then the bearer are checked before
// anything of the body is read. Refusals are JSON-RPC error objects.
func Guard(next http.Handler, o GuardOptions) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case o.Port != 0 && !ownHost(r.Host, o.Port):
			Refuse(w, http.StatusForbidden, "Forbidden: wrong Host")
		case !originAllowed(r.Header, o):
			Refuse(w, http.StatusForbidden, "Forbidden: requests of web pages are refused")
		case !admitted(r, o):
			w.Header().Set("WWW-Authenticate", "Bearer")
			Refuse(w, http.StatusUnauthorized, "Unauthorized: send the bearer token of the token file")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ownHost tells whether a Host header names this computer and our port.
func ownHost(host string, port int) bool {
	name, given, err := net.SplitHostPort(host)
	if err != nil || given != strconv.Itoa(port) {
		return false
	}
	switch strings.ToLower(name) {
	case "127.0.0.1", "localhost":
		return true
	case "::1":
		return strings.HasPrefix(host, "[")
	}
	return false
}

func originAllowed(h http.Header, o GuardOptions) bool {
	for _, origin := range h.Values("Origin") {
		host, ok := strings.CutPrefix(origin, "http://")
		if o.RefuseOrigin || !ok || o.Port == 0 || !ownHost(host, o.Port) {
			return false
		}
	}
	return true
}

func admitted(r *http.Request, o GuardOptions) bool {
	if o.Token == nil && o.Admit == nil {
		return true
	}
	if o.Token != nil && len(r.Header.Values("Authorization")) == 1 && o.Token.Matches(r.Header.Get("Authorization")) {
		return true
	}
	return o.Admit != nil && o.Admit(r)
}

// refusedBody is how long the body of a refused request may take to arrive.
const refusedBody = 5 * time.Second

// Refuse answers with a status and a JSON-RPC error object that is not cached.
func Refuse(w http.ResponseWriter, status int, message string) {
	// The HTTP server reads what is left of the body before it goes on; a
	// stranger shall not hold the connection by not sending it.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedBody))
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may be gone
		"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": -32000, "message": message},
	})
}

// Health answers one word on GET and HEAD: ok while check returns true, and
// notOK with 503 otherwise. It needs no credential and tells nothing else.
func Health(ok, notOK string, check func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
			return
		}
		status, word := http.StatusOK, ok
		if !check() {
			status, word = http.StatusServiceUnavailable, notOK
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Length", strconv.Itoa(len(word)))
		w.WriteHeader(status)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, word)
		}
	})
}

// WellKnown answers the paths on which clients look for an authorization
// server with 404 and no body, so that they keep to the bearer; other requests
// go to next.
func WellKnown(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isWellKnown(r.URL.Path) {
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(http.StatusNotFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isWellKnown(path string) bool {
	rest, ok := strings.CutPrefix(path, "/.well-known/")
	if !ok {
		if i := strings.Index(path, "/.well-known/"); i >= 0 { // appended to the resource's path
			rest = path[i+len("/.well-known/"):]
		} else {
			return false
		}
	}
	name, _, _ := strings.Cut(rest, "/")
	switch name {
	case "oauth-protected-resource", "oauth-authorization-server", "openid-configuration":
		return true
	}
	return false
}
