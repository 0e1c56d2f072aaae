package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// traceReport says where the time of one call goes. The daemon is built with the tag hops: it notes when a call
// passes the steps that package failpoint names.
type traceReport struct {
	Time    time.Time   `json:"time"`
	Machine string      `json:"machine"`
	Tools   []traceTool `json:"tools"`
}

type traceTool struct {
	Name   string     `json:"name"`
	Calls  int        `json:"calls"`
	Alike  int        `json:"alike"` // calls that passed the same steps in the same order; the others are left out
	P50US  float64    `json:"p50Us"`
	Hops   []traceHop `json:"hops"`
	CPUMS  float64    `json:"cpuMs"`
	Groups []traceHop `json:"groups"` // the same, put together
}

// traceHop is the way from one step to the next. Times are microseconds.
type traceHop struct {
	Group string  `json:"group"`
	From  string  `json:"from,omitempty"`
	To    string  `json:"to,omitempty"`
	P50US float64 `json:"p50Us"`
	P95US float64 `json:"p95Us,omitempty"`
	Share float64 `json:"share"` // of the sum of the medians
}

// hopsEnv names the file in which the daemon notes the steps: a line of names and times for each call.
const hopsEnv = "RIG_BRIDGE_HOPS"

// tracedTools are one of each kind.
var tracedTools = []tool{
	{name: "read 1 KB", prepare: same("read", daemon.Args{"path": "small.txt"}, text(kilobyte, kilobyte))},
	{name: "write 1 KB", prepare: writing},
	{name: "edit", prepare: editing},
	{name: "bash true", prepare: keyed("bash", daemon.Args{"command": "true"}, text(1, kilobyte))},
}

func trace(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench trace", flag.ContinueOnError)
	calls := flags.Int("calls", 1000, "calls of each tool")
	pause := flags.Duration("pause", 2*time.Millisecond, "`time` between two calls, in which the daemon tidies up after the first")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := scratchDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, err := build(ctx, dir, "rig-bridge-hops", "-tags", "hops", "./cmd/rig-bridge")
	if err != nil {
		return err
	}
	s := &server{}
	r := &traceReport{Time: time.Now().UTC(), Machine: describeMachine()}
	for _, t := range tracedTools {
		file := filepath.Join(dir, "hops-"+strings.ReplaceAll(t.name, " ", "-"))
		if s, err = beginWith(ctx, source{command: binary + " serve --port {port} --state-dir {state}"}, dir, hopsEnv+"="+file); err != nil {
			return err
		}
		one, err := traceCalls(ctx, s, t, file, *calls, *pause)
		s.stop()
		if err != nil {
			return fmt.Errorf("trace %s: %w", t.name, err)
		}
		r.Tools = append(r.Tools, one)
	}
	return deliver(r, *asJSON)
}

// beginWith starts a server once, with something added to its environment.
func beginWith(ctx context.Context, src source, dir string, env ...string) (*server, error) {
	s := &server{source: src, dir: dir, env: env, files: filepath.Join(dir, "project"), workspaces: map[string]string{}}
	if err := makeProject(s.files); err != nil {
		return nil, err
	}
	return s, s.launch(ctx, filepath.Join(dir, "state"))
}

// step is when a call came to a named step.
type step struct {
	name string
	at   int64 // monotonic, nanoseconds
}

// traceCalls makes calls one after the other and puts the daemon's notes between the client's own.
func traceCalls(ctx context.Context, s *server, t tool, file string, calls int, pause time.Duration) (traceTool, error) {
	next, err := t.prepare(ctx, s, 1)
	if err != nil {
		return traceTool{}, err
	}
	var sent, got []int64
	before := s.cpu()
	for range calls {
		one, err := next(ctx, 0)
		if err != nil {
			return traceTool{}, err
		}
		sent = append(sent, monotonic())
		err = one.fire()
		got = append(got, monotonic())
		if err == nil {
			err = one.after()
		}
		if err != nil {
			return traceTool{}, err
		}
		time.Sleep(pause)
	}
	cpu := s.cpu() - before
	noted, err := readHops(file)
	if err != nil {
		return traceTool{}, err
	}
	var all [][]step
	for i := range sent {
		if own := onTheWay(within(noted, sent[i], got[i])); len(own) > 0 {
			all = append(all, slices.Concat([]step{{"sent", sent[i]}}, own, []step{{"answered", got[i]}}))
		}
	}
	one, err := summarize(t.name, all)
	one.Calls, one.CPUMS = calls, ms(cpu)/float64(calls)
	return one, err
}

// monotonic is the clock that all processes of a machine share, in nanoseconds.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// readHops reads what the daemon noted: "name time" on a line, in the order of the times.
func readHops(file string) ([]step, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the daemon noted no steps: %w", err)
	}
	var all []step
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		name, at, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a line of the steps is not understood: %q", lines.Text())
		}
		all = append(all, step{name, n})
	}
	slices.SortStableFunc(all, func(a, b step) int { return int(min(max(a.at-b.at, -1), 1)) })
	return all, nil
}

func within(all []step, from, to int64) (own []step) {
	for _, s := range all {
		if s.at >= from && s.at <= to {
			own = append(own, s)
		}
	}
	return own
}

