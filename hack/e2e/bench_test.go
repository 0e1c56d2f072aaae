package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestBench runs the benchmark briefly with two servers: one that it starts, one that runs already. It
// says nothing about speed; it shows that all calls succeed and that all figures are there.
func TestBench(t *testing.T) {
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(bounded(t, 5*time.Minute), "go", "build", "-o", bench, "../bench")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d := daemon.Start(t, daemon.Options{})
	cmd := exec.CommandContext(bounded(t, 5*time.Minute), bench, "--short", "--json",
		"--server", d.Binary()+" serve --port {port} --state-dir {state}", "--vs-url", d.URL(), "--vs-token-file", d.TokenFile())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	type row struct {
		Name                   string
		P50MS, LimitMS         float64
		Callers, Calls, Failed int
		Error                  string
	}
	var report struct {
		Limits  []row
		Servers []struct {
			StartMS            []float64
			IdleMiB, LoadedMiB float64
			Tools              []row
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Servers) != 2 || len(report.Limits) != 9 {
		t.Fatalf("%d servers, %d limits", len(report.Servers), len(report.Limits))
	}
	if s := report.Servers[0]; len(s.StartMS) != 1 || s.IdleMiB <= 0 || s.LoadedMiB <= 0 {
		t.Errorf("the started server: %+v", s)
	}
	for _, s := range report.Servers {
		if len(s.Tools) != 24 { // eight tools at three numbers of callers
			t.Errorf("%d cells", len(s.Tools))
		}
		for _, r := range s.Tools {
			if r.Failed > 0 || r.Calls == 0 || r.P50MS <= 0 || r.LimitMS <= 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}
