package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howett.net/plist"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// insideEnv says that the test runs beside its own systemd; it holds the path of the binary.
const insideEnv = "RIG_BRIDGE_E2E_SYSTEMD"

// cgroupsEnv holds the control groups that were made for that systemd.
const cgroupsEnv = "RIG_BRIDGE_E2E_CGROUPS"

// TestService runs the service under a real systemd user manager, in namespaces of its own: installation with
// awkward names, what commands may do, crash, upgrade, stop, refusals and removal. The steps build on each other.
func TestService(t *testing.T) {
	if os.Getenv(insideEnv) == "" {
		outsideSystemd(t)
		return
	}
	s := insideSystemd(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *systemd)
	}{
		{"RefusedValues", serviceRefusals}, {"Install", serviceInstall}, {"CommandsAreFree", serviceCommands}, {"Crash", serviceCrash},
		{"Upgrade", serviceUpgrade}, {"StopInTime", serviceStop}, {"PortTaken", servicePortTaken}, {"ForeignUnit", serviceForeign}, {"Uninstall", serviceUninstall},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, s) }) {
			return
		}
	}
}

// TestServicePrint prints the service for both systems without touching anything: settings that were given are in
// it, others are left to config.yaml.
func TestServicePrint(t *testing.T) {
	binary, err := daemon.Build("rig-bridge")
	if err != nil {
		t.Fatal(err)
	}
	home := realDir(t)
	show := func(args ...string) string {
		cmd := exec.Command(binary, append([]string{"service", "install"}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "RIG_BRIDGE_PORT=4321", "XDG_CONFIG_HOME=" + home + "/conf & co"}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	var agent struct {
		ProgramArguments     []string
		EnvironmentVariables map[string]string
	}
	if _, err := plist.Unmarshal([]byte(show("--print=launchd", "--log-level", "debug")), &agent); err != nil {
		t.Fatal(err)
	}
	want := []string{binary, "serve", "--state-dir", home + "/.local/state/rig-bridge", "--port", "4321", "--log-level", "debug"}
	if !slices.Equal(agent.ProgramArguments, want) || agent.EnvironmentVariables["XDG_CONFIG_HOME"] != home+"/conf & co" {
		t.Errorf("%+v", agent)
	}
	unit := show("--print=systemd", "--state-dir", "/a b")
	for _, line := range []string{"ExecStart=" + binary + ` serve --state-dir "/a b" --port 4321`, "Environment=PATH=/usr/bin:/bin", `Environment="XDG_CONFIG_HOME=` + home + `/conf & co"`} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("there is no line %s in\n%s", line, unit)
		}
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) > 0 {
		t.Errorf("printing has made %v, %v", entries, err)
	}
}

// outsideSystemd runs this test again in namespaces where it may have a systemd.
func outsideSystemd(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, for a systemd in namespaces of its own")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("needs systemd: hack/test installs it")
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "tmpfs", "/run").CombinedOutput(); err != nil {
		t.Skipf("needs a machine that lets root make namespaces: %v: %s", err, out)
	}
	binary, err := daemon.Build("rig-bridge")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(bounded(t, 5*time.Minute), "unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
		self, "-test.run=^TestService$", "-test.v", "-test.timeout=5m")
	groups := newCgroups(t)
	t.Cleanup(groups.remove) // when the namespaces are gone
	cmd.Env = append(os.Environ(), insideEnv+"="+binary, cgroupsEnv+"="+strings.Join(groups.own, ":"))
	out, err := together(cmd)
	t.Logf("%s", out)
	switch {
	case bytes.Contains(out, []byte("--- SKIP: TestService ")):
		t.Skip("no systemd user manager works here, see above")
	case err != nil || !bytes.Contains(out, []byte("--- PASS: TestService/Uninstall")):
		t.Errorf("in its namespaces: %v", err)
	}
}

// systemd is the account's service manager, for the length of the test.
type systemd struct {
	dir, home, state, bin, token string
	port                         int
	path                         string // PATH at the installation
	client                       *daemon.Client
}

