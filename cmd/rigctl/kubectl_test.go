package main

import (
	"context"
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

// kubectl is the ordinary kubectl with the kubeconfig that rigctl prints.
type kubectl struct {
	path, config, cache string
}

func findKubectl(t *testing.T) string {
	t.Helper()
	own := filepath.Join(daemon.Root(), ".tools", "bin", "kubectl")
	if _, err := os.Stat(own); err == nil {
		return own
	}
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("needs kubectl: hack/test builds it")
	}
	return path
}

func newKubectl(t *testing.T, d *daemon.Daemon) *kubectl {
	t.Helper()
	k := &kubectl{path: findKubectl(t), config: filepath.Join(t.TempDir(), "config"), cache: t.TempDir()}
	out, err := exec.Command("rigctl", "kubeconfig", "--state-dir", d.StateDir()).Output()
	if err != nil { // TestMain put it into PATH
		t.Fatalf("rigctl kubeconfig: %v", err)
	}
	if err := os.WriteFile(k.config, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, k.path, append([]string{"--kubeconfig", k.config, "--cache-dir", k.cache}, args...)...)
}

// run returns what kubectl says; an error fails the test.
func (k *kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := k.command(ctx, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// fails returns what kubectl complains about; success fails the test.
func (k *kubectl) fails(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := k.command(ctx, args...).CombinedOutput()
	if err == nil {
		t.Fatalf("kubectl %v succeeded:\n%s", args, out)
	}
	return string(out)
}

func wants(t *testing.T, what, got string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(got) {
			t.Errorf("%s does not match %q:\n%s", what, p, got)
		}
	}
}

func TestKubectl(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	k := newKubectl(t, d)
	client := d.Client()
	workspace := client.Open(t, t.TempDir())
	client.Fails(t, "COMMAND_FAILED", "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "exit 3"})
	operation := strings.TrimPrefix(strings.TrimSpace(k.run(t, "get", "op", "--field-selector", "spec.tool=bash", "-o", "name")), "operation.rigbridge.dev/")

	t.Run("get", func(t *testing.T) {
		wants(t, "the wide table", k.run(t, "get", "op", operation, "-o", "wide"), `^NAME +WORKSPACE +TOOL +SUCCEEDED +REASON +PHASE +ATTEMPTS +EXIT +AGE$`, `bash +False +ExitedNonZero +Failed +1 +3 `)
		wants(t, "the category", k.run(t, "get", "rig", "-o", "name"), "^workspace.rigbridge.dev/"+workspace+"$", "^project.rigbridge.dev/", "^operation.rigbridge.dev/"+operation)
		wants(t, "what is not there", k.fails(t, "get", "op", "nothing"), `NotFound.*"nothing" not found`)
		wants(t, "the paged list", k.run(t, "get", "op", "--chunk-size=1", "-o", "name"), operation)
	})
	t.Run("describe", func(t *testing.T) {
		wants(t, "describe", k.run(t, "describe", "op", operation), `^Kind: +Operation$`, `Exit Code: +3$`, `Reason: +ExitedNonZero$`)
	})
	t.Run("explain", func(t *testing.T) {
		wants(t, "an enumeration", k.run(t, "explain", "operation.spec.tool"), `^ENUM:$`, `^ +bash$`)
		wants(t, "explain", k.run(t, "explain", "operation.spec.cancel"), `<boolean>`, `asks the operation to stop`)
		wants(t, "explain", k.run(t, "explain", "ws", "--recursive"), `threadRef`, `activeOperations`)
	})
	t.Run("api-resources", func(t *testing.T) {
		wants(t, "api-resources", k.run(t, "api-resources", "--api-group=rigbridge.dev"), `^operations +op +rigbridge.dev/v1alpha1 +true +Operation$`)
	})
	t.Run("apply", k.testApply)
	t.Run("watch", func(t *testing.T) { k.testWatch(t, client, workspace) })
	t.Run("wait and delete", func(t *testing.T) {
		wants(t, "wait", k.run(t, "wait", "ws/"+workspace, "--for=condition=Ready", "--timeout=30s"), "condition met")
		wants(t, "delete", k.run(t, "delete", "ws", workspace, "--timeout=30s"), "deleted")
		wants(t, "the workspace", k.fails(t, "get", "ws", workspace), "NotFound")
		client.Fails(t, "WORKSPACE_EXPIRED", "read", daemon.Args{"workspace_id": workspace, "path": "a"})
	})
}

const projectYAML = `apiVersion: rigbridge.dev/v1alpha1
kind: Project
metadata: {name: applied, namespace: default}
spec: {root: /srv/applied, identity: "directory:/srv/applied", displayName: %s}
`

func (k *kubectl) testApply(t *testing.T) {
	file := filepath.Join(t.TempDir(), "project.yaml")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(fmt.Sprintf(projectYAML, "One"))
	wants(t, "a dry run", k.run(t, "apply", "-f", file, "--dry-run=server"), `created \(server dry run\)`)
	wants(t, "a new object", k.run(t, "apply", "-f", file), "project.rigbridge.dev/applied created")
	wants(t, "the same again", k.run(t, "apply", "-f", file), "unchanged")
	put(fmt.Sprintf(projectYAML, "Two"))
	wants(t, "a difference", k.fails(t, "diff", "-f", file), `^-  displayName: One$`, `^\+  displayName: Two$`)
	wants(t, "a change", k.run(t, "apply", "-f", file), "configured")
	put(fmt.Sprintf(projectYAML, "Mine"))
	wants(t, "a conflict", k.fails(t, "apply", "-f", file, "--server-side", "--field-manager=other"), `conflict`, `.spec.displayName`)
	wants(t, "a forced change", k.run(t, "apply", "-f", file, "--server-side", "--force-conflicts", "--field-manager=other"), "serverside-applied")
	k.run(t, "patch", "project", "applied", "--type=merge", "--patch", `{"spec":{"displayName":"Three"}}`)
	k.run(t, "patch", "project", "applied", "--type=json", "--patch", `[{"op":"add","path":"/spec/notifications","value":{"desktop":true}}]`)
	k.run(t, "label", "project", "applied", "team=red")
	wants(t, "the label", k.run(t, "get", "projects", "-l", "team=red", "--show-labels"), `^applied +Three .*team=red`)
	k.run(t, "annotate", "project", "applied", "note=x")
	wants(t, "an invalid change", k.fails(t, "patch", "project", "applied", "--type=merge", "--patch", `{"spec":{"root":"relative"}}`), `is invalid: spec.root: Invalid value: "relative"`)
	wants(t, "a change of what stays", k.fails(t, "patch", "project", "applied", "--type=merge", "--patch", `{"spec":{"identity":"git:/x"}}`), `spec.identity`)
	wants(t, "a change of status", k.run(t, "patch", "project", "applied", "--subresource=status", "--type=merge", "--patch", `{"status":{"threads":2}}`), "patched")
	put(strings.Replace(fmt.Sprintf(projectYAML, "Four"), "root:", "colour: red, root:", 1))
	wants(t, "an unknown field", k.fails(t, "apply", "-f", file), `unknown field "spec.colour"`)
	wants(t, "replace", k.fails(t, "replace", "-f", file), `unknown field "spec.colour"`)
	wants(t, "delete", k.run(t, "delete", "project", "applied"), "deleted")
}

func (k *kubectl) testWatch(t *testing.T, client *daemon.Client, workspace string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, "get", "op", "--watch", "--output-watch-events", "-o", "wide")
	out := &lines{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.until(t, ctx, `^ADDED +op-`)
	client.Fails(t, "COMMAND_FAILED", "bash", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "exit 9"})
	out.until(t, ctx, `^MODIFIED +op-.* Failed +1 +9 `)
	cancel()
	_ = cmd.Wait() // it was killed
}
