package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// shellBlocks are the fenced blocks of commands, indented ones of lists too.
var shellBlocks = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// readmeCommands is the block of commands in the README that begins so.
func readmeCommands(t testing.TB, begins string) string {
	t.Helper()
	for _, m := range shellBlocks.FindAllStringSubmatch(text(t, filepath.Join(daemon.Root(), "README.md")), -1) {
		if block := strings.TrimSpace(m[1]); strings.HasPrefix(block, begins) {
			return block
		}
	}
	t.Fatalf("the README has no commands that begin with %q", begins)
	return ""
}

// TestReadmeCommandsExist: whatever the README calls our programs with is a command with such flags.
func TestReadmeCommandsExist(t *testing.T) {
	found := 0
	for _, call := range regexp.MustCompile("`((?:rig-bridge|rigctl) [^`]+)`|(?m)^ *(?:~/\\.local/bin/)?((?:rig-bridge|rigctl) .+)$").
		FindAllStringSubmatch(text(t, filepath.Join(daemon.Root(), "README.md")), -1) {
		line, _, _ := strings.Cut(call[1]+call[2], "`")
		words := strings.Fields(regexp.MustCompile(`"?\$\(.*\)"?`).ReplaceAllString(line, "VALUE"))
		binary, err := daemon.Build(words[0])
		if err != nil {
			t.Fatal(err)
		}
		found++
		out, err := exec.Command(binary, append(words[1:len(words):len(words)], "--help")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Usage:\n  "+words[0]+" "+words[1]) && words[1] != "--help" {
			t.Errorf("%v: %v: %s", words, err, out)
		}
	}
	if found < 15 {
		t.Errorf("only %d calls were found", found)
	}
}

// TestReadmeCommands types the README's commands beside a daemon in its usual place; those of installation and removal
// are TestFreshMachine's.
func TestReadmeCommands(t *testing.T) {
	home := realDir(t)
	b := newTunnelBedOn(t, daemon.Options{Home: home, StateDir: filepath.Join(home, ".local/state/rig-bridge")})
	s := newStandIn(t, filepath.Join(home, "downloads"))
	programs := realDir(t)
	for _, name := range []string{"rig-bridge", "rigctl"} {
		path, err := daemon.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	types := func(stdin, commands string) string {
		t.Helper()
		cmd := exec.CommandContext(bounded(t, time.Minute), "bash", "-c", commands)
		cmd.Dir, cmd.Stdin = s.dir, strings.NewReader(stdin)
		cmd.Env = []string{"HOME=" + home, "PATH=" + programs + ":/usr/bin:/bin", "CONTROL_PLANE_BASE_URL=http://" + b.plane}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v: %s", commands, err, out)
		}
		return string(out)
	}
	if got := types("", readmeCommands(t, "export RIG_BRIDGE_TOKEN=")+"\necho \"Bearer $RIG_BRIDGE_TOKEN\""); strings.TrimSpace(got) != b.d.Authorization() {
		t.Error("RIG_BRIDGE_TOKEN is not the token")
	}
	for _, command := range []string{"rigctl status", "rigctl inbox", "rigctl doctor", "rigctl kubeconfig", "rigctl prune --older-than 90d", "rigctl get tunnels"} {
		types("", command)
	}
	program := text(t, s.path())
	name := "tunnel-client-vX.Y.Z-linux-amd64.zip"
	put(t, filepath.Join(s.dir, name), program)
	put(t, filepath.Join(s.dir, "SHA256SUMS.txt"), fmt.Sprintf("%064d  another.zip\n%x  %s\n", 7, sha256.Sum256([]byte(program)), name))
	types("", readmeCommands(t, "file="+name))
	in := &standIn{TB: t, dir: filepath.Join(home, ".local/bin")} // where it is now
	start := readmeCommands(t, "export CONTROL_PLANE_TUNNEL_ID=")
	types(markerKey+"\n", strings.TrimSuffix(start, "rig-bridge tunnel status"))
	eventually(t, "ready", func() bool { return b.get("chatgpt").isReady() })
	if out := types("", "rig-bridge tunnel status"); !strings.Contains(out, "ready since ") || !strings.HasSuffix(start, "rig-bridge tunnel status") {
		t.Errorf("the tunnel's status: %s", out)
	}
	b.nowhere(markerKey, filepath.Join(b.d.StateDir(), "tunnels", "chatgpt.key"))
	types("", "rig-bridge tunnel stop")
	types("", "rigctl delete tunnel chatgpt")
	if exists(filepath.Join(b.d.StateDir(), "tunnels", "chatgpt.key")) || in.alive() != 0 {
		t.Errorf("the key is kept, or %d clients run", in.alive())
	}
}
