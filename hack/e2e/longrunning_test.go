package e2e

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestLongCommand lets a command outlast the call that started it, the client, and at last the daemon.
func TestLongCommand(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	dir := realDir(t)
	first := d.Client()
	workspace := first.Open(t, dir)
	args := daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "wait_seconds": 1,
		"command": "echo begin; sleep 4; echo end; echo once >> log; exit 5"}
	running := first.OK(t, "bash", args)
	if running.String("status") != "running" || !strings.Contains(running.Text(), "begin") || running.String("operation_id") == "" {
		t.Fatalf("not an answer about a running command: %s", running.Raw)
	}
	second := d.Client()
	byKey := daemon.Args{"workspace_id": workspace, "request_key": args["request_key"], "cursor": running.Structured["cursor"]}
	ended := second.Must(t, "operation_wait", byKey)
	if ended.Structured["exit_code"] != 5.0 || !strings.Contains(ended.Text(), "end") || strings.Contains(ended.Text(), "begin") {
		t.Errorf("after the cursor: %s", ended.Raw)
	}
	whole := second.Fails(t, "COMMAND_FAILED", "bash", args)
	if whole.Structured["exit_code"] != 5.0 || !strings.HasPrefix(whole.Text(), "begin\nend\n") {
		t.Errorf("the whole result: %s", whole.Raw)
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	d.Revive(t)
	byID := daemon.Args{"workspace_id": workspace, "operation_id": running.String("operation_id")}
	if r := second.Must(t, "operation_wait", byID); r.Structured["exit_code"] != 5.0 {
		t.Errorf("after a restart: %s", r.Raw)
	}
	if got := text(t, filepath.Join(dir, "log")); got != "once\n" {
		t.Errorf("the command ran %d times", strings.Count(got, "once"))
	}
}

// TestCancel stops a command that ignores SIGTERM, with its children; asking twice does no harm.
func TestCancel(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	dir := realDir(t)
	args := daemon.Args{"workspace_id": client.Open(t, dir), "request_key": daemon.Key(), "wait_seconds": 1,
		"command": "trap '' TERM; (while true; do date +%s%N > beat; sleep 0.1; done) & while true; do sleep 0.1; done"}
	client.OK(t, "bash", args)
	named := daemon.Args{"workspace_id": args["workspace_id"], "request_key": args["request_key"]}
	for range 2 {
		if r := client.Must(t, "operation_cancel", named); r.String("status") == "running" {
			t.Errorf("it still runs: %s", r.Raw)
		}
	}
	beat := text(t, filepath.Join(dir, "beat"))
	time.Sleep(500 * time.Millisecond)
	if text(t, filepath.Join(dir, "beat")) != beat {
		t.Error("a child lives on")
	}
	client.Fails(t, "COMMAND_CANCELLED", "bash", args)
}

// TestProgress asks for progress and gets it: only its own, only upwards, and before the result.
func TestProgress(t *testing.T) {
	d := daemon.Start(t, daemon.Options{})
	workspace := d.Client().Open(t, realDir(t))
	var wg sync.WaitGroup
	for _, token := range []string{"one", "two", "three"} {
		wg.Go(func() {
			client := d.Client()
			var seen []float64
			client.OnNotification = func(method string, params json.RawMessage) {
				var p struct {
					ProgressToken string
					Progress      float64
				}
				if err := json.Unmarshal(params, &p); err != nil || method != "notifications/progress" || p.ProgressToken != token {
					t.Errorf("caller %s got %s %s (%v)", token, method, params, err)
				}
				seen = append(seen, p.Progress)
			}
			r, err := client.CallWith(bounded(t, time.Minute), map[string]any{"name": "bash", "_meta": map[string]any{"progressToken": token},
				"arguments": daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "command": "for i in $(seq 30); do echo " + token + "; sleep 0.1; done"}})
			if err != nil || r.Text() != strings.Repeat(token+"\n", 30) {
				t.Errorf("%v %s", err, r.Text())
			}
			if len(seen) == 0 {
				t.Error("no progress")
			}
			for i := 1; i < len(seen); i++ {
				if seen[i] <= seen[i-1] {
					t.Errorf("progress went from %v to %v", seen[i-1], seen[i])
				}
			}
		})
	}
	wg.Wait()
}

// TestSilence waits for a command that says nothing: the connection is kept alive by comments for clients
// that accept an event stream.
func TestSilence(t *testing.T) {
	client := daemon.Start(t, daemon.Options{}).Client()
	body := encode(t, map[string]any{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": map[string]any{"name": "bash",
		"arguments": daemon.Args{"workspace_id": client.Open(t, realDir(t)), "request_key": daemon.Key(), "command": "sleep 14; echo awake"}}})
	resp, err := client.Post(bounded(t, time.Minute), []byte(body), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	comments, result := 0, ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") {
			comments++
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			result += data
		}
	}
	if comments == 0 || !strings.Contains(result, "awake") {
		t.Errorf("%d comments, result %q", comments, result)
	}
}