func insideSystemd(t *testing.T) *systemd {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "tmpfs", "/run").CombinedOutput(); err != nil {
		t.Skipf("mount /run: %v: %s", err, out)
	}
	if err := os.MkdirAll("/run/systemd/system", 0o755); err != nil { // a user manager wants to be below a system one
		t.Fatal(err)
	}
	(&cgroups{own: strings.Split(os.Getenv(cgroupsEnv), ":")}).enter(t)
	awkward := filepath.Join(realDir(t), `we ird $HOME %h ü`)
	s := &systemd{dir: awkward, home: filepath.Join(awkward, "home"), bin: filepath.Join(awkward, "bin"),
		state: filepath.Join(awkward, `st"a'te\$x %i`), token: filepath.Join(awkward, `to"ken % $$`)}
	for _, dir := range []string{s.home, s.bin, s.state, "/run/user/0"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s.token, "Bearer "+strings.Repeat("s", 43)+"\n")
	if err := os.Chmod(s.token, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"HOME": s.home, "XDG_RUNTIME_DIR": "/run/user/0", "SHELL": "/bin/sh"} {
		t.Setenv(name, value)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "DBUS_SESSION_BUS_ADDRESS"} { // this process is the test's alone
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	copyProgram(t, os.Getenv(insideEnv), filepath.Join(s.bin, "rig-bridge"))
	manager := exec.Command("/lib/systemd/systemd", "--user", "--log-target=console", "--log-level=notice")
	log := &bytes.Buffer{}
	manager.Stdout, manager.Stderr = log, log
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = manager.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = manager.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = manager.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("systemd said:\n%s", log)
		}
	})
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if exec.Command("systemctl", "--user", "show", "--property=Version").Run() == nil {
			break
		}
		select {
		case <-ended:
			t.Skipf("systemd --user does not work here: %s", log)
		default:
		}
		if time.Since(began) > time.Minute {
			t.Skipf("systemd --user does not answer here: %s", log)
		}
	}
	var err error
	if s.port, err = daemon.FreePort(); err != nil {
		t.Fatal(err)
	}
	s.client = daemon.NewClient(fmt.Sprintf("http://127.0.0.1:%d/mcp", s.port), "Bearer "+strings.Repeat("s", 43))
	return s
}

// cgroups are control groups for a systemd of a test, one in each hierarchy that it uses, so that it never takes
// itself for the manager of this machine's.
type cgroups struct {
	own []string
	// copies are where systemd may make the same in its other hierarchy.
	copies []string
}

func newCgroups(t *testing.T) *cgroups {
	t.Helper()
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("needs control groups: %v", err)
	}
	c := &cgroups{}
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		var roots []string
		switch part[1] {
		case "name=systemd":
			roots = []string{"/sys/fs/cgroup/systemd"}
		case "":
			roots = []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"}
		}
		for _, root := range roots {
			here := filepath.Join(root, part[2])
			if !exists(filepath.Join(here, "cgroup.procs")) {
				continue
			}
			own := filepath.Join(here, fmt.Sprintf("rig-bridge-test-%d", time.Now().UnixNano()))
			if err := os.Mkdir(own, 0o755); err != nil {
				c.remove()
				t.Skipf("needs control groups of its own: %v", err)
			}
			c.own = append(c.own, own)
			for _, other := range []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"} {
				c.copies = append(c.copies, filepath.Join(other, part[2], filepath.Base(own)))
			}
			break
		}
	}
	if len(c.own) == 0 {
		t.Skip("needs control groups: systemd's are not mounted")
	}
	return c
}

// enter moves this process into them.
func (c *cgroups) enter(t *testing.T) {
	t.Helper()
	for _, own := range c.own {
		if err := os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			t.Skipf("needs control groups of its own: %v", err)
		}
	}
}

// remove removes them when nobody is in them any more, which takes a moment after the last process was killed.
func (c *cgroups) remove() {
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		c.tryToRemove()
		if !slices.ContainsFunc(c.own, exists) {
			return
		}
	}
}

