package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSummarize(t *testing.T) {
	for name, c := range map[string]struct {
		in, summary string
		shows       []string
		hides       []string
	}{
		"passes, groups counted by their parts": {
			in: `{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/y"}
{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`, summary: "3 passed, 0 failed, 0 skipped", shows: []string{"ok  \tp\t0.1s\n"}, hides: []string{"noise"}},
		"a failed part fails its group once": {
			in: `{"Action":"output","Package":"p","Test":"TestA/x","Output":"why it failed\n"}
{"Action":"fail","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/y"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\tp\n"}
{"Action":"fail","Package":"p"}
`, summary: "1 passed, 1 failed, 0 skipped", shows: []string{"why it failed", "FAIL\tp\n"}},
		"a group that fails by itself": {
			in: `{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`, summary: "1 passed, 1 failed, 0 skipped"},
		"a build failure": {
			in: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"x.go:1: nonsense\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`, summary: "0 passed, 1 failed, 0 skipped", shows: []string{"nonsense", "[build failed]"}},
		"a crash shows the test that was running": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: timed out\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t60s\n"}
{"Action":"fail","Package":"p"}
`, summary: "0 passed, 1 failed, 0 skipped", shows: []string{"panic: timed out"}},
		"skips are named": {
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: needs a moon\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
{"Action":"skip","Package":"empty"}
`, summary: "0 passed, 0 failed, 1 skipped", shows: []string{"SKIP\tp TestA: a_test.go:1: needs a moon\n"}},
		"the same package twice": {
			in: `{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}
`, summary: "1 passed, 1 failed, 0 skipped"},
		"a stream that breaks off": {
			in: `{"Action":"pass","Package":"p","Test":"TestA"}`, summary: "0 passed, 1 failed, 0 skipped", shows: []string{"FAIL\tp"}},
		"other words pass through": {in: "go: no such module\n", summary: "0 passed, 0 failed, 0 skipped", shows: []string{"go: no such module\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			got, err := summarize(strings.NewReader(c.in), &out)
			if err != nil || got.String() != c.summary {
				t.Errorf("%v, %v, want %s", got, err, c.summary)
			}
			for _, s := range c.shows {
				if !strings.Contains(out.String(), s) {
					t.Errorf("does not show %q:\n%s", s, out.String())
				}
			}
			for _, s := range c.hides {
				if strings.Contains(out.String(), s) {
					t.Errorf("shows %q:\n%s", s, out.String())
				}
			}
		})
	}
}

// TestRealStream runs go test on a small module, so that a change of go's format is noticed.
func TestRealStream(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module m\n\ngo 1.26\n",
		"a/a_test.go":      "package a\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) {}\nfunc TestBad(t *testing.T) { t.Error(\"bad luck\") }\nfunc TestLater(t *testing.T) { t.Skip(\"needs luck\") }\n",
		"broken/b.go":      "package broken\n\nvar x int = \"no\"\n",
		"broken/b_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-json", "./...")
	cmd.Dir = dir
	events, err := cmd.Output()
	if err == nil {
		t.Error("go test should fail")
	}
	var out strings.Builder
	got, err := summarize(strings.NewReader(string(events)), &out)
	if want := (summary{passed: 1, failed: 2, skipped: 1}); err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, s := range []string{"bad luck", "cannot use", "needs luck"} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("does not show %q:\n%s", s, out.String())
		}
	}
}
