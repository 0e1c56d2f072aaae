package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// receiptsReport says what a store of many receipts costs, beside one that is all but empty.
type receiptsReport struct {
	Time    time.Time    `json:"time"`
	Machine string       `json:"machine"`
	Rows    []receiptRow `json:"rows"`
}

type receiptRow struct {
	Receipts     int          `json:"receipts"`
	SeedSeconds  float64      `json:"seedSeconds"`
	DiskMB       float64      `json:"diskMiB"`
	StartMS      []float64    `json:"startMs"`
	EmptyStartMS []float64    `json:"emptyStartMs"` // in turns with StartMS
	StartCPUMS   float64      `json:"startCpuMs"`   // median
	Idle         memory       `json:"idle"`
	EmptyIdle    memory       `json:"emptyIdle"`
	Listing      listing      `json:"listing"`
	Tools        []receiptRun `json:"tools"`
}

// listing is a client that reads all receipts by page.
type listing struct {
	Items   int     `json:"items"`
	Pages   int     `json:"pages"`
	PageMS  float64 `json:"pageP50Ms"`
	Seconds float64 `json:"seconds"`
	Peak    memory  `json:"peak"`  // each figure's own highest
	After   memory  `json:"after"` // once all is quiet again
}

// receiptRun is one tool on the full store and on the empty one, in turns.
type receiptRun struct {
	Name     string  `json:"name"`
	P50MS    float64 `json:"p50Ms"`
	EmptyMS  float64 `json:"emptyP50Ms"`
	Ratio    float64 `json:"ratio"`
	CPUMS    float64 `json:"cpuMs"`
	EmptyCPU float64 `json:"emptyCpuMs"`
	Failed   int     `json:"failed,omitempty"`
	Error    string  `json:"error,omitempty"`
}

type receiptsPlan struct {
	counts []int
	plots  string
	plan   plan
	turns  int // of each tool
	seed   string
	dir    string
}

func receipts(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench receipts", flag.ContinueOnError)
	counts := flags.String("counts", "0,1000,10000,100000", "numbers of receipts, by `N,N`; a million takes some minutes to make")
	p := receiptsPlan{plan: full, turns: 9}
	flags.StringVar(&p.plots, "plots", "", "`directory` for plots")
	asJSON := flags.Bool("json", false, "print JSON")
	quick := flags.Bool("short", false, "measure briefly, to see that all works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if p.counts, err = numbers(*counts); err != nil {
		return err
	}
	if *quick {
		p.plan, p.turns = short, 1
	}
	if p.dir, err = scratchDir(); err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	if p.seed, err = build(ctx, p.dir, "seed", "./hack/seed"); err != nil {
		return err
	}
	r, err := measureReceipts(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(deliver(r, *asJSON), save(p.plots, r.charts()))
}

func numbers(list string) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no number", word)
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return all, nil
}

