// Command bench measures a running server as a client sees it, and beside it what the machine itself can
// do, in one run: per tool the latency at 1, 8 and 64 callers and the throughput, start-up time, memory.
//
//	go run ./hack/bench                          the daemon of this tree
//	go run ./hack/bench --vs 'CMD'               and another server, in turns, so that both see the same machine
//	go run ./hack/bench --url URL --token-file F a server that already runs
//	go run ./hack/bench search [--vs 'CMD']      grep and find on large trees, against rg and fd as processes
//
// In a server's command {port} and {state} stand for a port and a fresh state directory. The token is the
// file in the state directory that holds a bearer. A ratio compares a tool's median with the limit that
// it cannot beat: an HTTP round trip, for writes also two flushes to disk, for commands also a process.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == echoMode {
		serveEcho()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// plan is how much to measure.
type plan struct {
	callers []int
	cell    time.Duration // of one tool at one number of callers
	turns   int           // a cell is cut into so many turns, in which the servers take their places
	starts  int
}

var (
	full  = plan{callers: []int{1, 8, 64}, cell: 3 * time.Second, turns: 3, starts: 5}
	short = plan{callers: []int{1, 8, 64}, cell: 300 * time.Millisecond, turns: 1, starts: 1}
)

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "search" {
		return search(ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var first, second source
	flags.StringVar(&first.command, "server", "", "`command` that starts the server; default: the daemon of this tree")
	flags.StringVar(&first.url, "url", "", "MCP `address` of a server that runs, instead of --server")
	flags.StringVar(&first.tokenFile, "token-file", "", "`file` that holds the Authorization header of --url or --server")
	flags.StringVar(&second.command, "vs", "", "`command` that starts a second server to compare with")
	flags.StringVar(&second.url, "vs-url", "", "MCP `address` of a second server that runs")
	flags.StringVar(&second.tokenFile, "vs-token-file", "", "`file` that holds the Authorization header of the second server")
	asJSON := flags.Bool("json", false, "print JSON")
	quick := flags.Bool("short", false, "measure briefly, to see that all works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := full
	if *quick {
		p = short
	}
	sources := []source{first}
	if second.command != "" || second.url != "" {
		sources = append(sources, second)
	}
	report, err := measure(ctx, p, sources)
	if err != nil {
		return err
	}
	if *asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(report)
	}
	return report.print(os.Stdout)
}

// measure does the whole run.
func measure(ctx context.Context, p plan, sources []source) (*report, error) {
	scratch, err := os.MkdirTemp("", "rig-bridge-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	defer os.RemoveAll(scratch)
	r := &report{Time: time.Now().UTC(), Callers: p.callers}
	var servers []*server
	for i, src := range sources {
		s, err := start(ctx, src, fmt.Sprintf("%s/%d", scratch, i), p.starts)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		servers = append(servers, s)
		r.Servers = append(r.Servers, serverReport{Name: src.name(), StartMS: s.starts, IdleMB: s.residentMB()})
	}
	if r.Limits, err = limits(ctx, p, scratch); err != nil {
		return nil, err
	}
	for _, tool := range tools {
		for _, callers := range p.callers {
			if err := measureTool(ctx, p, r, servers, tool, callers); err != nil {
				return nil, err
			}
		}
	}
	for i, s := range servers {
		r.Servers[i].LoadedMB = s.residentMB()
	}
	return r, nil
}

// measureTool fills one cell for each server, in turns.
func measureTool(ctx context.Context, p plan, r *report, servers []*server, tool tool, callers int) error {
	cells := make([]sample, len(servers))
	for range p.turns {
		for i, s := range servers {
			call, err := tool.prepare(ctx, s, callers)
			if err != nil {
				return fmt.Errorf("prepare %s on %s: %w", tool.name, s.source.name(), err)
			}
			cells[i].add(load(ctx, callers, p.cell/time.Duration(p.turns), call))
		}
	}
	for i := range servers {
		r.Servers[i].Tools = append(r.Servers[i].Tools, cells[i].row(tool.name, callers, r.Limits.of(tool.bounds, callers)))
	}
	return ctx.Err()
}
