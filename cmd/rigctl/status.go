package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

func statusCommand(conn *connection) *cobra.Command {
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show projects, threads, running commands and what waits for you",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for {
				s, err := conn.status(c.Context(), time.Now())
				if err != nil {
					return err
				}
				if watch && !asJSON {
					fmt.Fprint(conn.streams.Out, "\x1b[H\x1b[2J") // home, clear
				}
				if err := conn.printStatus(s, asJSON); err != nil || !watch {
					return err
				}
				time.Sleep(time.Second)
			}
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON")
	c.Flags().BoolVar(&watch, "watch", false, "print it again every second")
	return c
}

// status reads everything and puts it together.
func (c *connection) status(ctx context.Context, now time.Time) (*statusView, error) {
	if err := c.reachable(ctx); err != nil {
		return nil, err
	}
	w, err := c.readWorld(ctx)
	if err != nil {
		return nil, err
	}
	d, err := c.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	info, err := d.ServerVersion()
	if err != nil {
		return nil, err
	}
	s := w.view(now)
	s.Version = ownVersion(info)
	_, dir, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	// The daemon writes this file when it begins to answer.
	file, err := os.Stat(filepath.Join(dir, endpointFile))
	if err != nil {
		return nil, fmt.Errorf("when the daemon started: %w", err)
	}
	s.StartedAt, s.UptimeSeconds = file.ModTime().UnixMilli(), int64(now.Sub(file.ModTime()).Seconds())
	return s, nil
}

func (c *connection) printStatus(s *statusView, asJSON bool) error {
	if asJSON {
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return err
		}
		_, err = c.streams.Out.Write(append(b, '\n'))
		return err
	}
	return s.print(c.streams.Out)
}
