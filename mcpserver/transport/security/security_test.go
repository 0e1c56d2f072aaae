package security_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/mcpserver/transport/security"
)

func TestTokenFileIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "token")
	token, err := security.LoadToken(path, false)
	if err != nil {
		t.Fatal(err)
	}
	value := readFile(t, path)
	if !regexp.MustCompile(`^Bearer [A-Za-z0-9_-]{43}$`).MatchString(value) {
		t.Errorf("token file holds %q", value)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	again, err := security.LoadToken(path, true)
	if err != nil || readFile(t, path) != value || !again.Matches(value) || !token.Matches(value) {
		t.Errorf("second load: %v", err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("files left: %v %v", left, err)
	}
	for _, other := range []string{"", value + "x", value[:len(value)-1], strings.ToLower(value), strings.TrimPrefix(value, "Bearer "), "bearer" + value[6:], " " + value} {
		if token.Matches(other) {
			t.Errorf("token matches %q", other)
		}
	}
}

func TestDaemonsThatStartTogetherShareOneToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	tokens := make([]*security.Token, 8)
	var wg sync.WaitGroup
	for i := range tokens {
		wg.Go(func() {
			var err error
			if tokens[i], err = security.LoadToken(path, false); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	value := readFile(t, path)
	for i, token := range tokens {
		if token == nil || !token.Matches(value) {
			t.Errorf("daemon %d holds another token", i)
		}
	}
}

func TestTokenFileRules(t *testing.T) {
	good := "Bearer " + strings.Repeat("a", 43)
	for name, c := range map[string]struct {
		value string
		mode  os.FileMode
		ok    bool
	}{
		"good": {good, 0o600, true}, "longer": {good + "zZ9_-", 0o600, true}, "read-only": {good, 0o400, true}, "newline at the end": {good + "\n", 0o600, true},
		"group may read": {good, 0o640, false}, "others may execute": {good, 0o601, false},
		"short": {good[:len(good)-1], 0o600, false}, "empty": {"", 0o600, false}, "no scheme": {strings.Repeat("a", 50), 0o600, false},
		"small scheme": {"b" + good[1:], 0o600, false}, "odd character": {good + "+", 0o600, false}, "two lines": {good + "\n" + good, 0o600, false},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(c.value), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := security.LoadToken(path, false)
		if c.ok {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var bad *security.ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "INVALID_CONFIG") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		} else if c.value != "" && strings.Contains(err.Error(), strings.TrimSpace(c.value)) {
			t.Errorf("%s: the error holds the token", name)
		}
		if readFile(t, path) != c.value {
			t.Errorf("%s: the file was changed", name)
		}
	}
	missing := filepath.Join(t.TempDir(), "none")
	var bad *security.ConfigError
	if _, err := security.LoadToken(missing, true); !errors.As(err, &bad) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("explicit file that is missing: %v", err)
	}
	if _, err := security.LoadToken(t.TempDir(), false); !errors.As(err, &bad) {
		t.Errorf("directory: %v", err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// secret is the token of all guarded servers here.
var secret = "Bearer " + strings.Repeat("s3cr-t_X", 6)

// guarded starts a server whose handler counts the requests that get in.
func guarded(t *testing.T, change func(*security.GuardOptions)) (url string, entered *int, mu *sync.Mutex) {
	t.Helper()
	entered, mu = new(int), new(sync.Mutex)
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		*entered++
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
	})
	ts := httptest.NewUnstartedServer(nil)
	o := security.GuardOptions{Port: ts.Listener.Addr().(*net.TCPAddr).Port, RefuseOrigin: true, Token: security.NewToken(secret)}
	if change != nil {
		change(&o)
	}
	ts.Config.Handler = security.Guard(next, o)
	ts.Start()
	t.Cleanup(ts.Close)
	return ts.URL, entered, mu
}

func send(t *testing.T, url, host string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestGuard(t *testing.T) {
	url, entered, _ := guarded(t, nil)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	auth := http.Header{"Authorization": {secret}}
	with := func(name string, values ...string) http.Header {
		h := auth.Clone()
		h[name] = values
		return h
	}
	for name, c := range map[string]struct {
		host   string
		header http.Header
		status int
	}{
		"good":                       {"", auth, 200},
		"localhost":                  {"localhost:" + port, auth, 200},
		"IPv6":                       {"[::1]:" + port, auth, 200},
		"foreign host":               {"evil.test", auth, 403},
		"foreign host, our port":     {"evil.test:" + port, auth, 403},
		"our host, no port":          {"127.0.0.1", auth, 403},
		"our host, other port":       {"127.0.0.1:1", auth, 403},
		"host that begins like ours": {"127.0.0.1.evil.test:" + port, auth, 403},
		"foreign origin":             {"", with("Origin", "https://evil.example"), 403},
		"null origin":                {"", with("Origin", "null"), 403},
		"empty origin":               {"", with("Origin", ""), 403},
		"own origin":                 {"", with("Origin", url), 403},
		"no token":                   {"", http.Header{}, 401},
		"wrong token":                {"", with("Authorization", "Bearer "+strings.Repeat("x", 48)), 401},
		"other scheme":               {"", with("Authorization", strings.Replace(secret, "Bearer", "bearer", 1)), 401},
		"two tokens":                 {"", with("Authorization", secret, "Bearer x"), 401},
	} {
		before := *entered
		resp, body := send(t, url+"/mcp?token="+secret[7:], c.host, c.header)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		if got := *entered - before; got == 1 != (c.status == 200) {
			t.Errorf("%s: %d requests got in", name, got)
		}
		if c.status == 401 && resp.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: WWW-Authenticate %q", name, resp.Header.Get("WWW-Authenticate"))
		}
		if c.status != 200 {
			if !strings.Contains(body, `"id":null`) || !strings.Contains(body, `"code":-32000`) || resp.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: body %s, headers %v", name, body, resp.Header)
			}
			noSecret(t, name, body+fmt.Sprint(resp.Header))
		}
	}
}

func TestGuardForTheAPI(t *testing.T) {
	url, _, _ := guarded(t, func(o *security.GuardOptions) {
		o.RefuseOrigin = false
		o.Admit = func(r *http.Request) bool { _, err := r.Cookie("session"); return err == nil }
	})
	for name, c := range map[string]struct {
		header http.Header
		status int
	}{
		"cookie, own origin":      {http.Header{"Cookie": {"session=1"}, "Origin": {url}}, 200},
		"cookie, foreign origin":  {http.Header{"Cookie": {"session=1"}, "Origin": {"http://evil.test"}}, 403},
		"cookie, own host by TLS": {http.Header{"Cookie": {"session=1"}, "Origin": {strings.Replace(url, "http:", "https:", 1)}}, 403},
		"token":                   {http.Header{"Authorization": {secret}}, 200},
		"neither":                 {http.Header{}, 401},
	} {
		if resp, body := send(t, url, "", c.header); resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
	socket, _, _ := guarded(t, func(o *security.GuardOptions) { *o = security.GuardOptions{RefuseOrigin: true} })
	if resp, _ := send(t, socket, "anything", http.Header{}); resp.StatusCode != 200 {
		t.Errorf("unix socket: %d", resp.StatusCode)
	}
}

func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	url, _, _ := guarded(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Length: 7000000\r\n\r\n", strings.TrimPrefix(url, "http://"))
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 401 ") {
		t.Errorf("%v %q", err, got)
	}
}

// noSecret looks for the token as it is, in base64 and in hex.
func noSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, s := range []string{secret, secret[7:]} {
		for _, form := range []string{s, base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)), hex.EncodeToString([]byte(s))} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds the token", where)
			}
		}
	}
}

