package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// budgetFile records what a call allocates. Record it anew, after a change that is meant, with
// RIG_BRIDGE_RECORD_BUDGET=1 go test ./cmd/rig-bridge -run Budget.
const budgetFile = "testdata/allocations.json"

// budgetSlack is how far above the record a call may be: a run differs from the next by a few parts in a hundred.
const budgetSlack = 1.15

// allocated is what one call allocates, all through the daemon.
type allocated struct {
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// direct puts requests straight to the daemon's TCP handler, so that no client and no connection is counted.
type direct struct {
	d         *daemon
	token     string
	workspace string
	calls     int
}

func newDirect(t *testing.T) *direct {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("RIG_BRIDGE_CHECK_OUTPUTS", "") // it costs a second encoding
	state := t.TempDir()
	d, err := start(&settings{StateDir: state, TokenFile: filepath.Join(state, "http-token")}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		if err := d.stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(strings.Repeat("one line of text\n", 60)), 0o644); err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(d.settings.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(token))
	return &direct{d: d, token: secret, workspace: open(t, e2e.NewClient(d.url(), secret), dir)}
}

// request makes the next call of a tool; what it takes to make it is not counted.
func (a *direct) request(t *testing.T, tool string, args e2e.Args) *http.Request {
	t.Helper()
	a.calls++
	all := e2e.Args{"workspace_id": a.workspace}
	for k, v := range args {
		all[k] = v
	}
	if path, ok := all["path"].(string); ok && tool == "write" && all["request_key"] == nil {
		all["path"] = fmt.Sprint(path, a.calls)
	}
	if all["request_key"] == nil && (tool == "write" || tool == "bash") {
		all["request_key"] = fmt.Sprint(tool, a.calls)
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": a.calls, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": all}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, a.d.url(), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", a.token)
	return r
}

// ask makes calls and returns what one of them allocates.
func (a *direct) ask(t *testing.T, n int, tool string, args e2e.Args) allocated {
	t.Helper()
	requests, answers := make([]*http.Request, n), make([]*httptest.ResponseRecorder, n)
	for i := range requests {
		requests[i], answers[i] = a.request(t, tool, args), httptest.NewRecorder()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, r := range requests {
		a.d.servers[0].Handler.ServeHTTP(answers[i], r)
	}
	runtime.ReadMemStats(&after)
	for _, w := range answers {
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"result":`) || strings.Contains(w.Body.String(), `"isError":true`) {
			t.Fatalf("%s: HTTP %d %s", tool, w.Code, w.Body)
		}
	}
	return allocated{(after.Mallocs - before.Mallocs) / uint64(n), (after.TotalAlloc - before.TotalAlloc) / uint64(n)}
}

// A call allocates no more than is recorded for its tool. What the daemon does in the background is counted, too,
// so the least of some turns is taken.
func TestAllocationBudget(t *testing.T) {
	a := newDirect(t)
	replayed := e2e.Args{"path": "again", "content": "x", "expected_revision": "missing", "request_key": "again"}
	a.ask(t, 1, "write", replayed)
	got := map[string]allocated{}
	for _, c := range []struct {
		name, tool string
		args       e2e.Args
		calls      int
	}{
		{"read", "read", e2e.Args{"path": "a.txt"}, 100},
		{"ls", "ls", nil, 100},
		{"write", "write", e2e.Args{"path": "new", "content": strings.Repeat("x", 1000), "expected_revision": "missing"}, 50},
		{"replay", "write", replayed, 100},
		{"bash", "bash", e2e.Args{"command": "true"}, 20},
	} {
		a.ask(t, c.calls, c.tool, c.args)
		least := allocated{1 << 60, 1 << 60}
		for range 5 {
			one := a.ask(t, c.calls, c.tool, c.args)
			least.Objects, least.Bytes = min(least.Objects, one.Objects), min(least.Bytes, one.Bytes)
		}
		got[c.name] = least
	}
	if os.Getenv("RIG_BRIDGE_RECORD_BUDGET") != "" {
		recordBudget(t, got)
	}
	var budget map[string]allocated
	b, err := os.ReadFile(budgetFile)
	if err == nil {
		err = json.Unmarshal(b, &budget)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range got {
		may := budget[name]
		t.Logf("%s: %d objects of %d, %d bytes of %d", name, is.Objects, may.Objects, is.Bytes, may.Bytes)
		if float64(is.Objects) > float64(may.Objects)*budgetSlack || float64(is.Bytes) > float64(may.Bytes)*budgetSlack {
			t.Errorf("a call of %s allocates %d objects and %d bytes; %d and %d are recorded in %s", name, is.Objects, is.Bytes, may.Objects, may.Bytes, budgetFile)
		}
	}
}

func recordBudget(t *testing.T, got map[string]allocated) {
	t.Helper()
	b, err := json.MarshalIndent(got, "", "  ")
	if err == nil {
		err = os.WriteFile(budgetFile, append(b, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A thousand calls of all kinds leave no goroutine and no descriptor behind.
func TestCallsLeaveNothingRunning(t *testing.T) {
	a := newDirect(t)
	mix := func(n int) {
		a.ask(t, n*6/10, "read", e2e.Args{"path": "a.txt"})
		a.ask(t, n/10, "find", e2e.Args{"pattern": "*.txt"})
		a.ask(t, n/10, "grep", e2e.Args{"pattern": "text"})
		a.ask(t, n/10, "write", e2e.Args{"path": strconv.Itoa(a.calls), "content": "x", "expected_revision": "missing"})
		a.ask(t, n/10, "bash", e2e.Args{"command": "echo out"})
	}
	mix(20) // what the first calls start stays
	before, open := runtime.NumGoroutine(), descriptors(t)
	mix(1000)
	deadline := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before+2 || descriptors(t) > open+2 {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after; %d descriptors before, %d after\n%s", before, runtime.NumGoroutine(), open, descriptors(t), stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// descriptors is how many files the process has open, without the store's tables, of which it makes more; 0 where
// the system does not say.
func descriptors(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err == nil && !strings.Contains(to, "/store/") {
			n++
		}
	}
	return n
}
