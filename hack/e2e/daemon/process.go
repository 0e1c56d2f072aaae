package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// StartTimeout is how long Launch and Restart wait for the daemon to answer. It is generous: the machine
// may be busy.
const StartTimeout = 60 * time.Second

// StopTimeout is how long Stop waits after SIGTERM; the daemon itself gives up after 8 s.
const StopTimeout = 20 * time.Second

// Options says how to run the daemon. The zero value gives a fresh state directory, a fresh home and any
// free port.
type Options struct {
	// Binary is the daemon's path; empty builds the one of this tree.
	Binary string
	// Args follow "serve --port N --state-dir DIR".
	Args []string
	// Env holds NAME=VALUE pairs that are added to the test's environment. A bare NAME removes the variable.
	Env []string
	// Port is the TCP port; 0 is any free one, and another one after each restart.
	Port int
	// StateDir, Home and Dir (working directory) are made below a scratch directory when empty.
	StateDir, Home, Dir string
	// Stdin of the process; nil is the null device.
	Stdin io.Reader
}

// Daemon is one daemon process, or the place of one between Kill and Restart. Its methods may be called
// from several goroutines.
type Daemon struct {
	opts    Options
	scratch string // removed by Close; holds what the options left open
	logPath string

	mu       sync.Mutex
	cmd      *exec.Cmd
	done     chan struct{} // closed when the process has been waited for
	endpoint endpoint
	startup  time.Duration
}

// endpoint is the content of <state>/endpoint.json.
type endpoint struct {
	URL       string `json:"url"`
	TokenFile string `json:"tokenFile"`
	PID       int    `json:"pid"`
}

// Launch starts a daemon and waits until it answers. Whoever calls it calls Close.
func Launch(opts Options) (*Daemon, error) {
	d, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	if err := d.start(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func prepare(opts Options) (*Daemon, error) {
	if opts.Binary == "" {
		path, err := Build("rig-bridge")
		if err != nil {
			return nil, err
		}
		opts.Binary = path
	}
	scratch, err := os.MkdirTemp("", "rig-bridge-e2e-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	for name, dir := range map[string]*string{"state": &opts.StateDir, "home": &opts.Home, "work": &opts.Dir} {
		if *dir == "" {
			*dir = filepath.Join(scratch, name)
		}
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the %s directory: %w", name, err)
		}
	}
	return &Daemon{opts: opts, scratch: scratch, logPath: filepath.Join(scratch, "daemon.log")}, nil
}

// Command returns the daemon's command line as an unstarted command: for tests of starts that fail.
func Command(opts Options) (*exec.Cmd, func() error, error) {
	d, err := prepare(opts)
	if err != nil {
		return nil, nil, err
	}
	return d.command(), d.Close, nil
}

func (d *Daemon) command() *exec.Cmd {
	args := append([]string{"serve", "--port", strconv.Itoa(d.opts.Port), "--state-dir", d.opts.StateDir}, d.opts.Args...)
	cmd := exec.Command(d.opts.Binary, args...)
	cmd.Dir = d.opts.Dir
	cmd.Env = environment(d.opts)
	cmd.Stdin = d.opts.Stdin
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithThread(cmd.SysProcAttr)
	return cmd
}

// environment is ours without what would lead the daemon to the account's own state, plus the options'.
func environment(opts Options) []string {
	set := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "RIG_BRIDGE_") && !strings.HasPrefix(name, "XDG_") && name != "MCP_PORT" {
			set[name] = value
		}
	}
	set["HOME"] = opts.Home
	set["RIG_BRIDGE_CHECK_OUTPUTS"] = "1" // see departures
	for _, kv := range opts.Env {
		name, value, given := strings.Cut(kv, "=")
		if given {
			set[name] = value
		} else {
			delete(set, name)
		}
	}
	env := make([]string, 0, len(set))
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// spawner runs process starts on one operating-system thread that never ends, because the kernel delivers
// the parent-death signal when the starting thread ends, not the process. A test that dies of its own
// timeout then leaves no daemon behind.
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

func spawn(cmd *exec.Cmd) error {
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}

func (d *Daemon) start() error {
	log, err := os.OpenFile(d.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the daemon's log: %w", err)
	}
	defer log.Close() // the child has its own
	logged, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("find the end of the daemon's log: %w", err)
	}
	cmd := d.command()
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := spawn(cmd); err != nil {
		return fmt.Errorf("start %s: %w", d.opts.Binary, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		close(done)
	}()
	d.mu.Lock()
	d.cmd, d.done, d.endpoint = cmd, done, endpoint{}
	d.mu.Unlock()
	return d.awaitReady(cmd, done, logged, began)
}

func (d *Daemon) awaitReady(cmd *exec.Cmd, done chan struct{}, logged int64, began time.Time) error {
	probe := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var found endpoint
	for time.Since(began) < StartTimeout {
		select {
		case <-done:
			return fmt.Errorf("the daemon ended while starting: %v\n%s", cmd.ProcessState, d.Log())
		case <-time.After(2 * time.Millisecond):
		}
		if found.URL == "" {
			found = d.findEndpoint(cmd.Process.Pid, logged)
		}
		if found.URL == "" || !ready(probe, found.URL) {
			continue
		}
		d.mu.Lock()
		d.endpoint, d.startup = found, time.Since(began)
		d.mu.Unlock()
		return nil
	}
	return fmt.Errorf("the daemon did not answer within %v\n%s", StartTimeout, d.Log())
}

