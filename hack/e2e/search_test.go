package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestBenchSearch runs the search benchmark briefly, on small trees. It says nothing about speed; it shows
// that a query whose answer was not limited gives as many rows as the program that it is compared with.
func TestBenchSearch(t *testing.T) {
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(bounded(t, 5*time.Minute), "go", "build", "-o", bench, "../bench")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary, err := daemon.Build("rig-bridge")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(bounded(t, 5*time.Minute), bench, "search", "--json", "--rounds", "1", "--files", "1500",
		"--server", binary+" serve --port {port} --state-dir {state}")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var report struct {
		Versions, Missing []string
		Rows              []struct {
			Tree, Tool, Query, Note string
			ProgramRows             int
			Rows                    []int
			Ratio                   []float64
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	t.Logf("%v, missing: %v", report.Versions, report.Missing)
	if len(report.Rows) == 0 && len(report.Missing) == 0 {
		t.Error("nothing was measured and nothing is missing")
	}
	for _, r := range report.Rows {
		if strings.HasPrefix(r.Note, "other rows") || len(r.Ratio) != 1 || r.Ratio[0] <= 0 {
			t.Errorf("%+v", r)
		}
	}
}
