package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestOddClients serves clients that keep to the protocol less than they should.
func TestOddClients(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	for name, run := range map[string]func(*room){
		"never sends a session id":                      withoutSession,
		"initializes before each call, deletes nothing": initializesAlways,
		"sends null for what it leaves out":             sendsNull,
		"cancels what nobody runs":                      cancelsUnknown,
		"sends no Accept and no version":                sendsLittle,
	} {
		t.Run(name, func(t *testing.T) { run(newRoom(t, d)) })
	}
}

// withoutSession: the tool plane of a big host calls tools without the session that it was given.
func withoutSession(k *room) {
	if _, err := k.client.Initialize(bounded(k, time.Minute), "2025-06-18"); err != nil {
		k.Fatal(err)
	}
	k.put("f", "x\n")
	body := encode(k, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": daemon.Args{"name": "read", "arguments": daemon.Args{"workspace_id": k.workspace, "path": "f"}}})
	status, _, answer := post(k.T, k.client, body, http.Header{"Mcp-Session-Id": nil})
	if status != http.StatusOK || !strings.Contains(string(answer), `"output":"x\n"`) {
		k.Errorf("HTTP %d %s", status, answer)
	}
}

func initializesAlways(k *room) {
	k.put("f", "x\n")
	sessions := map[string]bool{}
	for range 200 {
		if _, err := k.client.Initialize(bounded(k, time.Minute), "2025-06-18"); err != nil {
			k.Fatal(err)
		}
		sessions[k.client.Session()] = true
		if r := k.call("read", daemon.Args{"path": "f"}); r.Text() != "x\n" {
			k.Fatalf("%s", r.Text())
		}
	}
	if len(sessions) != 200 {
		k.Errorf("%d sessions", len(sessions))
	}
}

// sendsNull gives null for each optional argument that a tool has.
func sendsNull(k *room) {
	k.put("f.txt", "text\n")
	given := map[string]daemon.Args{
		"workspace_open": {"cwd": k.dir}, "workspace_list": {}, "read": {"path": "f.txt"}, "ls": {}, "find": {"pattern": "*"},
		"grep": {"pattern": "text"}, "bash": {"command": "true"}, "skill_info": {}, "run_start": {},
		"work_handoff": {"reason": "completed", "summary": "done"},
	}
	for _, tool := range definitions(k) {
		args, ok := given[tool.Name]
		if !ok {
			continue
		}
		var properties map[string]json.RawMessage
		if err := json.Unmarshal(tool.InputSchema["properties"], &properties); err != nil {
			k.Fatal(err)
		}
		nulls := 0
		for name := range properties {
			if _, has := args[name]; !has && name != "workspace_id" && name != "request_key" {
				args[name] = nil
				nulls++
			}
		}
		if _, has := properties["workspace_id"]; has {
			args["workspace_id"] = k.workspace
		}
		if _, has := properties["request_key"]; has {
			args["request_key"] = daemon.Key()
		}
		// A run may be active by then: that is an answer to what was asked, not to how.
		if r := k.client.Must(k, tool.Name, args); r.IsError && r.Code() != "RUN_ACTIVE" {
			k.Errorf("%s with %d nulls: %s", tool.Name, nulls, r.Text())
		}
	}
}

// cancelsUnknown cancels ids that never were, that are over, of other types and of other clients.
func cancelsUnknown(k *room) {
	ctx := bounded(k, time.Minute)
	other := k.d.Client()
	for _, c := range []*daemon.Client{k.client, other} {
		if _, err := c.Initialize(ctx, "2025-06-18"); err != nil {
			k.Fatal(err)
		}
	}
	held := make(chan daemon.Result, 1)
	args := daemon.Args{"workspace_id": k.workspace, "request_key": daemon.Key(), "command": "touch begun; sleep 2; echo whole"}
	go func() {
		raw, err := other.RequestID(ctx, 77, "tools/call", map[string]any{"name": "bash", "arguments": args})
		if err != nil {
			k.Error(err)
		}
		var r daemon.Result
		_ = json.Unmarshal(raw, &r) // the caller looks at what came
		held <- r
	}()
	eventually(k, "the command begins", func() bool { return exists(k.path("begun")) })
	for _, id := range []any{99999, 77, "77", "no such", -1, 1.5, nil, map[string]any{}, strings.Repeat("x", 10_000)} {
		if err := k.client.Notify(ctx, "notifications/cancelled", map[string]any{"requestId": id, "reason": "odd"}); err != nil {
			k.Errorf("%.20v: %v", id, err)
		}
	}
	if err := k.client.Notify(ctx, "notifications/cancelled", nil); err != nil {
		k.Errorf("without params: %v", err)
	}
	k.client.OK(k, "ls", daemon.Args{"workspace_id": k.workspace})
	if r := <-held; r.IsError || r.Text() != "whole\n" {
		k.Errorf("the other client's command: %s", r.Text())
	}
}

func sendsLittle(k *room) {
	body := encode(k, map[string]any{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": daemon.Args{"name": "ls", "arguments": daemon.Args{"workspace_id": k.workspace}}})
	for _, accept := range [][]string{nil, {"*/*"}, {"application/json"}, {"text/html"}} {
		status, header, answer := post(k.T, k.client, body, http.Header{"Accept": accept})
		if status != http.StatusOK || header.Get("Content-Type") != "application/json" || !strings.Contains(string(answer), `"id":"a"`) {
			k.Errorf("Accept %q: HTTP %d %s", accept, status, answer)
		}
	}
}

// usage is what a process holds, by its own metrics.
type usage struct{ goroutines, descriptors, heap float64 }

var metric = regexp.MustCompile(`(?m)^(go_goroutines|process_open_fds|go_gc_heap_live_bytes) (\S+)$`)

func measure(t *testing.T, d *daemon.Daemon) (u usage) {
	t.Helper()
	status, body := request(t, http.MethodGet, d.Base()+"/metrics", http.Header{"Authorization": {d.Authorization()}})
	found := metric.FindAllStringSubmatch(body, -1)
	if status != http.StatusOK || len(found) != 3 {
		t.Fatalf("metrics: HTTP %d, %d of 3", status, len(found))
	}
	for _, m := range found {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		switch m[1] {
		case "go_goroutines":
			u.goroutines = v
		case "process_open_fds":
			u.descriptors = v
		default:
			u.heap = v
		}
	}
	return u
}

// TestK4SessionsAndDroppedStreams opens sessions that nobody ends and drops streams while their calls run. Afterwards
// the daemon holds what it held before. RIG_BRIDGE_K4=full does so 20,000 and 2,000 times.
func TestK4SessionsAndDroppedStreams(t *testing.T) {
	sessions, streams := 3000, 200
	if os.Getenv("RIG_BRIDGE_K4") == "full" {
		sessions, streams = 20_000, 2000
	}
	d := daemon.Start(t, daemon.Options{})
	workspace := d.Client().Open(t, realDir(t))
	// What is remembered of clients and results is bounded; fill it first.
	openSessions(t, d, 1500)
	dropStreams(t, d, workspace, 100)
	churn(t, d, workspace)
	before := measure(t, d)
	openSessions(t, d, sessions)
	dropStreams(t, d, workspace, streams)
	var after usage
	defer func() {
		t.Logf("%d sessions, %d streams: before %+v, after %+v", sessions, streams, before, after)
		if t.Failed() {
			t.Logf("open: %s", openFiles(d.Pid()))
		}
	}()
	eventually(t, "goroutines and descriptors are back", func() bool {
		churn(t, d, workspace)
		after = measure(t, d)
		return after.goroutines <= before.goroutines+10 && after.descriptors <= before.descriptors+5 && after.heap <= before.heap+8<<20
	})
}

// openFiles tells what a process has open.
func openFiles(pid int) string {
	var targets []string
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)) // none, if it is gone
	for _, e := range entries {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())); err == nil {
			targets = append(targets, to)
		}
	}
	return strings.Join(targets, " ")
}

