package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rigbridge/rigbridge/controllers/runner"
	"github.com/rigbridge/rigbridge/controllers/tunnel"
)

// tunnelDir is the folder of what belongs to tunnels: addresses and output of the clients, and keys that were given
// in another form than a file.
func tunnelDir(s *settings) string { return filepath.Join(s.StateDir, "tunnels") }

// controlTunnels sets up the reconciler of tunnels, before the manager starts.
func (d *daemon) controlTunnels(ctx context.Context, m ctrl.Manager) error {
	dir := tunnelDir(d.settings)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the folder of tunnels cannot be made: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("the folder of tunnels must be the owner's alone: %w", err)
	}
	token, err := filepath.Abs(d.settings.TokenFile)
	if err != nil {
		return fmt.Errorf("find the bearer's file: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		self = "" // then nothing is looked for beside it
	}
	d.tunnels = &tunnel.Reconciler{
		Client: m.GetClient(), Live: d.api.Client, Runner: runner.New(), Now: time.Now, Log: d.log.WithName("tunnels"),
		Dir: dir, ServerURL: d.url, TokenFile: token, Environ: d.programs.environ, Home: d.env.Home, Self: self, Routes: tunnel.NewRoutes(),
	}
	if err := d.tunnels.Adopt(ctx); err != nil {
		return err
	}
	if err := d.tunnels.SetupWithManager(m); err != nil {
		return fmt.Errorf("set up the tunnel controller: %w", err)
	}
	return nil
}
