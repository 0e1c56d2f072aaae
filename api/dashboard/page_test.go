package dashboard

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var wantedHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
	"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
}

func TestPagesHaveStrictHeaders(t *testing.T) {
	e := newEnv(t)
	in := e.cookie(t)
	paths := []string{"/", "/ui", "/login", "/login/login.js", "/nothing", "/assets/nothing.js"}
	for path := range e.files {
		paths = append(paths, path)
	}
	for _, path := range paths {
		for _, header := range []http.Header{nil, in} {
			resp, _ := e.ask(t, "GET", path, "", header)
			for name, want := range wantedHeaders {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %s is %q", path, name, got)
				}
			}
			if typ := resp.Header.Get("Content-Type"); typ == "" || strings.HasPrefix(typ, "text/html") && resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: type %q, cache %q", path, typ, resp.Header.Get("Cache-Control"))
			}
		}
	}
	for _, header := range []http.Header{nil, in} {
		for path, want := range map[string]int{"/index.html": 404, "/login/login.html": 404, "/web/dist/index.html": 404, "/assets/../index.html": 404, "/nothing": 404} {
			if resp, _ := e.ask(t, "GET", path, "", header); resp.StatusCode != want && resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusMovedPermanently {
				t.Errorf("%s: %d", path, resp.StatusCode)
			}
		}
	}
	if resp, _ := e.ask(t, "POST", "/login", "", in); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	if resp, body := e.ask(t, "HEAD", "/", "", in); resp.StatusCode != 200 || body != "" || resp.ContentLength <= 0 {
		t.Errorf("HEAD: %d %q", resp.StatusCode, body)
	}
}

func TestAssetsAreCachedByName(t *testing.T) {
	e := newEnv(t)
	immutable := 0
	for path, f := range e.files {
		if strings.HasSuffix(path, ".html") {
			continue
		}
		resp, body := e.ask(t, "GET", path, "", nil)
		if resp.StatusCode != 200 || body != string(f.body) || resp.Header.Get("ETag") != f.etag {
			t.Errorf("%s: %d, ETag %q", path, resp.StatusCode, resp.Header.Get("ETag"))
		}
		if kind := resp.Header.Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "application/octet-stream") {
			t.Errorf("%s has no type of its own: %q", path, kind)
		}
		want := "no-cache"
		if f.immutable {
			want = "public, max-age=31536000, immutable"
			immutable++
		}
		if got := resp.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: cached %q", path, got)
		}
		again, body := e.ask(t, "GET", path, "", http.Header{"If-None-Match": {f.etag}})
		if again.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
	}
	if immutable < 2 { // the page's script and style
		t.Errorf("%d assets may be kept", immutable)
	}
}

// The policy would block what is inline, so there must be none: markup of our documents loads files.
func TestDocumentsHoldNothingInline(t *testing.T) {
	inline := regexp.MustCompile(`(?is)<style|\sstyle=|\son[a-z]+=|javascript:|<base|<form|<iframe|<script(?:[^>]*)>[^<]*\S[^<]*</script>|https?://`)
	for path, f := range newEnv(t).files {
		if strings.HasSuffix(path, ".html") {
			if found := inline.FindString(string(f.body)); found != "" {
				t.Errorf("%s holds %q", path, found)
			}
		}
	}
}