func (c *cgroups) tryToRemove() {
	for _, own := range append(c.copies, c.own...) {
		var below []string
		_ = filepath.WalkDir(own, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(below) {
			_ = os.Remove(dir)
		}
	}
}

// copyProgram puts a program where another may be running, as an upgrade does.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// service calls rig-bridge service as a person would, with the settings of the test.
func (s *systemd) service(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(s.bin, "rig-bridge"), append([]string{"service"}, args...)...)
	if s.path != "" {
		cmd.Env = append(os.Environ(), "PATH="+s.path)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *systemd) install(extra ...string) (string, error) {
	return s.service(append([]string{"install", "--port", strconv.Itoa(s.port), "--state-dir", s.state, "--token-file", s.token, "--log-level", "debug"}, extra...)...)
}

func (s *systemd) unit() string {
	return filepath.Join(s.home, ".config/systemd/user/rig-bridge.service")
}

// show is one property of the unit.
func (s *systemd) show(t *testing.T, property string) string {
	t.Helper()
	out, err := exec.Command("systemctl", "--user", "show", "--value", "--property="+property, "rig-bridge.service").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (s *systemd) systemctl(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("systemctl", append([]string{"--user"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %v: %v: %s", args, err, out)
	}
}

func serviceRefusals(t *testing.T, s *systemd) {
	for name, args := range map[string][]string{
		"line break": {"install", "--state-dir", s.dir + "/a\nExecStartPre=/bin/evil"},
		"no token":   {"install", "--token-file", s.dir + "/nothing"},
		"bad kind":   {"install", "--print=upstart"},
		"bad level":  {"install", "--log-level", "loud"},
	} {
		if out, err := s.service(args...); err == nil || exists(s.unit()) {
			t.Errorf("%s: accepted: %s", name, out)
		}
	}
	if out, err := s.service("status"); err == nil || !strings.Contains(out, "service install --start") {
		t.Errorf("status before the installation: %v: %s", err, out)
	}
	if out, err := s.service("uninstall"); err != nil || !strings.Contains(out, "nothing to uninstall") {
		t.Errorf("uninstalling nothing: %v: %s", err, out)
	}
}

func serviceInstall(t *testing.T, s *systemd) {
	s.path = s.bin + ":/usr/bin:/bin:relative"
	put(t, filepath.Join(s.bin, "own-tool"), "#!/bin/sh\necho captured\n")
	put(t, filepath.Join(s.home, "tools/profile-tool"), "#!/bin/sh\necho refreshed\n")
	for _, tool := range []string{filepath.Join(s.bin, "own-tool"), filepath.Join(s.home, "tools/profile-tool")} {
		if err := os.Chmod(tool, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	old := syscall.Umask(0o027)
	out, err := s.install("--start")
	syscall.Umask(old)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The daemon is ready now: nothing is waited for.
	put(t, filepath.Join(s.home, ".profile"), "PATH=\"$HOME/tools:$PATH\"\n") // for the next start
	w := s.client.Open(t, s.home)
	r := s.client.OK(t, "bash", daemon.Args{"workspace_id": w, "request_key": daemon.Key(),
		"command": "own-tool; umask; pwd; [ -z \"$NOTIFY_SOCKET\" ] && echo unnotified; tr '\\0' '\\n' < /proc/" + s.show(t, "MainPID") + "/cmdline"})
	want := strings.Join([]string{"captured", "0027", s.home, "unnotified", filepath.Join(s.bin, "rig-bridge"), "serve", "--state-dir", s.state,
		"--port", strconv.Itoa(s.port), "--token-file", s.token, "--log-level", "debug"}, "\n")
	if got := strings.TrimSpace(r.Text()); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	info, err := os.Stat(s.unit())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the unit: %v, %v", info.Mode(), err)
	}
	if got := s.show(t, "UnitFileState"); got != "enabled" {
		t.Errorf("the unit is %s", got)
	}
	before := text(t, s.unit())
	pid := s.show(t, "MainPID")
	old = syscall.Umask(0o027)
	if out, err := s.install(); err != nil {
		t.Errorf("again: %v: %s", err, out)
	}
	syscall.Umask(old)
	if text(t, s.unit()) != before || s.show(t, "MainPID") != pid {
		t.Error("installing again changed something")
	}
	if out, err := s.service("status"); err != nil || !strings.Contains(out, "pid "+pid+": Serving http://127.0.0.1:") {
		t.Errorf("status: %v: %s", err, out)
	}
}

// Nothing that a person may do at a terminal is taken from commands.
func serviceCommands(t *testing.T, s *systemd) {
	shared := filepath.Join("/tmp", fmt.Sprintf("rig-bridge-shared-%d", time.Now().UnixNano()))
	t.Cleanup(func() { os.Remove(shared) })
	r := s.client.OK(t, "bash", daemon.Args{"workspace_id": s.client.Open(t, s.home), "request_key": daemon.Key(),
		"command": "grep NoNewPrivs /proc/self/status; grep Seccomp: /proc/self/status; touch " + shared + " ~/here && readlink /proc/self/ns/mnt"})
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	if want := "NoNewPrivs:\t0\nSeccomp:\t0\n" + own; strings.TrimSpace(r.Text()) != want {
		t.Errorf("got:\n%s\nwant:\n%s", r.Text(), want)
	}
	if !exists(shared) || !exists(filepath.Join(s.home, "here")) {
		t.Error("a command wrote to a /tmp or a home of its own")
	}
}

// mainPID is the daemon's process, once it is ready and another than before.
func (s *systemd) awaitNew(t *testing.T, before string) string {
	t.Helper()
	eventually(t, "the daemon is there again", func() bool {
		return s.show(t, "ActiveState") == "active" && s.show(t, "MainPID") != before
	})
	return s.show(t, "MainPID")
}

// begin calls bash without waiting for the answer, until the command has made the file "begun".
func (s *systemd) begin(t *testing.T, args daemon.Args, dir string) <-chan daemon.Result {
	t.Helper()
	answers := make(chan daemon.Result, 1)
	go func() {
		r, _ := s.client.Call(context.Background(), "bash", args) // a lost connection is an answer too
		answers <- r
	}()
	eventually(t, "the command has begun", func() bool { return exists(filepath.Join(dir, "begun")) })
	return answers
}

// After a crash systemd starts the daemon again. The command has gone on, its call is uncertain and not repeated,
// and it can be stopped.
func serviceCrash(t *testing.T, s *systemd) {
	dir := realDir(t)
	w := s.client.Open(t, dir)
	args := daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": "echo x >> begun; echo $$ > pid; while :; do sleep 0.1; done"}
	answer := s.begin(t, args, dir)
	before := s.show(t, "MainPID")
	pid, err := strconv.Atoi(before)
	if err != nil || pid <= 1 { // 0 would be whoever shares our process group
		t.Fatalf("the daemon's process is %q: %v", before, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-answer
	s.awaitNew(t, before)
	shell, err := strconv.Atoi(strings.TrimSpace(text(t, filepath.Join(dir, "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(shell, 0); err != nil {
		t.Errorf("the command did not live through the crash: %v", err)
	}
	r := s.client.Fails(t, "OUTCOME_UNCERTAIN", "bash", args)
	if !r.Replayed() || text(t, filepath.Join(dir, "begun")) != "x\n" {
		t.Errorf("the command was repeated, or so it says: %s", r.Raw)
	}
	s.client.Must(t, "operation_cancel", daemon.Args{"workspace_id": w, "request_key": args["request_key"]})
	eventually(t, "the command has been stopped", func() bool { return errors.Is(syscall.Kill(shell, 0), syscall.ESRCH) })
	// The profile was written after the first start.
	if r := s.client.OK(t, "bash", daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": "profile-tool; own-tool"}); r.Text() != "refreshed\ncaptured\n" && r.Text() != "refreshed\ncaptured" {
		t.Errorf("PATH was not refreshed at the start: %s", r.Text())
	}
}

// An upgrade while a command runs: it is asked to end, its receipt is final, the new program serves, and a server
// that an earlier command left running is still there and can be stopped.
func serviceUpgrade(t *testing.T, s *systemd) {
	dir := realDir(t)
	w := s.client.Open(t, dir)
	server := daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": "sleep 600 >/dev/null 2>&1 & echo $! > server"}
	s.client.OK(t, "bash", server)
	args := daemon.Args{"workspace_id": w, "request_key": daemon.Key(), "command": "trap 'echo bye > trapped; exit 1' TERM; touch begun; while :; do sleep 0.1; done"}
	answer := s.begin(t, args, dir)
	before := s.show(t, "MainPID")
	copyProgram(t, os.Getenv(insideEnv), filepath.Join(s.bin, "rig-bridge"))
	if out, err := s.install("--start"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := s.awaitNew(t, before)
	if a := <-answer; a.Raw != nil && a.Code() != "COMMAND_CANCELLED" && a.Code() != "BRIDGE_STOPPED" {
		t.Errorf("the waiting client was told %s", a.Raw)
	}
	if !exists(filepath.Join(dir, "trapped")) {
		t.Error("the command had no time for its trap")
	}
	if r := s.client.Must(t, "bash", args); !r.IsError || !r.Replayed() || r.String("status") != "failed" {
		t.Errorf("the receipt is not final: %s", r.Raw)
	}
	if exe, err := os.Readlink("/proc/" + pid + "/exe"); err != nil || exe != filepath.Join(s.bin, "rig-bridge") {
		t.Errorf("%s runs, %v", exe, err)
	}
	left, err := strconv.Atoi(strings.TrimSpace(text(t, filepath.Join(dir, "server"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(left, 0); err != nil {
		t.Errorf("the upgrade ended the server that was left running: %v", err)
	}
	s.client.Must(t, "operation_cancel", daemon.Args{"workspace_id": w, "request_key": server["request_key"]})
	eventually(t, "the server has been stopped", func() bool { return errors.Is(syscall.Kill(left, 0), syscall.ESRCH) })
}

// A stop is over before systemd would end it by force, even if the command refuses to end.
func serviceStop(t *testing.T, s *systemd) {
	dir := realDir(t)
	args := daemon.Args{"workspace_id": s.client.Open(t, dir), "request_key": daemon.Key(), "command": "trap '' TERM; echo $$ > pid; touch begun; while :; do sleep 0.1; done"}
	answer := s.begin(t, args, dir)
	s.systemctl(t, "stop", "rig-bridge.service")
	<-answer
	if result, state := s.show(t, "Result"), s.show(t, "ActiveState"); result != "success" || state != "inactive" {
		t.Errorf("the stop ended in %s, %s", state, result)
	}
	shell, err := strconv.Atoi(strings.TrimSpace(text(t, filepath.Join(dir, "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(shell, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command runs on: %v", err)
	}
	if out, err := s.service("status", "--state-dir", s.state); err == nil || !strings.Contains(out, "inactive") {
		t.Errorf("status: %v: %s", err, out)
	}
	s.systemctl(t, "start", "rig-bridge.service")
	if r := s.client.Must(t, "bash", args); !r.Replayed() || r.String("status") != "failed" {
		t.Errorf("the receipt is not final: %s", r.Raw)
	}
}

// A port that somebody else has is named, and no other is taken.
func servicePortTaken(t *testing.T, s *systemd) {
	s.systemctl(t, "stop", "rig-bridge.service")
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.install("--start")
	if err == nil || !strings.Contains(out, fmt.Sprintf("port %d on 127.0.0.1 cannot be used", s.port)) {
		t.Errorf("%v: %s", err, out)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service takes the port when it is free", func() bool { return s.show(t, "ActiveState") == "active" })
	s.client.Open(t, s.home)
}

func serviceForeign(t *testing.T, s *systemd) {
	own := text(t, s.unit())
	for name, foreign := range map[string]string{"another's": "[Service]\nExecStart=/bin/true\n", "one that mentions us": "[Unit]\nDescription=x\n# Managed by rig-bridge service.\n"} {
		put(t, s.unit(), foreign)
		for _, args := range [][]string{{"install"}, {"uninstall"}} {
			if out, err := s.service(args...); err == nil || !strings.Contains(out, "left alone") {
				t.Errorf("%s, %s: %v: %s", name, args[0], err, out)
			}
		}
		if text(t, s.unit()) != foreign {
			t.Errorf("%s was overwritten", name)
		}
	}
	if err := os.Remove(s.unit()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", s.unit()); err != nil { // masked
		t.Fatal(err)
	}
	if out, err := s.service("install"); err == nil || !strings.Contains(out, "left alone") {
		t.Errorf("masked: %v: %s", err, out)
	}
	if err := os.Remove(s.unit()); err != nil {
		t.Fatal(err)
	}
	put(t, s.unit(), own)
	s.systemctl(t, "daemon-reload")
}

func serviceUninstall(t *testing.T, s *systemd) {
	if out, err := s.service("uninstall"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if exists(s.unit()) || s.show(t, "ActiveState") == "active" || s.show(t, "LoadState") != "not-found" {
		t.Errorf("something is left: %s, %s", s.show(t, "ActiveState"), s.show(t, "LoadState"))
	}
	if exists(filepath.Join(s.home, ".config/systemd/user/default.target.wants/rig-bridge.service")) {
		t.Error("the link that starts it is left")
	}
	if !exists(filepath.Join(s.state, "store")) {
		t.Error("the state is gone")
	}
	if c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))); err == nil {
		c.Close()
		t.Error("somebody still answers")
	}
}
