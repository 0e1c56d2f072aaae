package find_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/find"
)

// fd returns the program under one of its names, or "".
func fd() string {
	for _, name := range []string{"fd", "fdfind"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// BenchmarkAgainstFd compares with the fd process on 20,000 files, or on the tree that SEARCH_TREE names. The
// two take turns, so that other load hits both alike.
func BenchmarkAgainstFd(b *testing.B) {
	program := fd()
	if program == "" {
		b.Log("fd is not on PATH: nothing to compare with")
		return
	}
	tree := os.Getenv("SEARCH_TREE")
	if tree == "" {
		tree = b.TempDir()
		for i := range 20000 {
			dir := filepath.Join(tree, fmt.Sprintf("d%d/s%d", i%40, i%400))
			if i < 400 {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					b.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.txt", i)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(tree, ".git"), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	env := engine.Env{Cwd: tree, Home: b.TempDir(), ConfigHome: b.TempDir()}
	for _, c := range []struct{ name, pattern string }{
		{"absent", "zzqqxx_absent"}, {"suffix", "*99.txt"}, {"many", "*.go"}, {"all", "*"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := find.Run(context.Background(), env, find.Args{Pattern: c.pattern, Limit: 2000}); err != nil {
					b.Fatal(err)
				}
				ours = append(ours, time.Since(start))
				start = time.Now()
				out, err := exec.Command(program, "--hidden", "--glob", "--color=never", "--max-results", "2000", "--", c.pattern, tree).CombinedOutput()
				if err != nil && !strings.Contains(err.Error(), "exit status 1") {
					b.Fatalf("%v: %s", err, out)
				}
				theirs = append(theirs, time.Since(start))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			o, t := ours[len(ours)/2], theirs[len(theirs)/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(o.Microseconds())/1000, "ms-ours")
			b.ReportMetric(float64(t.Microseconds())/1000, "ms-fd")
			b.ReportMetric(float64(o)/float64(t), "ratio")
			b.ReportMetric(float64(ours[0])/float64(theirs[0]), "ratio-min")
		})
	}
}
