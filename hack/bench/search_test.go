package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

func TestGeneratedTree(t *testing.T) {
	var sums []string
	for range 2 {
		dir := t.TempDir()
		if err := generate(dir, 600); err != nil {
			t.Fatal(err)
		}
		sum, files, depth := sha256.New(), 0, 0
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if e.Name() != ".gitignore" {
				files++
			}
			name := strings.TrimPrefix(path, dir)
			depth = max(depth, strings.Count(name, "/"))
			b, err := os.ReadFile(path)
			fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(b))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if files != 600 || depth < 4 {
			t.Errorf("%d files, %d deep", files, depth)
		}
		sums = append(sums, fmt.Sprintf("%x", sum.Sum(nil)))
	}
	if sums[0] != sums[1] {
		t.Error("two generated trees differ")
	}
}

func TestLargestModule(t *testing.T) {
	cache := t.TempDir()
	if _, err := largestModule(cache); err == nil {
		t.Error("an empty cache has a largest module")
	}
	for _, name := range []string{"cache/download/x@v9/1", "cache/download/x@v9/2", "cache/download/x@v9/3", "cache/download/x@v9/4",
		"a.org/small@v1/f", "a.org/b/large@v1.0.0/f", "a.org/b/large@v1.0.0/sub/g@h/i", "a.org/b/large@v1.0.0/sub/h"} {
		path := filepath.Join(cache, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := largestModule(cache)
	if want := filepath.Join(cache, "a.org/b/large@v1.0.0"); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestAnswerRows(t *testing.T) {
	for text, want := range map[string]struct {
		rows    int
		limited string
	}{
		"No matches found": {0, ""},
		"No files found matching pattern\n\n[1 ignored match: x]": {0, ""},
		"a:1: x":                       {1, ""},
		"a\nb\n\n[1 ignored match: c]": {2, ""},
		"a\nb\n\n[2 results limit reached. Use limit=4 for more, or refine pattern]": {2, "2 results limit reached. Use limit=4 for more, or refine pattern"},
		"a\n\n[incomplete: stopped after 30 seconds]":                                {1, "incomplete: stopped after 30 seconds"},
	} {
		rows, limited := answerRows(daemon.Result{Content: []daemon.Block{{Type: "text", Text: text}}})
		if rows != want.rows || limited != want.limited {
			t.Errorf("%q: %d rows, %q", text, rows, limited)
		}
	}
}

func TestRivalsCommandLines(t *testing.T) {
	q := query{Tool: "grep", Pattern: "-x", Glob: "*.go", Fold: true, Literal: true}
	want := "--json --line-number --color=never --hidden --ignore-case --fixed-strings --glob *.go -- -x /d"
	if got := strings.Join(rgArgs(q, "/d"), " "); got != want {
		t.Errorf("rg %s", got)
	}
	for pattern, want := range map[string]string{"*.go": "-- *.go /d", "a/b": "--full-path -- **/a/b /d", "/a/b": "--full-path -- /a/b /d"} {
		if got := strings.Join(fdArgs(query{Tool: "find", Pattern: pattern}, "/d"), " "); !strings.HasSuffix(got, "2000 "+want) {
			t.Errorf("fd %s", got)
		}
	}
}

func TestMissingRivalsAreNamed(t *testing.T) {
	r := findRivals("no-such-rg", "no-such-fd")
	if got := r.missing(); len(got) != 2 || r.of("grep") != nil || len(r.versions(context.Background())) != 0 {
		t.Errorf("%v", got)
	}
}

func TestPrintSearch(t *testing.T) {
	r := &searchReport{Rounds: 3, Versions: []string{"rg 1"}, Servers: []string{"rig-bridge"}, Missing: []string{"fd"}, Rows: []searchRow{
		{Tree: "t", Tool: "grep", Query: "q1", Rival: "rg", RivalMS: 10, Servers: []float64{5}, Ratios: []float64{0.5}, BestRatios: []float64{0.5}},
		{Tree: "t", Tool: "grep", Query: "q2", Rival: "rg", RivalMS: 10, Servers: []float64{40}, Ratios: []float64{4}, BestRatios: []float64{3}},
		{Tree: "t", Tool: "grep", Query: "q3", Rival: "rg", RivalMS: 1, Servers: []float64{9}, Ratios: []float64{9}, BestRatios: []float64{9}, Note: "limited: x"},
	}}
	if got := r.ratios(0, "grep"); !slices.Equal(got, []float64{0.5, 4}) {
		t.Errorf("ratios %v", got)
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rg 1; medians of 3 turns", "missing: fd", "not compared: t, grep, q3: limited: x", "grep: median ratio 4.00, worst 4.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("does not say %q:\n%s", want, out.String())
		}
	}
}

func TestConclude(t *testing.T) {
	row := searchRow{Rows: []int{3, 2}, RivalRows: 3}
	row.conclude([][]float64{{99, 1, 2, 6}, {99, 8, 8, 8}}, []float64{99, 2, 4, 5})
	if row.RivalMS != 4 || !slices.Equal(row.Servers, []float64{2, 8}) || !slices.Equal(row.Ratios, []float64{0.5, 2}) || !slices.Equal(row.BestRatios, []float64{0.5, 4}) {
		t.Errorf("%+v", row)
	}
	if row.Note != "other rows: 2 and 3" {
		t.Errorf("note %q", row.Note)
	}
}
