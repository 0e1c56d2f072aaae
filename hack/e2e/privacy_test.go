package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestNothingPrivateIsKept plants a marker in everything that must never reach the disk: commands, file
// contents, edits, patterns, output, the environment. It then looks for it in the state directory, in the
// log and in the metrics, after a kill (the logs of the store as they are) and after an orderly stop.
func TestNothingPrivateIsKept(t *testing.T) {
	marker := "marker" + strings.ReplaceAll(uuid.NewString(), "-", "")
	d := daemon.Start(t, daemon.Options{Env: []string{"PRIVATE=" + marker}})
	client := d.Client()
	dir := realDir(t)
	put(t, filepath.Join(dir, "secret.txt"), "before\n"+marker+"\n")
	workspace := client.Open(t, dir)
	plant(t, client, workspace, dir, marker)

	status, metrics := request(t, "GET", d.Base()+"/metrics", map[string][]string{"Authorization": {d.Authorization()}})
	if status != 200 || strings.Contains(metrics, marker) {
		t.Errorf("metrics: HTTP %d, or they hold the marker", status)
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	search(t, d, workspace, marker)
	d.Revive(t)
	if code, err := d.Stop(); code != 0 || err != nil {
		t.Fatalf("stop: %d, %v", code, err)
	}
	search(t, d, workspace, marker)
	checkModes(t, d.StateDir())
}

func plant(t *testing.T, client *daemon.Client, workspace, dir, marker string) {
	t.Helper()
	in := func(args daemon.Args) daemon.Args {
		return copyArgs(args, daemon.Args{"workspace_id": workspace})
	}
	keyed := func(args daemon.Args) daemon.Args {
		return copyArgs(in(args), daemon.Args{"request_key": daemon.Key()})
	}
	r := client.OK(t, "read", in(daemon.Args{"path": "secret.txt"}))
	if !strings.Contains(r.Text(), marker) {
		t.Fatal("the marker was not planted")
	}
	client.OK(t, "grep", in(daemon.Args{"pattern": marker}))
	client.OK(t, "find", in(daemon.Args{"pattern": "*" + marker + "*"}))
	client.OK(t, "write", keyed(daemon.Args{"path": "new.txt", "content": marker, "expected_revision": "missing"}))
	client.OK(t, "edit", keyed(daemon.Args{"path": "secret.txt", "expected_revision": r.String("revision"),
		"edits": []daemon.Args{{"oldText": "before", "newText": "after " + marker}}}))
	client.Fails(t, "EXECUTION_FAILED", "edit", keyed(daemon.Args{"path": "secret.txt", "expected_revision": revision(t, filepath.Join(dir, "secret.txt")),
		"edits": []daemon.Args{{"oldText": "absent " + marker, "newText": "x"}}}))
	client.Fails(t, "REVISION_CONFLICT", "write", keyed(daemon.Args{"path": "secret.txt", "content": marker, "expected_revision": "missing"}))
	client.OK(t, "bash", keyed(daemon.Args{"command": "echo " + marker}))
	client.OK(t, "bash", keyed(daemon.Args{"command": "printenv PRIVATE"}))
	client.Fails(t, "COMMAND_FAILED", "bash", keyed(daemon.Args{"command": "echo " + marker + " >&2; exit 7"}))
	client.Fails(t, "COMMAND_TIMEOUT", "bash", keyed(daemon.Args{"command": "echo " + marker + "; sleep 60", "timeout": 1}))
	client.OK(t, "bash", keyed(daemon.Args{"command": "(sleep 20; echo " + marker + ") > /dev/null & echo left"}))
	client.OK(t, "bash", keyed(daemon.Args{"command": "yes " + marker + " | head -n 5000"})) // to a file in the outputs folder
	client.Must(t, "bash", keyed(daemon.Args{"command": "echo x", "surplus": marker}))
}

// search looks for the marker, plain and encoded, in all files but the outputs folder, and for something
// that must be there, so that a search that finds nothing at all fails.
func search(t *testing.T, d *daemon.Daemon, present, marker string) {
	t.Helper()
	forbidden := map[string][]byte{
		"plain":       []byte(marker),
		"hexadecimal": []byte(hex.EncodeToString([]byte(marker))),
		"base64":      []byte(base64.RawStdEncoding.EncodeToString([]byte(marker))[:40]),
	}
	found := false
	walk(t, d.StateDir(), func(path string, b []byte) {
		for form, bad := range forbidden {
			if bytes.Contains(b, bad) {
				t.Errorf("%s holds the marker (%s)", path, form)
			}
		}
		found = found || bytes.Contains(b, []byte(present))
	})
	if !found {
		t.Error("not even the workspace's name is in the state directory: the search is blind")
	}
	if strings.Contains(d.Log(), marker) {
		t.Error("the log holds the marker")
	}
}

func walk(t *testing.T, dir string, visit func(path string, b []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "outputs":
			return filepath.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		visit(path, b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkModes demands that nobody else can enter the state directory, and that each full output is the
// owner's alone wherever it may be copied with its mode.
func checkModes(t *testing.T, state string) {
	t.Helper()
	outputs, err := filepath.Glob(filepath.Join(state, "outputs", "*"))
	if err != nil || len(outputs) == 0 {
		t.Errorf("no full output was kept in the outputs folder: %v", err)
	}
	for _, path := range append(outputs, state, filepath.Join(state, "outputs")) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
}
