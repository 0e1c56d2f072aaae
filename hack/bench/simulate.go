package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// simulatedDay is what a simulation stands for.
const simulatedDay = 24 * time.Hour

// simulateReport says whether a day of calls leaves anything behind.
type simulateReport struct {
	Time       time.Time          `json:"time"`
	Machine    string             `json:"machine"`
	Operations int64              `json:"operations"`
	Seconds    float64            `json:"seconds"`
	Done       map[string]int64   `json:"done"` // calls by kind
	Failed     int64              `json:"failed"`
	Error      string             `json:"error,omitempty"`
	Samples    []holding          `json:"samples"`
	Began      holding            `json:"began"`  // before the day, after each kind of call was made
	Ended      holding            `json:"ended"`  // after the day, idle
	Pruned     holding            `json:"pruned"` // after all receipts were pruned
	Restarted  holding            `json:"restarted"`
	PruneSays  string             `json:"pruneSays"`
	PruneTook  float64            `json:"pruneSeconds"`
	Growth     map[string]verdict `json:"growth"`
}

// holding is what the daemon holds at one moment.
type holding struct {
	Hour        float64 `json:"hour"` // of the simulated day
	memory      `json:"memory"`
	Descriptors int     `json:"descriptors"`
	OutsideOf   int     `json:"descriptorsBesideStore"` // without the store's own files, of which there is one for each table
	Goroutines  int     `json:"goroutines"`
	HeapMB      float64 `json:"liveHeapMiB"`
	DiskMB      float64 `json:"diskMiB"`
	StoreMB     float64 `json:"storeMiB"`
	Done        int64   `json:"done"`
}

// verdict compares the last third of the day with the middle third.
type verdict struct {
	Middle, Last float64
	Flat         bool
}

// simulation is one run.
type simulation struct {
	operations int64
	length     time.Duration
	prune      time.Duration // simulated time between prunes, and the age that they leave; 0: none
	plots      string
	settle     time.Duration

	s     *server
	began time.Time
	next  atomic.Int64

	mu     sync.Mutex
	report simulateReport
}

func simulate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench simulate", flag.ContinueOnError)
	sim := &simulation{}
	flags.Int64Var(&sim.operations, "operations", 500_000, "calls of the day")
	minutes := flags.Float64("minutes", 10, "how long the day takes, if the machine can keep up; 0 is as fast as it can")
	flags.DurationVar(&sim.prune, "prune", 2*time.Hour, "simulated `time` after which receipts are pruned, again and again; 0 keeps all of them to the end")
	flags.DurationVar(&sim.settle, "settle", full.settle, "`time` of peace before and after the day")
	flags.StringVar(&sim.plots, "plots", "", "`directory` for plots")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	sim.length = time.Duration(*minutes * float64(time.Minute))
	dir, err := scratchDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if sim.s, err = begin(ctx, source{}, dir, 1); err != nil {
		return err
	}
	defer sim.s.stop()
	if err := sim.run(ctx); err != nil {
		return err
	}
	r := &sim.report
	if err := errors.Join(deliver(r, *asJSON), save(sim.plots, r.charts())); err != nil {
		return err
	}
	if r.Failed > 0 {
		return fmt.Errorf("%d calls failed, the first with: %s", r.Failed, r.Error)
	}
	return nil
}

// workers are the clients of the day, each with a workspace of its own.
const workers = 12

func (sim *simulation) run(ctx context.Context) error {
	r := &sim.report
	r.Time, r.Machine, r.Done = time.Now().UTC(), describeMachine(), map[string]int64{}
	var all []*worker
	for i := range workers {
		w, err := newWorker(ctx, sim.s, i)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	for i, kind := range dayMix { // what is made at the first call of a kind belongs to the beginning
		if err := kind.do(all[i%len(all)], ctx); err != nil {
			return fmt.Errorf("warm up, %s: %w", kind.name, err)
		}
	}
	var err error
	if r.Began, err = sim.quiet(ctx); err != nil {
		return err
	}
	sim.began = time.Now()
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { sim.watch(ctx, stop) })
	beside.Go(func() { sim.pruneOften(ctx, stop) })
	var day sync.WaitGroup
	for _, w := range all {
		day.Go(func() { sim.work(ctx, w) })
	}
	day.Wait()
	r.Seconds = time.Since(sim.began).Seconds()
	close(stop)
	beside.Wait()
	r.Operations = sim.operations
	r.judge()
	return errors.Join(ctx.Err(), sim.end(ctx))
}

