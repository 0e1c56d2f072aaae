package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// kubectl is the ordinary kubectl with a configuration for the daemon.
type kubectl struct{ path, config string }

func newKubectl(t *testing.T, d *daemon.Daemon) kubectl {
	t.Helper()
	path := filepath.Join(daemon.Root(), ".tools/bin/kubectl")
	if !exists(path) {
		found, err := exec.LookPath("kubectl")
		if err != nil {
			t.Skip("needs kubectl: hack/test builds it")
		}
		path = found
	}
	k := kubectl{path: path, config: filepath.Join(t.TempDir(), "kubeconfig")}
	put(t, k.config, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: rig
clusters: [{name: rig, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: owner, user: {token: %q}}]
contexts: [{name: rig, context: {cluster: rig, user: owner, namespace: default}}]
`, strings.Replace(d.Base(), "http://", "https://", 1), filepath.Join(d.StateDir(), "tls.crt"), strings.TrimPrefix(d.Authorization(), "Bearer ")))
	return k
}

func (k kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(bounded(t, time.Minute), k.path, append([]string{"--kubeconfig", k.config, "--cache-dir", t.TempDir()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestKubectl looks at what an assistant did, and takes part, with the ordinary kubectl.
func TestKubectl(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	k := newKubectl(t, d)
	client := d.Client()
	workspace := client.Open(t, gitProject(t))
	client.Fails(t, "COMMAND_FAILED", "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "exit 3"})

	if got := k.run(t, "get", "workspaces", "-o", "name"); got != "workspace.rigbridge.dev/"+workspace+"\n" {
		t.Errorf("workspaces: %q", got)
	}
	k.run(t, "wait", "workspace/"+workspace, "--for=condition=Ready", "--timeout=30s")
	table := k.run(t, "get", "operations", "-o", "wide")
	for _, column := range []string{"WORKSPACE", "TOOL", "SUCCEEDED", "REASON", "AGE", "EXIT", "bash", "False"} {
		if !strings.Contains(table, column) {
			t.Errorf("the table has no %s:\n%s", column, table)
		}
	}
	if got := k.run(t, "get", "operations", "-o", "jsonpath={.items[0].status.exitCode}"); got != "3" {
		t.Errorf("exit code %q", got)
	}
	if got := k.run(t, "explain", "operation.spec.cancel"); !strings.Contains(got, "<boolean>") {
		t.Errorf("explain: %s", got)
	}

	// Cancelling is a field, closing is a deletion: no side doors.
	cancelled := make(chan daemon.Result, 1)
	go func() {
		r, err := client.Call(context.Background(), "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "sleep 300"})
		if err != nil {
			t.Error(err)
		}
		cancelled <- r
	}()
	var name string
	eventually(t, "the command runs", func() bool {
		name = k.run(t, "get", "operations", "-o", `jsonpath={.items[?(@.status.phase=="Running")].metadata.name}`)
		return name != ""
	})
	k.run(t, "patch", "operation", name, "--type=merge", "--patch", `{"spec":{"cancel":true}}`)
	if r := <-cancelled; r.Code() != "COMMAND_CANCELLED" {
		t.Errorf("the cancelled command answered %s: %s", r.Code(), r.Text())
	}
	k.run(t, "delete", "workspace", workspace, "--timeout=30s")
	client.Fails(t, "WORKSPACE_EXPIRED", "read", daemon.Args{"workspace_id": workspace, "path": "README.md"})
}
