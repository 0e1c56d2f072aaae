package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

//go:embed login all:web/dist
var content embed.FS

// file is an embedded file as it is served.
type file struct {
	body        []byte
	contentType string
	etag        string
	immutable   bool // its name changes with its content
}

// hashed names of the built assets have at least eight characters of a hash before the ending.
var hashed = regexp.MustCompile(`-[0-9A-Za-z_]{8,}\.[a-z0-9]+$`)

// embedded reads the files by the path at which they are served.
func embedded() (map[string]*file, error) {
	files := map[string]*file{}
	for root, prefix := range map[string]string{"web/dist": "/", "login": "/login/"} {
		err := fs.WalkDir(content, root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			body, err := content.ReadFile(name)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(body)
			at := prefix + strings.TrimPrefix(name, root+"/")
			files[at] = &file{body: body, contentType: contentType(name), etag: `"` + hex.EncodeToString(sum[:12]) + `"`,
				immutable: strings.HasPrefix(at, "/assets/") && hashed.MatchString(at)}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the embedded page: %w", err)
		}
	}
	return files, nil
}

// contentType is by the ending; the machine's own table takes long to read and may say anything of scripts.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".map", ".json":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// policy allows what the page is made of and nothing else: its own scripts and styles, no inline ones, no frames, no
// forms, no other host.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func securityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("X-Frame-Options", "DENY")
}

// page serves the page, or the login page to who is not logged in.
func (d *Dashboard) page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil { // the certificate is our own, and browsers would warn of it
			http.Redirect(w, r, "http://"+r.Host+"/", http.StatusTemporaryRedirect)
			return
		}
		issued, _, ok := d.sessions.check(r)
		if !ok {
			serve(w, r, d.files["/login/login.html"], http.StatusUnauthorized)
			return
		}
		if d.Now().Sub(issued) > renewAge {
			d.sessions.issue(w)
		}
		serve(w, r, d.files["/index.html"], http.StatusOK)
	})
}

// static serves one file of the login page.
func (d *Dashboard) static(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, d.files["/login/"+name], http.StatusOK) })
}

// assets serves embedded files by path; documents have addresses of their own.
func (d *Dashboard) assets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := d.files[r.URL.Path]
		if f == nil || strings.HasSuffix(r.URL.Path, ".html") {
			securityHeaders(w.Header())
			http.Error(w, "Not found", http.StatusNotFound)
			return
		}
		serve(w, r, f, http.StatusOK)
	})
}

// serve writes a file, or that the client has it already.
func serve(w http.ResponseWriter, r *http.Request, f *file, code int) {
	h := w.Header()
	securityHeaders(h)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	switch {
	case strings.HasPrefix(f.contentType, "text/html"):
		h.Set("Cache-Control", "no-store")
	case f.immutable:
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	default:
		h.Set("Cache-Control", "no-cache")
	}
	if h.Get("Cache-Control") != "no-store" {
		h.Set("ETag", f.etag)
		if r.Header.Get("If-None-Match") == f.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	w.WriteHeader(code)
	if r.Method == http.MethodGet {
		_, _ = w.Write(f.body) // the client is served or gone
	}
}
