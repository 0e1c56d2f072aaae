package bash

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// MaxTimeout is the longest timeout, the longest time a 32-bit timer of milliseconds can measure.
const MaxTimeout = (1<<31 - 1) * time.Millisecond

// argumentLimit is the size at which the system refuses one argument (32 pages of 4 KiB, with the final NUL).
const argumentLimit = 128 << 10

// Args are the arguments of one call.
type Args struct {
	// ID names the call to what outlives this process: descendants are marked with it (process.Marked) and the
	// full output is in the file FullOutputPath(dir, ID). It is unique; empty takes a random one.
	ID string
	// Command is the text for the shell.
	Command string
	// Timeout is when the command is ended; 0 means never. See ParseTimeout.
	Timeout time.Duration
	// TimeoutText is the number of seconds as the client gave it, for the message.
	TimeoutText string
}

// ParseTimeout turns a number of seconds into the two values of Args. Values that are not positive and finite,
// or longer than MaxTimeout, are refused with InvalidTimeout.
func ParseTimeout(seconds float64) (timeout time.Duration, text string, err error) {
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds <= 0 {
		return 0, "", engine.Errorf(engine.InvalidTimeout, "Invalid timeout: must be a finite number of seconds")
	}
	if seconds > MaxTimeout.Seconds() {
		return 0, "", engine.Errorf(engine.InvalidTimeout, "Invalid timeout: maximum is 2147483.647 seconds")
	}
	timeout = max(time.Duration(seconds*float64(time.Second)), time.Nanosecond)
	return timeout, strconv.FormatFloat(seconds, 'f', -1, 64), nil
}

// Cause says why a command was stopped from outside.
type Cause string

// The causes of Cancel.
const (
	Cancelled Cause = "Cancelled" // somebody asked for it
	Closed    Cause = "Closed"    // its workspace was closed
	Shutdown  Cause = "Shutdown"  // the daemon ends
)

// Command is a command that was started.
type Command struct {
	family *process.Family
	output *Output
	args   Args
	begun  time.Time

	reader *reader
	timer  *time.Timer

	mu        sync.Mutex
	timedOut  bool
	cancelled Cause

	haltOnce sync.Once
	halted   chan struct{} // closed when the family is being stopped
	stopped  chan struct{} // closed when that is over

	done    chan struct{}
	outcome *Outcome
}

// Start starts a command in env.Cwd and returns at once. Its error is an *engine.Error with SpawnFailed or
// InvalidTimeout; nothing has run then.
func Start(env engine.Env, a Args) (*Command, error) {
	if a.Timeout < 0 || a.Timeout > MaxTimeout {
		_, _, err := ParseTimeout(a.Timeout.Seconds())
		return nil, err
	}
	if st, err := os.Stat(env.Cwd); err != nil || !st.IsDir() {
		return nil, &engine.Error{Reason: engine.SpawnFailed, Path: env.Cwd, Err: err,
			Message: "Working directory does not exist: " + env.Cwd + "\nCannot execute bash commands."}
	}
	if strings.IndexByte(a.Command, 0) >= 0 {
		return nil, engine.Errorf(engine.SpawnFailed, "The command contains a NUL character. Remove it and try again.")
	}
	a.ID = cmp.Or(a.ID, rand.Text())
	c := &Command{args: a, halted: make(chan struct{}), stopped: make(chan struct{}),
		done: make(chan struct{}), output: &Output{full: fullOutput{dir: env.OutputDir, id: a.ID, limit: FullOutputLimit}}}
	if env.OutputDir == "" {
		c.output.full.dir = os.TempDir()
	}
	if err := c.spawn(env); err != nil {
		return nil, &engine.Error{Reason: engine.SpawnFailed, Path: env.Cwd, Err: err,
			Message: "Cannot start the shell: " + plain(err) + ". Nothing has run."}
	}
	go c.run()
	return c, nil
}

