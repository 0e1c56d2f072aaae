// Command testsum reads the event stream of one or more "go test -json" runs from standard input. It
// prints what a person needs (the closing line of each package, the whole output of what failed, the
// reason of each skip) and, as its last line, how many tests passed, failed and were skipped. It ends
// with code 1 if anything failed, a build included.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	s, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	fmt.Println(s)
	if s.failed > 0 {
		os.Exit(1)
	}
}

// event is one line of the stream, as "go doc test2json" describes it.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	Test        string
	Output      string
	FailedBuild string
}

// summary counts tests. A test that only groups subtests is not counted beside them.
type summary struct{ passed, failed, skipped int }

func (s summary) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", s.passed, s.failed, s.skipped)
}

// suite is one package's run. The key of its maps is the test's name, empty for the package itself.
type suite struct {
	outcome map[string]string
	output  map[string]*strings.Builder
}

func summarize(in io.Reader, out io.Writer) (summary, error) {
	var total summary
	suites := map[string]*suite{}
	var skips []string
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return total, fmt.Errorf("read the events: %w", err)
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(out, "%s", line) // not an event: go's own words
			continue
		}
		if e.Action == "build-output" {
			fmt.Fprint(out, e.Output)
			continue
		}
		s := suites[e.Package]
		if s == nil {
			s = &suite{outcome: map[string]string{}, output: map[string]*strings.Builder{}}
			suites[e.Package] = s
		}
		if !s.take(e) {
			continue
		}
		delete(suites, e.Package) // the same package may run again with other flags
		total = s.count(total)
		s.report(out)
		skips = append(skips, s.skips(e.Package)...)
	}
	delete(suites, "") // build events
	for name := range suites {
		fmt.Fprintf(out, "FAIL\t%s [the run ended in the middle]\n", name)
		total.failed++
	}
	for _, s := range skips {
		fmt.Fprintln(out, s)
	}
	return total, nil
}

// take records an event and says whether the package has ended.
func (s *suite) take(e event) bool {
	switch e.Action {
	case "output":
		if s.output[e.Test] == nil {
			s.output[e.Test] = &strings.Builder{}
		}
		s.output[e.Test].WriteString(e.Output)
	case "pass", "fail", "skip":
		s.outcome[e.Test] = e.Action
		return e.Test == "" && e.Package != ""
	}
	return false
}

// count adds the tests of the package. A failed package without a failed test counts as one failure:
// its build, its start or its end failed. A failed group counts only if none of its subtests failed.
func (s *suite) count(total summary) summary {
	before := total.failed
	for test, outcome := range s.outcome {
		parts := s.below(test)
		switch {
		case test == "":
		case outcome == "fail" && !slices.ContainsFunc(parts, func(p string) bool { return s.outcome[p] == "fail" }):
			total.failed++
		case len(parts) > 0: // a group
		case outcome == "pass":
			total.passed++
		case outcome == "skip":
			total.skipped++
		}
	}
	if s.outcome[""] == "fail" && total.failed == before {
		total.failed++
	}
	return total
}

// below lists the subtests of a test at any depth.
func (s *suite) below(test string) (names []string) {
	for other := range s.outcome {
		if strings.HasPrefix(other, test+"/") {
			names = append(names, other)
		}
	}
	return names
}

// report prints go test's own lines: all of a failed package's failed tests, the closing line of the others.
func (s *suite) report(out io.Writer) {
	if s.outcome[""] == "fail" {
		for _, test := range slices.Sorted(maps.Keys(s.output)) {
			if test != "" && s.outcome[test] != "pass" && s.outcome[test] != "skip" {
				fmt.Fprint(out, s.output[test])
			}
		}
	}
	if s.output[""] == nil {
		return
	}
	for line := range strings.Lines(s.output[""].String()) {
		if s.outcome[""] == "fail" || strings.HasPrefix(line, "ok ") {
			fmt.Fprint(out, line)
		}
	}
}

// skips says which tests were skipped and why.
func (s *suite) skips(pkg string) (lines []string) {
	for _, test := range slices.Sorted(maps.Keys(s.outcome)) {
		if test == "" || s.outcome[test] != "skip" || s.output[test] == nil {
			continue
		}
		why := ""
		for line := range strings.Lines(s.output[test].String()) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
				why = line
			}
		}
		lines = append(lines, fmt.Sprintf("SKIP\t%s %s: %s", pkg, test, why))
	}
	return lines
}