// onTheWay leaves out what the call does not wait for: the end of the writing, which the client sees first as often
// as not, and looks of a worker that find nothing to do, while the tool works.
func onTheWay(all []step) (own []step) {
	for i, s := range all {
		idle := s.name == "reconciling" && (i+1 == len(all) || !slices.Contains(reconciled, all[i+1].name))
		if s.name != "written" && !idle {
			own = append(own, s)
		}
	}
	return own
}

// reconciled are the steps that a worker takes by itself or has the runner take.
var reconciled = []string{"working", "before-running", "before-terminal"}

// summarize takes the calls that passed the most usual sequence of steps.
func summarize(name string, calls [][]step) (traceTool, error) {
	usual := map[string][][]step{}
	for _, c := range calls {
		var names []string
		for _, s := range c {
			names = append(names, s.name)
		}
		key := strings.Join(names, " ")
		usual[key] = append(usual[key], c)
	}
	t := traceTool{Name: name}
	var alike [][]step
	for _, c := range usual {
		if len(c) > len(alike) {
			alike = c
		}
	}
	if len(alike) == 0 {
		return t, errors.New("no call passed any step")
	}
	t.Alike = len(alike)
	var whole []time.Duration
	for _, c := range alike {
		whole = append(whole, time.Duration(c[len(c)-1].at-c[0].at))
	}
	slices.Sort(whole)
	t.P50US = us(percentile(whole, 50))
	sum := 0.0
	for i := 1; i < len(alike[0]); i++ {
		var took []time.Duration
		for _, c := range alike {
			took = append(took, time.Duration(c[i].at-c[i-1].at))
		}
		slices.Sort(took)
		h := traceHop{From: alike[0][i-1].name, To: alike[0][i].name, P50US: us(percentile(took, 50)), P95US: us(percentile(took, 95))}
		h.Group = groupOf(h.From, h.To)
		sum += h.P50US
		t.Hops = append(t.Hops, h)
	}
	for i := range t.Hops {
		t.Hops[i].Share = t.Hops[i].P50US / sum
	}
	t.group()
	return t, nil
}

// group puts the hops of the same kind together, in the order in which a call first comes to them.
func (t *traceTool) group() {
	for _, h := range t.Hops {
		i := slices.IndexFunc(t.Groups, func(g traceHop) bool { return g.Group == h.Group })
		if i < 0 {
			t.Groups = append(t.Groups, traceHop{Group: h.Group})
			i = len(t.Groups) - 1
		}
		t.Groups[i].P50US += h.P50US
		t.Groups[i].Share += h.Share
	}
}

// hopGroups name the hops by the step at which they end. Where it depends on the step before, that is named too.
var hopGroups = map[string]string{
	"received":                  "client and network, there",
	"parsed":                    "transport: body and message",
	"validated":                 "validation",
	"before-claim":              "lookup of the workspace",
	"claimed":                   "create",
	"made":                      "create",
	"reconciling":               "watch and queue",
	"working":                   "start of the runner",
	"worked":                    "runner: the tool",
	"prepared":                  "runner: plan of the change",
	"before-running":            "reconcile: admit",
	"running":                   "reconcile: record the attempt",
	"running-durable":           "sync of the attempt",
	"before-effect":             "runner: environment",
	"temp-written":              "runner: new file and its sync",
	"before-rename":             "runner: compare once more",
	"renamed":                   "runner: rename",
	"command-started":           "runner: fork and exec",
	"command-ended":             "runner: the command",
	"before-terminal":           "reconcile: outcome",
	"terminal":                  "reconcile: record the outcome",
	"told":                      "watch: the waiter is told",
	"before-answer":             "sync of the outcome",
	"encoded":                   "answer: render and encode",
	"answered":                  "answer: write, network and client",
	"renamed reconciling":       "runner: directory sync, queue",
	"worked reconciling":        "queue",
	"command-ended reconciling": "queue",
	"prepared reconciling":      "queue",
	"reconciling working":       "reconcile: admit",
	"running working":           "start of the runner",
}

func groupOf(from, to string) string {
	if g, ok := hopGroups[from+" "+to]; ok {
		return g
	}
	if g, ok := hopGroups[to]; ok {
		return g
	}
	return to
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func (r *traceReport) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", r.Machine)
	for _, t := range r.Tools {
		fmt.Fprintf(&out, "\n%s: median %.0f µs, processor time of the daemon %.3f ms a call; %d of %d calls alike\n", t.Name, t.P50US, t.CPUMS, t.Alike, t.Calls)
		table(&out, func(w io.Writer) {
			fmt.Fprintln(w, "  hop\tp50 µs\tp95 µs\tshare\t")
			for _, h := range t.Hops {
				fmt.Fprintf(w, "  %s → %s\t%.1f\t%.1f\t%.0f%%\t\n", h.From, h.To, h.P50US, h.P95US, h.Share*100)
			}
		})
		table(&out, func(w io.Writer) {
			fmt.Fprintln(w, "  part\tp50 µs\tshare\t")
			for _, h := range t.Groups {
				fmt.Fprintf(w, "  %s\t%.1f\t%.0f%%\t\n", h.Group, h.P50US, h.Share*100)
			}
		})
	}
	_, err := io.WriteString(to, out.String())
	return err
}