var announced = regexp.MustCompile(`http://127\.0\.0\.1:\d+(/mcp)?`)

// findEndpoint reads the endpoint file, or else what the daemon said since it was started.
func (d *Daemon) findEndpoint(pid int, logged int64) endpoint {
	var e endpoint
	b, err := os.ReadFile(filepath.Join(d.opts.StateDir, "endpoint.json"))
	if err == nil && json.Unmarshal(b, &e) == nil && e.PID == pid && e.URL != "" {
		e.URL = strings.TrimSuffix(strings.TrimSuffix(e.URL, "/"), "/mcp") + "/mcp"
		return e
	}
	log, err := os.ReadFile(d.logPath)
	if err != nil || int64(len(log)) < logged {
		return endpoint{}
	}
	if url := announced.Find(log[logged:]); url != nil {
		return endpoint{URL: strings.TrimSuffix(string(url), "/mcp") + "/mcp", PID: pid}
	}
	return endpoint{}
}

func ready(probe *http.Client, url string) bool {
	r, err := probe.Get(strings.TrimSuffix(url, "/mcp") + "/readyz")
	if err != nil {
		return false
	}
	_ = r.Body.Close() // nothing was written
	return r.StatusCode == http.StatusOK
}

// URL is the address of the MCP endpoint.
func (d *Daemon) URL() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.endpoint.URL
}

// Base is the address without the path of the MCP endpoint.
func (d *Daemon) Base() string { return strings.TrimSuffix(d.URL(), "/mcp") }

// TokenFile is the path of the file that holds the bearer.
func (d *Daemon) TokenFile() string {
	for i, arg := range d.opts.Args {
		if arg == "--token-file" && i+1 < len(d.opts.Args) {
			return d.opts.Args[i+1]
		}
	}
	d.mu.Lock()
	file := d.endpoint.TokenFile
	d.mu.Unlock()
	if file != "" {
		return file
	}
	return d.tokenFileByName()
}

// tokenFileByName looks for the one file in the state directory that holds a bearer.
func (d *Daemon) tokenFileByName() string {
	entries, _ := os.ReadDir(d.opts.StateDir)
	for _, e := range entries {
		path := filepath.Join(d.opts.StateDir, e.Name())
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
			continue
		}
		if b, err := os.ReadFile(path); err == nil && bytes.HasPrefix(b, []byte("Bearer ")) {
			return path
		}
	}
	return ""
}

// Authorization is the value of the Authorization header: "Bearer " and the secret.
func (d *Daemon) Authorization() string {
	b, err := os.ReadFile(d.TokenFile())
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// StateDir is the daemon's state directory.
func (d *Daemon) StateDir() string { return d.opts.StateDir }

// Home is the daemon's HOME.
func (d *Daemon) Home() string { return d.opts.Home }

// Pid is the process id of the last start.
func (d *Daemon) Pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cmd.Process.Pid
}

// StartupTime is how long the last start took, from the start of the process until /readyz said yes.
func (d *Daemon) StartupTime() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.startup
}

// Log is everything that all starts wrote to standard output and standard error so far.
func (d *Daemon) Log() string {
	b, err := os.ReadFile(d.logPath)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Signal sends a signal to the daemon's process, not to its children.
func (d *Daemon) Signal(sig os.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the daemon: %w", err)
	}
	return nil
}

// Wait waits for the process to end and returns its exit code; -1 means that a signal ended it.
func (d *Daemon) Wait(ctx context.Context) (int, error) {
	d.mu.Lock()
	cmd, done := d.cmd, d.done
	d.mu.Unlock()
	select {
	case <-done:
		return cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the daemon to end: %w", ctx.Err())
	}
}

// Kill ends the process as a power cut would end it: SIGKILL, no goodbye. It returns when it is gone.
// Commands that the daemon was running go on.
func (d *Daemon) Kill() error {
	if err := d.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), StopTimeout)
	defer cancel()
	_, err := d.Wait(ctx)
	return err
}

// Stop asks the process to end with SIGTERM and returns its exit code.
func (d *Daemon) Stop() (int, error) {
	if err := d.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), StopTimeout)
	defer cancel()
	return d.Wait(ctx)
}

// Restart starts the daemon again on the same state. The old process must have ended, by Kill or Stop.
func (d *Daemon) Restart() error {
	select {
	case <-d.done:
		return d.start()
	default:
		return errors.New("restart: the daemon still runs")
	}
}

// Close ends the process if it runs and removes what Launch made.
func (d *Daemon) Close() error {
	var err error
	if d.cmd != nil {
		if _, err = d.Stop(); err != nil {
			err = errors.Join(err, d.Kill())
		}
	}
	return errors.Join(err, os.RemoveAll(d.scratch))
}

// Client returns a client that follows the daemon to its new address after a restart.
func (d *Daemon) Client() *Client {
	return &Client{endpoint: d.URL, authorization: d.Authorization}
}

// FreePort returns a TCP port of the loopback interface that is free now, below the range from which the
// kernel takes the ports of outgoing connections, so that it stays free between two starts.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for ; ports.tried < portSpan; ports.tried++ {
		port := firstPort + (os.Getpid()*61+ports.tried)%portSpan
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			ports.tried++ // never again, its daemon may be down for a moment
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port left of %d from %d on", portSpan, firstPort)
}

const firstPort, portSpan = 20000, 12000

// ports are those that this process has tried; others begin elsewhere.
var ports struct {
	sync.Mutex
	tried int
}

// Binary is the path of the program.
func (d *Daemon) Binary() string { return d.opts.Binary }
