package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

// newSocket serves Upgrade of r on a unix socket.
func newSocket(t *testing.T, r *rig) (dial func() net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp/stdio", r.Upgrade())
	server := transport.HTTPServer(mux)
	go func() { _ = server.Serve(listener) }() // ends with Close
	t.Cleanup(func() { server.Close() })
	return func() net.Conn {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
}

func TestForwardedStdio(t *testing.T) {
	r := newRig(t, nil)
	dial := newSocket(t, r)
	var out bytes.Buffer
	in := strings.NewReader(initialize + "\n" + call("2", "echo", `{"a":1}`)) // no newline at the end
	if err := transport.Forward(t.Context(), dial(), "/mcp/stdio", "", in, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"id":1`) || !strings.Contains(got, `{\"a\":1}`) {
		t.Errorf("output %q", got)
	}
	if err := transport.Forward(t.Context(), dial(), "/wrong", "", strings.NewReader(""), io.Discard); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("wrong path: %v", err)
	}
}

func TestForwardEnds(t *testing.T) {
	for name, end := range map[string]func(*rig, *io.PipeWriter, context.CancelFunc){
		"with its input":   func(_ *rig, in *io.PipeWriter, _ context.CancelFunc) { in.Close() },
		"with its context": func(_ *rig, _ *io.PipeWriter, cancel context.CancelFunc) { cancel() },
		"with the daemon": func(r *rig, _ *io.PipeWriter, _ context.CancelFunc) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			_ = r.Shutdown(ctx) // the rig's own end looks at the error
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			conn := newSocket(t, r)()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			inR, inW := io.Pipe()
			defer inW.Close()
			ended := make(chan error, 1)
			go func() { ended <- transport.Forward(ctx, conn, "/mcp/stdio", "", inR, io.Discard) }()
			if _, err := io.WriteString(inW, call("1", "hold", "{}")+"\n"); err != nil {
				t.Fatal(err)
			}
			wait(t, r.started, "the call")
			end(r, inW, cancel)
			err := wait(t, ended, "the end")
			if cancelled := errors.Is(err, context.Canceled); cancelled != (name == "with its context") || err != nil && !cancelled {
				t.Errorf("ended with %v", err)
			}
			cause := wait(t, r.causes, "the call's end")
			if want := map[bool]transport.Cause{true: transport.CauseShutdown, false: transport.CauseDisconnect}[name == "with the daemon"]; cause != want {
				t.Errorf("the call ended by %q", cause)
			}
		})
	}
}

func TestUpgradeNeedsItsProtocol(t *testing.T) {
	r := newRig(t, nil)
	conn := newSocket(t, r)()
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /mcp/stdio HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 426 ") {
		t.Errorf("%v %q", err, got)
	}
}