// end looks at what is left, prunes, and looks again.
func (sim *simulation) end(ctx context.Context) (err error) {
	r := &sim.report
	if r.Ended, err = sim.quiet(ctx); err != nil {
		return err
	}
	began := time.Now()
	if r.PruneSays, err = sim.pruneReceipts(ctx, 0); err != nil {
		return err
	}
	r.PruneTook = time.Since(began).Seconds()
	if r.Pruned, err = sim.quiet(ctx); err != nil {
		return err
	}
	sim.s.stop()
	if err := sim.s.launch(ctx, sim.s.state); err != nil {
		return err
	}
	r.Restarted, err = sim.quiet(ctx)
	return err
}

// work makes calls of the day's mix, each when its time has come, until all are made.
func (sim *simulation) work(ctx context.Context, w *worker) {
	for ctx.Err() == nil {
		n := sim.next.Add(1)
		if n > sim.operations {
			return
		}
		due := sim.began.Add(time.Duration(float64(sim.length) * float64(n) / float64(sim.operations)))
		time.Sleep(time.Until(due))
		kind := w.choose()
		err := kind.do(w, ctx)
		sim.mu.Lock()
		sim.report.Done[kind.name]++
		if err != nil && ctx.Err() == nil {
			sim.report.Failed++
			if sim.report.Error == "" {
				sim.report.Error = kind.name + ": " + err.Error()
			}
		}
		sim.mu.Unlock()
	}
}

// hour is the simulated time of the day: by the calls made, since a machine may not keep up.
func (sim *simulation) hour() float64 {
	return min(float64(sim.next.Load())/float64(sim.operations), 1) * simulatedDay.Hours()
}

// watch takes samples.
func (sim *simulation) watch(ctx context.Context, stop <-chan struct{}) {
	every := max(sim.length/240, 250*time.Millisecond)
	for {
		if h, err := sim.look(ctx); err == nil {
			sim.mu.Lock()
			sim.report.Samples = append(sim.report.Samples, h)
			sim.mu.Unlock()
		}
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
	}
}

var wanted = regexp.MustCompile(`(?m)^(go_goroutines|go_gc_heap_live_bytes) (\S+)$`)

// look measures what the daemon holds now.
func (sim *simulation) look(ctx context.Context) (h holding, err error) {
	h.Hour, h.Done, h.memory = sim.hour(), min(sim.next.Load(), sim.operations), sim.s.memory()
	metrics, err := sim.s.get(ctx, "/metrics")
	if err != nil {
		return h, err
	}
	for _, m := range wanted.FindAllSubmatch(metrics, -1) {
		v, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return h, fmt.Errorf("read the metrics: %w", err)
		}
		if string(m[1]) == "go_goroutines" {
			h.Goroutines = int(v)
		} else {
			h.HeapMB = v / megabyte
		}
	}
	store := filepath.Join(sim.s.state, "store")
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", sim.s.cmd.Process.Pid))
	if err != nil {
		return h, fmt.Errorf("look at descriptors: %w", err)
	}
	for _, e := range entries {
		h.Descriptors++
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", sim.s.cmd.Process.Pid, e.Name()))
		if err != nil || !strings.HasPrefix(to, store+"/") {
			h.OutsideOf++
		}
	}
	if h.StoreMB, err = diskMB(store); err != nil {
		return h, err
	}
	h.DiskMB, err = diskMB(sim.s.state)
	return h, err
}

// quiet closes the connections, leaves the daemon in peace for a moment and looks.
func (sim *simulation) quiet(ctx context.Context) (holding, error) {
	sim.s.wires.close()
	sim.s.http.CloseIdleConnections()
	time.Sleep(sim.settle)
	return sim.look(ctx)
}

// pruneOften prunes receipts as an owner would have it done by a timer.
func (sim *simulation) pruneOften(ctx context.Context, stop <-chan struct{}) {
	if sim.prune == 0 || sim.length == 0 {
		return
	}
	every := time.Duration(float64(sim.length) * float64(sim.prune) / float64(simulatedDay))
	for {
		select {
		case <-stop:
			return
		case <-time.After(every):
		}
		if _, err := sim.pruneReceipts(ctx, every); err != nil {
			sim.mu.Lock()
			sim.report.Failed++
			sim.report.Error = err.Error()
			sim.mu.Unlock()
		}
	}
}

