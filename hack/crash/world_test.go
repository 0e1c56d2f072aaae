package crash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// binaryEnv names the variable that holds the path of a ready daemon with failpoints; without it one is built.
const binaryEnv = "RIG_BRIDGE_FAILPOINTS_BINARY"

// length chooses how much a test does.
func length(short, usual, full int) int {
	switch {
	case os.Getenv("RIG_BRIDGE_CRASH") == "full":
		return full
	case testing.Short(), os.Getenv("CI") != "":
		return short
	}
	return usual
}

var built = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return path, nil
	}
	path := filepath.Join(daemon.Root(), ".tools", "bin", "rig-bridge-failpoints")
	cmd := exec.Command("go", "build", "-tags", "failpoints", "-o", path, "./cmd/rig-bridge")
	cmd.Dir = daemon.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the daemon with failpoints: %w\n%s", err, out)
	}
	return path, nil
})

// house is one state directory, in which daemons live one after the other.
type house struct {
	state, home string
	daemon      *daemon.Daemon
}

func newHouse(t testing.TB) *house { return &house{state: realDir(t), home: realDir(t)} }

// begin starts the next daemon, with additions to its environment.
func (h *house) begin(t testing.TB, env ...string) *daemon.Client {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	h.daemon = daemon.Start(t, daemon.Options{Binary: binary, StateDir: h.state, Home: h.home, Env: env})
	return h.daemon.Client()
}

// kill ends the daemon with SIGKILL; one that is dead already is fine.
func (h *house) kill(t testing.TB) {
	t.Helper()
	if err := h.daemon.Kill(); err != nil {
		t.Fatal(err)
	}
}

// dies waits until the daemon has ended by itself.
func (h *house) dies(t testing.TB) {
	t.Helper()
	if _, err := h.daemon.Wait(bounded(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// realDir is a fresh directory whose path has no links, as the server reports it.
func realDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// text is the content of a file; a missing one is empty.
func text(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// revision is the contract's name for the bytes of a file.
func revision(t testing.TB, path string) string {
	t.Helper()
	if !exists(path) {
		return "missing"
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text(t, path))))
}

// lines counts the lines of a file.
func lines(t testing.TB, path string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, line := range strings.Fields(text(t, path)) {
		count[line]++
	}
	return count
}

// noTemporary fails the test if a temporary file lies in the directory.
func noTemporary(t testing.TB, dir string) {
	t.Helper()
	if left := temporary(t, dir); len(left) > 0 {
		t.Errorf("temporary files are left in %s: %v", dir, left)
	}
}

func temporary(t testing.TB, dir string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".rig-bridge-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// eventually waits until the condition holds; it fails the test after a minute.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("still not: %s", what)
}

// bounded is a context that ends with the test or after a generous time.
func bounded(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// with returns the arguments with some replaced.
func with(args daemon.Args, more daemon.Args) daemon.Args {
	out := daemon.Args{}
	for _, from := range []daemon.Args{args, more} {
		for k, v := range from {
			out[k] = v
		}
	}
	return out
}

func mkdir(dir string) error { return os.MkdirAll(dir, 0o755) }
