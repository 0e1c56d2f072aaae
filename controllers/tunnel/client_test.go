package tunnel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func write(t testing.TB, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// The command line is the provider's, word for word.
func TestArguments(t *testing.T) {
	spec := v1alpha1.TunnelSpec{TunnelID: "tunnel_1", Credential: v1alpha1.CredentialReference{File: "/home/sam/key"}}
	want := []string{"run", "--control-plane.tunnel-id", "tunnel_1", "--control-plane.api-key", "file:/home/sam/key",
		"--mcp.server-url", "http://127.0.0.1:8767/mcp", "--mcp.extra-headers", "Authorization: file:/state/http-token",
		"--mcp.discovery-extra-headers", "Authorization: file:/state/http-token", "--health.listen-addr", "127.0.0.1:0", "--health.url-file", "/state/url"}
	if got := arguments(spec, "http://127.0.0.1:8767/mcp", "/state/http-token", "/state/url"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestEnvironment(t *testing.T) {
	ours := []string{"PATH=/bin", "CONTROL_PLANE_API_KEY=k", "OPENAI_API_KEY=k", "OPENAI_ADMIN_KEY=k", "LOG_HTTP_RAW_UNSAFE=1", "HTTPS_PROXY=p", "CONTROL_PLANE_BASE_URL=a"}
	if got := environment(ours, ""); !slices.Equal(got, []string{"PATH=/bin", "HTTPS_PROXY=p", "CONTROL_PLANE_BASE_URL=a"}) {
		t.Errorf("%q", got)
	}
	if got := environment([]string{"CONTROL_PLANE_BASE_URL=a"}, "https://b"); got[len(got)-1] != "CONTROL_PLANE_BASE_URL=https://b" {
		t.Errorf("%q", got)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	program := func(place string, mode os.FileMode) string {
		return write(t, filepath.Join(dir, place, Program), "#!/bin/sh\n", mode)
	}
	places := Places(filepath.Join(dir, "a")+":relative:"+filepath.Join(dir, "b"), filepath.Join(dir, "home"), filepath.Join(dir, "own", "rig-bridge"))
	want := []string{"a", "b", "home/.local/bin", "home/bin", "own"}
	for i := range want {
		want[i] = filepath.Join(dir, want[i])
	}
	if !slices.Equal(places, want) {
		t.Fatalf("%q", places)
	}
	var missing *NotFoundError
	if _, err := Find("", places); !errors.As(err, &missing) || !strings.Contains(err.Error(), "rig-bridge tunnel install") || !strings.Contains(err.Error(), want[2]) {
		t.Errorf("nowhere: %v", err)
	}
	own := program("own", 0o755)
	if got, err := Find("", places); err != nil || got != own {
		t.Errorf("beside the program: %s, %v", got, err)
	}
	user := program("home/.local/bin", 0o755)
	if got, err := Find("", places); err != nil || got != user {
		t.Errorf("the account's: %s, %v", got, err)
	}
	program("a", 0o644) // cannot be run, so the next one is taken
	if got, err := Find("", places); err != nil || got != user {
		t.Errorf("after one that cannot be run: %s, %v", got, err)
	}
	if _, err := Find("", places[:1]); err == nil || !strings.Contains(err.Error(), "chmod +x") {
		t.Errorf("only one that cannot be run: %v", err)
	}
	for path, says := range map[string]string{program("c", 0o757): "chmod o-w", filepath.Join(dir, "c"): "not a program", filepath.Join(dir, "nothing"): "no such file"} {
		if _, err := Find(path, nil); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestCheckCredential(t *testing.T) {
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "good"), "sk-0123456789\n", 0o600)
	if key, err := CheckCredential(good); err != nil || key != "sk-0123456789" {
		t.Errorf("%q, %v", key, err)
	}
	for path, says := range map[string]string{
		write(t, filepath.Join(dir, "open"), "sk-0123456789", 0o640):                 "chmod 600",
		write(t, filepath.Join(dir, "empty"), " \n", 0o600):                          "key alone",
		write(t, filepath.Join(dir, "lines"), "sk-0123456789\nsk-0123456789", 0o600): "key alone",
		write(t, filepath.Join(dir, "long"), strings.Repeat("k", 5000), 0o600):       "more than a key",
		dir:                           "not a file",
		filepath.Join(dir, "missing"): "no such file",
	} {
		_, err := CheckCredential(path)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	now := time.Unix(1000, 0)
	o, err := openOutput(path, []string{"Hunter2-key"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		o.copy(r)
		close(done)
	}()
	say := func(text string) {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	say("first, the key is Hunter2-key.\n")
	say(strings.Repeat("x", outputLine-5) + "Hunter2-key" + strings.Repeat("y", 100<<10) + "\n") // cut in the middle of the key
	for range 100 {
		say(strings.Repeat("flood ", 1000) + "\n")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("Hunt")) || !bytes.HasPrefix(b, []byte("first, the key is [secret].\n")) || len(b) > outputRate+200 {
		t.Errorf("%d bytes: %.100q", len(b), b)
	}
	if !bytes.Contains(b, []byte(" lines left out: too many at once]\n")) {
		t.Errorf("what was left out is not told: %q", b[len(b)-100:])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// However long a client talks, the files stay small, and the latest lines are there.
func TestOutputTurnsOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var calls time.Duration
	o, err := openOutput(path, nil, func() time.Time { // a second for each line
		calls++
		return time.Unix(1000, 0).Add(calls * time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		o.copy(r)
		close(done)
	}()
	for i := range 3000 {
		fmt.Fprintf(w, "%d %s\n", i, strings.Repeat("z", 1000))
	}
	_ = w.Close()
	<-done
	for _, file := range []string{path, path + ".1"} {
		info, err := os.Stat(file)
		if err != nil || info.Size() > outputFile || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, []byte("\n2999 z")) {
		t.Errorf("the last line is missing: %v", err)
	}
}

func TestPollTime(t *testing.T) {
	const head = "# TYPE commands_poll_last_successful_timestamp_seconds gauge\n"
	for text, want := range map[string]int64{
		"": -1, "other 1\n": -1,
		head + pollMetric + "{otel_scope_name=\"controlplane\",otel_scope_version=\"\"} 1.796095753e+09\n": 1796095753,
		pollMetric + " 1796095753 1796095800000\n":                                                         1796095753,
		pollMetric + "{a=\"1\"} 100\n" + pollMetric + "{a=\"2\"} 200\n":                                    200,
		head + pollMetric + " 0\n":                                                                         -1,
	} {
		at, err := pollTime([]byte(text))
		if err != nil || (want < 0) != at.IsZero() || want > 0 && at.Unix() != want {
			t.Errorf("%q: %v, %v", text, at, err)
		}
	}
	for _, text := range []string{"\x00\xff{{{\n", pollMetric + " NaN\n", pollMetric + " -5\n", pollMetric + " 1796095753000\n", pollMetric + " soon\n", "<html>"} {
		if at, err := pollTime([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, at)
		}
	}
}

func TestHealthAddress(t *testing.T) {
	dir := t.TempDir()
	for text, ok := range map[string]bool{
		"http://127.0.0.1:1": true, "http://127.0.0.1:1/\n": true, "http://[::1]:1": true,
		"": false, "http://192.0.2.1:1": false, "http://localhost.example:1": false, "https://127.0.0.1:1": false, "http://a:b@127.0.0.1:1": false,
		"\x00\xff": false, "http://127.0.0.1:1" + strings.Repeat("/", 2000): false,
	} {
		if u, err := healthAddress(write(t, filepath.Join(dir, "url"), text, 0o600)); (err == nil) != ok {
			t.Errorf("%.40q: %v, %v", text, u, err)
		}
	}
}

// What a client answers can be anything.
func TestAskHealth(t *testing.T) {
	fresh := fmt.Sprintf("%s %d\n", pollMetric, time.Now().Unix())
	for name, c := range map[string]struct {
		metrics, readyz func(http.ResponseWriter)
		ready, fails    bool
	}{
		"ready":       {say(200, fresh), say(200, "ready"), true, false},
		"not ready":   {say(200, fresh), say(503, "mcp probe failed"), false, false},
		"refused":     {say(200, fresh), say(200, "ready (mcp initialize requires auth: 401)"), false, false},
		"no metrics":  {say(404, ""), say(200, "ready"), false, true},
		"elsewhere":   {func(w http.ResponseWriter) { w.Header().Set("Location", "http://192.0.2.1/"); w.WriteHeader(302) }, say(200, "ready"), false, true},
		"too much":    {say(200, strings.Repeat("a 1\n", healthSize)), say(200, "ready"), false, true},
		"garbage":     {say(200, "\x00\x01"), say(200, "ready"), false, true},
		"hangs up":    {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, say(200, "ready"), false, true},
		"hangs up on": {say(200, fresh), func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, false, true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				c.metrics(w)
			} else {
				c.readyz(w)
			}
		}))
		h := askHealth(t.Context(), write(t, filepath.Join(t.TempDir(), "url"), s.URL, 0o600))
		s.Close()
		if h.ready != c.ready || (h.err != nil) != c.fails {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func say(status int, text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}
