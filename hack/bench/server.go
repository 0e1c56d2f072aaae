package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

const startLimit = 5 * time.Minute

// protocol is the version that the benchmark speaks.
const protocol = "2025-06-18"

// source says where a server comes from: a command, an address, or (both empty) this tree.
type source struct{ command, url, tokenFile string }

func (s source) name() string {
	switch {
	case s.url != "":
		return s.url
	case s.command != "":
		return s.command
	}
	return "rig-bridge"
}

// server is a server under measurement.
type server struct {
	source source
	dir    string   // scratch
	env    []string // added to the environment
	base   string   // URL without a path
	token  string   // the Authorization header
	client *daemon.Client
	http   *http.Client
	wires  *wires
	cmd    *exec.Cmd // nil if it was running before
	state  string    // the state directory, if it is ours
	starts []float64 // start-up times, ms
	files  string    // directory of the project that the tools change

	lastSize   atomic.Pointer[exchanged]
	workspaces map[string]string // by directory
}

// begin makes the server ready: started as often as asked, each time on an empty state directory (the last one
// stays), initialized, and with a project of its own.
func begin(ctx context.Context, src source, dir string, times int) (*server, error) {
	s := &server{source: src, dir: dir, files: filepath.Join(dir, "project"), workspaces: map[string]string{}}
	if err := makeProject(s.files); err != nil {
		return nil, err
	}
	if src.url != "" {
		token, err := os.ReadFile(src.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token file: %w", err)
		}
		return s, s.connect(ctx, strings.TrimSuffix(src.url, "/mcp"), strings.TrimSpace(string(token)))
	}
	for i := range times {
		s.stop()
		if err := s.launch(ctx, filepath.Join(dir, fmt.Sprint("state-", i))); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// spawner starts processes on one thread that never ends, because the kernel delivers the parent-death signal when
// the starting thread ends.
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

func start(cmd *exec.Cmd) error {
	done := make(chan error)
	spawner() <- func() { done <- cmd.Start() }
	return <-done
}

// line is the command line for a port and a state directory.
func (s *server) line(port int, state string) (string, error) {
	line := s.source.command
	if line == "" {
		binary, err := daemon.Build("rig-bridge")
		if err != nil {
			return "", err
		}
		line = binary + " serve --port {port} --state-dir {state}"
	}
	if !strings.Contains(line, "{port}") {
		return "", fmt.Errorf("%s: the command must say where {port} goes, and where {state}, the directory for its state", line)
	}
	return strings.NewReplacer("{port}", strconv.Itoa(port), "{state}", state).Replace(line), nil
}

// launch starts the server on a state directory and waits until it answers.
func (s *server) launch(ctx context.Context, state string) error {
	port, err := daemon.FreePort()
	if err != nil {
		return err
	}
	line, err := s.line(port, state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	log, err := os.Create(state + ".log")
	if err != nil {
		return fmt.Errorf("make the log: %w", err)
	}
	defer log.Close()
	s.state = state
	s.cmd = exec.Command("bash", "-c", "exec "+line)
	s.cmd.Env = append(append(os.Environ(), "HOME="+s.dir), s.env...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithThread(s.cmd.SysProcAttr)
	began := time.Now()
	if err := start(s.cmd); err != nil {
		return fmt.Errorf("start %s: %w", line, err)
	}
	base := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := awaitLive(ctx, base+"/healthz"); err != nil {
		out, _ := os.ReadFile(state + ".log")
		s.stop()
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	s.starts = append(s.starts, ms(time.Since(began)))
	token, err := findToken(s.source.tokenFile, state)
	if err != nil {
		return err
	}
	return s.connect(ctx, base, token)
}

func awaitLive(ctx context.Context, url string) error {
	probe := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for began := time.Now(); time.Since(began) < startLimit && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if resp, err := probe.Get(url); err == nil {
			_ = resp.Body.Close() // one word
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("%s did not answer within %v", url, startLimit))
}

// findToken reads the given file, or the one in the state directory that holds a bearer.
func findToken(file, state string) (string, error) {
	paths := []string{file}
	if file == "" {
		paths, _ = filepath.Glob(filepath.Join(state, "*"))
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
			continue
		}
		if b, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(b), "Bearer ") {
			return strings.TrimSpace(string(b)), nil
		}
	}
	return "", fmt.Errorf("no file that holds a bearer in %s", state)
}

func (s *server) connect(ctx context.Context, base, token string) error {
	s.base, s.token = base, token
	s.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}}
	s.client = daemon.NewClient(base+"/mcp", token)
	s.client.HTTP = s.http
	if _, err := s.client.Initialize(ctx, protocol); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Authorization": {token}, "Mcp-Protocol-Version": {protocol}}
	if id := s.client.Session(); id != "" {
		header.Set("Mcp-Session-Id", id)
	}
	s.wires = newWires(base+"/mcp", header)
	return nil
}

// workspace returns the server's workspace on a directory, which it opens once.
func (s *server) workspace(ctx context.Context, dir string) (string, error) {
	if id := s.workspaces[dir]; id != "" {
		return id, nil
	}
	r, err := s.fire(ctx, "workspace_open", daemon.Args{"cwd": dir})
	if err != nil {
		return "", err
	}
	s.workspaces[dir] = r.String("workspace_id")
	return s.workspaces[dir], nil
}

// stop ends the process that launch started, if any.
func (s *server) stop() {
	if s.wires != nil {
		s.wires.close()
		s.http.CloseIdleConnections()
	}
	if s.cmd == nil || s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait() // its code is nobody's concern here
	timer.Stop()
}

// cpu is the processor time that the server's process has used, by its own clock (clock_getcpuclockid(3)); 0 if the
// process is not ours.
func (s *server) cpu() time.Duration {
	if s.cmd == nil {
		return 0
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// memory is what a process has in memory, in MiB: all of it, and what no file stands behind.
type memory struct {
	Resident  float64 `json:"residentMiB"`
	Anonymous float64 `json:"anonymousMiB"`
}

// memory of the server's process, zero if it is not ours.
func (s *server) memory() (m memory) {
	if s.cmd == nil {
		return m
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kb); err == nil {
			m.Resident = kb / 1024
		}
		if _, err := fmt.Sscanf(line, "RssAnon: %f kB", &kb); err == nil {
			m.Anonymous = kb / 1024
		}
	}
	return m
}

// settled is the memory once the server has had a moment of peace.
func (s *server) settled(wait time.Duration) memory {
	time.Sleep(wait)
	return s.memory()
}
