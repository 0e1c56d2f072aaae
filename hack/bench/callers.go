package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// callersReport is latency and throughput by the number of callers.
type callersReport struct {
	Time    time.Time `json:"time"`
	Machine string    `json:"machine"`
	Rows    []row     `json:"rows"`
}

// callers measures how calls share the machine.
func callers(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench callers", flag.ContinueOnError)
	counts := flags.String("counts", "1,2,4,8,16,32,64,128,256", "numbers of callers, by `N,N`")
	plots := flags.String("plots", "", "`directory` for plots")
	asJSON := flags.Bool("json", false, "print JSON")
	quick := flags.Bool("short", false, "measure briefly, to see that all works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := full
	if *quick {
		p = short
	}
	var err error
	if p.callers, err = numbers(*counts); err != nil {
		return err
	}
	r, err := measureCallers(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(deliver(r, *asJSON), save(*plots, r.charts()))
}

// callerTools are one of each kind.
var callerTools = []tool{
	{name: "read 1 KB", bounds: asking, prepare: same("read", daemon.Args{"path": "small.txt"}, text(kilobyte, kilobyte))},
	{name: "write 1 KB", bounds: changing, prepare: writing},
	{name: "bash true", bounds: running, process: shell("true"), prepare: keyed("bash", daemon.Args{"command": "true"}, text(1, kilobyte))},
}

func measureCallers(ctx context.Context, p plan) (*callersReport, error) {
	dir, err := scratchDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := begin(ctx, source{}, dir, 1)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	m := &measurement{plan: p, servers: []*server{s}, report: &report{Servers: []serverReport{{}}}}
	if m.machine, err = newMachine(dir, slices.Max(p.callers)); err != nil {
		return nil, err
	}
	defer m.machine.close()
	for _, t := range callerTools {
		for _, callers := range p.callers {
			m.cell(ctx, t, callers)
		}
	}
	return &callersReport{Time: time.Now().UTC(), Machine: describeMachine(), Rows: m.report.Servers[0].Tools}, ctx.Err()
}

func (r *callersReport) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", r.Machine)
	table(&out, func(w io.Writer) {
		fmt.Fprintln(w, "  tool\tcallers\tp50 ms\tp95 ms\tp99 ms\tper second\tCPU ms\tlimit ms\tratio\tp50 for each caller, of one caller's\tfailed\t")
		var one float64
		for _, t := range r.Rows {
			if one == 0 || t.Callers == r.Rows[0].Callers {
				one = t.P50MS / float64(t.Callers)
			}
			fmt.Fprintf(w, "  %s\t%d\t%.3f\t%.3f\t%.3f\t%.0f\t%.3f\t%.3f\t%.2f\t%.2f\t%d\t%s\n", t.Name, t.Callers, t.P50MS, t.P95MS, t.P99MS, t.PerSecond, t.CPUMS,
				t.LimitMS, t.Ratio, t.P50MS/float64(t.Callers)/one, t.Failed, t.Error)
		}
	})
	_, err := io.WriteString(to, out.String())
	return err
}

func (r *callersReport) charts() map[string]chart {
	base := chart{note: r.Machine, xName: "callers at once", xLog: true}
	latency, throughput := base, base
	latency.title, latency.yName, latency.yLog = "Latency", "milliseconds", true
	throughput.title, throughput.yName = "Throughput", "calls a second"
	for _, t := range callerTools {
		p50, p95, limit, per := series{name: t.name + ", p50"}, series{name: "same, p95", dashes: beside}, series{name: "same, limit", dashes: "2 3"}, series{name: t.name}
		for _, row := range r.Rows {
			if row.Name == t.name {
				x := float64(row.Callers)
				p50.points = append(p50.points, point{x, row.P50MS})
				p95.points = append(p95.points, point{x, row.P95MS})
				limit.points = append(limit.points, point{x, row.LimitMS})
				per.points = append(per.points, point{x, row.PerSecond})
			}
		}
		latency.series = append(latency.series, p50, p95, limit)
		throughput.series = append(throughput.series, per)
	}
	return map[string]chart{"callers-latency": latency, "callers-throughput": throughput}
}
