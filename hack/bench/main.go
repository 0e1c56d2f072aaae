// Command bench measures a running server as a client sees it, and beside it what the machine itself can
// do, in one run: per tool the latency at 1, 8 and 64 callers, the throughput and the server's processor time,
// start-up time, memory.
//
//	go run ./hack/bench                          the daemon of this tree
//	go run ./hack/bench --vs 'CMD'               and another server, in turns, so that both see the same machine
//	go run ./hack/bench --url URL --token-file F a server that already runs
//	go run ./hack/bench search [--vs 'CMD']      grep and find on large trees, against rg and fd as processes
//	go run ./hack/bench receipts [--plots DIR]   what a store of many receipts costs
//	go run ./hack/bench callers [--plots DIR]    latency and throughput for 1 to 256 callers
//	go run ./hack/bench simulate [--plots DIR]   a day's mix of calls, accelerated: does anything grow
//	go run ./hack/bench trace                    where the time of one call goes, hop by hop
//	go run ./hack/bench profile --out FILE       a profile for the build, from a daemon under a mix of calls
//
// In a server's command {port} and {state} stand for a port and a fresh state directory. The token is the
// file in the state directory that holds a bearer. A limit is what the tool has to do and the machine with it, done
// one after the other and nothing else, in the same turns: an HTTP round trip with bodies of the same size, for
// what changes something also two flushes of a log and the file's own, for commands also the process. Callers that
// flush at once each flush for themselves in the limit; a server may do better. Processor time does not depend on
// what else the machine does, so it says something on a busy one, too.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// modes are what the first argument can ask for; without one the tools are measured.
var modes = map[string]func(context.Context, []string) error{
	"search": search, "receipts": receipts, "callers": callers, "simulate": simulate, "trace": trace, "profile": profile,
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		mode, ok := modes[args[0]]
		if !ok {
			return fmt.Errorf("no mode %q", args[0])
		}
		return mode(ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	var s sources
	s.flags(flags)
	asJSON := flags.Bool("json", false, "print JSON")
	quick := flags.Bool("short", false, "measure briefly, to see that all works")
	only := flags.String("only", "", "measure only tools whose name begins so, by `name,name`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := full
	if *quick {
		p = short
	}
	if *only != "" {
		p.only = strings.Split(*only, ",")
	}
	r, err := measure(ctx, p, s.all())
	if err != nil {
		return err
	}
	return deliver(r, *asJSON)
}

// plan is how much to measure.
type plan struct {
	callers    []int
	cell       time.Duration // of one tool at one number of callers
	turns      int           // a cell is cut into so many turns, in which the servers and the limit take their places
	starts     int
	settle     time.Duration // before memory is looked at: twice the three seconds after which the daemon counts as idle
	files, git int           // in the trees that are searched and opened
	only       []string
}

var (
	full = plan{callers: []int{1, 8, 64}, cell: 3 * time.Second, turns: 3, starts: 5, settle: 7 * time.Second, files: 20_000, git: 10_000}
	// A turn makes one call of each caller at least.
	short = plan{callers: []int{1, 8, 64}, cell: 20 * time.Millisecond, turns: 1, starts: 1, files: 300, git: 100}
)

// wants says whether a tool is to be measured.
func (p plan) wants(t tool) bool {
	return len(p.only) == 0 || slices.ContainsFunc(p.only, func(name string) bool { return strings.HasPrefix(t.name, name) })
}

// sources are the servers that flags name.
type sources struct{ first, second source }

func (s *sources) flags(flags *flag.FlagSet) {
	flags.StringVar(&s.first.command, "server", "", "`command` that starts the server, with {port} and {state} in it; default: the daemon of this tree")
	flags.StringVar(&s.first.url, "url", "", "MCP `address` of a server that runs, instead of --server")
	flags.StringVar(&s.first.tokenFile, "token-file", "", "`file` that holds the Authorization header of --url or --server")
	flags.StringVar(&s.second.command, "vs", "", "`command` that starts a second server to compare with, like --server")
	flags.StringVar(&s.second.url, "vs-url", "", "MCP `address` of a second server that runs")
	flags.StringVar(&s.second.tokenFile, "vs-token-file", "", "`file` that holds the Authorization header of the second server")
}

func (s *sources) all() []source {
	if s.second.command == "" && s.second.url == "" {
		return []source{s.first}
	}
	return []source{s.first, s.second}
}

// scratchDir makes a directory for a run. Whoever calls it removes it.
func scratchDir() (string, error) {
	dir, err := os.MkdirTemp("", "rig-bridge-bench-")
	if err != nil {
		return "", fmt.Errorf("make a scratch directory: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// measurement is one run of all tools.
type measurement struct {
	plan    plan
	machine *machine
	servers []*server
	report  *report
}

// measure does the whole run.
func measure(ctx context.Context, p plan, sources []source) (*report, error) {
	scratch, err := scratchDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	f, err := newFixtures(ctx, filepath.Join(scratch, "fixtures"), p.files, p.git)
	if err != nil {
		return nil, err
	}
	m := &measurement{plan: p, report: &report{Time: time.Now().UTC(), Machine: describeMachine(), Callers: p.callers, Missing: f.missing}}
	for i, src := range sources {
		s, err := begin(ctx, src, filepath.Join(scratch, fmt.Sprint(i)), p.starts)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		m.servers = append(m.servers, s)
		m.report.Servers = append(m.report.Servers, serverReport{Name: src.name(), StartMS: s.starts, Idle: s.settled(p.settle)})
	}
	if m.machine, err = newMachine(scratch, slices.Max(p.callers)); err != nil {
		return nil, err
	}
	defer m.machine.close()
	for _, t := range standards {
		for _, callers := range p.callers {
			s := load(ctx, callers, p.cell/2, m.machine.shooter(t, exchanged{200, 200}))
			m.report.Limits = append(m.report.Limits, s.row(t.name, callers))
		}
	}
	for _, t := range tools(f) {
		if !p.wants(t) {
			continue
		}
		for _, callers := range p.callers {
			if t.callers == nil || slices.Contains(t.callers, callers) {
				m.cell(ctx, t, callers)
			}
		}
	}
	for i, s := range m.servers {
		m.report.Servers[i].Loaded = s.settled(p.settle)
	}
	return m.report, ctx.Err()
}

// cell measures one tool at one number of callers: each server and the limit, in turns.
func (m *measurement) cell(ctx context.Context, t tool, callers int) {
	samples, limit := make([]sample, len(m.servers)), sample{}
	for range m.plan.turns {
		for i, s := range m.servers {
			samples[i].add(s.turn(ctx, t, callers, m.plan.cell/time.Duration(m.plan.turns)))
		}
		size := m.servers[0].lastSize.Load()
		if size == nil { // no call came through
			continue
		}
		limit.add(load(ctx, callers, m.plan.cell/time.Duration(m.plan.turns), m.machine.shooter(t, *size)))
	}
	for i := range m.servers {
		r := samples[i].row(t.name, callers).against(limit.row(t.name, callers), t.bounds)
		if limit.failed > 0 {
			r.Failed, r.Error = r.Failed+limit.failed, "the limit: "+limit.firstErr
		}
		m.report.Servers[i].Tools = append(m.report.Servers[i].Tools, r)
	}
}

// turn has callers call a tool for a time, after one call that is not counted. What cannot be prepared counts as a
// failed call.
func (s *server) turn(ctx context.Context, t tool, callers int, limit time.Duration) sample {
	next, err := t.prepare(ctx, s, callers)
	if err != nil {
		return sample{failed: 1, firstErr: "prepare: " + err.Error()}
	}
	if first := load(ctx, 1, 0, next); first.failed > 0 {
		return first
	}
	before := s.cpu()
	got := load(ctx, callers, limit, next)
	got.cpu = s.cpu() - before
	return got
}

// describeMachine says where the figures come from.
func describeMachine() string {
	model := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	load := "unknown"
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(b))[:3], " ")
	}
	return fmt.Sprintf("%d processors, %s; %s/%s; load at the start %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, load)
}
