package main

import (
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// Deleting a project or a thread takes what belongs to it along, as kubectl asks for it, and never a receipt.
func TestKubectlDelete(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	k := newKubectl(t, d)
	c := d.Client()
	work := func() (opened daemon.Result, write daemon.Args) {
		opened = c.OK(t, "workspace_open", daemon.Args{"cwd": t.TempDir()})
		ws := opened.String("workspace_id")
		write = daemon.Args{"workspace_id": ws, "request_key": daemon.Key(), "path": "a", "content": "x", "expected_revision": "missing"}
		c.OK(t, "write", write)
		c.OK(t, "work_handoff", daemon.Args{"workspace_id": ws, "request_key": daemon.Key(), "reason": "completed", "summary": "done"})
		return opened, write
	}
	none := func(what string) {
		t.Helper()
		for _, kind := range strings.Split(what, ",") {
			k.eventually(t, []string{"get", kind, "-o", "name"}, `\A\z`)
		}
	}

	opened, write := work()
	k.run(t, "delete", "project", opened.String("project_id"), "--cascade=foreground", "--timeout=60s")
	if left := k.run(t, "get", "threads,ws,runs,handoffs", "-o", "name"); left != "" {
		t.Errorf("when a foreground deletion is over these are left:\n%s", left)
	}
	if again := c.OK(t, "write", write); !again.Replayed() {
		t.Errorf("the receipt is gone with its project: %s", again.Raw)
	}

	opened, _ = work()
	k.run(t, "delete", "thread", opened.String("thread_id"), "--timeout=60s")
	none("threads,ws,runs,handoffs")
	wants(t, "the project", k.run(t, "get", "project", opened.String("project_id"), "-o", "name"), opened.String("project_id"))
	c.Fails(t, "THREAD_NOT_FOUND", "workspace_open", daemon.Args{"thread_id": opened.String("thread_id")})

	opened, _ = work()
	k.run(t, "delete", "thread", opened.String("thread_id"), "--cascade=orphan", "--timeout=60s")
	wants(t, "the orphans", k.run(t, "get", "ws,runs,handoffs", "-o", "name"), "workspace", "run", "handoff")
	if refs := k.run(t, "get", "ws,runs,handoffs", "-o", "jsonpath={.items[*].metadata.ownerReferences}"); strings.TrimSpace(refs) != "" {
		t.Errorf("orphans with owners: %s", refs)
	}
}
