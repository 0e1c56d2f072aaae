package handoff

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// sessionBusDaemon starts a bus of the test's own.
func sessionBusDaemon(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("needs dbus-daemon")
	}
	config := filepath.Join(t.TempDir(), "bus.conf")
	if err := os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>unix:dir=`+t.TempDir()+`</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config-file="+config, "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// service is a small notification service.
type service struct {
	capabilities []string
	refusal      *dbus.Error
	silent       chan struct{} // if set, Notify does not answer before it is closed
	shown        chan []string
	actions      []string // of the last notification
	bus          *dbus.Conn
}

// tell sends a signal about notification 7, as a person's click does.
func (s *service) tell(t *testing.T, name string, values ...any) {
	t.Helper()
	if err := s.bus.Emit("/org/freedesktop/Notifications", notifications+"."+name, values...); err != nil {
		t.Fatal(err)
	}
}

// portal is a small desktop portal.
type portal struct{ opened chan string }

func (p *portal) OpenURI(_, address string, options map[string]dbus.Variant) (dbus.ObjectPath, *dbus.Error) {
	if token, ok := options["activation_token"]; ok {
		address += " " + token.Value().(string)
	}
	p.opened <- address
	return "/request", nil
}

func (s *service) GetCapabilities() ([]string, *dbus.Error) { return s.capabilities, nil }

func (s *service) Notify(app string, _ uint32, _, title, body string, actions []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	if s.silent != nil {
		<-s.silent
	}
	if s.refusal != nil {
		return 0, s.refusal
	}
	s.actions = actions
	s.shown <- []string{app, title, body}
	return 7, nil
}

func (s *service) serve(t *testing.T, address string) {
	t.Helper()
	bus, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	s.bus = bus
	if err := bus.Export(s, "/org/freedesktop/Notifications", notifications); err != nil {
		t.Fatal(err)
	}
	reply, err := bus.RequestName(notifications, dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
}

var example = Notification{Title: "demo · Your turn", Body: "Fix <b> & co: done", Link: "http://127.0.0.1:1/#thread=t&x"}

func TestDesktopShows(t *testing.T) {
	for name, c := range map[string]struct {
		capabilities []string
		body         string
	}{
		"plain text":        {[]string{"body"}, "Fix <b> & co: done"},
		"markup":            {[]string{"body", "body-markup"}, "Fix &lt;b&gt; &amp; co: done"},
		"markup with links": {[]string{"body-markup", "body-hyperlinks"}, "Fix &lt;b&gt; &amp; co: done\n<a href=\"http://127.0.0.1:1/#thread=t&amp;x\">Open the thread</a>"},
	} {
		t.Run(name, func(t *testing.T) {
			address := sessionBusDaemon(t)
			t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
			s := &service{capabilities: c.capabilities, shown: make(chan []string, 1)}
			s.serve(t, address)
			if err := new(Desktop).Notify(t.Context(), example); err != nil {
				t.Fatal(err)
			}
			if got, want := <-s.shown, []string{"Rig Bridge", "demo · Your turn", c.body}; !reflect.DeepEqual(got, want) {
				t.Errorf("shown: %q, want %q", got, want)
			}
		})
	}
}

func TestDesktopThatCannot(t *testing.T) {
	address := sessionBusDaemon(t)
	fails := func(what, want string) {
		t.Helper()
		if err := new(Desktop).Notify(t.Context(), example); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", what, err, want)
		}
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	fails("nobody shows notifications", "shows no notifications")
	s := &service{refusal: dbus.NewError("org.example.Refused", []any{"too many"})}
	s.serve(t, address)
	fails("the service refuses", "refused the notification: too many")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	fails("no bus at the address", "cannot be reached")
}

// A desktop that does not answer costs no more than the caller's patience.
func TestDesktopThatIsSilent(t *testing.T) {
	address := sessionBusDaemon(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	s := &service{silent: make(chan struct{})}
	s.serve(t, address)
	defer close(s.silent)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- new(Desktop).Notify(ctx, example) }()
	cancel()
	if err := <-done; err == nil {
		t.Error("a silent desktop counts as one that has shown it")
	}
}

// A click on the notification opens the dashboard at the thread, as often as it is clicked, until it is closed.
func TestDesktopOpens(t *testing.T) {
	address := sessionBusDaemon(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	s := &service{capabilities: []string{"body", "actions"}, shown: make(chan []string, 1)}
	s.serve(t, address)
	p := &portal{opened: make(chan string, 8)}
	if err := s.bus.Export(p, "/org/freedesktop/portal/desktop", "org.freedesktop.portal.OpenURI"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bus.RequestName("org.freedesktop.portal.Desktop", dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	var made atomic.Int32
	n := example
	n.Open = func() string { return fmt.Sprintf("http://127.0.0.1:1/login#code=%d", made.Add(1)) }
	d := &Desktop{}
	if err := d.Notify(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	<-s.shown
	if !reflect.DeepEqual(s.actions, []string{"default", "Open"}) {
		t.Errorf("actions: %q", s.actions)
	}
	if made.Load() != 0 {
		t.Error("an address that logs in was made before anybody asked")
	}
	s.tell(t, "ActionInvoked", uint32(8), "default") // somebody else's
	s.tell(t, "ActivationToken", uint32(7), "token")
	s.tell(t, "ActionInvoked", uint32(7), "default")
	if got := <-p.opened; got != "http://127.0.0.1:1/login#code=1 token" {
		t.Errorf("opened: %s", got)
	}
	s.tell(t, "ActionInvoked", uint32(7), "default")
	if got := <-p.opened; got != "http://127.0.0.1:1/login#code=2 token" {
		t.Errorf("opened: %s", got)
	}
	s.tell(t, "NotificationClosed", uint32(7), uint32(2))
	for d.listening() > 0 {
		time.Sleep(5 * time.Millisecond)
	}
}

// What nobody closes does not pile up.
func TestDesktopListensToFew(t *testing.T) {
	address := sessionBusDaemon(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	s := &service{capabilities: []string{"actions"}, shown: make(chan []string, 1)}
	s.serve(t, address)
	n, d := example, &Desktop{}
	n.Open = func() string { return "" }
	for range maxWaiting + 3 {
		if err := d.Notify(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		<-s.shown
	}
	if got := d.listening(); got != maxWaiting {
		t.Errorf("%d notifications are listened to", got)
	}
}

func (d *Desktop) listening() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}
