package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// searchLimits are the largest that the tools take: a pattern for this benchmark matches less, so that both
// sides look at everything.
var searchLimits = map[string]int{"grep": 1000, "find": 2000}

// query is one search, as a call of ours and as a command line of the program that it is compared with.
type query struct {
	Name    string
	Tool    string // grep or find
	Pattern string
	Glob    string // of grep
	Literal bool   // of grep
	Fold    bool   // of grep: ignoreCase
}

// tree is a directory to search.
type tree struct {
	Name  string `json:"name"`
	Dir   string `json:"-"`
	Files int    `json:"files"`
	MiB   int64  `json:"mib"`

	queries []query
}

// searchRow is one query on one tree. Times are medians in milliseconds; Servers has one figure for each
// server, Ratios is each of them over the program's. BestRatios divides the shortest times instead, which
// other load on the machine disturbs less.
type searchRow struct {
	Tree       string    `json:"tree"`
	Tool       string    `json:"tool"`
	Query      string    `json:"query"`
	Pattern    string    `json:"pattern"`
	Rival      string    `json:"program"`
	RivalMS    float64   `json:"programMs"`
	Servers    []float64 `json:"serverMs"`
	Ratios     []float64 `json:"ratio"`
	BestRatios []float64 `json:"bestRatio"`
	Rows       []int     `json:"rows"` // of each server
	RivalRows  int       `json:"programRows"`
	Note       string    `json:"note,omitempty"` // why the ratio does not compare like with like
}

type searchReport struct {
	Time     time.Time   `json:"time"`
	Versions []string    `json:"versions"`
	Servers  []string    `json:"servers"`
	Rounds   int         `json:"rounds"`
	Trees    []tree      `json:"trees"`
	Missing  []string    `json:"missing,omitempty"`
	Rows     []searchRow `json:"rows"`
}

// searchPlan is what the flags ask for.
type searchPlan struct {
	sources []source
	rivals  rivals
	rounds  int
	files   int
	asJSON  bool
}

