package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/api/socket"
)

func TestUnixSocket(t *testing.T) {
	for name, dir := range map[string]string{"short": "s", "long": strings.Repeat("long/", 40)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), dir, socket.File)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o644); err != nil { // what an earlier process left behind
				t.Fatal(err)
			}
			l, err := ListenUnix(path)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode().Type() != fs.ModeSocket || info.Mode().Perm() != 0o600 {
				t.Fatalf("the socket is %v, %v", info, err)
			}
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })}
			go func() { _ = srv.Serve(l) }() // ends with Close
			c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, path) }}}
			resp, err := c.Get("http://socket/")
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil || string(b) != "hello" {
				t.Errorf("%q, %v", b, err)
			}
			_ = resp.Body.Close()
			c.CloseIdleConnections()
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket stays behind: %v", err)
			}
			if _, err := socket.Dial(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("dialling what is gone: %v", err)
			}
		})
	}
}

func TestPeerIsTheOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), socket.File)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := socket.Dial(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if uid, err := peerUID(c.(*net.UnixConn)); err != nil || uid != os.Getuid() {
		t.Errorf("the peer is %d, %v; we are %d", uid, err, os.Getuid())
	}
}