// build builds a command of this module into a directory.
func build(ctx context.Context, dir, name string, args ...string) (string, error) {
	path := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", path}, args...)...)
	cmd.Dir = daemon.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

func measureReceipts(ctx context.Context, p receiptsPlan) (*receiptsReport, error) {
	r := &receiptsReport{Time: time.Now().UTC(), Machine: describeMachine()}
	empty, err := begin(ctx, source{}, filepath.Join(p.dir, "empty"), 1)
	if err != nil {
		return nil, err
	}
	defer empty.stop()
	for _, n := range p.counts {
		row, err := p.measure(ctx, n, empty)
		if err != nil {
			return nil, fmt.Errorf("%d receipts: %w", n, err)
		}
		fmt.Fprintf(os.Stderr, "%d receipts: start %.0f ms\n", n, median(row.StartMS))
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// measure does all for one number of receipts.
func (p receiptsPlan) measure(ctx context.Context, n int, empty *server) (row receiptRow, err error) {
	row.Receipts = n
	s, err := begin(ctx, source{}, filepath.Join(p.dir, fmt.Sprint("with-", n)), 1)
	if err != nil {
		return row, err
	}
	defer s.stop()
	defer os.RemoveAll(s.dir)
	workspace, err := s.workspace(ctx, s.files)
	if err != nil {
		return row, err
	}
	if _, err := s.fire(ctx, "write", newFile(workspace, "first")); err != nil {
		return row, err
	}
	s.stop()
	began := time.Now()
	cmd := exec.CommandContext(ctx, p.seed, "--state-dir", s.state, "--receipts", strconv.Itoa(n))
	if out, err := cmd.CombinedOutput(); err != nil {
		return row, fmt.Errorf("seed: %w\n%s", err, out)
	}
	row.SeedSeconds = time.Since(began).Seconds()
	if row.DiskMB, err = diskMB(s.state); err != nil {
		return row, err
	}
	if err := p.starts(ctx, s, empty, &row); err != nil {
		return row, err
	}
	if row.Listing, err = s.listAll(ctx, p.plan.settle); err != nil {
		return row, err
	}
	if row.Listing.Items < n {
		return row, fmt.Errorf("only %d receipts were listed", row.Listing.Items)
	}
	for _, t := range receiptTools { // last: they leave receipts and memory of their own
		row.Tools = append(row.Tools, p.compare(ctx, t, s, empty))
	}
	return row, nil
}

// starts starts both servers again and again, in turns.
func (p receiptsPlan) starts(ctx context.Context, s, empty *server, row *receiptRow) error {
	s.starts, empty.starts = nil, nil
	var cpu []float64
	for range p.plan.starts {
		for _, one := range []*server{empty, s} {
			one.stop()
			if err := one.launch(ctx, one.state); err != nil {
				return err
			}
			if one == s {
				cpu = append(cpu, ms(s.cpu()))
			}
		}
	}
	row.StartMS, row.EmptyStartMS, row.StartCPUMS = s.starts, empty.starts, median(cpu)
	row.Idle, row.EmptyIdle = s.settled(p.plan.settle), empty.memory()
	return nil
}

// receiptTools show whether the store's size is felt.
var receiptTools = []tool{
	{name: "read 1 KB", prepare: same("read", daemon.Args{"path": "small.txt"}, text(kilobyte, kilobyte))},
	{name: "write 1 KB", prepare: writing},
	{name: "replay of a write", prepare: replaying},
	{name: "bash true", prepare: keyed("bash", daemon.Args{"command": "true"}, text(1, kilobyte))},
}

func (p receiptsPlan) compare(ctx context.Context, t tool, s, empty *server) receiptRun {
	samples := [2]sample{}
	for range p.turns {
		for i, one := range []*server{s, empty} {
			samples[i].add(one.turn(ctx, t, 1, p.plan.cell/3))
		}
	}
	a, b := samples[0].row(t.name, 1), samples[1].row(t.name, 1)
	run := receiptRun{Name: t.name, P50MS: a.P50MS, EmptyMS: b.P50MS, CPUMS: a.CPUMS, EmptyCPU: b.CPUMS, Failed: a.Failed + b.Failed, Error: a.Error + b.Error}
	if b.P50MS > 0 {
		run.Ratio = a.P50MS / b.P50MS
	}
	return run
}

// listAll reads all operations by pages of 500, and looks at the server's memory meanwhile.
func (s *server) listAll(ctx context.Context, settle time.Duration) (l listing, err error) {
	stop, peak := make(chan struct{}), make(chan memory)
	go func() {
		var most memory
		for {
			now := s.memory()
			most.Resident, most.Anonymous = max(most.Resident, now.Resident), max(most.Anonymous, now.Anonymous)
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	began := time.Now()
	err = s.pages(ctx, &l)
	l.Seconds = time.Since(began).Seconds()
	close(stop)
	l.Peak = <-peak
	l.After = s.settled(settle)
	return l, err
}

func (s *server) pages(ctx context.Context, l *listing) error {
	var took []time.Duration
	for next := ""; ; {
		began := time.Now()
		b, err := s.get(ctx, "/apis/rigbridge.dev/v1alpha1/namespaces/default/operations?limit=500&continue="+url.QueryEscape(next))
		if err != nil {
			return err
		}
		took = append(took, time.Since(began))
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []struct{} `json:"items"`
		}
		if err := json.Unmarshal(b, &page); err != nil {
			return fmt.Errorf("decode a page: %w", err)
		}
		l.Pages++
		l.Items += len(page.Items)
		if next = page.Metadata.Continue; next == "" {
			break
		}
	}
	slices.Sort(took)
	l.PageMS = ms(percentile(took, 50))
	return nil
}

func (r *receiptsReport) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", r.Machine)
	table(&out, func(w io.Writer) {
		fmt.Fprintln(w, "  receipts\tstart ms\tempty\tCPU ms\tidle MiB\tanonymous\tempty idle\tanonymous\tlist s\tpage ms\tpeak MiB\tanonymous\tafter\tanonymous\tdisk MiB\tseed s\t")
		for _, row := range r.Rows {
			l := row.Listing
			fmt.Fprintf(w, "  %d\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", row.Receipts, median(row.StartMS), median(row.EmptyStartMS), row.StartCPUMS,
				row.Idle.Resident, row.Idle.Anonymous, row.EmptyIdle.Resident, row.EmptyIdle.Anonymous,
				l.Seconds, l.PageMS, l.Peak.Resident, l.Peak.Anonymous, l.After.Resident, l.After.Anonymous, row.DiskMB, row.SeedSeconds)
		}
	})
	table(&out, func(w io.Writer) {
		fmt.Fprintln(w, "  receipts\ttool\tp50 ms\tempty\tratio\tCPU ms\tempty\tfailed\t")
		for _, row := range r.Rows {
			for _, t := range row.Tools {
				fmt.Fprintf(w, "  %d\t%s\t%.3f\t%.3f\t%.2f\t%.3f\t%.3f\t%d\t%s\n", row.Receipts, t.Name, t.P50MS, t.EmptyMS, t.Ratio, t.CPUMS, t.EmptyCPU, t.Failed, t.Error)
			}
		}
	})
	_, err := io.WriteString(to, out.String())
	return err
}

// beside are the dashes of what is shown to compare with.
const beside = "6 4"

// charts show growth with the number of receipts.
func (r *receiptsReport) charts() map[string]chart {
	over := func(name, dashes string, of func(receiptRow) float64) series {
		s := series{name: name, dashes: dashes}
		for _, row := range r.Rows {
			s.points = append(s.points, point{float64(row.Receipts), of(row)})
		}
		return s
	}
	base := chart{note: r.Machine, xName: "receipts in the store", xLog: true}
	start, mem, latency, disk := base, base, base, base
	start.title, start.yName = "Start to ready", "milliseconds, median"
	start.series = []series{over("with receipts", "", func(r receiptRow) float64 { return median(r.StartMS) }),
		over("empty store", beside, func(r receiptRow) float64 { return median(r.EmptyStartMS) }),
		over("processor time", "", func(r receiptRow) float64 { return r.StartCPUMS })}
	mem.title, mem.yName = "Memory of the daemon", "MiB"
	mem.series = []series{over("idle, resident", "", func(r receiptRow) float64 { return r.Idle.Resident }),
		over("same, empty store", beside, func(r receiptRow) float64 { return r.EmptyIdle.Resident }),
		over("idle, anonymous", "", func(r receiptRow) float64 { return r.Idle.Anonymous }),
		over("same, empty store", beside, func(r receiptRow) float64 { return r.EmptyIdle.Anonymous }),
		over("listing, resident", "", func(r receiptRow) float64 { return r.Listing.Peak.Resident }),
		over("listing, anonymous", "", func(r receiptRow) float64 { return r.Listing.Peak.Anonymous })}
	latency.title, latency.yName, latency.yLog = "Latency of one caller", "milliseconds, median", true
	for i, t := range receiptTools {
		latency.series = append(latency.series, over(t.name, "", func(r receiptRow) float64 { return r.Tools[i].P50MS }),
			over("same, empty store", beside, func(r receiptRow) float64 { return r.Tools[i].EmptyMS }))
	}
	disk.title, disk.yName, disk.yLog = "State directory", "MiB on disk", true
	disk.series = []series{over("disk", "", func(r receiptRow) float64 { return r.DiskMB })}
	return map[string]chart{"receipts-start": start, "receipts-memory": mem, "receipts-latency": latency, "receipts-disk": disk}
}
