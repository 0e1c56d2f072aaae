package handoff

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// patience is how long a desktop may take for each of the two calls.
const patience = 5 * time.Second

// Desktop shows notifications through the session bus of the account (freedesktop.org, Desktop Notifications
// Specification 1.3). The bus is looked for at each notification, since a desktop session may come and go while
// the daemon runs. The zero value is ready.
type Desktop struct {
	mu      sync.Mutex
	waiting []*dbus.Conn // for the person to ask for more, oldest first
}

const (
	notifications = "org.freedesktop.Notifications"
	expireDefault = int32(-1)
)

// Notify shows a notification. Where the desktop has actions, the person can open what Open says from it.
func (d *Desktop) Notify(ctx context.Context, n Notification) error {
	address, err := sessionBus()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	bus, err := connect(ctx, address)
	if err != nil {
		return fmt.Errorf("the desktop session cannot be reached: %w", err)
	}
	keep := false
	defer func() {
		if !keep {
			_ = bus.Close() // nothing is under way on it
		}
	}()
	service := bus.Object(notifications, "/org/freedesktop/Notifications")
	var capabilities []string
	if err := call(ctx, service, "GetCapabilities").Store(&capabilities); err != nil {
		return explain(err)
	}
	actions, signals := []string{}, chan *dbus.Signal(nil)
	if n.Open != nil && slices.Contains(capabilities, "actions") {
		if signals, err = listen(ctx, bus); err == nil {
			actions = []string{"default", "Open"} // a click on the notification itself; some show a button as well
		}
	}
	hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(byte(1))}
	var id uint32
	err = call(ctx, service, "Notify", "Rig Bridge", uint32(0), "", n.Title, body(n, capabilities), actions, hints, expireDefault).Store(&id)
	if err == nil && len(actions) > 0 {
		keep = true
		d.keep(bus)
		go d.await(bus, signals, id, n.Open)
	}
	return explain(err)
}

// connect is a connection that outlives ctx, which bounds the making of it.
func connect(ctx context.Context, address string) (*dbus.Conn, error) {
	bus, err := dbus.Dial(address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = bus.Close() }) // ends a wait for an answer
	if err = bus.Auth(nil); err == nil {
		err = bus.Hello()
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = bus.Close()
		return nil, err
	}
	return bus, nil
}

func call(ctx context.Context, service dbus.BusObject, method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return service.CallWithContext(ctx, notifications+"."+method, 0, args...)
}

// body is the text as the desktop understands it: with markup it must be escaped, and then may hold a link.
func body(n Notification, capabilities []string) string {
	if !slices.Contains(capabilities, "body-markup") {
		return n.Body
	}
	text := html.EscapeString(n.Body)
	if n.Link != "" && slices.Contains(capabilities, "body-hyperlinks") {
		text += fmt.Sprintf("\n<a href=\"%s\">Open the thread</a>", html.EscapeString(n.Link))
	}
	return text
}

// sessionBus finds the account's session bus. Nothing is started to get one.
func sessionBus() (string, error) {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return address, nil
	}
	path := fmt.Sprintf("/run/user/%d/bus", os.Getuid())
	if _, err := os.Stat(path); err != nil {
		return "", errors.New("there is no desktop session of this account")
	}
	return "unix:path=" + path, nil
}

func explain(err error) error {
	var refused dbus.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the desktop did not answer within %s", patience)
	case errors.As(err, &refused) && refused.Name == "org.freedesktop.DBus.Error.ServiceUnknown":
		return errors.New("the desktop session shows no notifications")
	}
	return fmt.Errorf("the desktop refused the notification: %w", err)
}
