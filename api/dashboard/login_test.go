package dashboard

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestALinkLogsInOnce(t *testing.T) {
	e := newEnv(t)
	code := e.code(t)
	enter := func(code string) *http.Response {
		resp, body := e.ask(t, "POST", "/api/login", fmt.Sprintf(`{"code":%q}`, code), http.Header{"Origin": {e.url}})
		if resp.StatusCode != http.StatusNoContent && (resp.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "rigctl dashboard")) {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		return resp
	}
	for _, wrong := range []string{"", code[:len(code)-1], code + "A", strings.ToLower(code)} {
		if resp := enter(wrong); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) != 0 {
			t.Errorf("%q: %d", wrong, resp.StatusCode)
		}
	}
	resp := enter(code)
	if resp.StatusCode != http.StatusNoContent {
		t.Fatalf("a good link: %d", resp.StatusCode)
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != int(sessionAge.Seconds()) || c.Domain != "" || c.Name != "rig-bridge-8767" {
		t.Errorf("the cookie is %v", resp.Header["Set-Cookie"])
	}
	if resp.Header.Get("Cache-Control") != "no-store" {
		t.Error("the answer with the cookie may be cached")
	}
	if resp := enter(code); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a used link: %d", resp.StatusCode)
	}
	late := e.code(t)
	e.pass(codeAge)
	if resp := enter(late); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a link after a minute: %d", resp.StatusCode)
	}
}

func TestLinksAreBounded(t *testing.T) {
	e := newEnv(t)
	first := e.code(t)
	e.pass(time.Second)
	var last string
	for range maxCodes {
		last = e.code(t)
	}
	if e.codes.use(first) || !e.codes.use(last) || len(e.codes.until) != maxCodes-1 {
		t.Errorf("%d links are open", len(e.codes.until))
	}
	if resp, _ := e.ask(t, "POST", "/api/login-link", `{"fragment":"`+strings.Repeat("x", maxFragment+1)+`"}`, nil); resp.StatusCode != 400 {
		t.Errorf("a long fragment: %d", resp.StatusCode)
	}
}

// loggedIn tells what the page's address serves to a browser with this header.
func (e *env) loggedIn(t *testing.T, header http.Header) bool {
	t.Helper()
	resp, body := e.ask(t, "GET", "/", "", header)
	in := !strings.Contains(body, "rigctl dashboard")
	if in != (resp.StatusCode == 200) || !in && resp.StatusCode != 401 {
		t.Errorf("%d with %s", resp.StatusCode, body)
	}
	req, err := http.NewRequest("GET", e.url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	if e.Admit(req) != in {
		t.Error("the page and the API disagree")
	}
	return in
}

func TestCookie(t *testing.T) {
	e := newEnv(t)
	header := e.cookie(t)
	if !e.loggedIn(t, header) {
		t.Fatal("a fresh login does not open the page")
	}
	value := strings.SplitN(header.Get("Cookie"), "=", 2)[1]
	flipped := []byte(value)
	flipped[0] ^= 1
	for name, cookie := range map[string]string{
		"none": "", "empty": "rig-bridge-8767=", "other port's": "rig-bridge-8768=" + value, "cut": "rig-bridge-8767=" + value[:len(value)-1],
		"longer": "rig-bridge-8767=" + value + "AAAA", "later": "rig-bridge-8767=" + string(flipped), "no base64": "rig-bridge-8767=!!!",
	} {
		if e.loggedIn(t, http.Header{"Cookie": {cookie}}) {
			t.Errorf("%s: is let in", name)
		}
	}
	renewed := func() []*http.Cookie {
		resp, _ := e.ask(t, "GET", "/api/session", "", header)
		return resp.Cookies()
	}
	if c := renewed(); len(c) != 0 {
		t.Errorf("a fresh cookie is replaced: %v", c)
	}
	e.pass(renewAge + time.Minute)
	c := renewed()
	if len(c) != 1 || c[0].MaxAge != int(sessionAge.Seconds()) {
		t.Fatalf("a cookie of a day is not renewed: %v", c)
	}
	e.pass(sessionAge - renewAge)
	if e.loggedIn(t, header) {
		t.Error("a cookie outlives its age")
	}
	if !e.loggedIn(t, http.Header{"Cookie": {c[0].Name + "=" + c[0].Value}}) {
		t.Error("a renewed cookie does not last")
	}
	resp, _ := e.ask(t, "POST", "/api/logout", "", header)
	if gone := resp.Cookies(); resp.StatusCode != 204 || len(gone) != 1 || gone[0].MaxAge != -1 || gone[0].Value != "" {
		t.Errorf("logout: %d %v", resp.StatusCode, gone)
	}
}

func TestCookieSurvivesARestartAndARevocationDoesNot(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	o := Options{KeyFile: key, Port: 8767, Now: time.Now}
	life := func() *env {
		d, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return &env{Dashboard: d}
	}
	first := life()
	w := &recorder{header: http.Header{}}
	first.sessions.issue(w)
	request := &http.Request{Header: http.Header{"Cookie": {strings.SplitN(w.header.Get("Set-Cookie"), ";", 2)[0]}}}
	if second := life(); !second.Admit(request) {
		t.Error("a restart ends the login")
	}
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v %v", info.Mode(), err)
	}
	request.Header.Set("Authorization", "Bearer wrong")
	if first.Admit(request) {
		t.Error("a good cookie makes up for a wrong Authorization header")
	}
	request.Header.Del("Authorization")
	if err := first.sessions.endAll(); err != nil || first.Admit(request) {
		t.Errorf("after a revocation the cookie is good: %v", err)
	}
	if life().Admit(request) {
		t.Error("after a restart the revoked cookie is good again")
	}
	if err := os.WriteFile(key, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if life().Admit(request) {
		t.Error("a damaged key opens")
	}
}

// recorder is a writer of which only the header is looked at.
type recorder struct {
	http.ResponseWriter
	header http.Header
}

func (r *recorder) Header() http.Header { return r.header }

func TestRevocationEndsOpenStreams(t *testing.T) {
	e := newEnv(t)
	byCookie, bySocket := e.lines(t, e.cookie(t)), e.lines(t, nil)
	until(t, byCookie, ofType("SYNCED"))
	until(t, bySocket, ofType("SYNCED"))
	if resp, body := e.ask(t, "POST", "/api/logout-all", "{}", nil); resp.StatusCode != 204 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	guard := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-byCookie:
		case <-guard:
			t.Fatal("the stream goes on without a login")
		}
	}
	e.create(t, newProject("after"))
	until(t, bySocket, about("Project", "after"))
}