// churn makes garbage, so that the live heap is counted anew.
func churn(t *testing.T, d *daemon.Daemon, workspace string) {
	t.Helper()
	c := d.Client()
	for range 30 {
		c.OK(t, "find", daemon.Args{"workspace_id": workspace, "pattern": strings.Repeat("x", 500_000)})
	}
}

// openSessions initializes without ever ending a session, eight clients side by side.
func openSessions(t *testing.T, d *daemon.Daemon, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			c := d.Client()
			for range n / 8 {
				if _, err := c.Initialize(t.Context(), "2025-06-18"); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// dropStreams begins calls whose answers are streams and closes the connection once the stream has begun.
func dropStreams(t *testing.T, d *daemon.Daemon, workspace string, n int) {
	t.Helper()
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				if err := dropStream(t.Context(), d, workspace, i%2 == 0); err != nil {
					t.Errorf("stream %d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

// dropStream begins one call with progress, modern or legacy, and drops its connection with its first event. The
// command of a legacy call goes on without a reader and ends by itself.
func dropStream(ctx context.Context, d *daemon.Daemon, workspace string, modern bool) error {
	meta := map[string]any{"progressToken": 1}
	header := ""
	command := "echo x; sleep 5"
	if modern {
		meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28"
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
		header = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: bash\r\n"
		command = "echo x; sleep 600"
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "bash", "_meta": meta,
		"arguments": daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": command}}})
	if err != nil {
		return err
	}
	host := strings.TrimPrefix(d.Base(), "http://")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s",
		host, d.Authorization(), header, len(body), body)
	if err != nil {
		return err
	}
	var came []string
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			return nil
		}
		came = append(came, lines.Text())
	}
	return fmt.Errorf("the stream has no event, only %q (%v)", came, lines.Err())
}
