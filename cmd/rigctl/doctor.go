package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/api/socket"
)

// Limits of what doctor finds good.
const (
	leastFree    = 256 << 20           // bytes; below 64 MB the store refuses to write
	leastValid   = 30 * 24 * time.Hour // of the certificate
	answerWithin = 5 * time.Second
)

// finding is one thing that doctor looked at: what is good about it, what is lacking and what for, or an error that says
// what to do.
type finding struct {
	good string
	lack string
	err  error
}

// line is the finding for people.
func (f finding) line() string {
	switch {
	case f.err != nil:
		return "✗ " + f.err.Error()
	case f.lack != "":
		return "! " + f.lack
	}
	return "✓ " + f.good
}

func doctorCommand(conn *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps rig-bridge from working and say what to do; exit 1 if there is anything",
		Long: "Look at what rig-bridge needs, a line each: ✓ it is well, ! something works less well, ✗ it keeps rig-bridge\n" +
			"from working. Each line that is not well says what to do. Exit code 1 if there is a ✗.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			bad := 0
			for _, look := range []func(context.Context) finding{
				conn.lookAtState, conn.lookAtSpace, conn.lookAtSocket, conn.lookAtDaemon, conn.lookAtPort, conn.lookAtToken, conn.lookAtCertificate,
				conn.lookAtClock, conn.lookAtTunnels, conn.lookAtPath,
				conn.lookFor("bash", "commands run in sh, which does not understand all that assistants write"),
				conn.lookFor("git", "assistants are not told the branch of a checkout and whether it is clean"), lookAtBus,
			} {
				f := look(c.Context())
				if f.err != nil {
					bad++
				}
				fmt.Fprintln(conn.streams.Out, f.line())
			}
			if bad > 0 {
				return fmt.Errorf("%s found", count(bad, "problem"))
			}
			return nil
		},
	}
}

func (c *connection) lookAtState(context.Context) finding {
	dir, _, err := c.stateDir()
	if err != nil {
		return finding{err: err}
	}
	return ownerOnly(dir, 0o700, "rig-bridge makes it when it is started")
}

// ownerOnly checks that nobody else can use a file or directory.
func ownerOnly(path string, mode fs.FileMode, ifMissing string) finding {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return finding{err: fmt.Errorf("%s is not there: %s", path, ifMissing)}
	case err != nil:
		return finding{err: err}
	case info.Mode().Perm()&^mode != 0:
		return finding{err: fmt.Errorf("others can use %s (mode %04o): chmod %04o %s", path, info.Mode().Perm(), mode, path)}
	}
	return finding{good: fmt.Sprintf("%s is yours alone", path)}
}

func (c *connection) lookAtSpace(context.Context) finding {
	dir, _, err := c.stateDir()
	if err != nil {
		return finding{err: err}
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return finding{err: fmt.Errorf("the free space at %s is not known: %w", dir, err)}
	}
	free := s.Bavail * uint64(s.Bsize)
	if free < leastFree {
		return finding{err: fmt.Errorf("only %d MB are free at %s: free some, or the store will refuse to write", free>>20, dir)}
	}
	return finding{good: fmt.Sprintf("%d MB are free for it", free>>20)}
}

func (c *connection) lookAtSocket(context.Context) finding {
	dir, _, err := c.stateDir()
	if err != nil {
		return finding{err: err}
	}
	return ownerOnly(filepath.Join(dir, socket.File), 0o600, "rig-bridge makes it when it is started")
}

// lookAtClock compares the clock with what the daemon wrote, and asks the system whether somebody sets it.
func (c *connection) lookAtClock(context.Context) finding {
	_, dir, err := c.endpoint()
	if err == nil {
		if info, err := os.Stat(filepath.Join(dir, endpointFile)); err == nil && time.Until(info.ModTime()) > time.Minute {
			return finding{lack: fmt.Sprintf("the clock says %s and the daemon was started at %s: the clock was set back, and what happened meanwhile looks as if it were to come; set it right",
				time.Now().Format(time.DateTime), info.ModTime().Format(time.DateTime))}
		}
	}
	if !clockIsKept() {
		return finding{lack: "nobody keeps the clock right, so the times in receipts may be off: timedatectl set-ntp true (durations are measured by another clock)"}
	}
	return finding{good: "the clock says " + time.Now().Format(time.DateTime)}
}

func (c *connection) lookAtDaemon(ctx context.Context) finding {
	if err := c.reachable(ctx); err != nil {
		return finding{err: err}
	}
	d, err := c.ToDiscoveryClient()
	if err != nil {
		return finding{err: err}
	}
	info, err := d.ServerVersion()
	if err != nil {
		return finding{err: fmt.Errorf("the daemon does not answer: %w", err)}
	}
	if own := ownVersion(info); own != asBuild(buildVersion()) {
		return finding{err: fmt.Errorf("the daemon is %s and rigctl is %s: restart the daemon, or install both from one release", own, buildVersion())}
	}
	return finding{good: "the daemon answers on its socket"}
}

func (c *connection) lookAtPort(ctx context.Context) finding {
	e, _, err := c.endpoint()
	if err != nil {
		return finding{err: err}
	}
	at, err := url.Parse(e.URL)
	if err != nil {
		return finding{err: fmt.Errorf("the daemon's address %q is not a URL: %w", e.URL, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("..", "readyz").String(), nil)
	if err != nil {
		return finding{err: err}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return finding{err: fmt.Errorf("nobody answers at %s: %w", at.Host, err)}
	}
	_ = resp.Body.Close() // it says one word
	if resp.StatusCode != http.StatusOK {
		return finding{err: fmt.Errorf("the daemon at %s is not ready (%s): see its log", at.Host, resp.Status)}
	}
	return finding{good: "MCP clients reach it at " + e.URL}
}

func (c *connection) lookAtToken(context.Context) finding {
	e, _, err := c.endpoint()
	if err != nil {
		return finding{err: err}
	}
	return ownerOnly(e.TokenFile, 0o600, "restart rig-bridge to have it made")
}

func (c *connection) lookAtCertificate(context.Context) finding {
	dir, _, err := c.stateDir()
	if err != nil {
		return finding{err: err}
	}
	file := filepath.Join(dir, certificateFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return finding{err: fmt.Errorf("the certificate for kubectl: %w", err)}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return finding{err: fmt.Errorf("%s holds no certificate: remove it and tls.key and restart rig-bridge", file)}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return finding{err: fmt.Errorf("%s is damaged: remove it and tls.key and restart rig-bridge: %w", file, err)}
	}
	if time.Until(cert.NotAfter) < leastValid {
		return finding{err: fmt.Errorf("the certificate for kubectl ends on %s: restart rig-bridge", cert.NotAfter.Format(time.DateOnly))}
	}
	return finding{good: "the certificate for kubectl is valid until " + cert.NotAfter.Format(time.DateOnly)}
}