// What a browser sends says which page asks. The cookie alone is no permission: it goes to all ports of the host.
func TestRequestsOfOtherPagesAreRefused(t *testing.T) {
	e := newEnv(t)
	cookie := e.cookie(t)["Cookie"]
	for name, c := range map[string]struct {
		method string
		header http.Header
		refuse bool
	}{
		"own page reads":              {"GET", http.Header{"Sec-Fetch-Site": {"same-origin"}}, false},
		"address bar reads":           {"GET", http.Header{"Sec-Fetch-Site": {"none"}}, false},
		"old browser reads":           {"GET", http.Header{}, false},
		"other port reads":            {"GET", http.Header{"Sec-Fetch-Site": {"same-site"}}, true},
		"other site reads":            {"GET", http.Header{"Sec-Fetch-Site": {"cross-site"}}, true},
		"other origin reads":          {"GET", http.Header{"Origin": {"http://127.0.0.1:9"}, "Sec-Fetch-Site": {"same-origin"}}, true},
		"own page writes":             {"POST", http.Header{"Origin": {e.url}}, false},
		"own page writes, no origin":  {"POST", http.Header{"Sec-Fetch-Site": {"same-origin"}}, false},
		"nobody writes":               {"POST", http.Header{}, true},
		"address bar writes":          {"POST", http.Header{"Sec-Fetch-Site": {"none"}}, true},
		"other port writes":           {"POST", http.Header{"Origin": {"http://127.0.0.1:9"}, "Sec-Fetch-Site": {"same-site"}}, true},
		"other name of the host":      {"POST", http.Header{"Origin": {strings.Replace(e.url, "127.0.0.1", "localhost", 1)}}, true},
		"null origin writes":          {"POST", http.Header{"Origin": {"null"}}, true},
		"empty origin writes":         {"POST", http.Header{"Origin": {""}}, true},
		"two origins write":           {"POST", http.Header{"Origin": {e.url, e.url}}, true},
		"other site, own scheme TLS":  {"POST", http.Header{"Origin": {strings.Replace(e.url, "http:", "https:", 1)}}, true},
		"own origin, cross-site only": {"POST", http.Header{"Sec-Fetch-Site": {"cross-site"}}, true},
	} {
		c.header["Cookie"] = cookie
		path, body := "/api/session", ""
		if c.method == "POST" {
			path, body = "/api/handoffs/read", `{"handoff_id":"none"}`
		}
		resp, said := e.ask(t, c.method, path, body, c.header)
		if (resp.StatusCode == http.StatusForbidden) != c.refuse {
			t.Errorf("%s: %d %s", name, resp.StatusCode, said)
		}
	}
	// Logging in needs no cookie, and another page must not log a browser in as somebody else.
	if resp, _ := e.ask(t, "POST", "/api/login", fmt.Sprintf(`{"code":%q}`, e.code(t)), http.Header{"Origin": {"http://127.0.0.1:9"}}); resp.StatusCode != 403 {
		t.Errorf("another page logs in: %d", resp.StatusCode)
	}
}
