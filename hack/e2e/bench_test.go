package e2e

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// bench builds the benchmark and returns how to run it.
func bench(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(bounded(t, 5*time.Minute), "go", "build", "-o", path, "../bench")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) *exec.Cmd { return exec.CommandContext(bounded(t, 10*time.Minute), path, args...) }
}

// report runs the benchmark and reads the JSON that it prints.
func report(t *testing.T, cmd *exec.Cmd, into any) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, said.String())
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

// TestBench runs the benchmark briefly with two servers: one that it starts, one that runs already. It
// says nothing about speed; it shows that all calls succeed and that all figures are there.
func TestBench(t *testing.T) {
	run := bench(t)
	d := daemon.Start(t, daemon.Options{})
	for _, nonsense := range [][]string{{"no-such-mode"}, {"--short", "--url", d.URL(), "--token-file", d.StateDir()}, {"callers", "--counts", "-1"}} {
		if out, err := run(nonsense...).CombinedOutput(); err == nil {
			t.Errorf("%v passes: %s", nonsense, out)
		}
	}
	type row struct {
		Name                                string
		P50MS, P99MS, LimitMS, CPUMS, Ratio float64
		Callers, Calls, Failed              int
		Error                               string
	}
	type memory struct{ ResidentMiB, AnonymousMiB float64 }
	var got struct {
		Limits  []row
		Missing []string
		Servers []struct {
			StartMS      []float64
			Idle, Loaded memory
			Tools        []row
		}
	}
	report(t, run("--short", "--json", "--server", d.Binary()+" serve --port {port} --state-dir {state}", "--vs-url", d.URL(), "--vs-token-file", d.TokenFile()), &got)
	if len(got.Servers) != 2 || len(got.Limits) != 5*3 { // five limits at three numbers of callers
		t.Fatalf("%d servers, %d limits", len(got.Servers), len(got.Limits))
	}
	if s := got.Servers[0]; len(s.StartMS) != 1 || s.Idle.ResidentMiB <= s.Idle.AnonymousMiB || s.Idle.AnonymousMiB <= 0 || s.Loaded.AnonymousMiB <= 0 {
		t.Errorf("the started server: %+v", s)
	}
	cells := 9*3 + 3*2 // nine tools at three numbers of callers, three heavy ones at two
	if _, err := exec.LookPath("git"); err == nil {
		cells += 2
	}
	for i, s := range got.Servers {
		if len(s.Tools) != cells {
			t.Errorf("%d cells, want %d", len(s.Tools), cells)
		}
		for _, r := range s.Tools {
			if r.Failed > 0 || r.Calls < r.Callers || r.P50MS <= 0 || r.P99MS < r.P50MS || r.LimitMS <= 0 || r.Ratio <= 0 || i == 0 && r.CPUMS <= 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestBenchReceipts fills a small store and measures it.
func TestBenchReceipts(t *testing.T) {
	plots := t.TempDir()
	var got struct {
		Rows []struct {
			Receipts int
			StartMS  []float64
			DiskMiB  float64
			Idle     struct{ ResidentMiB float64 }
			Listing  struct {
				Items, Pages int
				Peak         struct{ AnonymousMiB float64 }
			}
			Tools []struct {
				Name         string
				Ratio, CPUMS float64
				Failed       int
				Error        string
			}
		}
	}
	report(t, bench(t)("receipts", "--short", "--json", "--counts", "0,1200", "--plots", plots), &got)
	if len(got.Rows) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, r := range got.Rows {
		if want := []int{0, 1200}[i]; r.Receipts != want || r.Listing.Items < want || r.Listing.Pages != 1+r.Listing.Items/500 || len(r.StartMS) != 1 ||
			r.DiskMiB <= 0 || r.Idle.ResidentMiB <= 0 || r.Listing.Peak.AnonymousMiB <= 0 || len(r.Tools) != 4 {
			t.Errorf("%+v", r)
		}
		for _, tool := range r.Tools {
			if tool.Failed > 0 || tool.Ratio <= 0 || tool.CPUMS <= 0 {
				t.Errorf("%d receipts: %+v", r.Receipts, tool)
			}
		}
	}
	wellFormedPlots(t, plots, "receipts-disk.svg", "receipts-latency.svg", "receipts-memory.svg", "receipts-start.svg")
}

// TestBenchSimulate makes a few thousand calls of a day's mix: all succeed, and afterwards the daemon holds no more
// descriptors and goroutines than before them. Pruning leaves no receipt.
func TestBenchSimulate(t *testing.T) {
	plots := t.TempDir()
	type holding struct {
		Descriptors, DescriptorsBesideStore, Goroutines int
		DiskMiB                                         float64
	}
	var got struct {
		Operations, Failed   int
		Done                 map[string]int
		Began, Ended, Pruned holding
		PruneSays            string
		Samples              []holding
	}
	const calls = 3000
	report(t, bench(t)("simulate", "--operations", "3000", "--minutes", "0", "--settle", "2s", "--json", "--plots", plots), &got)
	sum := 0
	for _, n := range got.Done {
		sum += n
	}
	if sum != calls || got.Failed > 0 || len(got.Done) != 15 || len(got.Samples) == 0 {
		t.Errorf("%d calls of %d kinds, %d failed, %d samples", sum, len(got.Done), got.Failed, len(got.Samples))
	}
	if got.Ended.Goroutines > got.Began.Goroutines+10 || got.Ended.DescriptorsBesideStore > got.Began.DescriptorsBesideStore+3 {
		t.Errorf("held before %+v, after %+v", got.Began, got.Ended)
	}
	t.Logf("before %+v, after %+v, pruned %+v: %s", got.Began, got.Ended, got.Pruned, got.PruneSays)
	wellFormedPlots(t, plots, "simulate-counts.svg", "simulate-disk.svg", "simulate-memory.svg")
}

func wellFormedPlots(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		for d := xml.NewDecoder(bytes.NewReader(b)); err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) || !bytes.Contains(b, []byte("<polyline")) || bytes.Contains(b, []byte("NaN")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
