package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// stopWait bounds the time in which a client is asked to end, killed, and looked for again.
const stopWait = process.Grace + 8*time.Second

// child is a client that this life of the daemon started.
type child struct {
	family  *process.Family
	command string
	asked   v1alpha1.TunnelSpec // for which it was started
	key     string              // keyStamp then
	route   string              // the default routes then
	url     string              // the file in which it says where its health is told
	log     string              // the file of its output

	began time.Time
	done  chan struct{} // closed when nothing of it runs; the rest may be read then
	ended time.Time
	state *os.ProcessState
}

// outdated says whether the client is to be started again, for another spec or another key, which it has read at
// its start. What it does not see may change.
func (c *child) outdated(spec v1alpha1.TunnelSpec) bool {
	spec.Watchdog, spec.Suspended = c.asked.Watchdog, c.asked.Suspended
	key := keyStamp(spec.Credential.File)
	return spec != c.asked || key != c.key && key != ""
}

// keyStamp tells one content of a file from another; it is empty if there is no file.
func keyStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// files are what belongs to a tunnel in the state directory.
func (r *Reconciler) files(name string) (url, log string) {
	return filepath.Join(r.Dir, name+".url"), filepath.Join(r.Dir, name+".log")
}

// KeyFile is where the key of a tunnel is kept below a state directory's folder of tunnels, if it was given in
// another form than a file.
func KeyFile(dir, name string) string { return filepath.Join(dir, name+".key") }

// arguments are the client's, in the form that its provider documents. They name files instead of secrets.
func arguments(spec v1alpha1.TunnelSpec, server, tokenFile, urlFile string) []string {
	authorization := "Authorization: file:" + tokenFile
	return []string{"run",
		"--control-plane.tunnel-id", spec.TunnelID,
		"--control-plane.api-key", "file:" + spec.Credential.File,
		"--mcp.server-url", server,
		"--mcp.extra-headers", authorization,
		"--mcp.discovery-extra-headers", authorization,
		"--health.listen-addr", "127.0.0.1:0",
		"--health.url-file", urlFile,
	}
}

// withheld are variables that the client does not get: keys that it reads from files, and what would have it write
// whole requests into its log.
var withheld = []string{"CONTROL_PLANE_API_KEY", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "LOG_HTTP_RAW_UNSAFE"}

// environment is what the client gets of ours.
func environment(ours []string, controlPlaneURL string) []string {
	env := slices.DeleteFunc(slices.Clone(ours), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(withheld, name)
	})
	if controlPlaneURL != "" {
		env = append(env, ControlPlaneVariable+"="+controlPlaneURL)
	}
	return env
}

// variable returns the value of an environment variable; of several, the last one's.
func variable(env []string, name string) (value string) {
	for _, entry := range env {
		if v, found := strings.CutPrefix(entry, name+"="); found {
			value = v
		}
	}
	return value
}

// unmetError says what is missing for a client to be started. It is looked for again.
type unmetError struct {
	reason string
	err    error
}

func (e *unmetError) Error() string { return e.err.Error() }

// startClient starts a client. The caller has made sure that there is none.
func (r *Reconciler) startClient(t *v1alpha1.Tunnel) (*child, error) {
	ours := r.Environ(context.Background())
	path, err := Find(t.Spec.ClientPath, Places(variable(ours, "PATH"), r.Home, r.Self))
	var missing *NotFoundError
	if errors.As(err, &missing) {
		return nil, &unmetError{v1alpha1.ReasonClientNotFound, err}
	} else if err != nil {
		return nil, &unmetError{v1alpha1.ReasonClientUnusable, err}
	}
	c := &child{command: filepath.Base(path), asked: t.Spec, key: keyStamp(t.Spec.Credential.File), route: r.Routes.Current(), done: make(chan struct{})}
	key, err := CheckCredential(t.Spec.Credential.File)
	if err != nil {
		return nil, &unmetError{v1alpha1.ReasonCredentialUnusable, err}
	}
	c.url, c.log = r.files(t.Name)
	if err := os.Remove(c.url); err != nil && !errors.Is(err, fs.ErrNotExist) { // it names an earlier client
		return nil, fmt.Errorf("remove the address of an earlier client: %w", err)
	}
	token, err := os.ReadFile(r.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("the bearer's file cannot be read: %w", err)
	}
	cmd := exec.Command(path, arguments(t.Spec, r.ServerURL(), r.TokenFile, c.url)...)
	cmd.Env = environment(ours, t.Spec.ControlPlaneURL)
	cmd.Dir = r.Dir
	return c, r.run(c, cmd, string(t.UID), []string{key, strings.TrimPrefix(strings.TrimSpace(string(token)), "Bearer ")})
}

// run starts the command, copies its output, and notes its end.
func (r *Reconciler) run(c *child, cmd *exec.Cmd, marker string, secrets []string) error {
	out, err := openOutput(c.log, secrets, r.Now)
	if err != nil {
		return err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make a pipe for the client's output: %w", err), out.file.Close())
	}
	cmd.Stdout, cmd.Stderr = to, to
	c.began = r.Now()
	c.family, err = process.StartMarked(cmd, marker)
	_ = to.Close() // the client has its own
	if err != nil {
		_ = from.Close() // nothing was started
		return errors.Join(fmt.Errorf("the tunnel client %s cannot be started: %w", cmd.Path, plain(err)), out.file.Close())
	}
	go out.copy(from)
	go func() {
		c.awaitEnd()
		_ = from.SetReadDeadline(time.Now().Add(time.Second)) // should somebody else hold the other end
		c.ended = r.Now()
		close(c.done)
	}()
	return nil
}

// awaitEnd returns when the client has ended and nothing that it started runs: the next one must not meet it.
func (c *child) awaitEnd() {
	c.family.Await()
	c.state, _ = c.family.Reap() // without a state it is not known how it ended
	for {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		err := c.family.Stop(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// running says whether anything of the client may still run.
func (c *child) running() bool {
	if c == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// stop ends the client and returns when nothing of it runs.
func (c *child) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	if err := c.family.Stop(ctx); err != nil {
		return err
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return errors.New("its end was not noted")
	}
}

// howItEnded says it in words; only after done.
func (c *child) howItEnded() string {
	if c.state == nil {
		return "ended"
	}
	if code := c.state.ExitCode(); code >= 0 {
		return fmt.Sprintf("exited with code %d", code)
	}
	return "was ended by a " + c.state.String() // "signal: killed"
}

// settleEarlier stops what earlier lives of the daemon left of a tunnel's clients, recorded or not.
func settleEarlier(uid types.UID, recorded *v1alpha1.Process) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWait)
	defer cancel()
	var err error
	if recorded != nil {
		err = process.Stop(ctx, int(recorded.PID), recorded.StartTime)
	}
	if pgid, start, list := process.Marked(string(uid)); len(list) > 0 {
		err = errors.Join(err, process.Stop(ctx, pgid, start))
	}
	return err
}
