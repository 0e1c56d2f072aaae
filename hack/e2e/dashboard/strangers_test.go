package dashboard

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ask sends a request over TCP as it is, without following redirects. A Host in header becomes the request's.
func (e *env) ask(t *testing.T, method, path, body string, header http.Header) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, e.Base()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// cookie logs in by a link and returns the cookie.
func (e *env) cookie(t *testing.T) (cookie, code string) {
	t.Helper()
	code = linkForm.FindStringSubmatch(e.link(t, "") + "\n")[1]
	a := e.ask(t, http.MethodPost, "/api/login", fmt.Sprintf(`{"code":%q}`, code), http.Header{"Origin": {e.Base()}})
	if a.status != http.StatusNoContent {
		t.Fatalf("login: %d %s", a.status, a.body)
	}
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return cookie, code
}

const objects = "/apis/rigbridge.dev/v1alpha1/namespaces/default/"

// Who has what gets in where.
func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.begin(t, "Work")
	cookie, _ := e.cookie(t)
	own := http.Header{"Cookie": {cookie}, "Origin": {e.Base()}}
	bearer := http.Header{"Authorization": {e.Authorization()}}
	nobody := http.Header{"Origin": {e.Base()}}
	for _, c := range []struct {
		method, path, body    string
		nobody, cookie, token int
	}{
		{"GET", "/", "", 401, 200, 401},
		{"GET", "/ui", "", 401, 200, 401},
		{"GET", "/login", "", 200, 200, 200},
		{"GET", "/api/session", "", 401, 200, 200},
		{"GET", "/api/status", "", 401, 200, 200},
		{"POST", "/api/handoffs/read", `{"handoff_id":"none"}`, 401, 400, 400},
		{"POST", "/api/projects/preferences", `{"project_id":"none","desktop_notifications":true}`, 401, 400, 400},
		{"POST", "/api/abort", `{"workspace_id":"none","command_id":"none"}`, 401, 404, 404},
		{"GET", objects + "threads", "", 401, 200, 200},
		{"GET", objects + "operations/none/log", "", 401, 404, 404},
		{"DELETE", objects + "workspaces/none", "", 401, 404, 404},
		{"GET", "/openapi/v3", "", 401, 200, 200},
		// Not the cookie's business.
		{"POST", "/mcp", `{}`, 401, 401, 415},
		{"GET", "/metrics", "", 401, 401, 200},
		{"POST", "/api/login-link", `{}`, 401, 401, 200},
		{"POST", "/api/login", `{"code":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, 401, 401, 401},
		// Open to all on this computer.
		{"GET", "/healthz", "", 200, 200, 200},
		{"GET", "/nothing", "", 404, 404, 404},
	} {
		for who, h := range map[string]struct {
			header http.Header
			want   int
		}{"nobody": {nobody, c.nobody}, "cookie": {own, c.cookie}, "bearer": {bearer, c.token}} {
			header := h.header.Clone()
			if c.path == "/mcp" { // any Origin is refused there
				header.Del("Origin")
			}
			if c.path == "/api/login" {
				header.Set("Origin", e.Base())
			}
			if a := e.ask(t, c.method, c.path, c.body, header); a.status != h.want {
				t.Errorf("%s %s with %s: %d, want %d: %.200s", c.method, c.path, who, a.status, h.want, a.body)
			}
		}
	}
	// A cookie instead of the bearer on /mcp, whatever else is sent with it.
	if a := e.ask(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, http.Header{"Cookie": {cookie}, "Content-Type": {"application/json"}}); a.status != 401 {
		t.Errorf("the cookie opens /mcp: %d", a.status)
	}
}

// Names that lead to this computer but are not ours, and other pages of this computer.
func TestOtherPagesGetNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	cookie, _ := e.cookie(t)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(e.Base(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/", "/login", "/assets/x.js", "/api/session", "/api/status", "/api/watch", objects + "threads"}
	for _, host := range []string{"evil.test:" + port, "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.test:" + port, "[::ffff:127.0.0.1]:" + port} {
		for _, path := range paths {
			if a := e.ask(t, "GET", path, "", http.Header{"Cookie": {cookie}, "Host": {host}}); a.status != http.StatusForbidden {
				t.Errorf("%s as %s: %d", path, host, a.status)
			}
		}
	}
	for _, host := range []string{"localhost:" + port, "[::1]:" + port, "LOCALHOST:" + port} {
		if a := e.ask(t, "GET", "/api/session", "", http.Header{"Cookie": {cookie}, "Host": {host}, "Origin": {"http://" + host}}); a.status != 200 {
			t.Errorf("as %s: %d", host, a.status)
		}
	}
	for _, origin := range []string{"http://evil.test", "null", "http://127.0.0.1:1", "https://127.0.0.1:" + port, "http://localhost:" + port} {
		for _, path := range []string{"/api/session", objects + "threads"} {
			if a := e.ask(t, "GET", path, "", http.Header{"Cookie": {cookie}, "Origin": {origin}}); a.status != http.StatusForbidden {
				t.Errorf("%s of a page of %s: %d", path, origin, a.status)
			}
		}
		a := e.ask(t, "POST", "/api/handoffs/read", `{}`, http.Header{"Cookie": {cookie}, "Origin": {origin}})
		if a.status != http.StatusForbidden || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("a page of %s writes: %d %v", origin, a.status, a.header)
		}
	}
	for _, c := range []struct{ method, path string }{{"POST", "/api/abort"}, {"DELETE", objects + "workspaces/none"}, {"PATCH", objects + "operations/none"}} {
		if a := e.ask(t, c.method, c.path, `{}`, http.Header{"Cookie": {cookie}}); a.status != http.StatusForbidden {
			t.Errorf("%s %s without an origin: %d", c.method, c.path, a.status)
		}
	}
}

// A login leaves nothing behind that would let somebody else in.
func TestSecretsOfTheLoginAreNowhere(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	cookie, code := e.cookie(t)
	_, value, _ := strings.Cut(cookie, "=")
	e.ask(t, http.MethodPost, "/api/login", fmt.Sprintf(`{"code":%q}`, code), http.Header{"Origin": {e.Base()}}) // used
	e.ask(t, http.MethodGet, "/api/status", "", http.Header{"Cookie": {cookie}})
	key, err := os.ReadFile(filepath.Join(e.StateDir(), "dashboard-key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{"the code": code, "the cookie": value, "the key": string(key), "the key, encoded": base64.StdEncoding.EncodeToString(key)}
	found := func(where, text string) {
		for what, secret := range secrets {
			if strings.Contains(text, secret) && !(what == "the key" && where == filepath.Join(e.StateDir(), "dashboard-key")) {
				t.Errorf("%s holds %s", where, what)
			}
		}
	}
	found("the log", e.Log())
	err = filepath.WalkDir(e.StateDir(), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && filepath.Base(path) == "dashboard-key" {
			t.Errorf("%s can be read by others: %v", path, info.Mode())
		}
		b, err := os.ReadFile(path)
		found(path, string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Revive(t)
	if a := e.ask(t, "GET", "/api/session", "", http.Header{"Cookie": {cookie}}); a.status != 200 {
		t.Errorf("a restart ends the login: %d", a.status)
	}
	e.rigctl(t, "dashboard", "--revoke")
	if a := e.ask(t, "GET", "/api/session", "", http.Header{"Cookie": {cookie}}); a.status != 401 {
		t.Errorf("a revoked login: %d", a.status)
	}
}

// The last request of each client tells a silent host from a broken bridge.
func TestLastRequestOfEachClient(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := e.begin(t, "Work")
	e.run(t, w, "true")
	s := e.status(t)
	if len(s.Clients) == 0 || s.Clients[0].LastMethod != "tools/call" || s.Clients[0].LastTool != "bash" {
		t.Errorf("clients: %+v", s.Clients)
	}
	if len(s.Workspaces) != 1 || s.Workspaces[0].LastCommand == nil || s.Workspaces[0].LastCommand.Description != "true" {
		t.Errorf("workspaces: %+v", s.Workspaces)
	}
	if out := e.rigctl(t, "status"); !strings.Contains(out, "tools/call bash") {
		t.Errorf("rigctl status tells nothing of clients:\n%s", out)
	}
}
