package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
)

func inboxCommand(conn *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "inbox",
		Short: "Show what assistants handed over to you and you have not read",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return conn.inbox(c.Context(), time.Now()) },
	}
}

// inbox prints unread handoffs, the latest first.
func (c *connection) inbox(ctx context.Context, now time.Time) error {
	s, err := c.status(ctx)
	if err != nil {
		return err
	}
	if s.UnreadCount == 0 {
		fmt.Fprintln(c.streams.ErrOut, "Nothing waits for you.")
		return nil
	}
	projects, threads := map[string]string{}, map[string]string{}
	for _, p := range s.Projects {
		projects[p.ID] = p.Name
		for _, t := range p.Threads {
			threads[t.ID] = t.Title
		}
	}
	_, terminal := terminalSize(c.streams.Out)
	p := &page{colour: terminal && coloured()}
	for _, h := range s.Notifications {
		if h.ReadAt != nil {
			continue
		}
		p.add("%s  %s · %s  %s ago", yellow(strings.ToUpper(strings.ReplaceAll(h.Reason, "_", " "))),
			cmp.Or(projects[h.ProjectID], none), cmp.Or(threads[h.ThreadID], none), duration.HumanDuration(now.Sub(time.UnixMilli(h.CreatedAt))))
		p.add("  %s\n  rigctl ack %s", strings.ReplaceAll(h.Summary, "\n", "\n  "), h.ID)
	}
	_, err = fmt.Fprintln(c.streams.Out, strings.Join(p.lines, "\n"))
	return err
}
