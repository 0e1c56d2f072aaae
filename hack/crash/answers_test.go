package crash

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// lossy is a TCP proxy that loses every third answer: one half of them after the server has given it, the other
// half while the server still works on it.
type lossy struct {
	listener net.Listener
	upstream string
	accepted atomic.Int64
	lost     atomic.Int64
	open     sync.WaitGroup
}

func newLossy(t *testing.T, upstream string) *lossy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossy{listener: l, upstream: upstream}
	p.open.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close() // ends accept
		p.open.Wait()
	})
	return p
}

func (p *lossy) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		n := p.accepted.Add(1)
		p.open.Go(func() { p.carry(down.(*net.TCPConn), n) })
	}
}

// carry serves one connection, which has one request.
func (p *lossy) carry(down *net.TCPConn, n int64) {
	defer down.Close()
	conn, err := net.Dial("tcp4", p.upstream)
	if err != nil {
		return
	}
	up := conn.(*net.TCPConn)
	defer up.Close()
	asked := make(chan struct{})
	go func() {
		var once sync.Once
		_, _ = io.Copy(writerFunc(func(b []byte) (int, error) { // either side may be gone by design
			n, err := up.Write(b)
			once.Do(func() { close(asked) })
			return n, err
		}), down)
		once.Do(func() { close(asked) })
	}()
	<-asked
	switch {
	case n%3 != 0:
		_, _ = io.Copy(down, up)
	case n%2 == 0: // the server has answered; nobody hears it
		p.lost.Add(1)
		_, _ = io.Copy(io.Discard, up)
	default: // cut while it works
		p.lost.Add(1)
		time.Sleep(time.Duration(rand.IntN(8)) * time.Millisecond)
	}
	_ = down.SetLinger(0) // the client sees a reset
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// client speaks to a daemon through the proxy, with a connection for each call.
func (p *lossy) client(d *daemon.Daemon) *daemon.Client {
	c := daemon.NewClient("http://"+p.listener.Addr().String()+"/mcp", d.Authorization())
	c.HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c.Header = http.Header{"Host": {p.upstream}}
	return c
}

// insist repeats a call until it is answered, and says how often it was sent.
func insist(ctx context.Context, c *daemon.Client, tool string, args daemon.Args) (r daemon.Result, sent int, err error) {
	for ctx.Err() == nil {
		sent++
		if r, err = c.Call(ctx, tool, args); err == nil {
			return r, sent, nil
		}
	}
	return r, sent, fmt.Errorf("%s was sent %d times: %w", tool, sent, err)
}

// TestLostAnswers makes 500 mutations through a proxy that loses every third answer. The client repeats by key;
// each mutation happens exactly once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	const clients = 10
	mutations := length(500, 500, 500)
	h := newHouse(t)
	straight := h.begin(t)
	dir := realDir(t)
	workspace := straight.Open(t, dir)
	renamed := watchRenames(t, dir)
	p := newLossy(t, strings.TrimPrefix(h.daemon.Base(), "http://"))
	var sent atomic.Int64
	var wg sync.WaitGroup
	for w := range clients {
		list := fmt.Sprintf("list-%d", w)
		put(t, filepath.Join(dir, list), "END\n")
		wg.Go(func() {
			c := p.client(h.daemon)
			for n := w; n < mutations; n += clients {
				tool, args := mutation(t, dir, list, n)
				args["workspace_id"] = workspace
				r, times, err := insist(bounded(t, 2*time.Minute), c, tool, args)
				if err != nil || r.IsError {
					t.Errorf("%s %v: %v %s", tool, args["request_key"], err, r.Raw)
					return
				}
				sent.Add(int64(times))
			}
		})
	}
	wg.Wait()
	effects := 0
	ran := lines(t, filepath.Join(dir, "log"))
	for n := range mutations {
		key, times := fmt.Sprintf("m%d", n), 0
		switch n % 3 {
		case 0:
			times = ran[key]
		case 1:
			times = renamed.of(t, key+".txt")
		case 2:
			times = lines(t, filepath.Join(dir, fmt.Sprintf("list-%d", n%clients)))[key]
		}
		if times != 1 {
			t.Errorf("mutation %s happened %d times", key, times)
		}
		effects += times
	}
	t.Logf("%d mutations, %d effects; %d calls sent, %d answers lost", mutations, effects, sent.Load(), p.lost.Load())
	if p.lost.Load() < int64(mutations/4) {
		t.Errorf("only %d answers were lost: the test proved little", p.lost.Load())
	}
	noTemporary(t, dir)
}

// mutation is the n-th of a mixed series; list is a file that nobody else edits.
func mutation(t *testing.T, dir, list string, n int) (tool string, args daemon.Args) {
	key := fmt.Sprintf("m%d", n)
	args = daemon.Args{"request_key": key}
	switch n % 3 {
	case 0:
		args["command"] = "echo " + key + " >> log"
		return "bash", args
	case 1:
		args["path"], args["content"], args["expected_revision"] = key+".txt", key+"\n", "missing"
		return "write", args
	}
	args["path"], args["expected_revision"] = list, revision(t, filepath.Join(dir, list))
	args["edits"] = []daemon.Args{{"oldText": "END\n", "newText": key + "\nEND\n"}}
	return "edit", args
}

// TestThreeAppenders lets three clients append to one file by read and write with revisions: no line is lost and
// none is there twice.
func TestThreeAppenders(t *testing.T) {
	t.Parallel()
	const clients = 3
	rounds := length(60, 200, 200)
	h := newHouse(t)
	dir := realDir(t)
	file := filepath.Join(dir, "shared.txt")
	put(t, file, "0\n")
	h.begin(t)
	var conflicts atomic.Int64
	var wg sync.WaitGroup
	for w := range clients {
		c := h.daemon.Client()
		workspace := c.Open(t, dir)
		wg.Go(func() {
			for n := range rounds {
				line := fmt.Sprintf("%d-%d", w+1, n)
				for try := 0; !appendLine(t, c, workspace, line, try); try++ {
					conflicts.Add(1)
					if t.Failed() {
						return
					}
				}
			}
		})
	}
	wg.Wait()
	got := lines(t, file)
	delete(got, "0")
	for line, times := range got {
		if times != 1 {
			t.Errorf("line %s is there %d times", line, times)
		}
	}
	if len(got) != clients*rounds {
		t.Errorf("%d lines, want %d", len(got), clients*rounds)
	}
	t.Logf("%d lines by %d clients, %d conflicts", len(got), clients, conflicts.Load())
}

// appendLine reads the file, adds a line and writes it back. It returns false if somebody else was faster.
func appendLine(t *testing.T, c *daemon.Client, workspace, line string, try int) bool {
	ctx := bounded(t, 2*time.Minute)
	old, err := c.Call(ctx, "read", daemon.Args{"workspace_id": workspace, "path": "shared.txt"})
	if err != nil || old.IsError {
		t.Errorf("read: %v %s", err, old.Raw)
		return false
	}
	r, err := c.Call(ctx, "write", daemon.Args{"workspace_id": workspace, "request_key": fmt.Sprintf("%s-%d", line, try), "path": "shared.txt",
		"content": strings.TrimSuffix(old.Text(), "\n") + "\n" + line + "\n", "expected_revision": old.Structured["revision"]})
	switch {
	case err != nil:
		t.Errorf("write: %v", err)
	case r.Code() == "REVISION_CONFLICT":
		if r.String("current_revision") == "" {
			t.Errorf("a conflict without the current revision: %s", r.Raw)
		}
		return false
	case r.IsError:
		t.Errorf("write: %s", r.Raw)
	}
	return true
}
