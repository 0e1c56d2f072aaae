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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

const startLimit = time.Minute

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
	client *daemon.Client
	cmd    *exec.Cmd // nil if it was running before
	starts []float64 // start-up times, ms
	files  string    // directory of the project that the tools work on
}

// start makes the server ready: started as often as asked (the last one stays), initialized, and with a
// project of its own.
func start(ctx context.Context, src source, dir string, times int) (*server, error) {
	s := &server{source: src, files: filepath.Join(dir, "project")}
	if err := makeProject(s.files); err != nil {
		return nil, err
	}
	if src.url != "" {
		token, err := os.ReadFile(src.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read the token file: %w", err)
		}
		return s, s.connect(ctx, src.url, strings.TrimSpace(string(token)))
	}
	for i := range times {
		if i > 0 {
			s.stop()
		}
		if err := s.launch(ctx, filepath.Join(dir, "state")); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) launch(ctx context.Context, state string) error {
	line := s.source.command
	if line == "" {
		binary, err := daemon.Build("rig-bridge")
		if err != nil {
			return err
		}
		line = binary + " serve --port {port} --state-dir {state}"
	}
	port, err := daemon.FreePort()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	line = strings.NewReplacer("{port}", strconv.Itoa(port), "{state}", state).Replace(line)
	log, err := os.Create(state + ".log")
	if err != nil {
		return fmt.Errorf("make the log: %w", err)
	}
	defer log.Close()
	s.cmd = exec.Command("bash", "-c", "exec "+line)
	s.cmd.Env = append(os.Environ(), "HOME="+state)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
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
	return s.connect(ctx, base+"/mcp", token)
}

func awaitLive(ctx context.Context, url string) error {
	probe := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for began := time.Now(); time.Since(began) < startLimit && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
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

func (s *server) connect(ctx context.Context, url, token string) error {
	s.client = daemon.NewClient(url, token)
	s.client.HTTP = newHTTPClient()
	if _, err := s.client.Initialize(ctx, "2025-06-18"); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	return nil
}

// stop ends the process that launch started, if any.
func (s *server) stop() {
	if s.cmd == nil || s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(20*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait() // its code is nobody's concern here
	timer.Stop()
}

// residentMB is the resident memory of the server's process, 0 if it is not ours.
func (s *server) residentMB() float64 {
	if s.cmd == nil {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmRSS: %f kB", &kb); err == nil {
			return kb / 1024
		}
	}
	return 0
}