func TestTokenCannotBePrinted(t *testing.T) {
	var b bytes.Buffer
	token := security.NewToken(secret)
	fmt.Fprintf(&b, "%v %+v %#v %s %q %d %x %v %+v", token, token, token, token, token, token, token, *token, security.GuardOptions{Token: token})
	noSecret(t, "the printed token", b.String())
}

func TestHealth(t *testing.T) {
	healthy := true
	h := security.Health("live", "stopping", func() bool { return healthy })
	for _, c := range []struct {
		method, path string
		healthy      bool
		status       int
		body         string
	}{
		{"GET", "/healthz", true, 200, "live"}, {"GET", "/healthz?x=1", true, 200, "live"}, {"HEAD", "/healthz", true, 200, ""},
		{"GET", "/healthz", false, 503, "stopping"}, {"HEAD", "/healthz", false, 503, ""}, {"POST", "/healthz", true, 405, "Method not allowed\n"},
	} {
		healthy = c.healthy
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s %s: %d %q", c.method, c.path, w.Code, w.Body)
		}
	}
}

func TestWellKnownPathsAreEmpty404(t *testing.T) {
	h := security.WellKnown(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, status := range map[string]int{
		"/.well-known/oauth-protected-resource": 404, "/.well-known/oauth-protected-resource/mcp": 404,
		"/.well-known/oauth-authorization-server": 404, "/.well-known/openid-configuration": 404, "/mcp/.well-known/openid-configuration": 404,
		"/mcp": 418, "/.well-known/security.txt": 418, "/": 418,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != status || w.Body.Len() != 0 {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
}