func (sim *simulation) pruneReceipts(ctx context.Context, age time.Duration) (string, error) {
	binary, err := daemon.Build("rigctl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary, "prune", "--older-than", age.String(), "--state-dir", sim.s.state)
	cmd.Env = append(os.Environ(), "HOME="+sim.s.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("rigctl prune: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// measures are the figures that must not grow, and by how much they may all the same: noise, not growth.
var measures = []struct {
	name  string
	of    func(holding) float64
	slack float64
}{
	{"resident MiB", func(h holding) float64 { return h.Resident }, 4},
	{"anonymous MiB", func(h holding) float64 { return h.Anonymous }, 4},
	{"live heap MiB", func(h holding) float64 { return h.HeapMB }, 2},
	{"descriptors", func(h holding) float64 { return float64(h.Descriptors) }, 5},
	{"goroutines", func(h holding) float64 { return float64(h.Goroutines) }, 10},
	{"disk MiB", func(h holding) float64 { return h.DiskMB }, 8},
	{"store MiB", func(h holding) float64 { return h.StoreMB }, 8},
}

// judge compares the thirds of the day.
func (r *simulateReport) judge() {
	r.Growth = map[string]verdict{}
	third := len(r.Samples) / 3
	if third == 0 {
		return
	}
	for _, m := range measures {
		mean := func(part []holding) (sum float64) {
			for _, h := range part {
				sum += m.of(h) / float64(len(part))
			}
			return sum
		}
		v := verdict{Middle: mean(r.Samples[third : 2*third]), Last: mean(r.Samples[2*third:])}
		v.Flat = v.Last <= v.Middle*1.05 || v.Last <= v.Middle+m.slack
		r.Growth[m.name] = v
	}
}

func (r *simulateReport) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%d calls in %.0f s (%.0f a second) for 24 hours, %d failed %s\n", r.Machine, r.Operations, r.Seconds, float64(r.Operations)/r.Seconds, r.Failed, r.Error)
	for _, name := range slices.Sorted(maps.Keys(r.Done)) {
		fmt.Fprintf(&out, "  %s %d", name, r.Done[name])
	}
	fmt.Fprintf(&out, "\n%s, in %.1f s\n", r.PruneSays, r.PruneTook)
	table(&out, func(w io.Writer) {
		fmt.Fprintln(w, "  held\tbefore\tmiddle third\tlast third\tflat\tafter, idle\tpruned\trestarted\t")
		for _, m := range measures {
			v := r.Growth[m.name]
			fmt.Fprintf(w, "  %s\t%.1f\t%.1f\t%.1f\t%v\t%.1f\t%.1f\t%.1f\t\n", m.name, m.of(r.Began), v.Middle, v.Last, v.Flat, m.of(r.Ended), m.of(r.Pruned), m.of(r.Restarted))
		}
	})
	_, err := io.WriteString(to, out.String())
	return err
}

func (r *simulateReport) charts() map[string]chart {
	groups := map[string]struct {
		title, unit string
		names       []string
	}{
		"simulate-memory": {"Memory over a day", "MiB", []string{"resident MiB", "anonymous MiB", "live heap MiB"}},
		"simulate-counts": {"Descriptors and goroutines over a day", "number", []string{"descriptors", "goroutines"}},
		"simulate-disk":   {"State directory over a day", "MiB on disk", []string{"disk MiB", "store MiB"}},
	}
	all := map[string]chart{}
	for file, g := range groups {
		c := chart{title: g.title, yName: g.unit, xName: "hour of the simulated day", note: fmt.Sprintf("%d calls in %.0f s; %s", r.Operations, r.Seconds, r.Machine)}
		for _, m := range measures {
			if !slices.Contains(g.names, m.name) {
				continue
			}
			s := series{name: m.name}
			for _, h := range r.Samples {
				s.points = append(s.points, point{h.Hour, m.of(h)})
			}
			c.series = append(c.series, s)
		}
		all[file] = c
	}
	return all
}
