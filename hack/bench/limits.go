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
	"strconv"
	"strings"
	"syscall"
)

// bound is something that a tool has to do, and the machine with it. A tool's limit is to do its bounds one after
// the other and nothing else.
type bound string

const (
	boundHTTP  bound = "http echo"      // a round trip with bodies of the size of the tool's own
	boundFlush bound = "fdatasync pair" // one durable intent, one durable outcome
	boundFile  bound = "file fsync"     // the changed file
	boundSwap  bound = "file swap"      // the changed file beside the old one, renamed over it, and its folder synced
	boundRun   bound = "process"        // the command, or rg or fd in the place of grep and find
)

// standards are limits on their own, for the reader's orientation.
var standards = []tool{
	{name: "http echo", bounds: []bound{boundHTTP}},
	{name: "fdatasync pair", bounds: []bound{boundFlush}},
	{name: "file fsync", bounds: []bound{boundFile}},
	{name: "pair and swap", bounds: []bound{boundFlush, boundSwap}}, // the least that an atomic change takes
	{name: "bash -c true", bounds: []bound{boundRun}, process: shell("true")},
}

// machine does what the tools' limits are made of.
type machine struct {
	echo  *echo
	dir   string
	flush []*os.File
	made  []int // files, by caller
}

func newMachine(dir string, callers int) (*machine, error) {
	m := &machine{dir: dir, made: make([]int, callers)}
	for i := range callers {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("flush-%d", i)))
		if err != nil {
			m.close()
			return nil, fmt.Errorf("make a file to flush: %w", err)
		}
		m.flush = append(m.flush, f)
	}
	var err error
	if m.echo, err = startEcho(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *machine) close() {
	for _, f := range m.flush {
		_ = f.Close() // scratch
	}
	if m.echo != nil {
		m.echo.stop()
	}
}

// shooter does a tool's bounds. size is what the tool's own bodies have.
func (m *machine) shooter(t tool, size exchanged) shooter {
	return func(ctx context.Context, caller int) (shot, error) {
		var steps []func() error
		for _, b := range t.bounds {
			step, err := m.step(ctx, t, b, size, caller)
			if err != nil {
				return shot{}, err
			}
			steps = append(steps, step)
		}
		return shot{fire: func() error {
			for _, step := range steps {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		}}, nil
	}
}

func (m *machine) step(ctx context.Context, t tool, b bound, size exchanged, caller int) (func() error, error) {
	switch b {
	case boundHTTP:
		w, err := m.echo.wires.of(caller)
		if err != nil {
			return nil, err
		}
		w.prepare(make([]byte, size.request), answerHeader+": "+strconv.Itoa(size.answer)+"\r\n")
		return func() error { return m.echo.call(w, size.answer) }, nil
	case boundFlush:
		return func() error { return flushTwice(m.flush[caller]) }, nil
	case boundFile:
		m.made[caller]++
		path := filepath.Join(m.dir, fmt.Sprintf("file-%d-%d", caller, m.made[caller]))
		return func() error { return writeSynced(path, make([]byte, kilobyte)) }, nil
	case boundSwap:
		path := filepath.Join(m.dir, fmt.Sprintf("swap-%d", caller))
		return func() error { return swapSynced(path, make([]byte, kilobyte)) }, nil
	case boundRun:
		cmd := t.process(ctx)
		return func() error { return drained(cmd) }, nil
	}
	return nil, fmt.Errorf("no such bound: %s", b)
}

func flushTwice(f *os.File) error {
	for range 2 {
		if _, err := f.Write(make([]byte, 512)); err != nil {
			return err
		}
		if err := flush(f); err != nil {
			return err
		}
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func swapSynced(path string, content []byte) error {
	if err := writeSynced(path+".new", content); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// shell is a command line, run by bash as the tool runs it.
func shell(line string) func(context.Context) *exec.Cmd {
	return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, "bash", "-c", line) }
}

// drained runs a command and reads what it prints. One that finds nothing has not failed.
func drained(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, out)
	return errors.Join(err, cmd.Wait())
}

// echoMode is the argument with which this program is the echo server: a process of its own, as the
// servers that are measured are.
const echoMode = "echo-server"

// answerHeader says how many bytes the echo server is to answer with.
const answerHeader = "Bench-Answer"

func serveEcho() {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	fmt.Fprintln(os.Stderr, "bench:", http.Serve(l, http.HandlerFunc(echoBytes)))
}

func echoBytes(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the client notices
	n, err := strconv.Atoi(r.Header.Get(answerHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(n))
	_, _ = w.Write(make([]byte, n)) // the client notices
}

type echo struct {
	cmd   *exec.Cmd
	wires *wires
}

func startEcho() (*echo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, echoMode)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	endWithThread(cmd.SysProcAttr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start the echo server: %w", err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the echo server: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	return &echo{cmd: cmd, wires: newWires("http://"+strings.TrimSpace(addr)+"/", http.Header{"Content-Type": {"application/json"}})}, nil
}

func (e *echo) stop() {
	e.wires.close()
	_ = e.cmd.Process.Kill() // it holds nothing
	_ = e.cmd.Wait()
}

func (e *echo) call(w *wire, want int) error {
	b, err := w.roundTrip()
	if err == nil && len(b) != want {
		err = fmt.Errorf("the echo is %d bytes, want %d", len(b), want)
	}
	return err
}