func searchFlags(args []string) (searchPlan, error) {
	flags := flag.NewFlagSet("bench search", flag.ContinueOnError)
	var p searchPlan
	var first, second source
	flags.StringVar(&first.command, "server", "", "`command` that starts the server; default: the daemon of this tree")
	flags.StringVar(&first.tokenFile, "token-file", "", "`file` that holds the Authorization header of --server")
	flags.StringVar(&second.command, "vs", "", "`command` that starts a second server, measured in the same turns")
	flags.StringVar(&second.tokenFile, "vs-token-file", "", "`file` that holds the Authorization header of the second server")
	rg := flags.String("rg", "", "ripgrep `program`; default: rg on PATH")
	fd := flags.String("fd", "", "fd `program`; default: fd or fdfind on PATH")
	flags.IntVar(&p.rounds, "rounds", 11, "measured turns of each query")
	flags.IntVar(&p.files, "files", 20_000, "files of the generated tree")
	flags.BoolVar(&p.asJSON, "json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	p.sources = []source{first}
	if second.command != "" {
		p.sources = append(p.sources, second)
	}
	p.rivals = findRivals(*rg, *fd)
	return p, nil
}

// search compares grep and find, as a client of the server sees them, with rg and fd as processes.
func search(ctx context.Context, args []string) error {
	p, err := searchFlags(args)
	if err != nil {
		return err
	}
	scratch, err := scratchDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r, err := measureSearch(ctx, p, scratch)
	if err != nil {
		return err
	}
	return deliver(r, p.asJSON)
}

func measureSearch(ctx context.Context, p searchPlan, scratch string) (*searchReport, error) {
	r := &searchReport{Time: time.Now().UTC(), Rounds: p.rounds, Versions: p.rivals.versions(ctx), Missing: p.rivals.missing()}
	trees, missing, err := searchTrees(ctx, filepath.Join(scratch, "trees"), p.files)
	if err != nil {
		return nil, err
	}
	r.Trees, r.Missing = trees, append(r.Missing, missing...)
	var servers []*server
	for i, src := range p.sources {
		s, err := begin(ctx, src, filepath.Join(scratch, fmt.Sprint(i)), 1)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		servers = append(servers, s)
		r.Servers = append(r.Servers, src.name())
	}
	for _, t := range trees {
		for _, q := range t.queries {
			rival := p.rivals.of(q.Tool)
			if rival == nil {
				continue
			}
			row, err := measureQuery(ctx, p.rounds, servers, rival, t, q)
			if err != nil {
				return nil, fmt.Errorf("%s, %s %q: %w", t.Name, q.Tool, q.Pattern, err)
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// measureQuery has the servers and the program take turns, so that other load on the machine hits all alike.
// The first turn is not counted.
func measureQuery(ctx context.Context, rounds int, servers []*server, rival *rival, t tree, q query) (searchRow, error) {
	row := searchRow{Tree: t.Name, Tool: q.Tool, Query: q.Name, Pattern: q.Pattern, Rival: rival.name, Rows: make([]int, len(servers))}
	calls := make([]daemon.Args, len(servers))
	for i, s := range servers {
		workspace, err := s.workspace(ctx, t.Dir)
		if err != nil {
			return row, err
		}
		calls[i] = q.args(workspace)
	}
	ours, theirs := make([][]float64, len(servers)), []float64(nil)
	for range rounds + 1 {
		for i, s := range servers {
			took, err := row.ask(ctx, s, i, calls[i])
			if err != nil {
				return row, err
			}
			ours[i] = append(ours[i], took)
		}
		began := time.Now()
		rows, err := rival.run(ctx, q, t.Dir)
		if err != nil {
			return row, err
		}
		theirs = append(theirs, ms(time.Since(began)))
		row.RivalRows = rows
	}
	row.conclude(ours, theirs)
	return row, nil
}

// ask makes the call once and returns how long it took, in milliseconds.
func (row *searchRow) ask(ctx context.Context, s *server, i int, args daemon.Args) (float64, error) {
	began := time.Now()
	r, err := s.fire(ctx, row.Tool, args)
	took := ms(time.Since(began))
	if err != nil {
		return 0, err
	}
	var limited string
	if row.Rows[i], limited = answerRows(r); limited != "" {
		row.Note = "limited: " + limited
	}
	return took, nil
}

// conclude fills in the figures from the times of all turns.
func (row *searchRow) conclude(ours [][]float64, theirs []float64) {
	theirs = theirs[1:]
	row.RivalMS = median(theirs)
	for i, times := range ours {
		times = times[1:]
		row.Servers = append(row.Servers, median(times))
		row.Ratios = append(row.Ratios, median(times)/row.RivalMS)
		row.BestRatios = append(row.BestRatios, slices.Min(times)/slices.Min(theirs))
		if row.Rows[i] != row.RivalRows && row.Note == "" {
			row.Note = fmt.Sprintf("other rows: %d and %d", row.Rows[i], row.RivalRows)
		}
	}
}

// args are those of the tool call.
func (q query) args(workspace string) daemon.Args {
	args := daemon.Args{"workspace_id": workspace, "pattern": q.Pattern, "limit": searchLimits[q.Tool]}
	if q.Glob != "" {
		args["glob"] = q.Glob
	}
	if q.Literal {
		args["literal"] = true
	}
	if q.Fold {
		args["ignoreCase"] = true
	}
	return args
}

// answerRows counts the rows of an answer and names the limit, if any, that left some out.
func answerRows(r daemon.Result) (rows int, limited string) {
	text := r.Text()
	if text == "No matches found" || text == "No files found matching pattern" ||
		strings.HasPrefix(text, "No matches found\n") || strings.HasPrefix(text, "No files found matching pattern\n") {
		return 0, ""
	}
	text, notice, _ := strings.Cut(text, "\n\n[")
	for _, sign := range []string{"limit reached", "incomplete:"} {
		if strings.Contains(notice, sign) {
			limited = strings.TrimSuffix(notice, "]")
		}
	}
	return strings.Count(text, "\n") + 1, limited
}

func (r *searchReport) print(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; medians of %d turns, A B A B\n", strings.Join(r.Versions, ", "), r.Rounds)
	for _, m := range r.Missing {
		fmt.Fprintf(&out, "missing: %s\n", m)
	}
	for _, t := range r.Trees {
		fmt.Fprintf(&out, "%s: %d files, %d MiB\n", t.Name, t.Files, t.MiB)
	}
	table(&out, func(w io.Writer) { r.printRows(w) })
	for _, row := range r.Rows {
		if row.Note != "" {
			fmt.Fprintf(&out, "not compared: %s, %s, %s: %s\n", row.Tree, row.Tool, row.Query, row.Note)
		}
	}
	for i, name := range r.Servers {
		for _, tool := range []string{"grep", "find"} {
			if all := r.ratios(i, tool); len(all) > 0 {
				fmt.Fprintf(&out, "%s, %s: median ratio %.2f, worst %.2f\n", name, tool, median(all), slices.Max(all))
			}
		}
	}
	_, err := io.WriteString(to, out.String())
	return err
}

func (r *searchReport) printRows(w io.Writer) {
	fmt.Fprint(w, "  tree\ttool\tquery\tpattern\trows\tprogram\tms\t")
	for _, name := range r.Servers {
		fmt.Fprintf(w, "%s ms\tratio\tbest\t", filepath.Base(strings.Fields(name)[0]))
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%d\t%s\t%.1f\t", row.Tree, row.Tool, row.Query, row.Pattern, row.RivalRows, row.Rival, row.RivalMS)
		for i := range row.Servers {
			fmt.Fprintf(w, "%.1f\t%.2f\t%.2f\t", row.Servers[i], row.Ratios[i], row.BestRatios[i])
		}
		fmt.Fprintln(w)
	}
}

// ratios of a server and a tool, of the queries in which both sides did the same.
func (r *searchReport) ratios(server int, tool string) (all []float64) {
	for _, row := range r.Rows {
		if row.Note == "" && row.Tool == tool {
			all = append(all, row.Ratios[server])
		}
	}
	return all
}
