package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// stopWait is how long the daemon takes to end at most; after that it exits with an error.
const stopWait = 8 * time.Second

func serveCommand() *cobra.Command {
	s := &settings{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP, the API and the dashboard on 127.0.0.1",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.complete(c); err != nil {
				return err
			}
			return serve(c.Context(), s)
		},
	}
	s.flags(c)
	c.Flags().DurationVar(&s.idleExit, "idle-exit", 0, "end after this long without use; 0 never")
	return c
}

// serve runs the daemon until ctx is done.
func serve(ctx context.Context, s *settings) error {
	log, err := newLogger(s.LogLevel)
	if err != nil {
		return err
	}
	started := make(chan struct{})
	go giveUp(ctx, started)
	d, err := start(s, log)
	close(started)
	if err != nil {
		notify(err, "")
		return err
	}
	notify(nil, fmt.Sprintf("Serving %s, state in %s", d.url(), s.StateDir))
	fmt.Fprintf(os.Stderr, "Rig Bridge listens on %s\nBearer token: %s\n", d.url(), s.TokenFile)
	select {
	case <-ctx.Done():
	case err = <-d.failed:
		if errors.Is(err, errIdle) {
			log.Info("Nobody has used the daemon for a while")
			err = nil
			break
		}
		log.Error(err, "Serving failed")
	}
	log.Info("Stopping")
	deadline, cancel := context.WithTimeoutCause(context.Background(), stopWait, errors.New("stopping took too long"))
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- d.stop(deadline) }()
	select {
	case serr := <-stopped:
		return errors.Join(err, serr)
	case <-deadline.Done():
		return fmt.Errorf("not everything ended within %s", stopWait)
	}
}

// giveUp ends a daemon that is asked to stop and does not get through its start: a slow disk must not hold up who
// waits for the end. A crash at any point is safe, and so is this.
func giveUp(ctx context.Context, started <-chan struct{}) {
	select {
	case <-started:
		return
	case <-ctx.Done():
	}
	select {
	case <-started:
	case <-time.After(stopWait):
		fmt.Fprintf(os.Stderr, "rig-bridge: asked to stop, and the start was not through after %s\n", stopWait)
		os.Exit(1)
	}
}

// newLogger builds the one logger of the process, to standard error.
func newLogger(level string) (logr.Logger, error) {
	c := zap.NewProductionConfig()
	c.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	c.DisableStacktrace, c.DisableCaller = true, true
	c.Sampling = nil
	if level == "debug" {
		c.Level = zap.NewAtomicLevelAt(zapcore.Level(-2)) // logr's V(2)
	}
	z, err := c.Build()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("build the logger: %w", err)
	}
	log := logr.New(lazySink{LogSink: zapr.NewLogger(z).GetSink()})
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("apiserver"))
	return log, nil
}
