package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// freshEnv asks for the tests that take long and need a network: a build on a fresh machine, and a whole release.
const freshEnv = "RIG_BRIDGE_E2E_FRESH"

// script runs a script of hack with variables and returns what it said.
func script(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(bounded(t, 40*time.Minute), filepath.Join(daemon.Root(), "hack", name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("hack/%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// builtPrograms is a directory with both programs.
func builtPrograms(t *testing.T) string {
	t.Helper()
	dir := realDir(t)
	for _, name := range []string{"rig-bridge", "rigctl"} {
		path, err := daemon.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestReleaseArchive packs the programs twice: the same bytes, with everything that belongs to them.
func TestReleaseArchive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs GNU tar and sha256sum")
	}
	programs, sums := realDir(t), ""
	for _, name := range []string{"rig-bridge", "rigctl"} { // how they are packed is the same for small ones
		put(t, filepath.Join(programs, name), "#!/bin/sh\necho \"$@\" of "+name+"\n")
		if err := os.Chmod(filepath.Join(programs, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		dist := filepath.Join(realDir(t), "dist")
		script(t, []string{"PROGRAMS=" + programs, "VERSION=v1.2.3-rc1", "SOURCE_DATE_EPOCH=1700000000"}, "release", dist)
		now := text(t, filepath.Join(dist, "SHA256SUMS"))
		if sums != "" && now != sums {
			t.Errorf("packed again it is other:\n%s\n%s", sums, now)
		}
		sums = now
		if out, err := exec.Command("sh", "-c", "cd "+dist+" && sha256sum --check --strict SHA256SUMS").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		name := "rig-bridge_1.2.3-rc1_linux_" + runtime.GOARCH
		out, err := exec.Command("tar", "-tzf", filepath.Join(dist, name+".tar.gz")).Output()
		if err != nil {
			t.Fatal(err)
		}
		files := strings.Split(string(out), "\n")
		for _, want := range []string{"rig-bridge", "rigctl", "LICENSE", "README.md", "completions/bash/rigctl", "completions/zsh/_rig-bridge", "completions/fish/rigctl.fish", "clients/codex.toml"} {
			if !slices.Contains(files, name+"/"+want) {
				t.Errorf("%s is not in the archive", want)
			}
		}
	}
}

// TestDebianPackage builds the package, installs it into a fresh Debian root, works with what is in it, and
// removes it without a trace.
func TestDebianPackage(t *testing.T) {
	root := debianRoot(t)
	dist := filepath.Join(realDir(t), "dist")
	script(t, []string{"PROGRAMS=" + builtPrograms(t), "VERSION=v1.2.3-rc1", "FORMATS=deb"}, "release", dist)
	deb := filepath.Join(dist, "rig-bridge_1.2.3~rc1_"+runtime.GOARCH+".deb")
	if lintian, err := exec.LookPath("lintian"); err == nil && os.Getenv(freshEnv) != "" { // it takes its time
		// Programs of a test are not stripped, and ours are static. They explain themselves, without manual pages.
		out, err := exec.Command(lintian, "--fail-on", "error", "--suppress-tags", "unstripped-binary-or-object,statically-linked-binary,initial-upload-closes-no-bugs", deb).CombinedOutput()
		if err != nil {
			t.Errorf("lintian: %v\n%s", err, out)
		}
	}
	before := listing(t, root)
	if out, err := exec.Command("cp", deb, filepath.Join(root, "tmp/rig-bridge.deb")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	in(t, root, "dpkg", "--install", "/tmp/rig-bridge.deb")
	in(t, root, "dpkg", "--verify", "rig-bridge")
	for _, file := range []string{"usr/lib/systemd/user/rig-bridge.service", "usr/share/bash-completion/completions/rigctl", "usr/share/zsh/vendor-completions/_rigctl",
		"usr/share/fish/vendor_completions.d/rig-bridge.fish", "usr/share/doc/rig-bridge/copyright", "usr/share/doc/rig-bridge/examples/cursor.json"} {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if out := in(t, root, "bash", "-c", "source /usr/share/bash-completion/completions/rigctl && complete -p rigctl"); !strings.Contains(out, "rigctl") {
		t.Errorf("the completion completes nothing: %s", out)
	}
	worksIn(t, root, "/usr/bin/rig-bridge")
	in(t, root, "dpkg", "--purge", "rig-bridge")
	in(t, root, "rm", "-r", "/tmp/rig-bridge.deb")
	for _, path := range listing(t, root) {
		if !slices.Contains(before, path) && !strings.HasPrefix(path, "var/lib/dpkg/") && !strings.HasPrefix(path, "var/log/") {
			t.Errorf("left over: %s", path)
		}
	}
}

// TestInstallScript installs for an account, beside a running daemon, and removes everything again.
func TestInstallScript(t *testing.T) {
	if os.Getenv(freshEnv) == "" {
		t.Skip("builds without what the tests have built; set " + freshEnv + "=1")
	}
	home := realDir(t)
	env := []string{"HOME=" + home, "PREFIX=", "GOPATH=" + goEnv(t, "GOPATH"), "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE")}
	if out := script(t, env, "install"); !strings.Contains(out, "service install --start") || !strings.Contains(out, home+"/.local/bin") {
		t.Errorf("it does not say what to do next: %s", out)
	}
	binary := filepath.Join(home, ".local/bin/rig-bridge")
	d := daemon.Start(t, daemon.Options{Binary: binary, Home: home})
	script(t, env, "install") // again, while the program runs
	d.Client().Open(t, home)
	out, err := exec.Command(binary, "version").Output()
	if err != nil || !regexp.MustCompile(`^rig-bridge v\d+\.\d+\.\d+`).Match(out) {
		t.Errorf("the version is %s, %v", out, err)
	}
	script(t, env, "install", "uninstall")
	for _, path := range listing(t, filepath.Join(home, ".local")) {
		if info, err := os.Lstat(filepath.Join(home, ".local", path)); err == nil && !info.IsDir() {
			t.Errorf("left over: %s", path)
		}
	}
}

// TestGoInstall: "go install …@latest" refuses a module whose go.mod replaces or excludes others.
func TestGoInstall(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = daemon.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Module           struct{ Path string }
		Replace, Exclude []any
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Errorf("go.mod replaces %v, excludes %v", mod.Replace, mod.Exclude)
	}
	if !strings.Contains(text(t, filepath.Join(daemon.Root(), "README.md")), "go install "+mod.Module.Path+"/cmd/...@latest") {
		t.Error("the README installs another module")
	}
}

// TestFreshMachine follows the README in a fresh Debian root: it builds from the sources there, with a Go toolchain
// and a module cache that are lent to it, installs, starts the daemon and works.
func TestFreshMachine(t *testing.T) {
	if os.Getenv(freshEnv) == "" {
		t.Skip("builds everything anew, some 12 minutes of two processors; set " + freshEnv + "=1")
	}
	root := debianRoot(t)
	sources := exec.Command("sh", "-c", "git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "+filepath.Join(root, "srv"))
	sources.Dir = daemon.Root()
	if out, err := sources.CombinedOutput(); err != nil {
		t.Fatalf("copy the sources: %v: %s", err, out)
	}
	for from, to := range map[string]string{goEnv(t, "GOROOT"): "usr/local/go", goEnv(t, "GOMODCACHE"): "mnt"} {
		lend(t, from, filepath.Join(root, to))
	}
	in(t, root, "bash", "-c", "cd /srv && PATH=/usr/local/go/bin:$PATH GOTOOLCHAIN=local GOMODCACHE=/mnt GOFLAGS=-mod=mod GOPROXY=off GOCACHE=/root/cache hack/install")
	worksIn(t, root, "/root/.local/bin/rig-bridge")
}

// TestRelease builds the whole release for this machine's architecture twice, in different directories, and for
// macOS once.
func TestRelease(t *testing.T) {
	if os.Getenv(freshEnv) == "" {
		t.Skip("builds everything anew for several systems; set " + freshEnv + "=1")
	}
	var sums []string
	for range 2 {
		tree, dist := realDir(t), filepath.Join(realDir(t), "dist")
		if out, err := exec.Command("git", "clone", "--quiet", daemon.Root(), tree).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		cmd := exec.Command("hack/release", dist)
		cmd.Dir, cmd.Env = tree, append(os.Environ(), "TARGETS=linux/"+runtime.GOARCH)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		sums = append(sums, text(t, filepath.Join(dist, "SHA256SUMS")))
	}
	if sums[0] != sums[1] {
		t.Errorf("not reproducible:\n%s\n%s", sums[0], sums[1])
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// debianRoot makes a minimal Debian of this machine's release, or skips the test.
func debianRoot(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for a Debian in a directory")
	}
	mmdebstrap, err := exec.LookPath("mmdebstrap")
	if err != nil {
		t.Skip("needs mmdebstrap: hack/test installs it")
	}
	release, err := os.ReadFile("/etc/os-release")
	codename := regexp.MustCompile(`(?m)^VERSION_CODENAME=(\w+)$`).FindSubmatch(release)
	if err != nil || codename == nil {
		t.Skip("needs to know this Debian's release")
	}
	from, err := exec.Command("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian").Output()
	mirror, _, _ := strings.Cut(string(from), "\n")
	if err != nil || mirror == "" {
		t.Skip("needs the package lists of apt-get update")
	}
	archive := filepath.Join(daemon.Root(), ".tools", "debian-"+string(codename[1])+".tar")
	if !exists(archive) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		fresh := archive + ".new.tar"
		out, err := exec.CommandContext(ctx, mmdebstrap, "--quiet", "--variant=essential", string(codename[1]), fresh, mirror).CombinedOutput()
		if err != nil {
			t.Skipf("no Debian can be made here: %v: %s", err, lastLine(out))
		}
		if err := os.Rename(fresh, archive); err != nil {
			t.Fatal(err)
		}
	}
	root := realDir(t)
	if out, err := exec.Command("tar", "-xf", archive, "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("unpack the Debian: %v: %s", err, out)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	mounted(t, filepath.Join(root, "proc"), "-t", "proc", "proc")
	return root
}

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}

// lend mounts a directory into another place for the length of the test, for reading only: what cleans up after a
// test must not reach the lender.
func lend(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	mounted(t, to, "--bind", from)
	if out, err := exec.Command("mount", "-o", "remount,bind,ro", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// mounted mounts something for the length of the test, or skips it.
func mounted(t *testing.T, at string, what ...string) {
	t.Helper()
	if out, err := exec.Command("mount", append(what, at)...).CombinedOutput(); err != nil {
		t.Skipf("needs a machine that lets root mount: %v: %s", err, out)
	}
	t.Cleanup(func() { // before the directory is removed
		if out, err := exec.Command("umount", "--lazy", at).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// in runs a command in the Debian with an empty environment.
func in(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(bounded(t, 40*time.Minute), "chroot", append([]string{root}, args...)...)
	cmd.Env = []string{"HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// worksIn starts the daemon in the Debian as the README says and makes one call after the other.
func worksIn(t *testing.T, root, program string) {
	t.Helper()
	port, err := daemon.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("chroot", root, program, "serve", "--port", fmt.Sprint(port))
	cmd.Env = []string{"HOME=/root", "PATH=/usr/bin:/bin"}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(root, "root/.local/state/rig-bridge")
	eventually(t, "the daemon in the Debian is ready", func() bool { return exists(filepath.Join(state, "endpoint.json")) })
	client := daemon.NewClient(fmt.Sprintf("http://127.0.0.1:%d/mcp", port), strings.TrimSpace(text(t, filepath.Join(state, "http-token"))))
	w := client.Open(t, "/root")
	client.OK(t, "write", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "path": "hello", "content": "hello\n", "expected_revision": "missing"})
	if r := client.OK(t, "bash", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": "cat hello; echo $0"}); !strings.HasPrefix(r.Text(), "hello\n") {
		t.Errorf("got %s", r.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v: %s", err, log.String())
	}
	if err := os.RemoveAll(filepath.Join(root, "root/.local")); err != nil { // which the daemon has made
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(root, "root/hello")); err != nil {
		t.Error(err)
	}
}

// listing is every path below a directory, but for what is lent.
func listing(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("find", ".", "-xdev", "-path", "./proc", "-prune", "-o", "-mindepth", "1", "-printf", `%P\n`)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
