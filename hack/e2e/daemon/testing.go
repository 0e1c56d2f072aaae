package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// Start starts a daemon for the length of a test.
func Start(t testing.TB, opts Options) *Daemon {
	t.Helper()
	d, err := Launch(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", lastLines(d.Log(), 200))
		}
		for _, line := range departures(d.Log()) {
			t.Errorf("an answer departs from its tool's definition: %s", line)
		}
		if err := d.Close(); err != nil {
			t.Errorf("stop the daemon: %v", err)
		}
	})
	return d
}

// departures are the lines in which a daemon says that a result did not conform to its tool's definition.
func departures(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "Result departs from its definition") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Revive restarts a daemon that was killed or stopped and fails the test if it does not come back.
func (d *Daemon) Revive(t testing.TB) {
	t.Helper()
	if err := d.Restart(); err != nil {
		t.Fatal(err)
	}
}

// Must calls a tool and fails the test unless a result comes back, successful or not.
func (c *Client) Must(t testing.TB, tool string, args Args) Result {
	t.Helper()
	r, err := c.Call(context.Background(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// OK calls a tool and fails the test unless it succeeds.
func (c *Client) OK(t testing.TB, tool string, args Args) Result {
	t.Helper()
	r := c.Must(t, tool, args)
	if r.IsError {
		t.Fatalf("%s: %s: %s", tool, r.Code(), r.Text())
	}
	return r
}

// Fails calls a tool and fails the test unless it fails with the code.
func (c *Client) Fails(t testing.TB, code, tool string, args Args) Result {
	t.Helper()
	r := c.Must(t, tool, args)
	if !r.IsError || r.Code() != code {
		t.Fatalf("%s: isError %v, code %q, want %s; text: %s", tool, r.IsError, r.Code(), code, r.Text())
	}
	return r
}

// Open opens a workspace on a directory and returns its id.
func (c *Client) Open(t testing.TB, dir string) string {
	t.Helper()
	id := c.OK(t, "workspace_open", Args{"cwd": dir}).String("workspace_id")
	if id == "" {
		t.Fatal("workspace_open gave no workspace_id")
	}
	return id
}

var keys atomic.Int64

// Key returns a request key that no other call of this process has used.
func Key() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
