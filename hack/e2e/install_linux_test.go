package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
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
	d := debianRoot(t)
	dist := filepath.Join(realDir(t), "dist")
	script(t, []string{"PROGRAMS=" + builtPrograms(t), "VERSION=v1.2.3-rc1", "FORMATS=deb"}, "release", dist)
	deb := filepath.Join(dist, "rig-bridge_1.2.3~rc1_"+runtime.GOARCH+".deb")
	if lintian, err := exec.LookPath("lintian"); err == nil && os.Getenv(freshEnv) != "" { // it takes its time
		// A package of a test is not compressed and its programs are not stripped; ours are static.
		out, err := exec.Command(lintian, "--fail-on", "error", "--suppress-tags", "unstripped-binary-or-object,statically-linked-binary,initial-upload-closes-no-bugs,uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball", deb).CombinedOutput()
		if err != nil {
			t.Errorf("lintian: %v\n%s", err, out)
		}
	}
	before := listing(t, d.root)
	if out, err := exec.Command("cp", deb, filepath.Join(d.root, "tmp/rig-bridge.deb")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.run(t, "dpkg", "--install", "/tmp/rig-bridge.deb")
	d.run(t, "dpkg", "--verify", "rig-bridge")
	for _, file := range []string{"usr/lib/systemd/user/rig-bridge.service", "usr/share/bash-completion/completions/rigctl", "usr/share/zsh/vendor-completions/_rigctl",
		"usr/share/fish/vendor_completions.d/rig-bridge.fish", "usr/share/doc/rig-bridge/copyright", "usr/share/doc/rig-bridge/examples/cursor.json"} {
		if info, err := os.Stat(filepath.Join(d.root, file)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if out := d.run(t, "bash", "-c", "source /usr/share/bash-completion/completions/rigctl && complete -p rigctl"); !strings.Contains(out, "rigctl") {
		t.Errorf("the completion completes nothing: %s", out)
	}
	d.works(t, "/usr/bin/rig-bridge")
	d.run(t, "dpkg", "--purge", "rig-bridge")
	d.run(t, "rm", "-r", "/tmp/rig-bridge.deb")
	for _, path := range listing(t, d.root) {
		if !slices.Contains(before, path) && !strings.HasPrefix(path, "var/lib/dpkg/") && !strings.HasPrefix(path, "var/log/") {
			t.Errorf("left over: %s", path)
		}
	}
}

// TestInstallScript installs for an account, beside a running daemon, and removes everything again. Whether it builds is
// up to whoever asks for what takes long.
func TestInstallScript(t *testing.T) {
	home, scratch := realDir(t), realDir(t)
	env := []string{"HOME=" + home, "TMPDIR=" + scratch, "PREFIX=", "GOPATH=" + goEnv(t, "GOPATH"), "GOCACHE=" + goEnv(t, "GOCACHE"), "GOMODCACHE=" + goEnv(t, "GOMODCACHE")}
	if os.Getenv(freshEnv) == "" {
		env = append(env, "PROGRAMS="+builtPrograms(t))
	}
	if out := script(t, env, "install"); !strings.Contains(out, home+"/.local/bin/rig-bridge service install --start") {
		t.Errorf("it does not say what to do next: %s", out)
	}
	binary := filepath.Join(home, ".local/bin/rig-bridge")
	d := daemon.Start(t, daemon.Options{Binary: binary, Home: home})
	script(t, env, "install") // again, while the program runs
	d.Client().Open(t, home)
	out, err := exec.Command(binary, "version").Output()
	if err != nil || !regexp.MustCompile(`^rig-bridge (devel|v\d+\.\d+\.\d+)`).Match(out) {
		t.Errorf("the version is %s, %v", out, err)
	}
	put(t, filepath.Join(home, ".config/systemd/user/rig-bridge.service"), "") // it would start nothing any more
	refused := exec.Command(filepath.Join(daemon.Root(), "hack/install"), "uninstall")
	refused.Env = append(os.Environ(), append(env, "XDG_CONFIG_HOME=")...)
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "rig-bridge service uninstall") || !exists(binary) {
		t.Errorf("removed beside its service: %v: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(home, ".config/systemd")); err != nil {
		t.Fatal(err)
	}
	script(t, append(env, "XDG_CONFIG_HOME="), "install", "uninstall")
	for _, path := range listing(t, filepath.Join(home, ".local")) {
		if info, err := os.Lstat(filepath.Join(home, ".local", path)); err == nil && !info.IsDir() {
			t.Errorf("left over: %s", path)
		}
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
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

// TestFreshMachine types the commands of the README in a fresh Debian that has systemd: it builds from the sources there,
// with a Go toolchain, a module cache and a build cache that are lent to it, installs, has the service started, works,
// upgrades, and removes everything.
func TestFreshMachine(t *testing.T) {
	if os.Getenv(freshEnv) == "" {
		t.Skip("builds what other tests do not, some 6 minutes of two processors; set " + freshEnv + "=1")
	}
	d := debianRoot(t, "systemd")
	sources := exec.Command("sh", "-c", "git ls-files -z | tar --null --files-from=- -cf - | tar -xf - -C "+filepath.Join(d.root, "srv"))
	sources.Dir = daemon.Root()
	if out, err := sources.CombinedOutput(); err != nil {
		t.Fatalf("copy the sources: %v: %s", err, out)
	}
	d.lend(t, goEnv(t, "GOROOT"), "usr/local/go")
	d.lend(t, goEnv(t, "GOMODCACHE"), "mnt")
	d.lendCopy(t, goEnv(t, "GOCACHE"), "root/.cache/go-build")
	groups := newCgroups(t)
	t.Cleanup(groups.remove)
	for _, own := range groups.own {
		d.before = append(d.before, fmt.Sprintf("echo 0 > %q", filepath.Join(own, "cgroup.procs")))
	}
	d.before = append(d.before, `mount -t tmpfs tmpfs "$0/run"`, `mkdir -p "$0/run/systemd/system" "$0/run/user/0"`,
		`mount -t tmpfs tmpfs "$0/sys"`, `mkdir -p "$0/sys/fs/cgroup"`, `mount --rbind /sys/fs/cgroup "$0/sys/fs/cgroup"`)
	port, err := daemon.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(d.root, "root/.config/rig-bridge/config.yaml"), fmt.Sprintf("port: %d\n", port)) // another may have the usual one
	d.asAPerson(t, port)
}

// asAPerson logs in, in the sense of systemd, and does what the README says.
func (d *debian) asAPerson(t *testing.T, port int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := d.command(t, "bash", "-c", `
		/lib/systemd/systemd --user >/root/systemd.log 2>&1 &
		for i in $(seq 600); do systemctl --user show --property=Version >/dev/null 2>&1 && break; sleep 0.1; done
		set -ex
		cd /srv
		`+readmeCommands(t, "hack/install")+`
		~/.local/bin/rig-bridge service status
		~/.local/bin/rigctl status
		read -r line # until the test has done its part
		`+strings.ReplaceAll(readmeCommands(t, "git pull && "), "git pull && ", "")+`
		~/.local/bin/rigctl status
		`+readmeCommands(t, "~/.local/bin/rig-bridge service uninstall")+`
		kill %1
		wait %1`)
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR=/run/user/0", "PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"GOTOOLCHAIN=local", "GOMODCACHE=/mnt", "GOPROXY=off")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out syncBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	for !strings.Contains(out.String(), "+ read -r line") {
		select {
		case err := <-ended:
			log, _ := os.ReadFile(filepath.Join(d.root, "root/systemd.log"))
			t.Fatalf("%v\n%s\nsystemd said:\n%s", err, out.String(), log)
		case <-time.After(100 * time.Millisecond):
		}
	}
	d.serves(t, port)
	if _, err := io.WriteString(stdin, "done\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("removing it again: %v\n%s", err, out.String())
	}
	t.Logf("%s", out.String())
	for _, path := range listing(t, filepath.Join(d.root, "root")) {
		if info, err := os.Lstat(filepath.Join(d.root, "root", path)); err == nil && !info.IsDir() && strings.Contains(path, "rig") && !strings.HasPrefix(path, ".cache/go-build") {
			t.Errorf("left over: %s", path)
		}
	}
}

// TestRelease builds the release for this machine's architecture twice, in different directories, the second time with
// all of Linux and macOS.
func TestRelease(t *testing.T) {
	if os.Getenv(freshEnv) == "" {
		t.Skip("builds everything anew for several systems; set " + freshEnv + "=1")
	}
	native := "linux/" + runtime.GOARCH
	var sums [2][]string
	for i, targets := range []string{native, "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64"} {
		tree, dist := realDir(t), filepath.Join(realDir(t), "dist")
		if out, err := exec.Command("git", "clone", "--quiet", daemon.Root(), tree).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		cmd := exec.CommandContext(bounded(t, 60*time.Minute), "hack/release", dist)
		cmd.Dir, cmd.Env = tree, append(os.Environ(), "TARGETS="+targets)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		sums[i] = strings.Split(text(t, filepath.Join(dist, "SHA256SUMS")), "\n")
		programsOf(t, dist, strings.Fields(targets))
	}
	for _, line := range sums[0] {
		if !slices.Contains(sums[1], line) {
			t.Errorf("not reproducible: %s is not in %q", line, sums[1])
		}
	}
}

// programsOf looks into the archives of a release: a program for each system, without symbols and linked statically.
func programsOf(t *testing.T, dist string, targets []string) {
	t.Helper()
	for _, target := range targets {
		system, arch, _ := strings.Cut(target, "/")
		archives, err := filepath.Glob(filepath.Join(dist, "*_"+system+"_"+arch+".tar.gz"))
		if err != nil || len(archives) != 1 {
			t.Fatalf("%s: archives %v, %v", target, archives, err)
		}
		dir := realDir(t)
		if out, err := exec.Command("tar", "-xzf", archives[0], "-C", dir, "--strip-components=1").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, name := range []string{"rig-bridge", "rigctl"} {
			program := filepath.Join(dir, name)
			out, err := exec.Command("go", "version", "-m", program).CombinedOutput()
			for _, want := range []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0", "-trimpath=true"} {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%s %s: no %s: %v", target, name, want, err)
				}
			}
			if system != "linux" {
				continue
			}
			f, err := elf.Open(program)
			if err != nil {
				t.Fatal(err)
			}
			if f.Section(".symtab") != nil || f.Section(".interp") != nil {
				t.Errorf("%s %s has symbols, or wants a dynamic linker", target, name)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
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

// debian is a Debian in a directory. Each command in it is process 1 of process and mount namespaces of its own: this
// machine gets no mount, a command sees and reaches no process of this machine, and what it starts ends with it.
type debian struct {
	root string
	// before are shell commands that run before the change of root; "$0" is the root.
	before []string
}

// debianRoot makes a minimal Debian of this machine's release with further packages, or skips the test.
func debianRoot(t *testing.T, packages ...string) *debian {
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
	archive := filepath.Join(daemon.Root(), ".tools", strings.Join(append([]string{"debian", string(codename[1])}, packages...), "-")+".tar")
	if !exists(archive) {
		fresh := archive + ".new.tar"
		// Packages configure themselves while it is made: in namespaces, too.
		args := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", mmdebstrap, "--quiet", "--variant=essential", "--dpkgopt=force-unsafe-io"}
		for _, name := range packages {
			args = append(args, "--include="+name)
		}
		cmd := exec.CommandContext(bounded(t, 10*time.Minute), "unshare", append(args, string(codename[1]), fresh, mirror)...)
		if out, err := together(cmd); err != nil {
			t.Skipf("no Debian can be made here: %v: %s", err, lastLine(out))
		}
		if err := os.Rename(fresh, archive); err != nil {
			t.Fatal(err)
		}
	}
	d := &debian{root: realDir(t)}
	if out, err := exec.Command("tar", "-xf", archive, "-C", d.root).CombinedOutput(); err != nil {
		t.Fatalf("unpack the Debian: %v: %s", err, out)
	}
	if err := os.Chmod(d.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := together(d.command(t, "true")); err != nil {
		t.Skipf("needs a machine that lets root make namespaces and mounts: %v: %s", err, out)
	}
	return d
}

// lend has the commands see a directory at another place, for reading only.
func (d *debian) lend(t *testing.T, from, to string) {
	t.Helper()
	at := filepath.Join(d.root, to)
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	d.before = append(d.before, fmt.Sprintf("mount --bind %q %q", from, at), fmt.Sprintf("mount -o remount,bind,ro %q", at))
}

// lendCopy has each command see a directory at another place, and forgets what it changes there.
func (d *debian) lendCopy(t *testing.T, from, to string) {
	t.Helper()
	at, changes := filepath.Join(d.root, to), realDir(t)
	for _, dir := range []string{at, filepath.Join(changes, "upper"), filepath.Join(changes, "work")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.before = append(d.before, fmt.Sprintf("mount -t overlay -o lowerdir=%s,upperdir=%s/upper,workdir=%[2]s/work overlay %q", from, changes, at))
}

// command is a command in the Debian with an empty environment, not yet started. The kernel ends it with the thread that
// starts it.
func (d *debian) command(t *testing.T, args ...string) *exec.Cmd {
	script := strings.Join(append(append([]string{"set -e", "mount --make-rprivate /", `mount -t proc -o ro proc "$0/proc"`}, d.before...), `exec chroot "$0" "$@"`), "\n")
	cmd := exec.CommandContext(bounded(t, 40*time.Minute), "/bin/sh", append([]string{"-c", script, d.root}, args...)...)
	cmd.Env = []string{"HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// together runs a command that ends with the test, even if the test is killed, and returns what it said.
func together(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread() // the kernel ends the command with the thread
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd.CombinedOutput()
}

// run runs a command in the Debian.
func (d *debian) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := together(d.command(t, args...))
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(lines[len(lines)-1])
}

// works starts the daemon in the Debian as the README says and makes one call after the other.
func (d *debian) works(t *testing.T, program string) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	port, err := daemon.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := d.command(t, program, "serve", "--port", fmt.Sprint(port))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	eventually(t, "the daemon in the Debian is ready", func() bool { return exists(filepath.Join(d.root, "root/.local/state/rig-bridge/endpoint.json")) })
	d.serves(t, port)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the daemon ended with %v: %s", err, log.String())
	}
	if err := os.RemoveAll(filepath.Join(d.root, "root/.local")); err != nil { // which the daemon has made
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(d.root, "root/hello")); err != nil {
		t.Error(err)
	}
}

// serves makes one call after the other to the daemon that runs in the Debian.
func (d *debian) serves(t *testing.T, port int) {
	t.Helper()
	token := text(t, filepath.Join(d.root, "root/.local/state/rig-bridge/http-token"))
	client := daemon.NewClient(fmt.Sprintf("http://127.0.0.1:%d/mcp", port), strings.TrimSpace(token))
	w := client.Open(t, "/root")
	client.OK(t, "write", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "path": "hello", "content": "hello\n", "expected_revision": "missing"})
	if r := client.OK(t, "bash", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": "cat hello"}); r.Text() != "hello\n" {
		t.Errorf("got %s", r.Text())
	}
}

// listing is every path below a directory.
func listing(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("find", ".", "-mindepth", "1", "-printf", `%P\n`)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
