package grep_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/grep"
)

// BenchmarkAgainstRipgrep compares with the rg process on a tree of source text. SEARCH_TREE names the tree;
// it is the module's own directory by default. The two take turns, so that other load hits both alike.
func BenchmarkAgainstRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Log("rg is not on PATH: nothing to compare with")
		return
	}
	tree := os.Getenv("SEARCH_TREE")
	if tree == "" {
		tree = filepath.Join("..", "..", "..")
	}
	tree, err = filepath.Abs(tree)
	if err != nil {
		b.Fatal(err)
	}
	env := engine.Env{Cwd: tree, Home: b.TempDir(), ConfigHome: b.TempDir()}
	for _, c := range []struct {
		name string
		a    grep.Args
		args []string
	}{
		{"literal-rare", grep.Args{Pattern: "zzqqxx_absent"}, []string{"zzqqxx_absent"}},
		{"literal", grep.Args{Pattern: "NewSharedInformerFactory", Limit: 1000}, []string{"NewSharedInformerFactory"}},
		{"common-limit", grep.Args{Pattern: "func"}, []string{"func"}},
		{"ignore-case", grep.Args{Pattern: "sharedinformerfactoryx", IgnoreCase: true}, []string{"-i", "sharedinformerfactoryx"}},
		{"alternation", grep.Args{Pattern: "Deadline99|Timeout99|Cancel99"}, []string{"Deadline99|Timeout99|Cancel99"}},
		{"class-suffix", grep.Args{Pattern: `\w+Factory99\b`}, []string{`\w+Factory99\b`}},
		{"no-literal", grep.Args{Pattern: `[A-Z]{6}_[0-9]{5}`}, []string{`[A-Z]{6}_[0-9]{5}`}},
		{"unicode-words", grep.Args{Pattern: `\b\w{45,}\b`}, []string{`\b\w{45,}\b`}},
		{"anchored", grep.Args{Pattern: `^type \w+Xyz struct`}, []string{`^type \w+Xyz struct`}},
		{"glob", grep.Args{Pattern: "Kubelet", Glob: "*.md"}, []string{"-g", "*.md", "Kubelet"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, theirs []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := grep.Run(context.Background(), env, c.a); err != nil {
					b.Fatal(err)
				}
				ours = append(ours, time.Since(start))
				start = time.Now()
				args := append([]string{"--json", "--hidden", "--no-require-git", "--no-messages"}, c.args...)
				out, err := exec.Command(rg, append(args, tree)...).CombinedOutput()
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
			b.ReportMetric(float64(t.Microseconds())/1000, "ms-rg")
			b.ReportMetric(float64(o)/float64(t), "ratio")
			b.ReportMetric(float64(ours[0])/float64(theirs[0]), "ratio-min")
		})
	}
}
