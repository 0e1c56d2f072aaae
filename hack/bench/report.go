package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of a run. Times are milliseconds, memory is MiB.
type report struct {
	Time    time.Time      `json:"time"`
	Machine string         `json:"machine"`
	Callers []int          `json:"callers"`
	Limits  []row          `json:"limits"`
	Servers []serverReport `json:"servers"`
	Missing []string       `json:"missing,omitempty"` // what this machine does not have
}

type serverReport struct {
	Name    string    `json:"name"`
	StartMS []float64 `json:"startMs,omitempty"`
	Idle    memory    `json:"idle"`
	Loaded  memory    `json:"loaded"`
	Tools   []row     `json:"tools"`
}

// row is one tool or limit at one number of callers.
type row struct {
	Name      string  `json:"name"`
	Callers   int     `json:"callers"`
	P50MS     float64 `json:"p50Ms"`
	P95MS     float64 `json:"p95Ms"`
	P99MS     float64 `json:"p99Ms"`
	PerSecond float64 `json:"perSecond"`
	CPUMS     float64 `json:"cpuMs,omitempty"` // of the server's process, for one call
	Calls     int     `json:"calls"`
	Failed    int     `json:"failed,omitempty"`
	Error     string  `json:"error,omitempty"`
	Limit     string  `json:"limit,omitempty"`   // what the limit is made of
	LimitMS   float64 `json:"limitMs,omitempty"` // median of the limit, taken in the same turns
	OverMS    float64 `json:"overLimitMs"`       // P50MS - LimitMS
	Ratio     float64 `json:"ratio,omitempty"`   // P50MS / LimitMS
}

// against compares the row with its limit.
func (r row) against(limit row, bounds []bound) row {
	var names []string
	for _, b := range bounds {
		names = append(names, string(b))
	}
	r.Limit, r.LimitMS = strings.Join(names, " + "), limit.P50MS
	if r.Calls > 0 && limit.P50MS > 0 {
		r.OverMS, r.Ratio = r.P50MS-limit.P50MS, r.P50MS/limit.P50MS
	}
	return r
}

func (r *report) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\nmachine's limits\n", r.Machine)
	for _, m := range r.Missing {
		fmt.Fprintf(&out, "  missing: %s\n", m)
	}
	table(&out, func(w io.Writer) {
		fmt.Fprintln(w, "  limit\tcallers\tp50 ms\tp95 ms\tp99 ms\tper second\t")
		for _, l := range r.Limits {
			fmt.Fprintf(w, "  %s\t%d\t%.3f\t%.3f\t%.3f\t%.0f\t\n", l.Name, l.Callers, l.P50MS, l.P95MS, l.P99MS, l.PerSecond)
		}
	})
	for i, s := range r.Servers {
		fmt.Fprintf(&out, "\n%s\n", s.Name)
		if len(s.StartMS) > 0 {
			fmt.Fprintf(&out, "  start-up %.0f ms (median of %d), resident %.0f MiB idle (%.1f anonymous), %.0f MiB after load (%.1f anonymous)\n",
				median(s.StartMS), len(s.StartMS), s.Idle.Resident, s.Idle.Anonymous, s.Loaded.Resident, s.Loaded.Anonymous)
		}
		table(&out, func(w io.Writer) { r.printTools(w, i) })
		for _, t := range s.Tools {
			if t.Error != "" {
				fmt.Fprintf(&out, "  %s, %d callers: %s\n", t.Name, t.Callers, strings.Join(strings.Fields(t.Error), " "))
			}
		}
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
	fmt.Fprintln(w, "  tool\tcallers\tp50 ms\tp95 ms\tp99 ms\tper second\tCPU ms\tlimit ms\tover limit\tratio\tfailed\t"+last)
	for i, t := range r.Servers[server].Tools {
		fmt.Fprintf(w, "  %s\t%d\t%.3f\t%.3f\t%.3f\t%.0f\t%.3f\t%.3f\t%.3f\t%.2f\t%d\t",
			t.Name, t.Callers, t.P50MS, t.P95MS, t.P99MS, t.PerSecond, t.CPUMS, t.LimitMS, t.OverMS, t.Ratio, t.Failed)
		if first := r.Servers[0].Tools[i].P50MS; server > 0 && first > 0 {
			fmt.Fprintf(w, "%.2f\t", t.P50MS/first)
		}
		fmt.Fprintln(w)
	}
}

func table(out io.Writer, fill func(io.Writer)) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(w)
	_ = w.Flush() // into a builder
}

// median is 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// printer is what every mode makes.
type printer interface{ print(io.Writer) error }

// deliver prints a result as a table or as JSON.
func deliver(r printer, asJSON bool) error {
	if !asJSON {
		return r.print(os.Stdout)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(r)
}
