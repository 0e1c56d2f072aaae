package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// shownThreads of a project are printed; the rest is counted.
const shownThreads = 10

// print tells the status to people.
func (s *statusView) print(out io.Writer) error {
	lines := bufio.NewWriter(out)
	w := printable{lines} // outside of the buffer, which may break characters in two
	now := time.UnixMilli(s.StartedAt).Add(time.Duration(s.UptimeSeconds) * time.Second)
	fmt.Fprintf(w, "Rig Bridge %s, up %s: %s running, %s, %d unread\n", s.Version, duration.HumanDuration(time.Duration(s.UptimeSeconds)*time.Second),
		count(s.ActiveCommandsCount, "command"), count(s.ProjectsCount, "project"), s.UnreadCount)
	open := map[string]*workspaceView{}
	for i := len(s.Workspaces) - 1; i >= 0; i-- { // the first, busiest one wins
		open[s.Workspaces[i].ThreadID] = &s.Workspaces[i]
	}
	unread := map[string][]handoffView{}
	for _, h := range s.Notifications {
		if h.ReadAt == nil {
			unread[h.ThreadID] = append(unread[h.ThreadID], h)
		}
	}
	for _, p := range s.Projects {
		waiting := 0
		for _, t := range p.Threads {
			waiting += len(unread[t.ID])
		}
		fmt.Fprintf(w, "\n%s  %s, %d unread  %s  [%s]\n", p.Name, count(len(p.Threads), "thread"), waiting, p.Root, short(p.ID))
		for i, t := range p.Threads {
			if i == shownThreads {
				fmt.Fprintf(w, "  and %s used before; see rigctl get threads\n", count(len(p.Threads)-i, "thread"))
				break
			}
			t.print(w, open[t.ID], unread[t.ID], now)
		}
	}
	return lines.Flush()
}

func (t *threadView) print(w io.Writer, open *workspaceView, unread []handoffView, now time.Time) {
	mark, saved := "○", ", saved; resume it through MCP"
	if open != nil {
		saved = ""
		if len(open.ActiveCommands) > 0 {
			mark = "▶"
		}
	}
	fmt.Fprintf(w, "  %s %s [%s]  %s  %s ago  %s%s\n", mark, t.Title, short(t.ID), t.state(unread), duration.HumanDuration(now.Sub(time.UnixMilli(t.LastUsed))), t.Cwd, saved)
	for _, h := range unread {
		fmt.Fprintf(w, "      %s\n", strings.ReplaceAll(h.Summary, "\n", "\n      "))
	}
	if open == nil {
		return
	}
	for _, c := range open.ActiveCommands {
		fmt.Fprintf(w, "      running for %ds: %s\n", *c.ElapsedMs/1000, oneLine(c.Description))
	}
	if c := open.LastCommand; c != nil {
		fmt.Fprintf(w, "      %s\n", c.outcome())
	}
}

// state is where the thread stands, in capitals where somebody has to act.
func (t *threadView) state(unread []handoffView) string {
	switch {
	case len(unread) > 0:
		return "YOUR TURN · " + strings.ToUpper(strings.ReplaceAll(unread[0].Reason, "_", " "))
	case t.Run == nil:
		return "IDLE"
	case t.Run.Status == "working":
		return "WORKING"
	case t.Run.Status == "interrupted":
		return "INTERRUPTED · STATUS UNKNOWN"
	}
	return "IDLE"
}

func (c *commandView) outcome() string {
	mark := "✗"
	if c.Success != nil && *c.Success {
		mark = "✓"
	}
	text := mark + " " + oneLine(c.Description)
	if c.DurationMs != nil {
		text += fmt.Sprintf(" in %.1fs", float64(*c.DurationMs)/1000)
	}
	if first, _, _ := strings.Cut(c.Error, "\n"); first != "" {
		text += ": " + first
	}
	return text
}

// lineWidth is how much of a command is shown, in characters.
const lineWidth = 100

// oneLine is a command's first line, cut where it is long.
func oneLine(s string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if r := []rune(line); len(r) > lineWidth {
		return string(r[:lineWidth]) + " …"
	}
	if more != "" {
		line += " …"
	}
	return line
}

// short is enough of a UUID to tell it from its neighbours.
func short(id string) string { return id[:min(8, len(id))] }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
