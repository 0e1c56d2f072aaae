package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestSessions checks that each version with a handshake gets its session, that no call needs one, and
// that sessions and workspaces outlive the daemon.
func TestSessions(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client, plain := d.Client(), d.Client()
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		raw, err := client.Initialize(bounded(t, time.Minute), version)
		if err != nil || !strings.Contains(string(raw), `"protocolVersion":"`+version+`"`) {
			t.Fatalf("%s: %v %s", version, err, raw)
		}
		if client.Session() == "" {
			t.Errorf("%s: no session id", version)
		}
	}
	read := daemon.Args{"workspace_id": client.Open(t, gitProject(t)), "path": "README.md"}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	d.Revive(t)
	client.OK(t, "read", read)
	plain.OK(t, "read", read)
}

// TestEndedSession ends a session: its id is refused, a new handshake is not, and the workspace lives.
func TestEndedSession(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	client := d.Client()
	if _, err := client.Initialize(bounded(t, time.Minute), "2025-06-18"); err != nil {
		t.Fatal(err)
	}
	ended := client.Session()
	read := daemon.Args{"workspace_id": client.Open(t, gitProject(t)), "path": "README.md"}
	header := http.Header{"Authorization": {d.Authorization()}, "Mcp-Session-Id": {ended}}
	if status, body := request(t, http.MethodDelete, d.URL(), header); status/100 != 2 {
		t.Errorf("DELETE: HTTP %d %s", status, body)
	}
	_, err := client.Call(bounded(t, time.Minute), "read", read)
	var rpc *daemon.RPCError
	if !errors.As(err, &rpc) || rpc.Status != http.StatusNotFound {
		t.Errorf("a call in the ended session: %v", err)
	}
	// A client that has not noticed starts anew with the old id.
	status, answer, body := post(t, d.Client(), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`,
		http.Header{"Mcp-Session-Id": {ended}})
	if fresh := answer.Get("Mcp-Session-Id"); status != http.StatusOK || fresh == "" || fresh == ended {
		t.Errorf("initialize with an old id: HTTP %d, id %q; %s", status, fresh, body)
	}
	client = d.Client()
	client.OK(t, "read", read)
}
