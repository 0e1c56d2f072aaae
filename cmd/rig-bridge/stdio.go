package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rigbridge/rigbridge/api/socket"
	"github.com/rigbridge/rigbridge/mcpserver/transport"
)

const (
	// idleExit is when a daemon that was started for stdio ends by itself.
	idleExit = 30 * time.Minute
	// startWait is how long a daemon that was started for stdio may take to answer.
	startWait = 30 * time.Second
	// stdioPath is where the socket speaks the stdio protocol.
	stdioPath = "/mcp/stdio"
)

func stdioCommand() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "stdio",
		Short: "Speak MCP over standard input and output, through the running daemon",
		Long: "Speak MCP over standard input and output, through the running daemon.\n\n" +
			"If no daemon runs, one is started in the background; it ends when it has been idle for half an hour.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c); err != nil {
				return err
			}
			return stdio(c.Context(), s)
		},
	}
	s.flags(c)
	return c
}

// stdio forwards to the daemon until standard input ends.
func stdio(ctx context.Context, s *settings) error {
	conn, err := socket.Dial(ctx, socketPath(s))
	if err != nil {
		if conn, err = startForStdio(ctx, s); err != nil {
			return err
		}
	}
	return transport.Forward(ctx, conn, stdioPath, "", os.Stdin, os.Stdout)
}

func socketPath(s *settings) string { return filepath.Join(s.StateDir, "rig-bridge.sock") }

// startForStdio starts a daemon in the background and connects to it. When another one is faster, that one is
// used: the store's lock lets only one live.
func startForStdio(ctx context.Context, s *settings) (net.Conn, error) {
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("the state directory cannot be made: %w", err)
	}
	logFile := filepath.Join(s.StateDir, "daemon.log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the daemon's log: %w", err)
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	args := []string{"serve", "--port", "0", "--state-dir", s.StateDir, "--log-level", s.LogLevel, "--idle-exit", idleExit.String()}
	if s.explicitToken && s.TokenFile != "" {
		args = append(args, "--token-file", s.TokenFile)
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	return awaitDaemon(ctx, s, ended, logFile)
}

func awaitDaemon(ctx context.Context, s *settings, ended <-chan struct{}, logFile string) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, errors.New("the daemon did not answer in time"))
	defer cancel()
	for {
		if conn, err := socket.Dial(ctx, socketPath(s)); err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; see %s", context.Cause(ctx), logFile)
		case <-ended:
			if conn, err := socket.Dial(ctx, socketPath(s)); err == nil { // another one was faster
				return conn, nil
			}
			return nil, fmt.Errorf("the daemon could not start: %s", lastLine(logFile))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func lastLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "its log cannot be read"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "rig-bridge: ")
}
