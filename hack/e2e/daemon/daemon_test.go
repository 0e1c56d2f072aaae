package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The test binary plays the daemon when this variable is set: the helper is tested without the product.
const standIn = "E2E_STAND_IN"

func TestMain(m *testing.M) {
	switch os.Getenv(standIn) {
	case "serve":
		os.Exit(serveStandIn(os.Args[2:]))
	case "fail":
		fmt.Fprintln(os.Stderr, "port 1 is busy")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func serveStandIn(args []string) int {
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	port := fs.String("port", "", "")
	state := fs.String("state-dir", "", "")
	_ = fs.Parse(args) // exits on error
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	l, err := net.Listen("tcp4", "127.0.0.1:"+*port)
	if err != nil {
		return 1
	}
	token := filepath.Join(*state, "bearer")
	if os.WriteFile(token, []byte("Bearer secret\n"), 0o600) != nil {
		return 1
	}
	e, _ := json.Marshal(endpoint{URL: "http://" + l.Addr().String() + "/mcp", TokenFile: token, PID: os.Getpid()})
	if os.Getenv("E2E_NO_FILE") == "" && os.WriteFile(filepath.Join(*state, "endpoint.json"), e, 0o600) != nil {
		return 1
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	go func() { _ = http.Serve(l, http.HandlerFunc(answerStandIn)) }()
	<-stop
	return 0
}

func answerStandIn(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/readyz" {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s at %s"}],"structuredContent":{"home":%q}}}`,
		r.Header.Get("Authorization"), r.URL.Path, os.Getenv("HOME"))
}

func TestLifeOfAProcess(t *testing.T) {
	for _, env := range []string{"E2E_NO_FILE=", "E2E_NO_FILE=1"} {
		t.Run(env, func(t *testing.T) {
			d := Start(t, Options{Binary: os.Args[0], Env: []string{standIn + "=serve", env}})
			c := d.Client()
			r := c.OK(t, "read", nil)
			if got, want := r.Text(), "Bearer secret at /mcp"; got != want {
				t.Errorf("text %q, want %q", got, want)
			}
			if r.String("home") != d.Home() {
				t.Errorf("HOME is %q, want %q", r.String("home"), d.Home())
			}
			first := d.Pid()
			if err := d.Restart(); err == nil {
				t.Error("a running daemon was started again")
			}
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(context.Background(), "read", nil); err == nil {
				t.Error("a killed daemon answered")
			}
			d.Revive(t)
			if d.Pid() == first {
				t.Error("restart kept the process")
			}
			c.OK(t, "read", nil)
			if code, err := d.Stop(); code != 0 || err != nil {
				t.Errorf("stop: code %d, %v", code, err)
			}
		})
	}
}

// Start fails a test whose daemon has logged such a line.
func TestDeparturesAreFound(t *testing.T) {
	log := "{\"msg\":\"Stopping\"}\n{\"msg\":\"Result departs from its definition\",\"tool\":\"read\"}\n"
	if got := departures(log); len(got) != 1 || !strings.Contains(got[0], `"tool":"read"`) {
		t.Errorf("%q", got)
	}
	if !slices.Contains(environment(Options{}), "RIG_BRIDGE_CHECK_OUTPUTS=1") {
		t.Error("the daemon is not told to check its answers")
	}
}

func TestLaunchReportsAFailedStart(t *testing.T) {
	_, err := Launch(Options{Binary: os.Args[0], Env: []string{standIn + "=fail"}})
	if err == nil || !strings.Contains(err.Error(), "port 1 is busy") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("err = %v; want the exit status and the log", err)
	}
}

func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return NewClient(s.URL, "Bearer x")
}

func TestClientReadsEventStreams(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, ": keep-alive\r\n\r\nid: 1\ndata:\n\n"+
			"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n"+
			"data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{\"isError\":true,\"content\":[],\"structuredContent\":{\"code\":\"X\"}}}\n\n")
	})
	var heard []string
	c.OnNotification = func(method string, params json.RawMessage) { heard = append(heard, method+string(params)) }
	r := c.Fails(t, "X", "bash", nil)
	if r.Replayed() {
		t.Error("not a replay")
	}
	if want := `notifications/progress{"progress":1}`; len(heard) != 1 || heard[0] != want {
		t.Errorf("heard %q, want %s", heard, want)
	}
}

func TestClientTellsFailuresApart(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Case") {
		case "rpc":
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`)
		case "plain":
			http.Error(w, "Not found", http.StatusNotFound)
		case "cut":
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": nothing more\n\n")
		}
	})
	as := func(name string) error {
		c.Header = http.Header{"X-Case": {name}}
		_, err := c.Call(context.Background(), "read", nil)
		return err
	}
	var rpc *RPCError
	if err := as("rpc"); !errors.As(err, &rpc) || rpc.Status != 400 || rpc.Code != -32000 {
		t.Errorf("rpc: %v", err)
	}
	var status *StatusError
	if err := as("plain"); !errors.As(err, &status) || status.Status != 404 {
		t.Errorf("plain: %v", err)
	}
	if err := as("cut"); !errors.Is(err, io.EOF) {
		t.Errorf("cut: %v", err)
	}
}

func TestClientKeepsTheSession(t *testing.T) {
	var seen []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Mcp-Session-Id")+"/"+r.Header.Get("Mcp-Protocol-Version"))
		if len(seen) == 1 {
			w.Header().Set("Mcp-Session-Id", "s1")
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}`)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	if _, err := c.Initialize(context.Background(), "2025-06-18"); err != nil {
		t.Fatal(err)
	}
	if want := "/ s1/2025-06-18"; strings.Join(seen, " ") != want {
		t.Errorf("headers %q, want %q", seen, want)
	}
}

func TestPostReplacesAndRemovesHeaders(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s|%s|%d", r.Host, r.Header.Get("Content-Type"), len(r.Header.Values("Authorization")))
	})
	resp, err := c.Post(context.Background(), nil, http.Header{"Host": {"evil.test"}, "Content-Type": {"text/plain"}, "Authorization": nil})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "evil.test|text/plain|0" {
		t.Errorf("server saw %s", b)
	}
}

func TestFreePortIsBelowTheEphemeralRange(t *testing.T) {
	port, err := FreePort()
	if err != nil || port < 20000 || port >= 32000 {
		t.Errorf("port %d, %v", port, err)
	}
}
