package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of a run. Times are milliseconds, memory is MiB.
type report struct {
	Time    time.Time      `json:"time"`
	Callers []int          `json:"callers"`
	Limits  limitRows      `json:"limits"`
	Servers []serverReport `json:"servers"`
}

type serverReport struct {
	Name     string    `json:"name"`
	StartMS  []float64 `json:"startMs,omitempty"`
	IdleMB   float64   `json:"idleMiB,omitempty"`
	LoadedMB float64   `json:"loadedMiB,omitempty"`
	Tools    []row     `json:"tools"`
}

// row is one tool or limit at one number of callers.
type row struct {
	Name      string  `json:"name"`
	Callers   int     `json:"callers"`
	P50MS     float64 `json:"p50Ms"`
	P95MS     float64 `json:"p95Ms"`
	PerSecond float64 `json:"perSecond"`
	Calls     int     `json:"calls"`
	Failed    int     `json:"failed,omitempty"`
	Error     string  `json:"error,omitempty"`
	LimitMS   float64 `json:"limitMs,omitempty"`
	Ratio     float64 `json:"ratio,omitempty"` // P50MS / LimitMS
}

func (r *report) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "machine's limits\n")
	table(&out, func(w io.Writer) {
		fmt.Fprintln(w, "  limit\tcallers\tp50 ms\tp95 ms\tper second\t")
		for _, l := range r.Limits {
			fmt.Fprintf(w, "  %s\t%d\t%.3f\t%.3f\t%.0f\t\n", l.Name, l.Callers, l.P50MS, l.P95MS, l.PerSecond)
		}
	})
	for i, s := range r.Servers {
		fmt.Fprintf(&out, "\n%s\n", s.Name)
		if len(s.StartMS) > 0 {
			fmt.Fprintf(&out, "  start-up %.0f ms (median of %d), resident %.0f MiB idle, %.0f MiB after load\n", median(s.StartMS), len(s.StartMS), s.IdleMB, s.LoadedMB)
		}
		table(&out, func(w io.Writer) { r.printTools(w, i) })
	}
	_, err := io.WriteString(to, out.String())
	return err
}

// printTools compares the second server with the first in a last column.
func (r *report) printTools(w io.Writer, server int) {
	last := ""
	if server > 0 {
		last = "p50 vs first\t"
	}
	fmt.Fprintln(w, "  tool\tcallers\tp50 ms\tp95 ms\tper second\tlimit ms\tratio\tfailed\t"+last)
	for i, t := range r.Servers[server].Tools {
		fmt.Fprintf(w, "  %s\t%d\t%.3f\t%.3f\t%.0f\t%.3f\t%.1f\t%d\t", t.Name, t.Callers, t.P50MS, t.P95MS, t.PerSecond, t.LimitMS, t.Ratio, t.Failed)
		if first := r.Servers[0].Tools[i].P50MS; server > 0 && first > 0 {
			fmt.Fprintf(w, "%.2f\t", t.P50MS/first)
		}
		fmt.Fprintln(w)
		if t.Error != "" {
			fmt.Fprintf(w, "    %s\t\n", strings.Join(strings.Fields(t.Error), " "))
		}
	}
}

func table(out io.Writer, fill func(io.Writer)) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(w)
	_ = w.Flush() // into a builder
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
