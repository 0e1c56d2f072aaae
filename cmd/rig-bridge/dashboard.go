package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/rigbridge/rigbridge/api/dashboard"
	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// newDashboard makes the dashboard. Calls and mcp, which it asks when somebody reads, are made after it.
func (d *daemon) newDashboard(ctx context.Context) (*dashboard.Dashboard, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	return dashboard.New(ctx, dashboard.Options{
		Client: d.api.Client, Durable: d.api.WaitDurable, KeyFile: filepath.Join(d.settings.StateDir, "dashboard-key"), Port: d.port(),
		Version: buildVersion(), Account: account(), Host: hostname(), Home: home,
		Describe: func(op *v1alpha1.Operation) (string, bool) { return d.calls.Describe(op) },
		Clients:  d.clients, Log: d.log.WithName("dashboard"), Now: time.Now,
	})
}

func (d *daemon) clients() []status.Client {
	all := []status.Client{}
	for _, c := range d.mcp.Clients() {
		all = append(all, status.Client{Name: c.Name, Version: c.Version, UserAgent: c.UserAgent, LastTime: c.LastTime.UnixMilli(),
			LastMethod: c.LastMethod, LastTool: c.LastTool, Requests: c.Requests})
	}
	return all
}
