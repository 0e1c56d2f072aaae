package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rigbridge/rigbridge/api/status"
)

// Bounds of what is printed of a project, a thread and all of them; the rest is counted.
const (
	shownThreads   = 10
	shownSummary   = 3 // lines, where there is little room
	shownLeftovers = 5 // of one operation
)

// statusPage tells the status to people, in a text that fits if that is possible: busy threads first of all.
func statusPage(s *status.Status, url string, now time.Time, to size, colour bool) []string {
	for idle := shownThreads; ; idle-- {
		p := &prose{page: page{colour: colour}, Status: s, url: url, now: now, idle: idle, tight: to.rows > 0}
		p.print()
		if to.rows == 0 || len(p.lines) <= to.rows || idle == 0 {
			return p.fitted(to)
		}
	}
}

// prose is a status on its way to people.
type prose struct {
	page
	*status.Status
	url   string // of the dashboard
	now   time.Time
	idle  int  // how many idle threads of a project are shown
	tight bool // there is little room

	open   map[string]*status.Workspace // of a thread
	unread map[string][]status.Handoff  // of a thread
}

func (p *prose) print() {
	p.open, p.unread = map[string]*status.Workspace{}, map[string][]status.Handoff{}
	for i := len(p.Workspaces) - 1; i >= 0; i-- { // the first, busiest one wins
		p.open[p.Workspaces[i].ThreadID] = &p.Workspaces[i]
	}
	for _, h := range p.Notifications {
		if h.ReadAt == nil {
			p.unread[h.ThreadID] = append(p.unread[h.ThreadID], h)
		}
	}
	left := ""
	if n := len(p.Leftovers); n > 0 {
		left = fmt.Sprintf(", %d left running", n)
	}
	p.add("%s, up %s: %s running, %s, %d unread%s", bold("Rig Bridge "+p.Version), p.ago(p.StartedAt),
		count(p.ActiveCommandsCount, "command"), count(p.ProjectsCount, "project"), p.UnreadCount, left)
	if p.url != "" {
		p.add("Dashboard at %s, log in with: rigctl dashboard", p.url)
	}
	p.tunnels()
	for i := range p.Projects {
		p.project(&p.Projects[i])
	}
	p.leftovers()
	p.clients()
}

func (p *prose) ago(at int64) string { return duration.HumanDuration(p.now.Sub(time.UnixMilli(at))) }

func (p *prose) project(o *status.Project) {
	waiting := 0
	for _, t := range o.Threads {
		waiting += len(p.unread[t.ID])
	}
	p.add("\n%s  %s, %d unread  %s  [%s]", bold(o.Name), count(len(o.Threads), "thread"), waiting, o.Root, short(o.ID))
	idle := 0
	for i := range o.Threads {
		t := &o.Threads[i]
		if !p.busy(t) {
			if idle++; idle > p.idle {
				continue
			}
		}
		p.thread(t)
	}
	if more := idle - p.idle; more > 0 {
		p.add("  and %s used before; see rigctl get threads", count(more, "thread"))
	}
}

// tunnels prints a line about each tunnel.
func (p *prose) tunnels() {
	for _, t := range p.Tunnels {
		p.add("%s", tunnelLine(t, p.now))
	}
}

// busy says whether something happens in a thread, or waits for the person.
func (p *prose) busy(t *status.Thread) bool {
	open := p.open[t.ID]
	return len(p.unread[t.ID]) > 0 || open != nil && (len(open.ActiveCommands) > 0 || t.Run != nil && t.Run.Status == "working")
}

