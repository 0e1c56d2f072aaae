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
	client.Header = http.Header{"Mcp-Session-Id": {ended}} // as a client does that has not noticed
	if _, err := client.Initialize(bounded(t, time.Minute), "2025-06-18"); err != nil {
		t.Errorf("initialize with an old id: %v", err)
	}
	client.Header = nil
	if client.Session() == ended {
		t.Error("the ended session was given again")
	}
	client.OK(t, "read", read)
}
