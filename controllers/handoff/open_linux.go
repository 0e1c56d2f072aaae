package handoff

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	// maxWaiting is the number of notifications that are listened to at once; beyond it the oldest are only shown.
	maxWaiting = 16
	// maxWait is how long one is listened to.
	maxWait = 24 * time.Hour
)

// listen subscribes to what the desktop tells of notifications. It comes before the notification is shown, so that
// no answer is missed.
func listen(ctx context.Context, bus *dbus.Conn) (chan *dbus.Signal, error) {
	signals := make(chan *dbus.Signal, 16)
	bus.Signal(signals)
	return signals, bus.AddMatchSignalContext(ctx, dbus.WithMatchInterface(notifications), dbus.WithMatchObjectPath("/org/freedesktop/Notifications"))
}

// keep remembers a connection that is listened to; the oldest makes room.
func (d *Desktop) keep(bus *dbus.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting = append(d.waiting, bus); len(d.waiting) > maxWaiting {
		_ = d.waiting[0].Close() // ends its await
		d.waiting = d.waiting[1:]
	}
}

// await opens what the person asks for, and ends when the notification is closed.
func (d *Desktop) await(bus *dbus.Conn, signals <-chan *dbus.Signal, id uint32, address func() string) {
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.waiting = slices.DeleteFunc(d.waiting, func(b *dbus.Conn) bool { return b == bus })
		_ = bus.Close()
	}()
	over, token := time.After(maxWait), ""
	for {
		select {
		case <-over:
			return
		case s, connected := <-signals:
			if !connected {
				return
			}
			var of uint32
			var text string
			if dbus.Store(s.Body[:min(len(s.Body), 1)], &of) != nil || of != id {
				continue // of somebody else's notification
			}
			switch s.Name {
			case notifications + ".ActivationToken":
				_ = dbus.Store(s.Body, &of, &token) // without it the window may stay in the background
			case notifications + ".ActionInvoked":
				if dbus.Store(s.Body, &of, &text) == nil && text == "default" {
					openAddress(bus, address(), token)
				}
			case notifications + ".NotificationClosed":
				return
			}
		}
	}
}

// openAddress shows an address in the person's browser, through the desktop portal (org.freedesktop.portal.OpenURI)
// or else by xdg-open. That nothing opens, the person sees: the link stands in the notification and in rigctl.
func openAddress(bus *dbus.Conn, address, token string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	options := map[string]dbus.Variant{}
	if token != "" {
		options["activation_token"] = dbus.MakeVariant(token)
	}
	portal := bus.Object("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop")
	if portal.CallWithContext(ctx, "org.freedesktop.portal.OpenURI.OpenURI", 0, "", address, options).Err == nil {
		return
	}
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return
	}
	cmd := exec.Command(path, address)
	if token != "" {
		cmd.Env = append(cmd.Environ(), fmt.Sprintf("XDG_ACTIVATION_TOKEN=%s", token))
	}
	if cmd.Start() == nil {
		_ = cmd.Wait() // how it ended is the desktop's affair
	}
}