func (p *prose) thread(t *status.Thread) {
	open, mark, saved := p.open[t.ID], styled{"○", "2"}, ", saved; resume it through MCP"
	if open != nil {
		saved = ""
		if len(open.ActiveCommands) > 0 {
			mark = green("▶")
		}
	}
	p.add("  %s %s [%s]  %s  %s ago  %s%s", mark, t.Title, short(t.ID), p.state(t), p.ago(t.LastUsed), t.Cwd, saved)
	for _, h := range p.unread[t.ID] {
		p.add("      %s", strings.ReplaceAll(p.summary(h.Summary), "\n", "\n      "))
	}
	if open == nil {
		return
	}
	for _, c := range open.ActiveCommands {
		p.add("      running for %s: %s", p.ago(c.StartedAt), oneLine(c.Description))
	}
	if c := open.LastCommand; c != nil {
		p.outcome(c)
	}
}

// summary is what a handoff says, or the beginning of it where there is little room.
func (p *prose) summary(s string) string {
	lines := strings.Split(s, "\n")
	if p.tight && len(lines) > shownSummary {
		lines = append(lines[:shownSummary], "… see rigctl inbox")
	}
	return strings.Join(lines, "\n")
}

// state is where the thread stands, in capitals where somebody has to act.
func (p *prose) state(t *status.Thread) styled {
	unread := p.unread[t.ID]
	switch {
	case len(unread) > 0:
		return yellow("YOUR TURN · " + strings.ToUpper(strings.ReplaceAll(unread[0].Reason, "_", " ")))
	case t.Run == nil:
		return styled{"IDLE", ""}
	case t.Run.Status == "working" && p.open[t.ID] != nil && len(p.open[t.ID].ActiveCommands) > 0:
		return green("WORKING")
	case t.Run.Status == "working":
		return styled{"IDLE · AWAITING HANDOFF", ""}
	case t.Run.Status == "interrupted":
		return yellow("INTERRUPTED · STATUS UNKNOWN")
	}
	return styled{"IDLE", ""}
}

func (p *prose) outcome(c *status.Command) {
	mark := red("✗")
	if c.Success != nil && *c.Success {
		mark = green("✓")
	}
	text := oneLine(c.Description)
	if c.DurationMs != nil {
		text += fmt.Sprintf(" in %.1fs", float64(*c.DurationMs)/1000)
	}
	if first, _, _ := strings.Cut(c.Error, "\n"); first != "" {
		text += ": " + first
	}
	p.add("      %s %s", mark, text)
}

// leftovers tells what commands left running, by operation, and how to stop it.
func (p *prose) leftovers() {
	for i, l := range p.Leftovers {
		same := func(o status.Leftover) bool { return o.OperationID == l.OperationID }
		if i == 0 {
			p.add("\n%s", bold("Left running"))
		}
		if i > 0 && same(p.Leftovers[i-1]) {
			continue
		}
		p.add("  %s in %s", oneLine(l.Description), l.Cwd)
		shown := 0
		for _, o := range p.Leftovers[i:] {
			if !same(o) {
				break
			}
			if shown++; shown <= shownLeftovers {
				p.add("      %s %s%s", yellow(fmt.Sprintf("pid %d", o.PID)), o.Command, aged(o.AgeSeconds))
			}
		}
		if shown > shownLeftovers {
			p.add("      and %d more", shown-shownLeftovers)
		}
		p.add("      stop: %s", l.Stop)
	}
}

func aged(seconds *int64) string {
	if seconds == nil {
		return ""
	}
	return ", " + duration.HumanDuration(time.Duration(*seconds)*time.Second)
}

// shownClients are printed, those heard of last.
const shownClients = 5

// clients tells when assistants were last heard of, so that one that is silent can be told from a broken bridge.
func (p *prose) clients() {
	if len(p.Clients) > 0 {
		p.add("")
	}
	for _, c := range p.Clients[:min(len(p.Clients), shownClients)] {
		name := strings.TrimSpace(cmp.Or(c.Name, c.UserAgent, "a client without a name") + " " + c.Version)
		what := strings.TrimSpace(c.LastMethod + " " + c.LastTool)
		p.add("Last heard of %s: %s %s ago, %s", name, what, p.ago(c.LastTime), count(int(c.Requests), "request"))
	}
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
