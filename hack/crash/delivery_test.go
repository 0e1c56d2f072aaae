package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/rigbridge/rigbridge/api/failpoint"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// deliverySteps are steps between a handoff and the record of its delivery, the outcomes that a death there may
// leave, and how often the person may have been told in all.
var deliverySteps = []struct {
	name     string
	outcomes string
	shown    string
}{
	{failpoint.HandoffMade, "Sent Unknown", "0 1"},
	{failpoint.RunFinished, "Sent Unknown", "0 1"},
	{failpoint.Sending, "Unknown", "0"},
	{failpoint.SendingDurable, "Unknown", "0"},
	{failpoint.Sent, "Unknown", "1"},
}

// TestDeliveryDiesAtEachStep kills the daemon at each step of telling the person, on a real bus. It is told once,
// or it is said that nobody knows; never twice.
func TestDeliveryDiesAtEachStep(t *testing.T) {
	for _, step := range deliverySteps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			desk := newDesk(t)
			h := newHouse(t)
			client := h.begin(t)
			opened := client.OK(t, "workspace_open", daemon.Args{"cwd": realDir(t)})
			request(t, h, "PATCH", "projects/"+opened.String("project_id"), `{"spec":{"notifications":{"desktop":true}}}`)
			h.kill(t)

			client = h.begin(t, "DBUS_SESSION_BUS_ADDRESS="+desk.address, "RIG_BRIDGE_FAILPOINT="+step.name)
			args := daemon.Args{"workspace_id": opened.String("workspace_id"), "request_key": "k", "reason": "completed", "summary": "Done"}
			_, _ = client.Call(t.Context(), "work_handoff", args) // answered or not
			h.dies(t)

			client = h.begin(t, "DBUS_SESSION_BUS_ADDRESS="+desk.address)
			handoff := client.OK(t, "work_handoff", args).String("handoff_id")
			var phase string
			eventually(t, "the delivery is settled", func() bool {
				phase = delivery(t, h, handoff)
				return phase != "" && phase != "Pending" && phase != "Sending"
			})
			h.kill(t)
			h.begin(t, "DBUS_SESSION_BUS_ADDRESS="+desk.address)
			shown := fmt.Sprint(desk.shown.Load())
			if now := delivery(t, h, handoff); now != phase || !strings.Contains(step.outcomes, phase) || !strings.Contains(step.shown, shown) || phase == "Sent" && shown != "1" {
				t.Errorf("died at %s: delivery %s, after one more restart %s; shown %s times", step.name, phase, now, shown)
			}
		})
	}
}

func delivery(t *testing.T, h *house, handoff string) string {
	t.Helper()
	var got struct {
		Status struct{ Delivery struct{ Phase string } }
	}
	if err := json.Unmarshal(request(t, h, "GET", "handoffs/"+handoff, ""), &got); err != nil {
		t.Fatal(err)
	}
	return got.Status.Delivery.Phase
}

// request sends a request to the API.
func request(t *testing.T, h *house, method, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.daemon.Base()+"/apis/rigbridge.dev/v1alpha1/namespaces/default/"+path, bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", h.daemon.Authorization())
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, b, err)
	}
	return b
}

// TestNotificationOfAWholeDaemon has what the person is shown, on a real bus: of the projects that want it, with the
// way to the thread; and what waited when the daemon died is shown by the next one.
func TestNotificationOfAWholeDaemon(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	h := newHouse(t)
	client := h.begin(t, "DBUS_SESSION_BUS_ADDRESS="+desk.address)
	dir := realDir(t)
	loud := client.OK(t, "workspace_open", daemon.Args{"cwd": dir, "title": "Fix <b> the parser"})
	quiet := client.OK(t, "workspace_open", daemon.Args{"cwd": realDir(t)})
	request(t, h, "PATCH", "projects/"+loud.String("project_id"), `{"spec":{"notifications":{"desktop":true}}}`)
	handOff := func(in daemon.Result, key string) string {
		r := client.OK(t, "work_handoff", daemon.Args{"workspace_id": in.String("workspace_id"), "request_key": key, "reason": "needs_input", "summary": "Which " + key + " & how?"})
		if told, _ := r.Structured["handoff"].(map[string]any); told["desktopDelivery"] != "pending" && told["desktopDelivery"] != "disabled" {
			t.Errorf("the handoff is told as %v", told)
		}
		return r.String("handoff_id")
	}
	is := func(handoff, want string) {
		t.Helper()
		eventually(t, "the delivery is "+want, func() bool { return delivery(t, h, handoff) == want })
	}
	is(handOff(quiet, "one"), "Disabled")
	is(handOff(loud, "one"), "Sent")
	first := <-desk.notes
	if first.title != filepath.Base(dir)+" · Your turn" || first.body != "Fix <b> the parser: Which one & how?" || len(first.actions) != 2 || first.actions[0] != "default" {
		t.Errorf("the person is shown %+v", first)
	}

	h.kill(t)
	client = h.begin(t, "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(dir, "nowhere"))
	client.OK(t, "run_start", daemon.Args{"workspace_id": loud.String("workspace_id"), "request_key": "second"})
	is(handOff(loud, "two"), "Failed")
	client.OK(t, "run_start", daemon.Args{"workspace_id": loud.String("workspace_id"), "request_key": "third"})
	h.kill(t)
	client = h.begin(t, "DBUS_SESSION_BUS_ADDRESS="+desk.address, "RIG_BRIDGE_FAILPOINT="+failpoint.HandoffMade)
	args := daemon.Args{"workspace_id": loud.String("workspace_id"), "request_key": "three", "reason": "completed", "summary": "Done"}
	_, _ = client.Call(t.Context(), "work_handoff", args) // not answered
	h.dies(t)
	client = h.begin(t, "DBUS_SESSION_BUS_ADDRESS="+desk.address)
	third := client.OK(t, "work_handoff", args).String("handoff_id")
	eventually(t, "the delivery is settled", func() bool {
		phase := delivery(t, h, third)
		return phase == "Sent" || phase == "Unknown"
	})
	if n := desk.shown.Load(); n > 2 {
		t.Errorf("the person was shown %d notifications", n)
	}
}

// desk is a desktop session: a bus of its own with a small notification service, which outlives the daemon.
type desk struct {
	address string
	shown   atomic.Int32
	notes   chan note // the first few
}

type note struct {
	title, body string
	actions     []string
}

// GetCapabilities is what a plain desktop offers.
func (d *desk) GetCapabilities() ([]string, *dbus.Error) { return []string{"body", "actions"}, nil }

// Notify counts.
func (d *desk) Notify(_ string, _ uint32, _, title, body string, actions []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	select {
	case d.notes <- note{title, body, actions}:
	default:
	}
	return uint32(d.shown.Add(1)), nil
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("needs dbus-daemon")
	}
	dir := t.TempDir()
	config, socket := filepath.Join(dir, "bus.conf"), filepath.Join(dir, "bus")
	put(t, config, `<busconfig><type>session</type><listen>unix:path=`+socket+`</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`)
	cmd := exec.Command(path, "--config-file="+config, "--nofork")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	d := &desk{address: "unix:path=" + socket, notes: make(chan note, 8)}
	var bus *dbus.Conn
	eventually(t, "the bus is up", func() bool {
		bus, err = dbus.Connect(d.address)
		return err == nil
	})
	t.Cleanup(func() { _ = bus.Close() })
	if err := bus.Export(d, "/org/freedesktop/Notifications", "org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.RequestName("org.freedesktop.Notifications", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	return d
}
