package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// limitRows are the machine's own limits, measured like the tools.
type limitRows []row

// The limits by name. A tool is bound by the sum of some.
const (
	limitHTTP  = "http echo"
	limitFlush = "fdatasync pair"
	limitFork  = "bash -c true"
)

// of is the sum of the medians of some limits at a number of callers, in milliseconds.
func (l limitRows) of(names []string, callers int) (sum float64) {
	for _, r := range l {
		for _, name := range names {
			if r.Name == name && r.Callers == callers {
				sum += r.P50MS
			}
		}
	}
	return sum
}

func limits(ctx context.Context, p plan, scratch string) (limitRows, error) {
	echo, err := startEcho()
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	flush, err := newFlusher(scratch, 64)
	if err != nil {
		return nil, err
	}
	defer flush.close()
	var rows limitRows
	for _, limit := range []struct {
		name string
		call func(context.Context, int) error
	}{
		{limitHTTP, echo.call},
		{limitFlush, flush.call},
		{limitFork, func(ctx context.Context, _ int) error { return exec.CommandContext(ctx, "bash", "-c", "true").Run() }},
	} {
		for _, callers := range p.callers {
			s := load(ctx, callers, p.cell, limit.call)
			rows = append(rows, s.row(limit.name, callers, 0))
		}
	}
	return rows, ctx.Err()
}

// flusher appends to files and flushes them, twice: what one durable intent and one durable outcome cost.
type flusher []*os.File

func newFlusher(dir string, callers int) (flusher, error) {
	var f flusher
	for i := range callers {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("flush-%d", i)))
		if err != nil {
			return nil, fmt.Errorf("make a file to flush: %w", err)
		}
		f = append(f, file)
	}
	return f, nil
}

func (f flusher) call(_ context.Context, caller int) error {
	for range 2 {
		if _, err := f[caller].Write(make([]byte, 512)); err != nil {
			return err
		}
		if err := syscall.Fdatasync(int(f[caller].Fd())); err != nil {
			return err
		}
	}
	return nil
}

func (f flusher) close() {
	for _, file := range f {
		_ = file.Close() // scratch
	}
}

// echoMode is the argument with which this program is the echo server: a process of its own, as the
// servers that are measured are.
const echoMode = "echo-server"

func serveEcho() {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body) // the client notices
	}))
	fmt.Fprintln(os.Stderr, "bench:", err)
}

type echo struct {
	cmd  *exec.Cmd
	url  string
	http *http.Client
}

func startEcho() (*echo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, echoMode)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the echo server: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	return &echo{cmd: cmd, url: "http://" + strings.TrimSpace(addr), http: newHTTPClient()}, nil
}

func (e *echo) stop() {
	_ = e.cmd.Process.Kill() // it holds nothing
	_ = e.cmd.Wait()
}

func (e *echo) call(ctx context.Context, _ int) error {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"a.txt"}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// newHTTPClient keeps as many connections alive as there are callers.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}}
}