// spawn starts the shell and the reader of its two streams.
func (c *Command) spawn(env engine.Env) error {
	reader, writers, err := newReader(c.take, c.output.end)
	if err != nil {
		return err
	}
	defer closeAll(writers[:]...)
	cmd := exec.Command(shell(), "-c", c.args.Command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = env.Cwd, environment(env), writers[0], writers[1]
	if len(c.args.Command) >= argumentLimit {
		script, err := feed(c.args.Command)
		if err != nil {
			reader.abandon()
			return err
		}
		defer script.Close()
		cmd.Args[2], cmd.ExtraFiles = longCommand, []*os.File{script}
	}
	c.begun = time.Now()
	c.output.begun = c.begun
	family, err := process.StartMarked(cmd, c.args.ID)
	if err != nil {
		reader.abandon()
		return err
	}
	c.family, c.reader = family, reader
	go reader.run()
	if c.args.Timeout > 0 {
		c.timer = time.AfterFunc(c.args.Timeout, c.expire)
	}
	return nil
}

// feed returns a pipe from which text can be read. Writing ends when nobody can read it any more.
func feed(text string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create pipe: %w", err)
	}
	go func() {
		defer w.Close()
		io.WriteString(w, text) //nolint:errcheck // the shell ended early
	}()
	return r, nil
}

// longCommand reads a command that is too long for an argument from descriptor 3 and closes it before the
// command runs. Messages and line numbers are as with -c.
const longCommand = `eval "exec 3<&-; $(command cat <&3)"`

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// shell returns /bin/bash, else bash from PATH, else sh.
func shell() string {
	if st, err := os.Stat("/bin/bash"); err == nil && !st.IsDir() {
		return "/bin/bash"
	}
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "sh"
}

// dropped are variables of another agent's session that would mislead programs started here.
var dropped = []string{"PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL", process.MarkerVariable, "PWD"}

// harmless keeps programs from waiting for somebody at a terminal: editors succeed at once and change nothing,
// pagers print, git asks no questions. A command may set them otherwise.
var harmless = []string{"EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// environment is the server's, with the changes above and the agent's own directory of programs first in PATH,
// as clients of the reference expect.
func environment(env engine.Env) []string {
	base := env.Environ
	if base == nil {
		base = os.Environ()
	}
	out := make([]string, 0, len(base)+len(harmless)+3)
	path, agent := "", filepath.Join(env.Home, ".pi", "agent")
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == "PATH":
			path = value
		case slices.Contains(dropped, name), slices.ContainsFunc(harmless, func(h string) bool { return strings.HasPrefix(h, name+"=") }):
		default:
			if name == "PI_CODING_AGENT_DIR" && filepath.IsAbs(value) {
				agent = value
			}
			out = append(out, entry)
		}
	}
	out = append(append(out, harmless...), "PWD="+env.Cwd)
	if path == "" {
		return out // the shell has a default
	}
	if bin := filepath.Join(agent, "bin"); filepath.IsAbs(bin) && !slices.Contains(filepath.SplitList(path), bin) {
		path = bin + ":" + path
	}
	return append(out, "PATH="+path)
}

// PGID returns the number of the shell, of its process group and of its session.
func (c *Command) PGID() int { return c.family.PGID() }

// StartTime returns the opaque start of the group's leader: with PGID it finds the processes of this command
// again, through process.Group and process.Stop, and never those of another boot or owner of the number.
func (c *Command) StartTime() string { return c.family.StartTime() }

// Done is closed when the outcome is known.
func (c *Command) Done() <-chan struct{} { return c.done }

// Outcome returns how the command ended, nil before Done.
func (c *Command) Outcome() *Outcome {
	select {
	case <-c.done:
		return c.outcome
	default:
		return nil
	}
}

// Output returns the live output.
func (c *Command) Output() *Output { return c.output }

// Cancel asks everything that descends from the command to end, kills what is left after process.Grace, and
// returns at once; Done tells when it is over. The first cause counts. A command whose shell has ended keeps
// its outcome; what it left behind is stopped all the same.
func (c *Command) Cancel(reason Cause) {
	c.mu.Lock()
	if c.cancelled == "" && !c.family.Ended() {
		c.cancelled = cmp.Or(reason, Cancelled)
	}
	c.mu.Unlock()
	c.halt()
}

// expire is the timeout.
func (c *Command) expire() {
	if c.family.Ended() {
		return
	}
	c.mu.Lock()
	c.timedOut = true
	c.mu.Unlock()
	c.halt()
}

// String describes the command for debugging, without its text.
func (c *Command) String() string { return fmt.Sprintf("bash command in group %d", c.PGID()) }
